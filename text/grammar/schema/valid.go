package schema

import (
	"math/big"
	"slices"
	"unicode/utf8"

	"ridge/text/grammar"
)

// valid reports whether v meets s as the specification says. It is used for the
// values of enum and const only, which are small.
func (c *schemaCompiler) valid(s *schema, v *jsonValue, depth int) bool {
	return c.validAs(s, v, depth, false)
}

// validAs is valid; with loose, what is said in place by oneOf counts as said by
// anyOf.
func (c *schemaCompiler) validAs(s *schema, v *jsonValue, depth int, loose bool) bool {
	if depth > 4*grammar.MaxNesting {
		c.setErr(c.fail(s.at, "", grammar.TooLarge, "too large: more than %d schemas refer to each other", 4*grammar.MaxNesting))
	}
	if c.err != nil || !c.b.Spend(4) {
		return false
	}
	if !s.target {
		return c.validIn(s, v, depth, loose)
	}
	// What is referred to may be referred to many times, and each time by what
	// is itself referred to many times.
	key := validKey{s, v, loose}
	if known, ok := c.verdicts[key]; ok {
		return known
	}
	got := c.validIn(s, v, depth, loose)
	if c.stopped() {
		return false
	}
	if c.verdicts == nil {
		c.verdicts = map[validKey]bool{}
	}
	c.verdicts[key] = got
	return got
}

// validKey is a question of validAs.
type validKey struct {
	s     *schema
	v     *jsonValue
	loose bool
}

// validIn is validAs for a schema that has not been asked about v before.
func (c *schemaCompiler) validIn(s *schema, v *jsonValue, depth int, loose bool) bool {
	if s.never || s.types != 0 && s.types&typeOf(v) == 0 || s.barred&typeOf(v) != 0 || slices.ContainsFunc(s.excluded, v.equal) {
		return false
	}
	if s.valued {
		if s.known == nil {
			s.known = make(map[string]bool, len(s.values))
			for _, w := range s.values {
				s.known[w.key()] = true
			}
		}
		if !s.known[v.key()] {
			return false
		}
	}
	switch v.kind {
	case jsonString:
		if !validString(s, v.text) {
			return false
		}
	case jsonNumber:
		if !validNumber(s, v.rat) {
			return false
		}
	case jsonArray:
		if !c.validArray(s, v, depth) {
			return false
		}
	case jsonObject:
		if !c.validObject(s, v, depth) {
			return false
		}
	}
	if s.ref != nil && !c.validAs(s.ref, v, depth+1, loose) {
		return false
	}
	for _, t := range s.all {
		if !c.validAs(t, v, depth+1, loose) {
			return false
		}
	}
	if c.countValid(s.no, v, depth, false) > 0 {
		return false
	}
	if !c.validUnevaluated(s, v, depth) {
		return false
	}
	if len(s.any) > 0 && c.countValid(s.any, v, depth, loose) == 0 {
		return false
	}
	n := 1
	if len(s.one) > 0 {
		n = c.countValid(s.one, v, depth, loose)
	}
	return n == 1 || n > 1 && loose
}

func (c *schemaCompiler) countValid(list []*schema, v *jsonValue, depth int, loose bool) int {
	n := 0
	for _, t := range list {
		if c.validAs(t, v, depth+1, loose) {
			n++
		}
	}
	return n
}

func typeOf(v *jsonValue) types {
	switch v.kind {
	case jsonNull:
		return typeNull
	case jsonBool:
		return typeBool
	case jsonNumber:
		if v.rat.IsInt() {
			return typeInteger
		}
		return typeFraction
	case jsonString:
		return typeString
	case jsonArray:
		return typeArray
	}
	return typeObject
}

func validString(s *schema, text string) bool {
	if s.minLen > 0 || s.maxLen >= 0 {
		if n := utf8.RuneCountInString(text); n < s.minLen || s.maxLen >= 0 && n > s.maxLen {
			return false
		}
	}
	for _, d := range s.patterns {
		if !d.Match(text) {
			return false
		}
	}
	return true
}

func validNumber(s *schema, x *big.Rat) bool {
	if s.lo != nil {
		if cmp := x.Cmp(s.lo); cmp < 0 || cmp == 0 && s.openLo {
			return false
		}
	}
	if s.hi != nil {
		if cmp := x.Cmp(s.hi); cmp > 0 || cmp == 0 && s.openHi {
			return false
		}
	}
	for _, m := range s.multiples {
		if !new(big.Rat).Quo(x, m).IsInt() {
			return false
		}
	}
	for _, m := range s.notMultiples {
		if new(big.Rat).Quo(x, m).IsInt() {
			return false
		}
	}
	return true
}

func (c *schemaCompiler) validArray(s *schema, v *jsonValue, depth int) bool {
	if n := len(v.items); n < s.minItems || s.maxItems >= 0 && n > s.maxItems {
		return false
	}
	for i, x := range v.items {
		t := s.items
		if i < len(s.prefix) {
			t = s.prefix[i]
		}
		if t != nil && !c.valid(t, x, depth+1) {
			return false
		}
	}
	for _, k := range s.contains {
		n := c.countItems(k, v, depth)
		if n < k.min || k.max >= 0 && n > k.max {
			return false
		}
	}
	return !s.unique || c.allDiffer(v.items)
}

func (c *schemaCompiler) countItems(k *contains, v *jsonValue, depth int) int {
	n := 0
	for i, x := range v.items {
		if i >= k.from && c.valid(k.of, x, depth+1) {
			n++
		}
	}
	return n
}

func (c *schemaCompiler) allDiffer(items []*jsonValue) bool {
	for i, x := range items {
		if !c.b.Spend(i+1) || slices.ContainsFunc(items[:i], x.equal) {
			return false
		}
	}
	return true
}

func (c *schemaCompiler) validObject(s *schema, v *jsonValue, depth int) bool {
	if n := len(v.keys); n < s.minProps || s.maxProps >= 0 && n > s.maxProps {
		return false
	}
	for _, name := range s.required {
		if v.members[name] == nil {
			return false
		}
	}
	for _, name := range v.keys {
		x, found := v.members[name], false
		if t := s.properties[name]; t != nil {
			found = true
			if !c.valid(t, x, depth+1) {
				return false
			}
		}
		for i, d := range s.patternNames {
			if d.Match(name) {
				found = true
				if !c.valid(s.patternSchemas[i], x, depth+1) {
					return false
				}
			}
		}
		if !found && s.additional != nil && !c.valid(s.additional, x, depth+1) {
			return false
		}
		if s.propertyNames != nil && !c.valid(s.propertyNames, &jsonValue{kind: jsonString, text: name}, depth+1) {
			return false
		}
	}
	return true
}
