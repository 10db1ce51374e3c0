package grammar

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
	b     *builder
	space Whitespace

	spaceRule, value, object, str, char *ruleGraph
	number, integer                     *ruleGraph
}

// gap adds white space between two states.
func (j *jsonText) gap(r *ruleGraph, from int32, at place, to int32) {
	switch j.space {
	case Flexible:
		r.skip(from, to)
		r.call(from, j.spaces(), to)
	case Compact:
		r.skip(from, to)
	case Spaced:
		if at == afterComma || at == afterColon {
			r.bytes(from, ' ', ' ', to)
		} else {
			r.skip(from, to)
		}
	case Pretty:
		if at == afterColon {
			r.bytes(from, ' ', ' ', to)
		} else {
			r.call(from, j.spaces(), to)
		}
	}
}

// spaces spells one piece of white space, which is not empty.
func (j *jsonText) spaces() *ruleGraph {
	if j.spaceRule != nil {
		return j.spaceRule
	}
	r := j.b.rule("space")
	j.spaceRule = r
	if j.space == Flexible {
		r.bytes(r.start, ' ', ' ', r.end)
	}
	at := r.state()
	r.bytes(r.start, '\n', '\n', at)
	for range maxIndent {
		next := r.state()
		r.skip(at, r.end)
		r.bytes(at, ' ', ' ', next)
		r.bytes(at, '\t', '\t', next)
		at = next
	}
	r.skip(at, r.end)
	return r
}

// anyString spells any JSON string with its quotes.
func (j *jsonText) anyString() *ruleGraph {
	if j.str == nil {
		j.str = j.b.rule("string")
		r := j.str
		in := r.state()
		r.bytes(r.start, '"', '"', in)
		addChar(r, in, in)
		r.bytes(in, '"', '"', r.end)
	}
	return j.str
}

// anyChar spells one character inside a JSON string, in any spelling.
func (j *jsonText) anyChar() *ruleGraph {
	if j.char == nil {
		j.char = j.b.rule("char")
		addChar(j.char, j.char.start, j.char.end)
	}
	return j.char
}

// rawRunes are the code points that a JSON string may have unescaped.
var rawRunes = runeSet{0x20, '"' - 1, '"' + 1, '\\' - 1, '\\' + 1, surrogateMin - 1, surrogateMax + 1, maxRune}

// addChar adds all spellings of one character between two states: itself, a
// short escape, \uXXXX, or a pair of surrogates. A lone surrogate is none.
func addChar(r *ruleGraph, from, to int32) {
	r.runes(from, rawRunes, to, suffixes{})
	esc, u := r.state(), r.state()
	r.bytes(from, '\\', '\\', esc)
	for _, c := range []byte(`"\/bfnrt`) {
		r.bytes(esc, c, c, to)
	}
	r.bytes(esc, 'u', 'u', u)
	hex := func(from int32, digits string, to int32) {
		for i := range len(digits) {
			r.bytes(from, digits[i], digits[i], to)
		}
	}
	const all = "0123456789abcdefABCDEF"
	h1, h2, h3 := r.state(), r.state(), r.state()
	hex(u, "0123456789abcefABCEF", h1) // not D
	hex(h1, all, h2)
	hex(h2, all, h3)
	hex(h3, all, to)
	d := r.state()
	hex(u, "dD", d)
	hex(d, "01234567", h2)
	p1, p2, p3, p4, p5 := r.state(), r.state(), r.state(), r.state(), r.state()
	hex(d, "89abAB", p1)
	hex(p1, all, p2)
	hex(p2, all, p3)
	r.text(p3, `\u`, p4)
	hex(p4, "dD", p5)
	hex(p5, "cdefCDEF", h2)
}

// spellInside adds the spellings of what d accepts inside a JSON string: each
// character as itself where JSON allows it, escaped in the shortest way where it
// does not.
func (r *ruleGraph) spellInside(from int32, d *runeDFA, to int32) {
	if r.b.err != nil {
		return
	}
	at := make([]int32, len(d.final))
	for q := range at {
		at[q] = r.state()
	}
	r.skip(from, at[d.start])
	shared := suffixes{}
	for q := range at {
		if r.b.err != nil {
			return
		}
		d.edges(int32(q), func(next int32, on runeSet) {
			r.runes(at[q], on.intersect(rawRunes), at[next], shared)
			for _, seq := range escapes(on) {
				r.sequence(at[q], seq, at[next], shared)
			}
		})
		if d.final[q] {
			r.skip(at[q], to)
		}
	}
}

