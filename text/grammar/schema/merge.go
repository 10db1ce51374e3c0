package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"ridge/text/grammar"
)

const maxAlternatives = 512 // of one schema after merging allOf, anyOf and oneOf

// alternative is one way to meet a conjunction of schemas: all their keywords
// merged, with anyOf and oneOf resolved to one branch each. What it says of
// strings, numbers, arrays and objects stands side by side; a value needs only
// what is about its type.
type alternative struct {
	types  types
	typed  bool  // a keyword named the types
	about  types // the types that keywords are about
	values []*jsonValue
	valued bool

	excluded []*jsonValue // texts, numbers and booleans

	patterns       []*grammar.RuneDFA
	minLen, maxLen int

	lo, hi         *big.Rat
	openLo, openHi bool
	multiples      []*big.Rat
	notMultiples   []*big.Rat

	arrays             []*schema // those that say something of items
	minItems, maxItems int

	contains []*contains
	unique   bool

	objects            []*schema // those that say something of members
	required           []string
	minProps, maxProps int
	propertyNames      []*schema

	conj   []*schema // whose alternative it is
	done   *applied  // what is merged and was referred to
	duties []duty    // see apart.go
	scoped bool      // what is merged goes into scope
	scope  []*schema // see unevaluated.go
}

// written returns the types that texts are written in: without Open, keywords
// of one type and no named type mean that type.
func (c *schemaCompiler) written(a *alternative) types {
	if a.typed || c.o.Open {
		return a.types
	}
	switch about := a.about; about {
	case typeString, typeArray, typeObject:
		return a.types & about
	case typeInteger:
		return a.types & typeNumber
	}
	return a.types
}

// alternatives returns the ways to meet all schemas of a conjunction.
func (c *schemaCompiler) alternatives(conj []*schema) []*alternative {
	alts := []*alternative{{types: allTypes, maxLen: -1, maxItems: -1, maxProps: -1, conj: conj}}
	for _, s := range conj {
		alts = c.apply(alts, s, nil)
	}
	alts = c.discharge(alts, conj)
	out := alts[:0]
	for _, a := range alts {
		if a.valued {
			a.values = c.conforming(a.values, conj)
			if len(a.values) == 0 {
				continue
			}
		}
		out = append(out, a)
	}
	return out
}

// conforming returns the values that meet all schemas.
func (c *schemaCompiler) conforming(values []*jsonValue, conj []*schema) []*jsonValue {
	var out []*jsonValue
	for _, v := range values {
		if c.meets(v, conj) {
			out = append(out, v)
		}
	}
	return out
}

func (c *schemaCompiler) meets(v *jsonValue, conj []*schema) bool {
	for _, s := range conj {
		if !c.valid(s, v, 0) {
			return false
		}
	}
	return true
}

// meetsLoosely is meets with each oneOf read as anyOf.
func (c *schemaCompiler) meetsLoosely(v *jsonValue, conj []*schema) bool {
	for _, s := range conj {
		if !c.validAs(s, v, 0, true) {
			return false
		}
	}
	return true
}

// apply merges s into each of alts. path holds the schemas that are being
// merged: meeting one again means that it is defined by itself.
func (c *schemaCompiler) apply(alts []*alternative, s *schema, path []*schema) (out []*alternative) {
	if slices.Contains(path, s) {
		c.setErr(c.fail(s.at, "$ref", grammar.Unsupported, "the schema refers to itself without anything in between"))
	}
	if len(path) > grammar.MaxNesting*4 {
		c.setErr(c.fail(s.at, "$ref", grammar.TooLarge, "too large: more than %d schemas refer to each other in place", grammar.MaxNesting*4))
	}
	if c.stopped() || s.never {
		return nil
	}
	if !c.b.Spend(8 * (len(alts) + 1)) {
		return nil
	}
	if s.target {
		// Meeting it again asks for nothing new, and each way to meet it twice is one
		// to meet it once.
		rest := slices.DeleteFunc(slices.Clone(alts), func(a *alternative) bool { return a.done.has(c, s) })
		if len(rest) < len(alts) {
			out := slices.DeleteFunc(slices.Clone(alts), func(a *alternative) bool { return !a.done.has(c, s) })
			if len(rest) > 0 {
				out = append(out, c.apply(rest, s, path)...)
			}
			return out
		}
		defer func() {
			for i, a := range out {
				b := *a
				b.done = &applied{s, a.done}
				out[i] = &b
			}
		}()
	}
	path = append(path[:len(path):len(path)], s)
	if s.unevaluatedMembers != nil || s.unevaluatedItems != nil {
		return c.applyScoped(alts, s, path)
	}
	return c.applyParts(alts, s, path)
}

