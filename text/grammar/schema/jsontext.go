package schema

import (
	"unicode/utf8"

	"ridge/text/grammar"
)

// Whitespace says which white space may stand between the parts of a JSON text.
// None of the forms allows endless white space, and none has any before or
// after the text.
type Whitespace int

const (
	// Flexible allows, after each bracket, comma and colon and before a closing
	// bracket, nothing, a space, or a line break and an indentation of at most
	// maxIndent spaces or tabs: what models write of their own accord.
	Flexible Whitespace = iota
	// Compact allows none: {"a":1,"b":[2,3]}
	Compact
	// Spaced has one space after commas and colons: {"a": 1, "b": [2, 3]}
	Spaced
	// Pretty has a line break and an indentation around the members of objects
	// and arrays, and a space after colons.
	Pretty
)

const maxIndent = 40

// place is where white space may stand.
type place int

const (
	afterOpen place = iota
	beforeClose
	afterComma
	afterColon
)

// jsonText builds the parts that all JSON grammars share, each once.
type jsonText struct {
	b     *grammar.Builder
	space Whitespace

	spaceRule, value, object, str, char *grammar.Rule
	number, integer                     *grammar.Rule
}

// gap adds white space between two states.
func (j *jsonText) gap(r *grammar.Rule, from int32, at place, to int32) {
	switch j.space {
	case Flexible:
		r.Skip(from, to)
		r.Call(from, j.spaces(), to)
	case Compact:
		r.Skip(from, to)
	case Spaced:
		if at == afterComma || at == afterColon {
			r.Bytes(from, ' ', ' ', to)
		} else {
			r.Skip(from, to)
		}
	case Pretty:
		if at == afterColon {
			r.Bytes(from, ' ', ' ', to)
		} else {
			r.Call(from, j.spaces(), to)
		}
	}
}

// spaces spells one piece of white space, which is not empty.
func (j *jsonText) spaces() *grammar.Rule {
	if j.spaceRule != nil {
		return j.spaceRule
	}
	r := j.b.Rule("space")
	j.spaceRule = r
	if j.space == Flexible {
		r.Bytes(r.Start, ' ', ' ', r.End)
	}
	at := r.State()
	r.Bytes(r.Start, '\n', '\n', at)
	for range maxIndent {
		next := r.State()
		r.Skip(at, r.End)
		r.Bytes(at, ' ', ' ', next)
		r.Bytes(at, '\t', '\t', next)
		at = next
	}
	r.Skip(at, r.End)
	return r
}

// anyString spells any JSON string with its quotes.
func (j *jsonText) anyString() *grammar.Rule {
	if j.str == nil {
		j.str = j.b.Rule("string")
		r := j.str
		in := r.State()
		r.Bytes(r.Start, '"', '"', in)
		addChar(r, in, in)
		r.Bytes(in, '"', '"', r.End)
	}
	return j.str
}

// anyChar spells one character inside a JSON string, in any spelling.
func (j *jsonText) anyChar() *grammar.Rule {
	if j.char == nil {
		j.char = j.b.Rule("char")
		addChar(j.char, j.char.Start, j.char.End)
	}
	return j.char
}

// rawRunes are the code points that a JSON string may have unescaped.
var rawRunes = grammar.RuneSet{0x20, '"' - 1, '"' + 1, '\\' - 1, '\\' + 1, 0xD7FF, 0xE000, utf8.MaxRune} // no surrogates

// addChar adds all spellings of one character between two states: itself, a
// short escape, \uXXXX, or a pair of surrogates. A lone surrogate is none.
func addChar(r *grammar.Rule, from, to int32) {
	r.Runes(from, rawRunes, to, grammar.Tails{})
	esc, u := r.State(), r.State()
	r.Bytes(from, '\\', '\\', esc)
	for _, c := range []byte(`"\/bfnrt`) {
		r.Bytes(esc, c, c, to)
	}
	r.Bytes(esc, 'u', 'u', u)
	hex := func(from int32, digits string, to int32) {
		for i := range len(digits) {
			r.Bytes(from, digits[i], digits[i], to)
		}
	}
	const all = "0123456789abcdefABCDEF"
	h1, h2, h3 := r.State(), r.State(), r.State()
	hex(u, "0123456789abcefABCEF", h1) // not D
	hex(h1, all, h2)
	hex(h2, all, h3)
	hex(h3, all, to)
	d := r.State()
	hex(u, "dD", d)
	hex(d, "01234567", h2)
	p1, p2, p3, p4, p5 := r.State(), r.State(), r.State(), r.State(), r.State()
	hex(d, "89abAB", p1)
	hex(p1, all, p2)
	hex(p2, all, p3)
	r.Text(p3, `\u`, p4)
	hex(p4, "dD", p5)
	hex(p5, "cdefCDEF", h2)
}

// spellInside adds the spellings of what d accepts inside a JSON string: each
// character as itself where JSON allows it, escaped in the shortest way where it
// does not.
func spellInside(r *grammar.Rule, from int32, d *grammar.RuneDFA, to int32) {
	r.Spell(from, d, to, func(from int32, on grammar.RuneSet, to int32, shared grammar.Tails) {
		r.Runes(from, on.Intersect(rawRunes), to, shared)
		for _, seq := range escapes(on) {
			r.Sequence(from, seq, to, shared)
		}
	})
}

