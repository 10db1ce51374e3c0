package schema

import (
	"regexp"
	"slices"
	"strings"

	"ridge/internal/diag"
	"ridge/text/grammar"
)

// markup is how a family of models writes the arguments of a call: an object is its
// members one after the other, each between marks, with white space around. A string
// stands there as it is and ends with the closing mark, another value is JSON.
type markup struct {
	begin, named string // before a member's name and after it
	open, close  string // before and after its value
	item         string // before an item of an array; "" if arrays and objects are JSON, as all below them
	gap          bool   // white space may stand before open
	escape       *strings.Replacer
	// kind is what the mark says of a value of one type, between named and open; nil
	// if it says nothing.
	kind func(types) string
	free []freeKind // further marks of values of which nothing is said
}

// freeKind is a mark that only values of which nothing is said have.
type freeKind struct {
	name string
	t    types
}

// markups has the styles of structural tags.
var markups = map[string]*markup{
	"qwen_xml":    {begin: "<parameter=", named: ">", close: "</parameter>"},
	"minimax_xml": {begin: `<parameter name="`, named: `">`, close: "</parameter>"},
	"deepseek_xml": {begin: "<｜DSML｜parameter name=\"", named: `" string="`, open: `">`, close: "</｜DSML｜parameter>", kind: func(t types) string {
		if t == typeString {
			return "true"
		}
		return "false"
	}},
	"glm_xml": {begin: "<arg_key>", named: "</arg_key>", gap: true, open: "<arg_value>", close: "</arg_value>"},
	"cohere_xml": {begin: `<cofl:value name="`, named: `" type="`, open: `">`, close: "</cofl:value>", item: `<cofl:value type="`, kind: func(t types) string {
		switch t {
		case typeString:
			return "raw"
		case typeArray:
			return "list"
		case typeObject:
			return "dict"
		}
		return "json"
	}},
	"kimi_k3_xml": {
		begin: `<|open|>argument key="`, named: `" type="`, open: `"<|sep|>`, close: "<|close|>argument<|sep|>",
		escape: strings.NewReplacer("&", "&amp;", `"`, "&quot;"), free: []freeKind{{"integer", typeInteger}},
		kind: func(t types) string {
			for name, of := range typeNames {
				if t&of != 0 && name != "integer" {
					return name
				}
			}
			return ""
		},
	},
}

// markupCompiler writes what a schema describes in a style.
type markupCompiler struct {
	c      *schemaCompiler
	m      *markup
	values map[string]*grammar.Rule // conjunction, and whether it is a member's → its value
	any    *grammar.Rule            // a text that ends with the closing mark, which is part of it
	space  *grammar.Rule
}

// markupRule adds the rule of the objects of a schema in a style.
func markupRule(j *jsonText, text []byte, style string, o Options) (*grammar.Rule, error) {
	c := newSchemaCompiler(j, o, "")
	root, err := c.root(text)
	if err != nil {
		return nil, err
	}
	m := &markupCompiler{c: c, m: markups[style], values: map[string]*grammar.Rule{}}
	r := c.b.Rule("arguments")
	found := false
	conj := simplify([]*schema{root})
	for _, a := range c.alternatives(conj) {
		if !a.valued && a.types&typeObject != 0 {
			m.addObject(r, r.Start, a, r.End, root)
			found = true
		}
	}
	if c.err == nil && j.b.Err() == nil && !found {
		c.setErr(c.fail("#", "", grammar.Unsupported, "style %s: expected a schema of objects", diag.Quote(style)))
	}
	if c.err != nil {
		return nil, c.err
	}
	return r, j.b.Err()
}

// gap adds white space between two states, if the options allow any.
func (m *markupCompiler) gap(r *grammar.Rule, from, to int32) {
	r.Skip(from, to)
	if m.c.o.Whitespace == Compact {
		return
	}
	if m.space == nil {
		one := m.c.b.Rule("white space")
		for _, c := range []byte(" \t\n") {
			one.Bytes(one.Start, c, c, one.End)
		}
		m.space = m.c.b.Loop("white space", one, 1, maxIndent)
	}
	r.Call(from, m.space, to)
}