// applied is a list of schemas.
type applied struct {
	s    *schema
	more *applied
}

func (l *applied) has(c *schemaCompiler, s *schema) bool {
	n := 1
	for ; l != nil; l, n = l.more, n+1 {
		if l.s == s {
			break
		}
	}
	c.b.Spend(1 + n/8)
	return l != nil
}

// applyParts merges the keywords of s into each of alts, and the schemas that it
// applies in place.
func (c *schemaCompiler) applyParts(alts []*alternative, s *schema, path []*schema) []*alternative {
	out := alts[:0:0]
	for _, a := range alts {
		if b := a.with(s); b.types != 0 {
			out = append(out, b)
		}
	}
	if s.ref != nil {
		out = c.apply(out, s.ref, path)
	}
	for _, t := range s.all {
		out = c.apply(out, t, path)
	}
	for _, t := range s.no {
		n, err := c.negation(t)
		if err != nil {
			c.setErr(err)
			return nil
		}
		out = c.unscoped(out, func(a []*alternative) []*alternative { return c.apply(a, n, path) })
	}
	if len(s.any) > 0 {
		out = c.branches(out, s, c.together(out, s), path)
	}
	if len(s.one) > 0 {
		out = c.exactlyOne(out, s, path)
	}
	return out
}

func (c *schemaCompiler) branches(alts []*alternative, s *schema, branches []*schema, path []*schema) []*alternative {
	var out []*alternative
	for _, t := range branches {
		out = c.more(out, c.apply(alts, t, path), s)
	}
	return out
}

// more appends what is possible of alternatives to others.
func (c *schemaCompiler) more(out, alts []*alternative, s *schema) []*alternative {
	for _, a := range alts {
		if c.possible(a) {
			out = append(out, a)
		}
	}
	if len(out) > maxAlternatives {
		c.setErr(c.fail(s.at, "", grammar.TooLarge, "too large: more than %d combinations of anyOf and oneOf", maxAlternatives))
		return nil
	}
	return out
}

// possible drops objects from the types of a if they obviously cannot be, and
// reports whether any type is left: conditions on one and the same member make
// many combinations, of which few agree.
func (c *schemaCompiler) possible(a *alternative) bool {
	if a.types&typeObject == 0 {
		return true
	}
	for _, name := range a.required {
		conj, _, _ := c.member(a, name)
		c.b.Spend(1 + len(a.objects))
		ok := !hasNever(conj)
		for _, s := range conj {
			if s.valued && ok {
				ok = len(c.conforming(s.values, conj)) > 0
				break
			}
		}
		if !ok {
			a.types &^= typeObject
			break
		}
	}
	return a.types != 0
}

func (c *schemaCompiler) setErr(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *schemaCompiler) stopped() bool { return c.err != nil || c.b.Err() != nil }

// with returns a with the keywords of s itself merged in.
func (a *alternative) with(s *schema) *alternative {
	b := *a
	if a.scoped {
		b.scope = merged(b.scope, []*schema{s})
	}
	if s.types != 0 {
		b.types, b.typed = b.types&s.types, true
	}
	b.types &^= s.barred
	b.excluded = merged(b.excluded, s.excluded)
	b.about |= s.about
	if s.valued {
		b.typed = true
		if b.valued {
			b.values = common(b.values, s.values)
		} else {
			b.values, b.valued = s.values, true
		}
	}
	b.patterns = merged(b.patterns, s.patterns)
	b.minLen, b.maxLen = max(b.minLen, s.minLen), least(b.maxLen, s.maxLen)
	raise(&b.lo, &b.openLo, s.lo, s.openLo)
	lower(&b.hi, &b.openHi, s.hi, s.openHi)
	b.multiples = merged(b.multiples, s.multiples)
	b.notMultiples = merged(b.notMultiples, s.notMultiples)
	if len(s.prefix) > 0 || s.items != nil {
		b.arrays = merged(b.arrays, []*schema{s})
	}
	b.minItems, b.maxItems = max(b.minItems, s.minItems), least(b.maxItems, s.maxItems)
	b.contains = merged(b.contains, s.contains)
	b.unique = b.unique || s.unique
	if s.properties != nil || s.additional != nil || len(s.patternNames) > 0 {
		b.objects = merged(b.objects, []*schema{s})
	}
	b.required = merged(b.required, s.required)
	b.minProps, b.maxProps = max(b.minProps, s.minProps), least(b.maxProps, s.maxProps)
	if s.propertyNames != nil {
		b.propertyNames = merged(b.propertyNames, []*schema{s.propertyNames})
	}
	return &b
}

