package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ridge/text/grammar"
)

// conjRule returns the rule of the values that meet all schemas of a
// conjunction. Rules are made once for each conjunction, so schemas that refer
// to each other end in rules that call each other.
func (c *schemaCompiler) conjRule(conj []*schema) *grammar.Rule {
	conj = simplify(conj)
	if len(conj) == 0 {
		return c.j.anyValue()
	}
	key := conjKey(conj)
	if r := c.rules[key]; r != nil {
		return r
	}
	r := c.b.Rule(conj[0].at)
	c.rules[key] = r
	c.addAlternatives(r, r.Start, conj, r.End)
	return r
}

// addValue adds the values that meet a conjunction between two states: in place
// where nothing refers to its schemas, as a call where something does.
func (c *schemaCompiler) addValue(r *grammar.Rule, from int32, conj []*schema, to int32) {
	if c.stopped() {
		return
	}
	conj = simplify(conj)
	shared := len(conj) == 0
	for _, s := range conj {
		shared = shared || s.target || s.refers()
	}
	if shared {
		r.Call(from, c.conjRule(conj), to)
		return
	}
	c.addAlternatives(r, from, conj, to)
}

func (c *schemaCompiler) addAlternatives(r *grammar.Rule, from int32, conj []*schema, to int32) {
	if list := conj[0].union(); list != nil && len(conj) == 1 {
		// Nothing to merge: branches that are references stay calls.
		if s := conj[0]; len(s.one) > 0 {
			list = c.exclusive(s)
		}
		for _, t := range list {
			c.addValue(r, from, []*schema{t}, to)
		}
		return
	}
	for _, a := range c.alternatives(conj) {
		if c.stopped() {
			return
		}
		c.addAlternative(r, from, a, to, conj[0])
	}
}

// addAlternative adds the values of one alternative; at is a schema to blame in
// errors.
func (c *schemaCompiler) addAlternative(r *grammar.Rule, from int32, a *alternative, to int32, at *schema) {
	if a.valued {
		var texts []string
		for _, v := range a.values {
			switch v.kind {
			case jsonArray, jsonObject:
				c.j.literal(r, from, v, to)
			default:
				texts = append(texts, v.scalar())
			}
		}
		r.Texts(from, texts, to)
		return
	}
	t := c.written(a)
	if a.plain() && t == allTypes {
		r.Call(from, c.j.anyValue(), to)
		return
	}
	if t&typeNull != 0 {
		r.Text(from, "null", to)
	}
	if t&typeBool != 0 {
		for _, truth := range [...]bool{true, false} {
			if !slices.ContainsFunc(a.excluded, (&jsonValue{kind: jsonBool, truth: truth}).equal) {
				r.Text(from, strconv.FormatBool(truth), to)
			}
		}
	}
	if t&typeNumber != 0 {
		r.Call(from, c.numberRule(a, t, at), to)
	}
	if t&typeString != 0 {
		r.Call(from, c.stringRule(a, at), to)
	}
	if t&typeArray != 0 {
		c.addArray(r, from, a, to, at)
	}
	if t&typeObject != 0 {
		c.addObject(r, from, a, to, at)
	}
}

// blame makes at and keyword the place of errors of size until the function that
// it returns is called.
func (c *schemaCompiler) blame(at *schema, keyword string) func() {
	return c.b.Blame(strings.TrimSpace(c.prefix+" "+at.at), keyword)
}

// stringRule returns the rule of the strings of an alternative.
func (c *schemaCompiler) stringRule(a *alternative, at *schema) *grammar.Rule {
	words := a.excludedTexts()
	if len(a.patterns)+len(words) == 0 && a.minLen == 0 && a.maxLen < 0 {
		return c.j.anyString()
	}
	var key strings.Builder
	fmt.Fprintf(&key, "s %d %d", a.minLen, a.maxLen)
	for _, d := range a.patterns {
		fmt.Fprintf(&key, " %p", d)
	}
	for _, w := range words {
		fmt.Fprintf(&key, " %q", w)
	}
	if r := c.leafRules[key.String()]; r != nil {
		return r
	}
	r := c.b.Rule("string of " + at.at)
	c.leafRules[key.String()] = r
	if a.maxLen >= 0 && a.minLen > a.maxLen {
		return r // spells nothing
	}
	defer c.blame(a.owner(at, "pattern", "format", "maxLength", "minLength", "enum", "const"))()
	open, closing := r.State(), r.State()
	r.Bytes(r.Start, '"', '"', open)
	r.Bytes(closing, '"', '"', r.End)
	switch {
	case len(a.patterns)+len(words) > 0:
		c.addMeasured(r, open, a, closing)
	case a.maxLen == 0:
		r.Skip(open, closing)
	default:
		r.Call(open, c.b.Loop("characters of "+at.at, c.j.anyChar(), a.minLen, a.maxLen), closing)
	}
	return r
}

// addMeasured adds the inside of the strings of an alternative with patterns or
// texts that are left out.
func (c *schemaCompiler) addMeasured(r *grammar.Rule, from int32, a *alternative, to int32) {
	most := a.maxLen
	b := *a
	b.maxLen = -1
	d := c.stringDFA(&b)
	if c.stopped() {
		return
	}
	longest := d.Longest()
	switch {
	case most >= 0 && d.Shortest() > most:
	case most < 0 || longest >= 0 && longest <= most:
		spellInside(r, from, d, to)
	default:
		body := c.b.Rule("inside of " + r.Name())
		spellInside(body, body.Start, d, body.End)
		r.Call(from, c.b.Measured("bounded "+r.Name(), body, most), to)
	}
}

// stringDFA returns the automaton of the texts of the strings of an alternative,
// nil if these are all.
func (c *schemaCompiler) stringDFA(a *alternative) *grammar.RuneDFA {
	parts := slices.Clone(a.patterns)
	if words := a.excludedTexts(); len(words) > 0 {
		parts = append(parts, c.b.Words(words).Complement())
	}
	if a.minLen > 0 || a.maxLen >= 0 {
		parts = append(parts, c.b.Lengths(a.minLen, a.maxLen))
	}
	if len(parts) == 0 {
		return nil
	}
	return c.joined(parts)
}

func (a *alternative) excludedTexts() []string {
	var words []string
	for _, v := range a.excluded {
		if v.kind == jsonString {
			words = append(words, v.text)
		}
	}
	return words
}
