package schema

import (
	"slices"

	"ridge/text/grammar"
)

// oneOf asks that exactly one branch matches. For each pair of branches, no text
// that is written for one may be valid for the other. What follows proves that
// for the usual ways of writing unions (different types, different constants under
// a common name, different required members); where it cannot, a branch is
// written without what meets the other, if that has a negation.

const (
	maxApart     = 6  // levels of members that the proof looks at
	maxExclusive = 64 // branches that may need the negation of others
)

// duty is that an alternative, which has been merged with branch i of the oneOf
// of a schema, does not match branch j. Whether it can depends on all that is
// merged, so it is seen to at the end.
type duty struct {
	of   *schema
	i, j int
}

// exactlyOne merges each branch of the oneOf of s into each of alts.
func (c *schemaCompiler) exactlyOne(alts []*alternative, s *schema, path []*schema) []*alternative {
	var out []*alternative
	for i, t := range s.one {
		branch := c.apply(alts, t, path)
		for _, a := range branch {
			a.duties = a.duties[:len(a.duties):len(a.duties)]
			for j := range s.one {
				if i != j && !c.o.LooseOneOf && c.b.Spend(1) {
					a.duties = append(a.duties, duty{s, i, j})
				}
			}
		}
		out = c.more(out, branch, s)
	}
	return out
}

// discharge sees to the duties of the alternatives of a conjunction.
func (c *schemaCompiler) discharge(alts []*alternative, conj []*schema) []*alternative {
	if c.proofs > 0 {
		return alts
	}
	var out []*alternative
next:
	for len(alts) > 0 && !c.stopped() {
		a := alts[0]
		alts = alts[1:]
		for len(a.duties) > 0 {
			d := a.duties[0]
			a.duties = a.duties[1:]
			if other := d.of.one[d.j]; !c.apartFrom([]*alternative{a}, conj, other) {
				if c.excludes(d) {
					alts = c.more(alts, c.apply([]*alternative{a}, other.negated, nil), d.of)
				}
				continue next
			}
		}
		if out = append(out, a); len(out) > maxAlternatives {
			c.setErr(c.fail(conj[0].at, "oneOf", grammar.TooLarge, "too large: more than %d combinations", maxAlternatives))
		}
	}
	return out
}

// apartFrom reports whether provably nothing written for as, alternatives of x,
// is valid for t.
func (c *schemaCompiler) apartFrom(as []*alternative, x []*schema, t *schema) bool {
	// The proof looks at schemas without their duties: they allow more then, and
	// a duty would ask for a proof again, without end.
	c.proofs++
	defer func() { c.proofs-- }()
	y := []*schema{t}
	if !t.isMerged {
		t.merged, t.isMerged = c.alternatives(y), true
	}
	return !c.stopped() && c.apartSets(as, t.merged, x, y, 0)
}

// excludes finds the negation that a duty needs, or refuses the oneOf.
func (c *schemaCompiler) excludes(d duty) bool {
	_, err := c.negation(d.of.one[d.j])
	if err != nil {
		c.setErr(c.fail(d.of.at, "oneOf", grammar.Unsupported,
			"branches %d and %d may both match and cannot be told apart; give them different types or a constant under a common required name, or use anyOf (%v)", min(d.i, d.j), max(d.i, d.j), err))
	}
	return err == nil
}

// exclusive returns the branches of a schema that says nothing but oneOf, such
// that nothing written for one is valid for another.
func (c *schemaCompiler) exclusive(s *schema) []*schema {
	if c.o.LooseOneOf {
		return s.one
	}
	if s.exclusive != nil {
		return s.exclusive
	}
	list := make([]*schema, len(s.one))
	for i, t := range s.one {
		list[i] = t
		var others []*schema
		as := c.alternatives([]*schema{t})
		for j, u := range s.one {
			if i == j || c.apartFrom(as, []*schema{t}, u) {
				continue
			}
			if len(s.one) > maxExclusive {
				c.setErr(c.fail(s.at, "oneOf", grammar.TooLarge, "too large: branches %d and %d of more than %d may both match", min(i, j), max(i, j), maxExclusive))
			}
			if c.stopped() || !c.excludes(duty{s, i, j}) {
				return nil
			}
			others = append(others, u)
		}
		if len(others) > 0 {
			list[i] = c.empty(t.at)
			list[i].all, list[i].no = []*schema{t}, others
		}
	}
	s.exclusive = list
	return list
}