// merged returns x and what of y is not in it, without changing x.
func merged[T comparable](x, y []T) []T {
	x = x[:len(x):len(x)]
	for _, v := range y {
		if !slices.Contains(x, v) {
			x = append(x, v)
		}
	}
	return x
}

// least returns the smaller of two bounds, of which negative ones are none.
func least(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// plain reports whether a says nothing but its types.
func (a *alternative) plain() bool { return !a.valued && a.about == 0 && len(a.excluded) == 0 }

// simplify returns a conjunction without schemas that say nothing, with bare
// references replaced by what they refer to, in a fixed order.
func simplify(conj []*schema) []*schema {
	out := make([]*schema, 0, len(conj))
	for _, s := range conj {
		for n := 0; s.bare() && s.ref != nil && n < grammar.MaxNesting; n++ {
			s = s.ref
		}
		if s.never || !s.bare() || s.ref != nil {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *schema) int { return a.id - b.id })
	return slices.Compact(out)
}

// bare reports whether s has no keywords but annotations and $ref.
func (s *schema) bare() bool {
	return s.plain() && len(s.all)+len(s.any)+len(s.one) == 0
}

// plain reports whether s says nothing but what $ref, allOf, anyOf and oneOf say.
func (s *schema) plain() bool {
	return !s.never && s.types == 0 && s.about == 0 && !s.valued && len(s.no) == 0 && s.barred == 0 && len(s.excluded) == 0
}

// refers reports whether s is said by way of references, in place.
func (s *schema) refers() bool {
	if s.ref != nil {
		return true
	}
	for _, list := range [...][]*schema{s.all, s.any, s.one, s.no} {
		for _, t := range list {
			if t.refers() {
				return true
			}
		}
	}
	return false
}

// union returns the branches of a schema that is nothing but an anyOf or a
// oneOf, nil for others.
func (s *schema) union() []*schema {
	if !s.plain() || s.ref != nil || len(s.all) > 0 || len(s.any) > 0 && len(s.one) > 0 {
		return nil
	}
	if len(s.one) > 0 {
		return s.one
	}
	return s.any
}

// conjKey identifies a simplified conjunction.
func conjKey(conj []*schema) string {
	var b strings.Builder
	for _, s := range conj {
		b.WriteString(strconv.Itoa(s.id))
		b.WriteByte(' ')
	}
	return b.String()
}

// member returns the schemas that the member of a certain name must meet, and
// whether an object of the alternative is written with such a member. mentioned
// says whether a property or pattern of a schema names it.
func (c *schemaCompiler) member(a *alternative, name string) (conj []*schema, mentioned, allowed bool) {
	explicit := false
	for _, s := range a.objects {
		found := false
		if t := s.properties[name]; t != nil {
			conj, found = append(conj, t), true
		}
		for i, d := range s.patternNames {
			if d.Match(name) {
				conj, found = append(conj, s.patternSchemas[i]), true
			}
		}
		mentioned = mentioned || found
		if !found && s.additional != nil {
			conj, explicit = append(conj, s.additional), true
		}
	}
	allowed = mentioned || explicit || c.open(a) || slices.Contains(a.required, name)
	for _, s := range conj {
		allowed = allowed && !s.never
	}
	if allowed && len(a.propertyNames) > 0 {
		allowed = c.meets(&jsonValue{kind: jsonString, text: name}, a.propertyNames)
	}
	return conj, mentioned, allowed
}

// open reports whether objects of the alternative may have members that nothing
// mentions.
func (c *schemaCompiler) open(a *alternative) bool {
	named, explicit := false, false
	for _, s := range a.objects {
		if s.additional != nil {
			if s.additional.never {
				return false
			}
			explicit = true
		}
		named = named || s.properties != nil && !s.quiet || len(s.patternNames) > 0
	}
	return explicit || !named || c.o.Open
}
