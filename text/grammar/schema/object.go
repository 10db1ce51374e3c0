package schema

import (
	"slices"

	"ridge/text/grammar"
)

// objectPlan is what the objects of an alternative are written with.
type objectPlan struct {
	names    []string // members with a name of their own, in order
	required []bool
	values   [][]*schema
	extra    *grammar.Rule // members that nothing names, with name and colon; nil: none
	kinds    []memberKind  // the same, one for each schema of their values
	lo, hi   int           // number of members; hi < 0: no bound
}

// memberKind is members that nothing names whose values have the same schemas.
type memberKind struct {
	names  *grammar.RuneDFA // nil: all
	values []*schema
}

const (
	maxAnyOrder = 10 // members of an object in any order: 2^10 sets of those seen
	maxCounted  = 64 // minProperties and maxProperties that are counted
	maxPatterns = 5  // patternProperties of an object: 2^5 combinations
)

// addObject adds the objects of an alternative.
func (c *schemaCompiler) addObject(r *grammar.Rule, from int32, a *alternative, to int32, at *schema) {
	if len(a.objects) == 0 && len(a.required) == 0 && len(a.propertyNames) == 0 && a.minProps == 0 && a.maxProps < 0 {
		r.Call(from, c.j.anyObject(), to)
		return
	}
	p, ok := c.planObject(a, at)
	if !ok || c.stopped() {
		return
	}
	counted := p.hi >= 0 && (p.extra != nil || p.hi < len(p.names)) || p.lo > len(a.required)
	switch {
	case c.o.AnyOrder && (len(p.names) > 1 || len(p.names) == 1 && p.extra != nil):
		if counted {
			s, key := a.owner(at, "minProperties", "maxProperties")
			c.setErr(c.fail(s.at, key, grammar.Unsupported, "counts of members are not supported with members in any order"))
			return
		}
		c.addAnyOrder(r, from, p, to, at)
	case counted:
		if max(p.lo, p.hi) > maxCounted {
			s, key := a.owner(at, "maxProperties", "minProperties")
			c.setErr(c.fail(s.at, key, grammar.TooLarge, "too large: more than %d members are not counted", maxCounted))
			return
		}
		c.addCounted(r, from, p, to)
	default:
		c.addInOrder(r, from, p, to)
	}
}

// planObject finds the members of the objects of an alternative; ok is false if
// there is no such object.
func (c *schemaCompiler) planObject(a *alternative, at *schema) (p objectPlan, ok bool) {
	p.lo, p.hi = a.minProps, a.maxProps
	var declared []string
	for _, quiet := range [...]bool{false, true} {
		for _, s := range a.objects {
			if s.quiet == quiet {
				declared = merged(declared, s.names)
			}
		}
	}
	for _, name := range merged(declared, a.required) {
		conj, _, allowed := c.member(a, name)
		need := slices.Contains(a.required, name)
		if !allowed && need {
			return p, false
		}
		if allowed {
			p.names = append(p.names, name)
			p.required = append(p.required, need)
			p.values = append(p.values, conj)
		}
	}
	if p.hi >= 0 && len(a.required) > p.hi {
		return p, false
	}
	p.kinds = c.extraMembers(a, merged(declared, a.required), at)
	p.extra = c.extraRule(p.kinds, at)
	if len(p.kinds) > 1 && p.lo > len(a.required)+1 {
		s, key := a.owner(at, "minProperties", "maxProperties")
		why := "not supported with members that the schema does not name, of several kinds"
		if key != "minProperties" {
			why = `its negation is "minProperties", which is ` + why
		}
		c.setErr(c.fail(s.at, key, grammar.Unsupported, "%s", why))
	}
	return p, true
}

