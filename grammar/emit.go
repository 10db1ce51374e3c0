package grammar

import (
	"fmt"
	"math/big"
	"strings"
)

// conjRule returns the rule of the values that meet all schemas of a
// conjunction. Rules are made once for each conjunction, so schemas that refer
// to each other end in rules that call each other.
func (c *schemaCompiler) conjRule(conj []*schema) *ruleGraph {
	conj = simplify(conj)
	if len(conj) == 0 {
		return c.j.anyValue()
	}
	key := conjKey(conj)
	if r := c.rules[key]; r != nil {
		return r
	}
	r := c.b.rule(conj[0].at)
	c.rules[key] = r
	c.addAlternatives(r, r.start, conj, r.end)
	return r
}

// addValue adds the values that meet a conjunction between two states: in place
// where nothing refers to its schemas, as a call where something does.
func (c *schemaCompiler) addValue(r *ruleGraph, from int32, conj []*schema, to int32) {
	if c.stopped() {
		return
	}
	conj = simplify(conj)
	shared := len(conj) == 0
	for _, s := range conj {
		shared = shared || s.target || s.refers()
	}
	if shared {
		r.call(from, c.conjRule(conj), to)
		return
	}
	c.addAlternatives(r, from, conj, to)
}

func (c *schemaCompiler) addAlternatives(r *ruleGraph, from int32, conj []*schema, to int32) {
	if list := conj[0].union(); list != nil && len(conj) == 1 {
		// Nothing to merge: branches that are references stay calls.
		if s := conj[0]; len(s.one) > 0 && !s.apart && !c.o.LooseOneOf {
			s.apart = true
			c.tellApart(s, []*schema{s})
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
func (c *schemaCompiler) addAlternative(r *ruleGraph, from int32, a *alternative, to int32, at *schema) {
	if a.valued {
		for _, v := range a.values {
			c.j.literal(r, from, v, to)
		}
		return
	}
	t := c.written(a)
	if a.plain() && t == allTypes {
		r.call(from, c.j.anyValue(), to)
		return
	}
	if t&typeNull != 0 {
		r.text(from, "null", to)
	}
	if t&typeBool != 0 {
		r.text(from, "true", to)
		r.text(from, "false", to)
	}
	if t&typeNumber != 0 {
		r.call(from, c.numberRule(a, t, at), to)
	}
	if t&typeString != 0 {
		r.call(from, c.stringRule(a, at), to)
	}
	if t&typeArray != 0 {
		c.addArray(r, from, a, to)
	}
	if t&typeObject != 0 {
		c.addObject(r, from, a, to, at)
	}
}

// blame makes at and keyword the place of errors of size until the function that
// it returns is called.
func (c *schemaCompiler) blame(at *schema, keyword string) func() {
	where, word := c.b.where, c.b.keyword
	c.b.where, c.b.keyword = strings.TrimSpace(c.prefix+" "+at.at), keyword
	return func() { c.b.where, c.b.keyword = where, word }
}

// stringRule returns the rule of the strings of an alternative.
func (c *schemaCompiler) stringRule(a *alternative, at *schema) *ruleGraph {
	if len(a.patterns) == 0 && a.minLen == 0 && a.maxLen < 0 {
		return c.j.anyString()
	}
	var key strings.Builder
	fmt.Fprintf(&key, "s %d %d", a.minLen, a.maxLen)
	for _, d := range a.patterns {
		fmt.Fprintf(&key, " %p", d)
	}
	if r := c.leafRules[key.String()]; r != nil {
		return r
	}
	r := c.b.rule("string of " + at.at)
	c.leafRules[key.String()] = r
	if a.maxLen >= 0 && a.minLen > a.maxLen {
		return r // spells nothing
	}
	defer c.blame(at, "pattern")()
	open, closing := r.state(), r.state()
	r.bytes(r.start, '"', '"', open)
	r.bytes(closing, '"', '"', r.end)
	switch {
	case len(a.patterns) > 0:
		d := c.joined(a.patterns)
		if a.minLen > 0 || a.maxLen >= 0 {
			d = intersect(c.b, d, lengthDFA(c.b, a.minLen, a.maxLen))
		}
		r.spellInside(open, d, closing)
	case a.maxLen == 0:
		r.skip(open, closing)
	default:
		r.call(open, c.b.loop("characters of "+at.at, c.j.anyChar(), a.minLen, a.maxLen), closing)
	}
	return r
}

// numberRule returns the rule of the numbers of an alternative.
func (c *schemaCompiler) numberRule(a *alternative, t types, at *schema) *ruleGraph {
	fractions := t&typeFraction != 0
	if a.lo == nil && a.hi == nil && len(a.multiples) == 0 {
		if fractions {
			return c.j.anyNumber()
		}
		return c.j.anyInteger()
	}
	show := func(x *big.Rat) string {
		if x == nil {
			return "-"
		}
		return x.RatString()
	}
	key := fmt.Sprintf("n %t %s %t %s %t", fractions, show(a.lo), a.openLo, show(a.hi), a.openHi)
	for _, m := range a.multiples {
		key += " " + show(m)
	}
	if r := c.leafRules[key]; r != nil {
		return r
	}
	r := c.b.rule("number of " + at.at)
	c.leafRules[key] = r
	defer c.blame(at, "multipleOf")()
	spec := numberSpec{fractions, a.lo, a.hi, a.openLo, a.openHi, nil}
	if len(a.multiples) > 0 {
		spec.multiple = a.multiples[0]
	}
	d := numberDFA(c.b, spec)
	for _, m := range a.multiples[min(1, len(a.multiples)):] {
		d = intersect(c.b, d, numberDFA(c.b, numberSpec{fractions: fractions, multiple: m}))
	}
	r.spell(r.start, d, r.end)
	return r
}

// itemAt returns the schemas that item i of an array must meet.
func itemAt(a *alternative, i int) []*schema {
	var conj []*schema
	for _, s := range a.arrays {
		if i < len(s.prefix) {
			conj = append(conj, s.prefix[i])
		} else if s.items != nil {
			conj = append(conj, s.items)
		}
	}
	return conj
}

func hasNever(conj []*schema) bool {
	for _, s := range conj {
		if s.never {
			return true
		}
	}
	return false
}

// addArray adds the arrays of an alternative: first the items that have places
// of their own, then the rest.
func (c *schemaCompiler) addArray(r *ruleGraph, from int32, a *alternative, to int32) {
	places := 0
	for _, s := range a.arrays {
		places = max(places, len(s.prefix))
	}
	lo, hi := a.minItems, a.maxItems
	for i := range places {
		if hasNever(itemAt(a, i)) {
			hi = least(hi, i)
		}
	}
	rest := itemAt(a, places)
	if hasNever(rest) {
		hi = least(hi, places)
	}
	if hi >= 0 && hi < lo {
		return
	}
	open, closing, done := r.state(), r.state(), r.state()
	r.bytes(from, '[', '[', open)
	if lo == 0 {
		r.bytes(open, ']', ']', to)
	}
	if hi == 0 {
		return
	}
	c.j.gap(r, done, beforeClose, closing)
	r.bytes(closing, ']', ']', to)
	next := r.state() // where the next item begins
	c.j.gap(r, open, afterOpen, next)
	for i := 0; i < places && (hi < 0 || i < hi); i++ {
		after := r.state()
		c.addValue(r, next, itemAt(a, i), after)
		if i+1 >= lo {
			r.skip(after, done)
		}
		if next = r.state(); i+1 < places || hi < 0 || places < hi {
			c.addComma(r, after, next)
		}
	}
	if hi >= 0 && hi <= places {
		return
	}
	after := r.state()
	left, most := max(0, lo-places), hi
	if hi >= 0 {
		most = hi - places
	}
	// One item of the rest stands at next already; more follow after commas.
	if left <= 1 && most < 0 {
		c.addValue(r, next, rest, after)
		c.addComma(r, after, next)
		r.skip(after, done)
		return
	}
	item := c.conjRule(rest)
	r.call(next, item, after)
	if most == 1 {
		r.skip(after, done)
		return
	}
	more := c.b.rule("further items")
	begin := more.state()
	c.addComma(more, more.start, begin)
	more.call(begin, item, more.end)
	if most > 0 {
		most--
	}
	r.call(after, c.b.loop("items", more, max(0, left-1), most), done)
}

func (c *schemaCompiler) addComma(r *ruleGraph, from, to int32) {
	comma := r.state()
	r.bytes(from, ',', ',', comma)
	c.j.gap(r, comma, afterComma, to)
}