// escapes returns the spellings of the characters of s that need one: the short
// escape, or \u00XX in upper and lower case.
func escapes(s runeSet) [][]byteRange {
	var out [][]byteRange
	add := func(text string, last byteRange) {
		seq := make([]byteRange, 0, len(text)+1)
		for i := range len(text) {
			seq = append(seq, byteRange{text[i], text[i]})
		}
		out = append(out, append(seq, last))
	}
	need := s.intersect(runeSet{0, 0x1F, '"', '"', '\\', '\\'})
	for i := 0; i < len(need); i += 2 {
		for c := need[i]; c <= need[i+1]; c++ {
			if short := quoteRune(c); len(short) == 2 {
				add(short[:1], byteRange{short[1], short[1]})
			}
		}
	}
	long := need.intersect(runeSet{0, 7, 0x0B, 0x0B, 0x0E, 0x1F})
	for _, high := range []rune{0, 1} {
		for _, digits := range [...]struct {
			lo, hi rune
			first  byte
		}{{0, 9, '0'}, {10, 15, 'a'}, {10, 15, 'A'}} {
			part := long.intersect(runeSet{high<<4 + digits.lo, high<<4 + digits.hi})
			for i := 0; i < len(part); i += 2 {
				at := func(c rune) byte { return digits.first + byte(c&15-digits.lo) }
				add(`\u00`+string('0'+high), byteRange{at(part[i]), at(part[i+1])})
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
func (j *jsonText) anyNumber() *ruleGraph {
	if j.number == nil {
		j.number = j.b.rule("number")
		j.number.spell(j.number.start, fixedDFA(numberExpr), j.number.end)
	}
	return j.number
}

const (
	integerExpr = `-?(0|[1-9][0-9]{0,17})`
	numberExpr  = integerExpr + `(\.[0-9]{1,17})?([eE][+-]?(0?[0-9]{1,2}|1[0-9][0-9]|2[0-8][0-9]))?`
)

// anyInteger spells an integer of at most 18 digits.
func (j *jsonText) anyInteger() *ruleGraph {
	if j.integer == nil {
		j.integer = j.b.rule("integer")
		j.integer.spell(j.integer.start, fixedDFA(integerExpr), j.integer.end)
	}
	return j.integer
}

// anyObject spells any JSON object.
func (j *jsonText) anyObject() *ruleGraph {
	if j.object == nil {
		j.object = j.b.rule("object")
		j.addObject(j.object, j.object.start, j.object.end)
	}
	return j.object
}

// anyValue spells any JSON value.
func (j *jsonText) anyValue() *ruleGraph {
	if j.value != nil {
		return j.value
	}
	r := j.b.rule("value")
	j.value = r
	for _, word := range []string{"true", "false", "null"} {
		r.text(r.start, word, r.end)
	}
	r.call(r.start, j.anyString(), r.end)
	r.call(r.start, j.anyNumber(), r.end)
	j.addObject(r, r.start, r.end)
	j.addArray(r, r.start, r.end)
	return r
}

func (j *jsonText) addObject(r *ruleGraph, from, to int32) {
	open, first, key, colon, value, after, comma, closing := r.state(), r.state(), r.state(), r.state(), r.state(), r.state(), r.state(), r.state()
	r.bytes(from, '{', '{', open)
	r.bytes(open, '}', '}', to)
	j.gap(r, open, afterOpen, first)
	r.skip(first, key)
	r.call(key, j.anyString(), colon)
	next := r.state()
	r.bytes(colon, ':', ':', next)
	j.gap(r, next, afterColon, value)
	r.call(value, j.anyValue(), after)
	r.bytes(after, ',', ',', comma)
	j.gap(r, comma, afterComma, key)
	j.gap(r, after, beforeClose, closing)
	r.bytes(closing, '}', '}', to)
}

func (j *jsonText) addArray(r *ruleGraph, from, to int32) {
	open, value, after, comma, closing := r.state(), r.state(), r.state(), r.state(), r.state()
	r.bytes(from, '[', '[', open)
	r.bytes(open, ']', ']', to)
	j.gap(r, open, afterOpen, value)
	r.call(value, j.anyValue(), after)
	r.bytes(after, ',', ',', comma)
	j.gap(r, comma, afterComma, value)
	j.gap(r, after, beforeClose, closing)
	r.bytes(closing, ']', ']', to)
}

// JSON compiles the grammar of all JSON texts; with object set, of those that
// are objects. Of o it uses Whitespace and MaxDepth.
func JSON(v *Vocabulary, object bool, o Options) (*Grammar, error) {
	b := &builder{source: "json"}
	j := &jsonText{b: b, space: o.Whitespace}
	root := j.anyValue()
	if object {
		root = j.anyObject()
	}
	return compile(b, root, v, o.MaxDepth)
}