// extraMembers returns the members whose names are not listed.
func (c *schemaCompiler) extraMembers(a *alternative, listed []string, at *schema) (kinds []memberKind) {
	var patterns []*grammar.RuneDFA
	for _, s := range a.objects {
		patterns = merged(patterns, s.patternNames)
	}
	if len(patterns) > maxPatterns {
		s, key := a.owner(at, "patternProperties")
		c.setErr(c.fail(s.at, key, grammar.TooLarge, "too large: more than %d patterns", maxPatterns))
		return nil
	}
	defer c.blame(a.owner(at, "patternProperties", "propertyNames", "additionalProperties", "unevaluatedProperties", "properties", "required"))()
	names := c.nameDFA(a, listed)
	for set := range 1 << len(patterns) {
		if set == 0 && !c.open(a) || c.stopped() {
			continue
		}
		d := names
		var conj []*schema
		matched := make([]bool, len(a.objects))
		for i, q := range patterns {
			if set>>i&1 != 0 {
				for owner, s := range a.objects {
					for j, p := range s.patternNames {
						if p == q {
							conj, matched[owner] = append(conj, s.patternSchemas[j]), true
						}
					}
				}
			} else {
				q = q.Complement()
			}
			if d == nil {
				d = q.Minimize(c.b)
			} else {
				d = d.Intersect(c.b, q)
			}
		}
		for i, s := range a.objects {
			if !matched[i] && s.additional != nil {
				conj = append(conj, s.additional)
			}
		}
		if hasNever(conj) || c.stopped() || d != nil && d.Empty() {
			continue
		}
		kinds = append(kinds, memberKind{d, conj})
	}
	return kinds
}

// extraRule returns the rule of members that nothing names, nil if there are none.
func (c *schemaCompiler) extraRule(kinds []memberKind, at *schema) *grammar.Rule {
	if len(kinds) == 0 {
		return nil
	}
	rule := c.b.Rule("further members of " + at.at)
	for _, k := range kinds {
		key := rule.State()
		if k.names == nil {
			rule.Call(rule.Start, c.j.anyString(), key)
		} else {
			name, closing := rule.State(), rule.State()
			rule.Bytes(rule.Start, '"', '"', name)
			spellInside(rule, name, k.names, closing)
			rule.Bytes(closing, '"', '"', key)
		}
		c.afterName(rule, key, k.values, rule.End)
	}
	return rule
}

// afterName adds what follows the name of a member.
func (c *schemaCompiler) afterName(r *grammar.Rule, from int32, values []*schema, to int32) {
	colon, value := r.State(), r.State()
	r.Bytes(from, ':', ':', colon)
	c.j.gap(r, colon, afterColon, value)
	c.addValue(r, value, values, to)
}

// addFewer adds lo to hi members that nothing names, of which no two have the same
// name: as one that comes twice counts once, only these are enough.
func (c *schemaCompiler) addFewer(r *grammar.Rule, from int32, k memberKind, lo, hi int, to int32) {
	name, between := c.b.Rule("name"), c.b.Rule("value and comma")
	names := k.names
	if names == nil {
		names = fixedDFA(`(?s:.*)`)
	}
	spellOnce(name, names)
	comma := between.State()
	c.afterName(between, between.Start, k.values, comma)
	c.addComma(between, comma, between.End)
	last := r.State()
	r.Call(from, c.b.Unique("further members", name, between, lo, hi), last)
	c.afterName(r, last, k.values, to)
}

// nameDFA returns the automaton of the names that are not listed and that
// propertyNames allows, or nil if these are all.
func (c *schemaCompiler) nameDFA(a *alternative, listed []string) *grammar.RuneDFA {
	var d *grammar.RuneDFA
	if len(listed) > 0 {
		d = c.b.Words(listed).Complement()
	}
	if len(a.propertyNames) == 0 {
		return d
	}
	and := func(x *grammar.RuneDFA) {
		if d == nil {
			d = x
		} else {
			d = d.Intersect(c.b, x)
		}
	}
	var ways []*grammar.RuneDFA // what the names may be, one way for each alternative
	for _, n := range c.alternatives(simplify(a.propertyNames)) {
		if n.types&typeString == 0 {
			continue
		}
		way := c.stringDFA(n)
		if n.valued {
			var words []string
			for _, v := range n.values {
				if v.kind == jsonString {
					words = append(words, v.text)
				}
			}
			way = c.b.Words(words)
		}
		if way == nil {
			return d
		}
		ways = append(ways, way)
	}
	and(c.either(ways))
	return d
}

// either returns the automaton of the texts that any of ways accepts.
func (c *schemaCompiler) either(ways []*grammar.RuneDFA) *grammar.RuneDFA {
	switch len(ways) {
	case 0:
		return grammar.NoText()
	case 1:
		return ways[0]
	}
	none := make([]*grammar.RuneDFA, len(ways))
	for i, w := range ways {
		none[i] = w.Complement()
	}
	return c.joined(none).Complement().Minimize(c.b)
}

// addMember adds member i, its name first.
func (c *schemaCompiler) addMember(r *grammar.Rule, from int32, p *objectPlan, i int, to int32) {
	colon, value := r.State(), r.State()
	r.Text(from, quote(p.names[i])+":", colon)
	c.j.gap(r, colon, afterColon, value)
	c.addValue(r, value, p.values[i], to)
}

