package schema

import "ridge/text/grammar"

// unevaluatedProperties and unevaluatedItems are about the members and items that
// no other keyword of their schema is about, nor of the schemas that it applies in
// place and that are met. So what an alternative has merged since is kept as its
// scope, and at the end they become additionalProperties and items beside it.

// maxTogether is the number of branches of an anyOf of which any may be met
// together with others: with more, what only others are about counts as
// unevaluated, which leaves out texts but never adds one.
const maxTogether = 4

// applyScoped merges s, which says something of what is not evaluated.
func (c *schemaCompiler) applyScoped(alts []*alternative, s *schema, path []*schema) []*alternative {
	var out []*alternative
	for _, a := range alts {
		inner := *a
		inner.scoped, inner.scope, inner.done = true, nil, nil
		for _, b := range c.applyParts([]*alternative{&inner}, s, path) {
			b = b.with(c.unevaluated(s, b.scope))
			b.scoped, b.scope, b.done = a.scoped, merged(a.scope, b.scope), a.done
			if b.types != 0 {
				out = append(out, b)
			}
		}
		if len(out) > maxAlternatives {
			c.setErr(c.fail(s.at, "", grammar.TooLarge, "too large: more than %d combinations of anyOf and oneOf", maxAlternatives))
			return nil
		}
	}
	return out
}

// unscoped does what do does, but leaves scopes as they are: a negation is not
// about members and items.
func (c *schemaCompiler) unscoped(alts []*alternative, do func([]*alternative) []*alternative) []*alternative {
	if !c.annotated {
		return do(alts)
	}
	var out []*alternative
	for _, a := range alts {
		for _, b := range do([]*alternative{a}) {
			b.scope, b.done = a.scope, a.done
			out = append(out, b)
		}
	}
	return out
}

// together returns the branches of the anyOf of s; where it matters which of them
// are met, also any of them together.
func (c *schemaCompiler) together(alts []*alternative, s *schema) []*schema {
	if len(alts) == 0 || !alts[0].scoped || s.disjoint || len(s.any) > maxTogether {
		return s.any
	}
	if s.sets == nil {
		for set := 1; set < 1<<len(s.any); set++ {
			t := c.empty(s.at)
			for i, u := range s.any {
				if set>>i&1 != 0 {
					t.all = append(t.all, u)
				}
			}
			s.sets = append(s.sets, t)
		}
	}
	return s.sets
}

// unevaluated returns what s says of the members and items that the schemas of
// scope are not about.
func (c *schemaCompiler) unevaluated(s *schema, scope []*schema) *schema {
	u, anything := c.empty(s.at), c.empty(s.at)
	c.b.Spend(8 * (1 + len(scope)))
	if t := s.unevaluatedMembers; t != nil {
		u.about, u.additional = u.about|typeObject, t
		u.properties = map[string]*schema{}
		for _, x := range scope {
			if x.additional != nil { // it is about all
				u.about, u.names, u.patternNames, u.patternSchemas, u.properties, u.additional = 0, nil, nil, nil, nil, nil
				break
			}
			u.names = merged(u.names, x.names)
			u.patternNames = append(u.patternNames, x.patternNames...)
		}
		for _, name := range u.names {
			u.properties[name] = anything
		}
		for range u.patternNames {
			u.patternSchemas = append(u.patternSchemas, anything)
		}
	}
	if t := s.unevaluatedItems; t != nil {
		u.about |= typeArray
		places, all := 0, false
		either := c.empty(s.at)
		either.any = []*schema{t}
		for _, x := range scope {
			places, all = max(places, len(x.prefix)), all || x.items != nil
			for _, k := range x.contains {
				either.any = append(either.any, k.of)
			}
		}
		if !all {
			for range places {
				u.prefix = append(u.prefix, anything)
			}
			if u.items = t; len(either.any) > 1 {
				u.items = either
			}
		}
	}
	return u
}

// validUnevaluated reports whether what s does not evaluate in v is valid.
func (c *schemaCompiler) validUnevaluated(s *schema, v *jsonValue, depth int) bool {
	rest, n := s.unevaluatedMembers, len(v.keys)
	if v.kind == jsonArray {
		rest, n = s.unevaluatedItems, len(v.items)
	}
	if rest == nil || n == 0 {
		return true
	}
	seen := make([]bool, n)
	c.evaluate(s, v, seen, depth)
	for i, name := range v.keys {
		if !seen[i] && !c.valid(rest, v.members[name], depth+1) {
			return false
		}
	}
	for i, x := range v.items {
		if !seen[i] && !c.valid(rest, x, depth+1) {
			return false
		}
	}
	return true
}

// evaluate marks the members or items of v that s is about, in place, but for
// what it says of those that are not evaluated.
func (c *schemaCompiler) evaluate(s *schema, v *jsonValue, seen []bool, depth int) {
	if depth > 4*grammar.MaxNesting || !c.b.Spend(4+len(seen)) {
		return // refused by valid
	}
	for i, name := range v.keys {
		_, named := s.properties[name]
		seen[i] = seen[i] || named || s.additional != nil
		for _, d := range s.patternNames {
			seen[i] = seen[i] || d.Match(name)
		}
	}
	for i, x := range v.items {
		seen[i] = seen[i] || i < len(s.prefix) || s.items != nil
		for _, k := range s.contains {
			seen[i] = seen[i] || c.valid(k.of, x, depth+1)
		}
	}
	parts := s.all
	if s.ref != nil {
		parts = append(parts[:len(parts):len(parts)], s.ref)
	}
	for _, list := range [...][]*schema{parts, s.any, s.one} {
		for _, t := range list {
			if !c.valid(t, v, depth+1) {
				continue
			}
			if v.kind == jsonObject && t.unevaluatedMembers != nil || v.kind == jsonArray && t.unevaluatedItems != nil {
				for i := range seen {
					seen[i] = true
				}
			}
			c.evaluate(t, v, seen, depth+1)
		}
	}
}
