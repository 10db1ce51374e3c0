package grammar

import "slices"

// oneOf asks that exactly one branch matches. For each pair of branches, no text
// that is written for one may be valid for the other. What follows proves that
// for the usual ways of writing unions (different types, different constants under
// a common name, different required members); where it cannot, a branch is
// written without what meets the other, if that has a negation.

const (
	maxApart     = 6  // levels of members that the proof looks at
	maxExclusive = 64 // branches that may need the negation of others
)

// exactlyOne returns the branches of the oneOf of s, such that nothing written
// for one is valid for another.
func (c *schemaCompiler) exactlyOne(s *schema, path []*schema) []*schema {
	if c.o.LooseOneOf {
		return s.one
	}
	if s.exclusive != nil {
		return s.exclusive
	}
	s.exclusive = s.one
	rest := *s
	rest.one = nil
	sets := make([][]*alternative, len(s.one))
	for i, t := range s.one {
		sets[i] = c.alternativesIn([]*schema{&rest, t}, path)
	}
	branches := make([]*schema, len(s.one))
	for i, t := range s.one {
		branches[i] = t
		var others []*schema
		for j, u := range s.one {
			if c.stopped() {
				return nil
			}
			if i == j || c.apartSets(sets[i], sets[j], []*schema{&rest, t}, []*schema{&rest, u}, 0) {
				continue
			}
			why := ""
			if len(s.one) > maxExclusive {
				why = "more than 64 branches"
			} else if _, err := c.negation(u); err != nil {
				why = err.Error()
			}
			if why != "" {
				c.setErr(c.fail(s.at, "oneOf", Unsupported,
					"branches %d and %d may both match and cannot be told apart; give them different types or a constant under a common required name, or use anyOf (%s)", min(i, j), max(i, j), why))
				return nil
			}
			others = append(others, u)
		}
		if len(others) > 0 {
			branches[i] = c.empty(t.at)
			branches[i].all, branches[i].no = []*schema{t}, others
		}
	}
	s.exclusive = branches
	return branches
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
			if !c.b.spend(16) || !c.apart(a, b, x, y, depth) {
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
		return len(c.conforming(b.values, x)) == 0
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
		return c.b.err == nil && d.empty()
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
func (c *schemaCompiler) joined(patterns []*runeDFA) *runeDFA {
	d := patterns[0]
	for _, p := range patterns[1:] {
		d = intersect(c.b, d, p)
	}
	return d
}
