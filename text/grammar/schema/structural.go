package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ridge/internal/diag"
	"ridge/text/grammar"
)

// StructuralTag compiles a structural tag for the vocabulary v (nil: no masks):
// free text in which tags begin sections of a given form. The source is the
// JSON of vLLM and xgrammar, {"type": "structural_tag", "format": ...} or the
// older {"structures": [...], "triggers": [...]}; docs/grammars.md lists what is
// supported. Tags that a vocabulary can only write as special tokens cannot be
// generated.
func StructuralTag(v *grammar.Vocabulary, source []byte, o Options) (*grammar.Grammar, error) {
	return loosely(o, func(o Options) (*grammar.Grammar, error) { return structuralTag(v, source, o) })
}

func structuralTag(v *grammar.Vocabulary, source []byte, o Options) (*grammar.Grammar, error) {
	b := o.builder("structural tag")
	c := &tagCompiler{j: &jsonText{b: b, space: o.Whitespace}, b: b, o: o}
	var doc struct {
		Format     json.RawMessage `json:"format"`
		Structures []struct {
			Begin  string          `json:"begin"`
			Schema json.RawMessage `json:"schema"`
			End    string          `json:"end"`
		} `json:"structures"`
		Triggers []string `json:"triggers"`
	}
	if len(source) > grammar.MaxSource {
		return nil, c.fail("", grammar.TooLarge, "longer than %d bytes", grammar.MaxSource)
	}
	if err := json.Unmarshal(source, &doc); err != nil {
		return nil, c.fail("#", grammar.Invalid, "%s", err)
	}
	var root *grammar.Rule
	var err error
	switch {
	case doc.Format != nil:
		root, err = c.format(doc.Format, "#/format", nil, 0)
	case doc.Structures != nil:
		t := tagFormat{Triggers: doc.Triggers}
		for _, s := range doc.Structures {
			content, _ := json.Marshal(map[string]any{"type": "json_schema", "json_schema": s.Schema}) // what was read can be written
			t.Tags = append(t.Tags, tagFormat{Begin: s.Begin, End: endTexts{s.End}, Content: content})
		}
		root, err = c.triggered(&t, "#", 0)
	default:
		err = c.fail("#", grammar.Invalid, "expected a format, or structures and triggers")
	}
	if err != nil {
		return nil, err
	}
	return b.Compile(root, v, o.MaxDepth)
}

// tagFormat is a format of a structural tag. Which fields count depends on its
// type.
type tagFormat struct {
	Type       string            `json:"type"`
	Value      *string           `json:"value"`       // const_string
	Schema     json.RawMessage   `json:"json_schema"` // json_schema
	Style      string            `json:"style"`
	Pattern    string            `json:"pattern"`  // regex
	Grammar    string            `json:"grammar"`  // grammar
	Elements   []json.RawMessage `json:"elements"` // sequence, or
	Begin      string            `json:"begin"`    // tag
	Content    json.RawMessage   `json:"content"`
	End        endTexts          `json:"end"`
	Triggers   []string          `json:"triggers"` // triggered_tags
	Tags       []tagFormat       `json:"tags"`     // and tags_with_separator
	Separator  string            `json:"separator"`
	AtLeastOne bool              `json:"at_least_one"`
	StopFirst  bool              `json:"stop_after_first"`
	Excludes   []string          `json:"excludes"` // any_text, triggered_tags, dispatch
	Min        int               `json:"min"`      // repeat
	Max        *int              `json:"max"`
	Rules      []dispatchRule    `json:"rules"` // dispatch
	Loop       *bool             `json:"loop"`
	Syntax     string            `json:"syntax"`    // grammar
	MaxChars   *int              `json:"max_chars"` // any_text
	MaxTokens  *int              `json:"max_tokens"`
	AnyOrder   bool              `json:"any_order"` // json_schema
}

// dispatchRule is a text and the format that goes on after it, [TEXT, FORMAT].
type dispatchRule struct {
	pattern string
	content json.RawMessage
}

// UnmarshalJSON reads a list of both.
func (d *dispatchRule) UnmarshalJSON(b []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("rules: expected lists of a text and a format, found one of %d", len(pair))
	}
	d.content = pair[1]
	return json.Unmarshal(pair[0], &d.pattern)
}

// endTexts is one text or a list of them, any of which ends a section.
type endTexts []string

// UnmarshalJSON reads either form.
func (e *endTexts) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*e = endTexts{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(e))
}

// Limits of structural tags.
const (
	maxTags     = 1024
	maxTagDepth = 32
	maxMark     = 1024 // bytes of a text that begins or ends a section
	unrolled    = 64   // repetitions that may be of something empty
)