// apartConj reports whether provably nothing written for x is valid for y.
func (c *schemaCompiler) apartConj(x, y []*schema, depth int) bool {
	if depth > maxApart || c.stopped() {
		return false
	}
	x, y = simplify(x), simplify(y)
	return c.apartSets(c.alternatives(x), c.alternatives(y), x, y, depth)
}

func (c *schemaCompiler) apartSets(as, bs []*alternative, x, y []*schema, depth int) bool {
	for _, a := range as {
		for _, b := range bs {
			if !c.b.Spend(16) || !c.apart(a, b, x, y, depth) {
				return false
			}
		}
	}
	return true
}

// apart reports whether nothing written for a, an alternative of x, is valid for
// b, an alternative of y.
func (c *schemaCompiler) apart(a, b *alternative, x, y []*schema, depth int) bool {
	switch {
	case a.valued:
		return len(c.conforming(a.values, y)) == 0
	case b.valued:
		// What a does not match beside its branches is not seen to yet.
		return !slices.ContainsFunc(b.values, func(v *jsonValue) bool { return c.meetsLoosely(v, x) })
	}
	common := c.written(a) & b.types
	for _, t := range [...]types{typeNull, typeBool, typeInteger, typeFraction, typeString, typeArray, typeObject} {
		if common&t != 0 && !c.apartIn(t, a, b, depth) {
			return false
		}
	}
	return true
}

func (c *schemaCompiler) apartIn(t types, a, b *alternative, depth int) bool {
	switch t {
	case typeInteger, typeFraction:
		return below(a.hi, b.lo, a.openHi || b.openLo) || below(b.hi, a.lo, b.openHi || a.openLo)
	case typeString:
		if a.maxLen >= 0 && a.maxLen < b.minLen || b.maxLen >= 0 && b.maxLen < a.minLen {
			return true
		}
		if len(a.patterns) == 0 || len(b.patterns) == 0 {
			return false
		}
		d := c.joined(append(slices.Clone(a.patterns), b.patterns...))
		return c.b.Err() == nil && d.Empty()
	case typeArray:
		return c.apartArrays(a, b, depth)
	case typeObject:
		return c.apartObjects(a, b, depth)
	}
	return false
}

func (c *schemaCompiler) apartArrays(a, b *alternative, depth int) bool {
	if a.maxItems >= 0 && a.maxItems < b.minItems || b.maxItems >= 0 && b.maxItems < a.minItems {
		return true
	}
	for i := range min(a.minItems, b.minItems, 8) {
		if c.apartConj(itemAt(a, i), itemAt(b, i), depth+1) {
			return true
		}
	}
	return false
}

func (c *schemaCompiler) apartObjects(a, b *alternative, depth int) bool {
	for _, name := range b.required {
		if _, _, allowed := c.member(a, name); !allowed {
			return true // b needs what a does not write
		}
	}
	for _, name := range a.required {
		// Neither needs b to ask for it: a always writes it.
		x, _, _ := c.member(a, name)
		y, _, _ := c.member(b, name)
		if len(y) > 0 && c.apartConj(x, y, depth+1) {
			return true
		}
	}
	return false
}

// joined returns the automaton of the strings that meet all patterns.
func (c *schemaCompiler) joined(patterns []*grammar.RuneDFA) *grammar.RuneDFA {
	d := patterns[0]
	for _, p := range patterns[1:] {
		d = d.Intersect(c.b, p)
	}
	return d
}