// escapes returns the spellings of the characters of s that need one: the short
// escape, or \u00XX in upper and lower case.
func escapes(s grammar.RuneSet) [][]grammar.ByteRange {
	var out [][]grammar.ByteRange
	add := func(text string, last grammar.ByteRange) {
		seq := make([]grammar.ByteRange, 0, len(text)+1)
		for i := range len(text) {
			seq = append(seq, grammar.ByteRange{Lo: text[i], Hi: text[i]})
		}
		out = append(out, append(seq, last))
	}
	need := s.Intersect(grammar.RuneSet{0, 0x1F, '"', '"', '\\', '\\'})
	for i := 0; i < len(need); i += 2 {
		for c := need[i]; c <= need[i+1]; c++ {
			if short := quoteRune(c); len(short) == 2 {
				add(short[:1], grammar.ByteRange{Lo: short[1], Hi: short[1]})
			}
		}
	}
	long := need.Intersect(grammar.RuneSet{0, 7, 0x0B, 0x0B, 0x0E, 0x1F})
	for _, high := range []rune{0, 1} {
		for _, digits := range [...]struct {
			lo, hi rune
			first  byte
		}{{0, 9, '0'}, {10, 15, 'a'}, {10, 15, 'A'}} {
			part := long.Intersect(grammar.RuneSet{high<<4 + digits.lo, high<<4 + digits.hi})
			for i := 0; i < len(part); i += 2 {
				at := func(c rune) byte { return digits.first + byte(c&15-digits.lo) }
				add(`\u00`+string('0'+high), grammar.ByteRange{Lo: at(part[i]), Hi: at(part[i+1])})
			}
		}
	}
	return out
}

func quoteRune(c rune) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if c < 0x20 {
		const hex = "0123456789abcdef"
		return `\u00` + hex[c>>4:c>>4+1] + hex[c&15:c&15+1]
	}
	return string(c)
}

// quote returns s as a JSON string in the one spelling that literals have.
func quote(s string) string {
	out := []byte{'"'}
	for _, c := range s {
		out = append(out, quoteRune(c)...)
	}
	return string(append(out, '"'))
}

// anyNumber spells any JSON number that a double can hold: at most 18 digits
// before and 17 after the point, and an exponent up to 289.
func (j *jsonText) anyNumber() *grammar.Rule {
	if j.number == nil {
		j.number = j.b.Rule("number")
		j.number.Spell(j.number.Start, fixedDFA(numberExpr), j.number.End, j.number.Runes)
	}
	return j.number
}

const (
	integerExpr = `-?(0|[1-9][0-9]{0,17})`
	numberExpr  = integerExpr + `(\.[0-9]{1,17})?([eE][+-]?(0?[0-9]{1,2}|1[0-9][0-9]|2[0-8][0-9]))?`
)

// anyInteger spells an integer of at most 18 digits.
func (j *jsonText) anyInteger() *grammar.Rule {
	if j.integer == nil {
		j.integer = j.b.Rule("integer")
		j.integer.Spell(j.integer.Start, fixedDFA(integerExpr), j.integer.End, j.integer.Runes)
	}
	return j.integer
}

// anyObject spells any JSON object.
func (j *jsonText) anyObject() *grammar.Rule {
	if j.object == nil {
		j.object = j.b.Rule("object")
		j.addObject(j.object, j.object.Start, j.object.End)
	}
	return j.object
}

// anyValue spells any JSON value.
func (j *jsonText) anyValue() *grammar.Rule {
	if j.value != nil {
		return j.value
	}
	r := j.b.Rule("value")
	j.value = r
	for _, word := range []string{"true", "false", "null"} {
		r.Text(r.Start, word, r.End)
	}
	r.Call(r.Start, j.anyString(), r.End)
	r.Call(r.Start, j.anyNumber(), r.End)
	j.addObject(r, r.Start, r.End)
	j.addArray(r, r.Start, r.End)
	return r
}

func (j *jsonText) addObject(r *grammar.Rule, from, to int32) {
	open, first, key, colon, value, after, comma, closing := r.State(), r.State(), r.State(), r.State(), r.State(), r.State(), r.State(), r.State()
	r.Bytes(from, '{', '{', open)
	r.Bytes(open, '}', '}', to)
	j.gap(r, open, afterOpen, first)
	r.Skip(first, key)
	r.Call(key, j.anyString(), colon)
	next := r.State()
	r.Bytes(colon, ':', ':', next)
	j.gap(r, next, afterColon, value)
	r.Call(value, j.anyValue(), after)
	r.Bytes(after, ',', ',', comma)
	j.gap(r, comma, afterComma, key)
	j.gap(r, after, beforeClose, closing)
	r.Bytes(closing, '}', '}', to)
}

func (j *jsonText) addArray(r *grammar.Rule, from, to int32) {
	open, value, after, comma, closing := r.State(), r.State(), r.State(), r.State(), r.State()
	r.Bytes(from, '[', '[', open)
	r.Bytes(open, ']', ']', to)
	j.gap(r, open, afterOpen, value)
	r.Call(value, j.anyValue(), after)
	r.Bytes(after, ',', ',', comma)
	j.gap(r, comma, afterComma, value)
	j.gap(r, after, beforeClose, closing)
	r.Bytes(closing, ']', ']', to)
}

// JSON compiles the grammar of all JSON texts; with object set, of those that
// are objects. Of o it uses Whitespace and MaxDepth.
func JSON(v *grammar.Vocabulary, object bool, o Options) (*grammar.Grammar, error) {
	b := o.builder("json")
	j := &jsonText{b: b, space: o.Whitespace}
	root := j.anyValue()
	if object {
		root = j.anyObject()
	}
	return b.Compile(root, v, o.MaxDepth)
}