type tagCompiler struct {
	j *jsonText
	b *grammar.Builder
	o Options
}

func (c *tagCompiler) fail(where string, k grammar.Kind, format string, a ...any) error {
	why := fmt.Sprintf(format, a...)
	if k == grammar.TooLarge {
		why = "too large: " + why
	}
	return &grammar.Error{Kind: k, Source: "structural tag", Where: where, Why: why}
}

// format adds the rule of a format. Text that has no bound of its own ends
// before the first of stops.
func (c *tagCompiler) format(raw json.RawMessage, where string, stops []string, depth int) (*grammar.Rule, error) {
	if depth > maxTagDepth {
		return nil, c.fail(where, grammar.TooLarge, "nested deeper than %d", maxTagDepth)
	}
	var f tagFormat
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, c.fail(where, grammar.Invalid, "%s", err)
	}
	part := func(p Part) (*grammar.Rule, error) {
		o := c.o
		o.AnyOrder = o.AnyOrder || f.AnyOrder
		r, err := p.rule(c.j, o)
		if e, ok := err.(*grammar.Error); ok {
			e.Where = strings.TrimSuffix(where+"/"+strings.TrimPrefix(e.Where, "#/"), "/")
		}
		return r, err
	}
	switch f.Type {
	case "const_string":
		if f.Value == nil {
			return nil, c.fail(where, grammar.Invalid, "expected a value")
		}
		r := c.b.Rule("text")
		r.Text(r.Start, *f.Value, r.End)
		return r, c.b.Err()
	case "json_schema":
		return c.schema(&f, where, part)
	case "qwen_xml_parameter":
		f.Style = "qwen_xml"
		return c.schema(&f, where, part)
	case "regex":
		return part(Part{Regex: f.Pattern})
	case "grammar":
		if f.Syntax == "lark" || f.Syntax == "" && grammar.IsLark(f.Grammar) {
			return part(Part{Lark: f.Grammar})
		}
		return part(Part{GBNF: f.Grammar})
	case "any_text":
		return c.anyText(&f, where, stops)
	case "sequence", "or":
		return c.elements(&f, where, stops, depth)
	case "optional", "star", "plus", "repeat":
		return c.repeated(&f, where, stops, depth)
	case "dispatch":
		return c.dispatch(&f, where, stops, depth)
	case "tag":
		r := c.b.Rule("tag")
		return r, c.tag(r, r.Start, &f, f.Begin, r.End, where, depth)
	case "triggered_tags":
		return c.triggered(&f, where, depth)
	case "tags_with_separator":
		return c.separated(&f, where, depth)
	}
	return nil, c.fail(where, grammar.Unsupported, "type %s", diag.Quote(f.Type))
}

// schema adds the rule of a schema in the style that f names.
func (c *tagCompiler) schema(f *tagFormat, where string, part func(Part) (*grammar.Rule, error)) (*grammar.Rule, error) {
	json := f.Style == "" || f.Style == "json"
	if !json && markups[f.Style] == nil {
		return nil, c.fail(where, grammar.Unsupported, "style %s", diag.Quote(f.Style))
	}
	switch s := bytes.TrimSpace(f.Schema); {
	case len(s) == 0:
		return nil, c.fail(where, grammar.Invalid, "expected a json_schema")
	case json && string(s) == "true":
		return c.j.anyValue(), c.b.Err()
	case len(f.Excludes) > 0:
		return nil, c.fail(where, grammar.Unsupported, "excludes in the strings of a schema")
	case json:
		return part(Part{Schema: s})
	default:
		return part(Part{Schema: s, style: f.Style})
	}
}

// marks checks texts that are looked for.
func (c *tagCompiler) marks(marks []string, where string) error {
	if len(marks) > maxTags {
		return c.fail(where, grammar.TooLarge, "more than %d texts", maxTags)
	}
	for _, m := range marks {
		if m == "" || len(m) > maxMark {
			return c.fail(where, grammar.Invalid, "expected texts of 1 to %d bytes, found one of %d", maxMark, len(m))
		}
	}
	return nil
}

func (c *tagCompiler) anyText(f *tagFormat, where string, stops []string) (*grammar.Rule, error) {
	marks := slices.Concat(f.Excludes, stops)
	if err := c.marks(marks, where); err != nil {
		return nil, err
	}
	for key, most := range map[string]*int{"max_chars": f.MaxChars, "max_tokens": f.MaxTokens} {
		if most != nil {
			c.b.Note(grammar.Unenforced{Where: where, Keyword: key, Why: "the length of free text is not bounded"})
		}
	}
	r := c.b.Rule("any text")
	begin := r.State()
	r.Skip(r.Start, begin)
	freeText(c.b, r, begin, marks, func(s int32) { r.Skip(s, r.End) }, func([]int) (int32, bool) { return 0, false })
	return r, c.b.Err()
}

