package schema

import (
	"slices"
	"strconv"

	"ridge/text/grammar"
)

// uniqueItems on items of which there are too many to list: those that have come
// are remembered while a text is read (grammar.Builder.Unique), spelled in the one
// way that equal values have here. So items are strings, numbers, booleans and
// nulls: of objects the order of members would matter. Where they may be arrays or
// objects too, they are not.

// canonicalExpr are numbers as they are written where equal ones must be equal
// texts.
const canonicalExpr = `0|-?[1-9][0-9]{0,17}|-?(0|[1-9][0-9]{0,17})\.[0-9]{0,16}[1-9]`

// maxScalarStates bounds the automaton of the strings of a set; a bound of their
// length that would need more states is lowered.
const maxScalarStates = 8000

// addDistinct adds the arrays of an alternative with uniqueItems whose items are
// scalars; it reports whether they are.
func (c *schemaCompiler) addDistinct(r *grammar.Rule, from int32, a *alternative, to int32, at *schema) bool {
	places, lo, hi := arrayBounds(a)
	if places > 0 || len(a.contains) > 0 || hi == 0 {
		return false
	}
	alts := c.alternatives(simplify(itemAt(a, 0)))
	scalars := false
	for _, x := range alts {
		if x.valued && slices.ContainsFunc(x.values, func(v *jsonValue) bool { return v.kind == jsonArray || v.kind == jsonObject }) {
			return false
		}
		scalars = scalars || x.valued || c.written(x)&^(typeArray|typeObject) != 0
	}
	if !scalars {
		return false
	}
	item, between := c.b.Rule("item"), c.b.Rule("comma")
	for _, x := range alts {
		c.addScalars(item, x, at)
	}
	c.addComma(between, between.Start, between.End)
	open, begin, done, closing := r.State(), r.State(), r.State(), r.State()
	r.Bytes(from, '[', '[', open)
	if lo == 0 {
		r.Bytes(open, ']', ']', to)
	}
	c.j.gap(r, open, afterOpen, begin)
	s, _ := a.owner(at, "uniqueItems")
	r.Call(begin, c.b.Unique("items of "+s.at, item, between, lo, hi), done)
	c.j.gap(r, done, beforeClose, closing)
	r.Bytes(closing, ']', ']', to)
	return true
}

// addScalars adds the values of an alternative, which are scalars, each in one
// spelling and without calls.
func (c *schemaCompiler) addScalars(r *grammar.Rule, a *alternative, at *schema) {
	if a.valued {
		var texts []string
		known := map[string]bool{} // 1 and 1.0 are one
		for _, v := range a.values {
			if !known[v.key()] {
				known[v.key()] = true
				texts = append(texts, v.scalar())
			}
		}
		r.Texts(r.Start, texts, r.End)
		return
	}
	t := c.written(a)
	if t&typeNull != 0 {
		r.Text(r.Start, "null", r.End)
	}
	for _, truth := range [...]bool{true, false} {
		if t&typeBool != 0 && !slices.ContainsFunc(a.excluded, (&jsonValue{kind: jsonBool, truth: truth}).equal) {
			r.Text(r.Start, strconv.FormatBool(truth), r.End)
		}
	}
	if t&typeNumber != 0 {
		defer c.blame(a.owner(at, "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"))()
		for _, d := range c.numberParts(a, t) {
			if d == nil {
				d = fixedDFA(integerExpr)
				if t&typeFraction != 0 {
					d = fixedDFA(canonicalExpr)
				}
			}
			d = d.Intersect(c.b, fixedDFA(canonicalExpr))
			r.Spell(r.Start, d, r.End, r.Runes)
		}
	}
	if t&typeString != 0 {
		defer c.blame(a.owner(at, "pattern", "format", "maxLength", "minLength"))()
		b := *a
		b.maxLen = -1
		d := c.stringDFA(&b)
		if d == nil {
			d = fixedDFA(`(?s:.*)`)
		}
		if a.maxLen >= 0 {
			d = d.Intersect(c.b, c.b.Lengths(0, min(a.maxLen, max(a.minLen, maxScalarStates/d.Size()))))
		}
		spellOnce(r, d)
	}
}

// spellOnce adds the strings that d accepts to the whole of r, each in one spelling.
func spellOnce(r *grammar.Rule, d *grammar.RuneDFA) {
	open, closing := r.State(), r.State()
	r.Bytes(r.Start, '"', '"', open)
	r.Spell(open, d, closing, func(from int32, on grammar.RuneSet, to int32, shared grammar.Tails) {
		r.Runes(from, on.Intersect(rawRunes), to, shared)
		for _, x := range [...]grammar.RuneSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}} {
			need := on.Intersect(x)
			for i := 0; i < len(need); i += 2 {
				for ch := need[i]; ch <= need[i+1]; ch++ {
					r.Text(from, quoteRune(ch), to)
				}
			}
		}
	})
	r.Bytes(closing, '"', '"', r.End)
}
