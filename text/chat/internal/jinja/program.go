package jinja

import (
	"encoding/json"
	"fmt"
	"time"
)

// Field is one entry of an Object.
type Field struct {
	Name  string
	Value any
}

// Object is a mapping with an order, for Render.
type Object []Field

// Options of one rendering.
type Options struct {
	Limits Limits
	Now    func() time.Time // for strftime_now; default time.Now
}

// maxSource bounds the bytes of a template's source.
const maxSource = 1 << 20

// Program is a compiled template. It is immutable and may be rendered by
// several goroutines at once.
type Program struct {
	body  block
	slots int            // variables of the template itself
	free  map[string]int // those that come from outside, and where they go
}

// Compile compiles a template. Errors are of type *Error.
func Compile(source string) (prog *Program, err error) {
	if len(source) > maxSource {
		return nil, errorAt(1, "template of %d bytes, the limit is %d", len(source), maxSource)
	}
	line := 1
	defer catch(&err, &line)
	p := &parser{toks: lex(source), fun: &function{}}
	root := p.push()
	body := p.statements()
	if p.cur().kind != tokEOF {
		panic(p.errorf("unexpected tag '%s'", p.peek(1).text))
	}
	if p.unknown != nil {
		panic(p.unknown)
	}
	p.resolve()
	for name := range root.local {
		if root.local[name] {
			delete(root.names, name)
		}
	}
	return &Program{block{stmts: body}, p.fun.slots, root.names}, nil
}

// Uses reports whether the template refers to the variable name.
func (p *Program) Uses(name string) bool {
	_, ok := p.free[name]
	return ok
}

// Render runs the template. Variables may be nil, bool, int, int64, float64,
// string, json.RawMessage, Object, Given, []any, and map[string]any (whose keys are
// sorted); a variable that the template does not name is not looked at.
// Errors are of type *Error.
func (p *Program) Render(vars map[string]any, o Options) (string, error) {
	out, _, err := p.Trace(vars, o)
	return out, err
}

// Trace is Render, and says what parts of the output were in variables of type
// Given: in order, apart from each other.
func (p *Program) Trace(vars map[string]any, o Options) (out string, given []Span, err error) {
	st := newState(o.Limits, o.Now)
	defer catch(&err, &st.line)
	st.frame = newFrame(p.slots, nil)
	for name, slot := range p.free {
		if v, ok := vars[name]; ok {
			val, err := convert(v, 0)
			if err != nil {
				return "", nil, st.errorf("variable '%s': %v", name, err)
			}
			st.frame.slots[slot] = val
		} else if f, ok := globals[name]; ok {
			st.frame.slots[slot] = &builtin{fn: f}
		}
	}
	p.body.exec(st)
	return string(st.out), st.given, nil
}

// convert makes a value of a Go value.
func convert(v any, depth int) (value, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxValueDepth)
	}
	switch v := v.(type) {
	case nil, bool, int, float64, string:
		return v, nil
	case json.RawMessage:
		return decodeJSON(v)
	case Given:
		out, err := convert(v.Value, depth)
		return give(out), err
	case Object:
		out := &dict{entries: make([]entry, 0, len(v))}
		for _, f := range v {
			x, err := convert(f.Value, depth+1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			key := value(f.Name)
			out.set(key, key, x)
		}
		return out, nil
	case []any:
		items := make([]value, len(v))
		for i := range v {
			x, err := convert(v[i], depth+1)
			if err != nil {
				return nil, fmt.Errorf("item %d: %w", i, err)
			}
			items[i] = x
		}
		return &list{items}, nil
	}
	// Maps, other integers, named types and structs: as JSON has them.
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return decodeJSON(data)
}