func (c *tagCompiler) elements(f *tagFormat, where string, stops []string, depth int) (*grammar.Rule, error) {
	if len(f.Elements) == 0 || len(f.Elements) > maxTags {
		return nil, c.fail(where, grammar.Invalid, "elements: expected 1 to %d, found %d", maxTags, len(f.Elements))
	}
	r := c.b.Rule(f.Type)
	at := r.Start
	for i, raw := range f.Elements {
		last := i == len(f.Elements)-1
		end := stops
		if f.Type == "sequence" && !last {
			end = nil
		}
		x, err := c.format(raw, where+"/elements/"+strconv.Itoa(i), end, depth+1)
		if err != nil {
			return nil, err
		}
		switch {
		case f.Type == "or":
			r.Call(r.Start, x, r.End)
		case last:
			r.Call(at, x, r.End)
		default:
			next := r.State()
			r.Call(at, x, next)
			at = next
		}
	}
	return r, c.b.Err()
}

// repeated is a format that comes several times. A text without an end of its own
// ends where the whole does.
func (c *tagCompiler) repeated(f *tagFormat, where string, stops []string, depth int) (*grammar.Rule, error) {
	lo, hi := 0, -1
	switch f.Type {
	case "optional":
		hi = 1
	case "plus":
		lo = 1
	case "repeat":
		if f.Max == nil || f.Min < 0 || *f.Max >= 0 && *f.Max < f.Min {
			return nil, c.fail(where, grammar.Invalid, "expected 0 <= min <= max, or a max of -1")
		}
		if lo, hi = f.Min, *f.Max; max(lo, hi) > grammar.MaxRepeat {
			return nil, c.fail(where, grammar.TooLarge, "repeated more than %d times", grammar.MaxRepeat)
		}
	}
	one, err := c.format(f.Content, where+"/content", stops, depth+1)
	if err != nil {
		return nil, err
	}
	if f.Type == "repeat" && max(lo, hi) > unrolled {
		return c.b.Loop(f.Type, one, lo, max(hi, -1)), c.b.Err()
	}
	r := c.b.Rule(f.Type)
	if f.Type == "repeat" {
		at := r.Start
		for i := range max(lo, hi) {
			next := r.State()
			if i >= lo {
				r.Skip(at, r.End)
			}
			r.Call(at, one, next)
			at = next
		}
		if r.Skip(at, r.End); hi < 0 {
			again := r.State()
			r.Call(at, one, again)
			r.Skip(again, at)
		}
		return r, c.b.Err()
	}
	r.Call(r.Start, one, r.End)
	if lo == 0 {
		r.Skip(r.Start, r.End)
	}
	if hi < 0 {
		again := r.State()
		r.Call(r.Start, one, again)
		r.Skip(again, r.Start)
	}
	return r, c.b.Err()
}

// dispatch is free text in which a pattern must go on as the format beside it.
func (c *tagCompiler) dispatch(f *tagFormat, where string, stops []string, depth int) (*grammar.Rule, error) {
	if len(f.Rules) == 0 || len(f.Rules) > maxTags {
		return nil, c.fail(where, grammar.Invalid, "rules: expected 1 to %d, found %d", maxTags, len(f.Rules))
	}
	var marks []string
	contents := make([]*grammar.Rule, len(f.Rules))
	for i, d := range f.Rules {
		marks = append(marks, d.pattern)
		var err error
		if contents[i], err = c.format(d.content, where+"/rules/"+strconv.Itoa(i), nil, depth+1); err != nil {
			return nil, err
		}
	}
	marks = slices.Concat(marks, f.Excludes, stops)
	if err := c.marks(marks, where); err != nil {
		return nil, err
	}
	r := c.b.Rule(f.Type)
	begin, next := r.State(), r.End
	r.Skip(r.Start, begin)
	if f.Loop == nil || *f.Loop {
		next = begin
	}
	freeText(c.b, r, begin, marks, func(s int32) { r.Skip(s, r.End) }, func(found []int) (int32, bool) {
		at, ok := r.State(), false
		for _, m := range found {
			if m < len(contents) {
				r.Call(at, contents[m], next)
				ok = true
			}
		}
		return at, ok
	})
	return r, c.b.Err()
}