// addCounted adds objects whose members are counted, in order. The states form a
// grid: members passed by, and members written, counted up to what matters, the
// bounds.
func (c *schemaCompiler) addCounted(r *grammar.Rule, from int32, p objectPlan, to int32) {
	n, top := len(p.names), max(1, p.lo, p.hi)
	open, first, closing := r.State(), r.State(), r.State()
	r.Bytes(from, '{', '{', open)
	if !slices.Contains(p.required, true) && p.lo == 0 {
		r.Bytes(open, '}', '}', to)
	}
	c.j.gap(r, open, afterOpen, first)
	grid := make([][]int32, n+1)
	for i := range grid {
		grid[i] = make([]int32, top+1)
		for k := range grid[i] {
			grid[i][k] = r.State()
		}
	}
	r.Skip(first, grid[0][0])
	for i := range n {
		if c.stopped() {
			return
		}
		rule := c.memberRule(&p, i)
		for k := range top + 1 {
			if !p.required[i] {
				r.Skip(grid[i][k], grid[i+1][k])
			}
			if to, ok := p.count(k, top); ok {
				r.Call(c.beginMember(r, grid[i][k], k), rule, grid[i+1][to])
			}
		}
	}
	enough := r.State()
	for k := range top + 1 {
		if k+1 < p.lo && len(p.kinds) == 1 {
			most := -1
			if p.hi >= 0 {
				most = p.hi - k
			}
			c.addFewer(r, c.beginMember(r, grid[n][k], k), p.kinds[0], p.lo-k, most, enough)
		} else if to, ok := p.count(k, top); ok && p.extra != nil {
			r.Call(c.beginMember(r, grid[n][k], k), p.extra, grid[n][to])
		}
		if k > 0 && k >= p.lo {
			c.j.gap(r, grid[n][k], beforeClose, closing)
		}
	}
	c.j.gap(r, enough, beforeClose, closing)
	r.Bytes(closing, '}', '}', to)
}

// count returns the number of members after one more, counted up to top.
func (p *objectPlan) count(k, top int) (int, bool) {
	if p.hi >= 0 && k >= p.hi {
		return 0, false
	}
	return min(k+1, top), true
}

// beginMember returns the state where a member begins when k have been written.
func (c *schemaCompiler) beginMember(r *grammar.Rule, at int32, k int) int32 {
	if k == 0 {
		return at
	}
	begin := r.State()
	c.addComma(r, at, begin)
	return begin
}

// memberRule returns the rule of member i.
func (c *schemaCompiler) memberRule(p *objectPlan, i int) *grammar.Rule {
	rule := c.b.Rule("member " + p.names[i])
	c.addMember(rule, rule.Start, p, i, rule.End)
	return rule
}

// addAnyOrder adds objects whose members come in any order. There is a state
// for each set of the named members that have been written.
func (c *schemaCompiler) addAnyOrder(r *grammar.Rule, from int32, p objectPlan, to int32, at *schema) {
	n := len(p.names)
	if n > maxAnyOrder {
		c.setErr(c.fail(at.at, "properties", grammar.TooLarge, "too large: more than %d members in any order", maxAnyOrder))
		return
	}
	rules := make([]*grammar.Rule, n)
	need := 0
	for i := range n {
		rules[i] = c.memberRule(&p, i)
		if p.required[i] {
			need |= 1 << i
		}
	}
	open, first, closing := r.State(), r.State(), r.State()
	r.Bytes(from, '{', '{', open)
	if need == 0 {
		r.Bytes(open, '}', '}', to)
	}
	c.j.gap(r, open, afterOpen, first)
	after := make([]int32, 1<<n) // with at least one member written
	for set := range after {
		after[set] = r.State()
	}
	members := func(from int32, set int) {
		for i := range n {
			if set>>i&1 == 0 {
				r.Call(from, rules[i], after[set|1<<i])
			}
		}
		if p.extra != nil {
			r.Call(from, p.extra, after[set])
		}
	}
	members(first, 0)
	for set := range after {
		if c.stopped() {
			return
		}
		begin := r.State()
		c.addComma(r, after[set], begin)
		members(begin, set)
		if set&need == need {
			c.j.gap(r, after[set], beforeClose, closing)
		}
	}
	r.Bytes(closing, '}', '}', to)
}