// addObject adds the members of the objects of an alternative.
func (m *markupCompiler) addObject(r *grammar.Rule, from int32, a *alternative, to int32, at *schema) {
	c := m.c
	p, ok := c.planObject(a, at)
	if !ok || c.stopped() {
		return
	}
	if p.lo > len(a.required) || p.hi >= 0 {
		s, key := a.owner(at, "minProperties", "maxProperties")
		c.setErr(c.fail(s.at, key, grammar.Unsupported, "counts of members are not supported in this style"))
		return
	}
	members := make([]*grammar.Rule, len(p.names))
	for i, name := range p.names {
		rule := c.b.Rule("member " + name)
		written := rule.State()
		rule.Text(rule.Start, m.m.begin+m.m.text(name), written)
		rule.Call(written, m.value(p.values[i], true), rule.End)
		members[i] = rule
	}
	first, end := r.State(), r.State()
	m.gap(r, from, first)
	r.Skip(end, to)
	if c.o.AnyOrder {
		if len(members) > maxAnyOrder {
			c.setErr(c.fail(at.at, "properties", grammar.TooLarge, "too large: more than %d members in any order", maxAnyOrder))
			return
		}
		m.anyOrder(r, first, members, &p, end)
		return
	}
	next := first
	for i, member := range members {
		now := next
		next = r.State()
		m.member(r, now, member, next)
		if !p.required[i] {
			r.Skip(now, next)
		}
	}
	if extra := m.extra(p.kinds); extra != nil {
		m.member(r, next, extra, next)
	}
	r.Skip(next, end)
}

// member adds a member and the white space after it.
func (m *markupCompiler) member(r *grammar.Rule, from int32, member *grammar.Rule, to int32) {
	after := r.State()
	r.Call(from, member, after)
	m.gap(r, after, to)
}

// anyOrder adds members with a state for each set of those written.
func (m *markupCompiler) anyOrder(r *grammar.Rule, from int32, members []*grammar.Rule, p *objectPlan, to int32) {
	extra := m.extra(p.kinds)
	states := make([]int32, 1<<len(members))
	for set := range states {
		if states[set] = from; set > 0 {
			states[set] = r.State()
		}
	}
	for set := range states {
		complete := true
		for i, member := range members {
			if set>>i&1 == 0 {
				m.member(r, states[set], member, states[set|1<<i])
				complete = complete && !p.required[i]
			}
		}
		if extra != nil {
			m.member(r, states[set], extra, states[set])
		}
		if complete {
			r.Skip(states[set], to)
		}
	}
}

// extra returns the rule of the members that nothing names, nil if there are none.
// Their names are those of variables, so that no mark is in them.
func (m *markupCompiler) extra(kinds []memberKind) *grammar.Rule {
	if len(kinds) == 0 {
		return nil
	}
	rule := m.c.b.Rule("further members")
	for _, k := range kinds {
		names := fixedDFA(`[A-Za-z_][A-Za-z0-9_]*`)
		if k.names != nil {
			names = names.Intersect(m.c.b, k.names)
		}
		if m.c.stopped() || names.Empty() {
			continue
		}
		name, value := rule.State(), rule.State()
		rule.Text(rule.Start, m.m.begin, name)
		rule.Spell(name, names, value, rule.Runes)
		rule.Call(value, m.value(k.values, true), rule.End)
	}
	return rule
}

// text returns a name as it is written.
func (m *markup) text(name string) string {
	if m.escape != nil {
		return m.escape.Replace(name)
	}
	return name
}

// value returns the rule of the values that meet a conjunction, with the closing mark;
// it begins after the name of a member, or where an item does.
func (m *markupCompiler) value(conj []*schema, member bool) *grammar.Rule {
	c := m.c
	conj = simplify(conj)
	key := conjKey(conj)
	if member {
		key += "member"
	}
	if r := m.values[key]; r != nil {
		return r
	}
	r := c.b.Rule("value")
	m.values[key] = r
	if len(conj) == 0 {
		free := c.empty("#")
		for t := typeNull; t <= typeObject; t <<= 1 {
			if t != typeFraction {
				m.addType(r, member, &alternative{types: allTypes, maxLen: -1, maxItems: -1, maxProps: -1}, t, free)
			}
		}
		for _, f := range m.m.free {
			m.addJSON(r, m.opened(r, f.name, member), &alternative{types: f.t, typed: true, maxLen: -1, maxItems: -1, maxProps: -1}, free)
		}
		return r
	}
	for _, a := range c.alternatives(conj) {
		if c.stopped() {
			break
		}
		if a.valued {
			m.addValues(r, member, a.values)
			continue
		}
		t := c.written(a)
		for one := typeNull; one <= typeObject; one <<= 1 {
			if t&one != 0 && !(one == typeFraction && t&typeInteger != 0) {
				m.addType(r, member, a, one, conj[0])
			}
		}
	}
	return r
}

// opened adds the marks before a value and returns the state after them.
func (m *markupCompiler) opened(r *grammar.Rule, kind string, member bool) int32 {
	before := m.m.item
	if member {
		before = m.m.named
	}
	at, to := r.State(), r.State()
	r.Text(r.Start, before+kind, at)
	if m.m.gap {
		next := r.State()
		m.gap(r, at, next)
		at = next
	}
	r.Text(at, m.m.open, to)
	return to
}

// kindOf returns what the mark says of a type.
func (m *markup) kindOf(t types) string {
	if m.kind == nil {
		return ""
	}
	return m.kind(t)
}