// tag adds a section between two states of r, of whose beginning only begin is
// left to be written.
func (c *tagCompiler) tag(r *grammar.Rule, from int32, f *tagFormat, begin string, to int32, where string, depth int) error {
	if f.Type != "" && f.Type != "tag" {
		return c.fail(where, grammar.Invalid, "expected a tag, found type %s", diag.Quote(f.Type))
	}
	if len(f.End) == 0 {
		return c.fail(where, grammar.Invalid, "expected an end")
	}
	for _, end := range f.End {
		if len(end) > maxMark {
			return c.fail(where, grammar.Invalid, "end: expected at most %d bytes, found %d", maxMark, len(end))
		}
	}
	stops := slices.DeleteFunc(slices.Clone(f.End), func(s string) bool { return s == "" })
	content, err := c.format(f.Content, where+"/content", stops, depth+1)
	if err != nil {
		return err
	}
	inside, closing := r.State(), r.State()
	r.Text(from, begin, inside)
	r.Call(inside, content, closing)
	for _, end := range f.End {
		r.Text(closing, end, to)
	}
	return c.b.Err()
}

// triggered is free text in which a trigger must go on as a tag that begins with
// it. If there must be one, it comes first, as XGrammar has it.
func (c *tagCompiler) triggered(f *tagFormat, where string, depth int) (*grammar.Rule, error) {
	if len(f.Triggers) == 0 || len(f.Tags) == 0 || len(f.Tags) > maxTags {
		return nil, c.fail(where, grammar.Invalid, "expected triggers and 1 to %d tags, found %d and %d", maxTags, len(f.Triggers), len(f.Tags))
	}
	marks := slices.Concat(f.Triggers, f.Excludes)
	if err := c.marks(marks, where); err != nil {
		return nil, err
	}
	for i := range f.Tags {
		begins := false
		for _, t := range f.Triggers {
			begins = begins || strings.HasPrefix(f.Tags[i].Begin, t)
		}
		if !begins {
			return nil, c.fail(where+"/tags/"+strconv.Itoa(i), grammar.Invalid, "begin: expected a text that begins with a trigger, found %s", diag.Quote(f.Tags[i].Begin))
		}
	}
	r := c.b.Rule("triggered tags")
	after := r.State() // after a tag
	var err error
	layer := func(begin int32) {
		next := after
		if f.StopFirst {
			next = r.End
		}
		freeText(c.b, r, begin, marks, func(s int32) {
			r.Skip(s, r.End)
		}, func(found []int) (int32, bool) {
			at := r.State()
			for _, m := range found {
				if m >= len(f.Triggers) || err != nil {
					continue
				}
				for i := range f.Tags {
					t := &f.Tags[i]
					if rest, ok := strings.CutPrefix(t.Begin, f.Triggers[m]); ok && err == nil {
						err = c.tag(r, at, t, rest, next, where+"/tags/"+strconv.Itoa(i), depth+1)
					}
				}
			}
			return at, true
		})
	}
	begin := r.State()
	r.Skip(r.Start, begin)
	if f.AtLeastOne {
		next := after
		if f.StopFirst {
			next = r.End
		}
		for i := range f.Tags {
			if err := c.tag(r, begin, &f.Tags[i], f.Tags[i].Begin, next, where+"/tags/"+strconv.Itoa(i), depth+1); err != nil {
				return nil, err
			}
		}
	} else {
		layer(begin)
	}
	if !f.StopFirst && err == nil {
		layer(after)
	}
	if err == nil {
		err = c.b.Err()
	}
	return r, err
}

// separated is a list of tags with a text between two of them.
func (c *tagCompiler) separated(f *tagFormat, where string, depth int) (*grammar.Rule, error) {
	if len(f.Tags) == 0 || len(f.Tags) > maxTags {
		return nil, c.fail(where, grammar.Invalid, "tags: expected 1 to %d, found %d", maxTags, len(f.Tags))
	}
	one := c.b.Rule("tags")
	for i := range f.Tags {
		if err := c.tag(one, one.Start, &f.Tags[i], f.Tags[i].Begin, one.End, where+"/tags/"+strconv.Itoa(i), depth+1); err != nil {
			return nil, err
		}
	}
	r := c.b.Rule("tags with separator")
	done := r.State()
	r.Skip(done, r.End)
	r.Call(r.Start, one, done)
	if !f.AtLeastOne {
		r.Skip(r.Start, r.End)
	}
	if !f.StopFirst {
		again := r.State()
		r.Text(done, f.Separator, again)
		r.Call(again, one, done)
	}
	return r, c.b.Err()
}