// addType adds the values of one type of an alternative; numbers are one type.
func (m *markupCompiler) addType(r *grammar.Rule, member bool, a *alternative, t types, at *schema) {
	inside := m.opened(r, m.m.kindOf(t), member)
	if t == typeString {
		m.addString(r, inside, a, at)
		return
	}
	b := *a
	b.types, b.typed = t, true
	if t&typeNumber != 0 {
		b.types = a.types & typeNumber
	}
	switch {
	case m.m.item != "" && t == typeObject:
		closing := r.State()
		m.addObject(r, inside, &b, closing, at)
		r.Text(closing, m.m.close, r.End)
	case m.m.item != "" && t == typeArray:
		m.addArray(r, inside, &b, at)
	default:
		m.addJSON(r, inside, &b, at)
	}
}

// addJSON adds values as JSON, with white space around, and the closing mark.
func (m *markupCompiler) addJSON(r *grammar.Rule, from int32, a *alternative, at *schema) {
	begin, end, closing := r.State(), r.State(), r.State()
	m.gap(r, from, begin)
	m.c.addAlternative(r, begin, a, end, at)
	m.gap(r, end, closing)
	r.Text(closing, m.m.close, r.End)
}

// addString adds the strings of an alternative and the closing mark, which is not in
// any of them.
func (m *markupCompiler) addString(r *grammar.Rule, from int32, a *alternative, at *schema) {
	c := m.c
	defer c.blame(a.owner(at, "pattern", "format", "maxLength", "minLength", "enum", "const"))()
	d := c.stringDFA(a)
	if c.stopped() {
		return
	}
	if d == nil {
		if m.any == nil {
			m.any = c.b.Rule("text and its end")
			freeText(c.b, m.any, m.any.Start, []string{m.m.close}, func(int32) {}, func([]int) (int32, bool) { return m.any.End, true })
		}
		r.Call(from, m.any, r.End)
		return
	}
	d = d.Intersect(c.b, fixedDFA(`(?s:.*)`+regexp.QuoteMeta(m.m.close)+`(?s:.*)`).Complement())
	if c.stopped() {
		return
	}
	closing := r.State()
	r.Spell(from, d, closing, r.Runes)
	r.Text(closing, m.m.close, r.End)
}

// addValues adds single values.
func (m *markupCompiler) addValues(r *grammar.Rule, member bool, values []*jsonValue) {
	byKind := map[string][]string{} // texts by the marks before them
	for _, v := range values {
		t, text := v.types(), ""
		switch {
		case v.kind == jsonString && strings.Contains(v.text, m.m.close):
			continue
		case v.kind == jsonString:
			text = v.text
		case v.kind != jsonArray && v.kind != jsonObject:
			text = v.scalar()
		case m.m.item != "":
			m.c.setErr(m.c.fail("#", "const", grammar.Unsupported, "arrays and objects as single values are not supported in this style"))
			return
		default:
			inside, closing := m.opened(r, m.m.kindOf(t), member), r.State()
			m.c.j.literal(r, inside, v, closing)
			r.Text(closing, m.m.close, r.End)
			continue
		}
		kind := m.m.kindOf(t)
		byKind[kind] = append(byKind[kind], text+m.m.close)
	}
	kinds := make([]string, 0, len(byKind))
	for kind := range byKind {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		r.Texts(m.opened(r, kind, member), byKind[kind], r.End)
	}
}

// types returns the type of a value.
func (v *jsonValue) types() types {
	switch v.kind {
	case jsonNull:
		return typeNull
	case jsonBool:
		return typeBool
	case jsonString:
		return typeString
	case jsonArray:
		return typeArray
	case jsonObject:
		return typeObject
	}
	return typeInteger
}

// addArray adds the arrays of an alternative as items between marks, and the closing
// mark.
func (m *markupCompiler) addArray(r *grammar.Rule, from int32, a *alternative, at *schema) {
	c := m.c
	places, lo, hi := arrayBounds(a)
	if a.unique && !c.differ(a, places, hi) || len(a.contains) > 0 {
		s, key := a.owner(at, "uniqueItems", "contains")
		c.setErr(c.fail(s.at, key, grammar.Unsupported, "not supported in this style"))
		return
	}
	if hi >= 0 && hi < lo {
		return
	}
	next, closing := r.State(), r.State()
	m.gap(r, from, next)
	r.Text(closing, m.m.close, r.End)
	for i := 0; i < places && (hi < 0 || i < hi); i++ {
		now := next
		if next = r.State(); i >= lo {
			r.Skip(now, closing)
		}
		m.member(r, now, m.value(itemAt(a, i), false), next)
	}
	most := -1
	if hi >= 0 {
		most = max(hi-places, 0)
	}
	if lo -= places; lo <= 0 {
		r.Skip(next, closing)
	}
	if most == 0 {
		return
	}
	item := c.b.Rule("item")
	m.member(item, item.Start, m.value(itemAt(a, places), false), item.End)
	r.Call(next, c.b.Loop("items", item, max(lo, 1), most), closing)
}
