package hfjinja

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ardanlabs/jinja"
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

// Render runs the template. Variables may be nil, bool, int, int64, float64,
// string, json.RawMessage, Object, []any, and map[string]any (whose keys are
// sorted); a variable that the template does not name is not looked at.
// Errors are of type *Error.
func (p *Program) Render(vars map[string]any, o Options) (out string, err error) {
	st := newState(o.Limits, o.Now)
	defer func() {
		// Not reached as far as fuzzing can tell; a template from a stranger
		// must not end the process if that is wrong.
		if r := recover(); r != nil {
			out, err = "", st.errorf("internal: %v", r)
		}
	}()
	scope := make(map[string]value, len(p.free)+len(p.used))
	for name := range p.used {
		g := guards[name]
		scope[name] = jinja.NewCallable(name, func(a []value, _ map[string]value) (value, error) { return g(st, a) })
	}
	for name, sym := range p.free {
		if v, ok := vars[name]; ok {
			val, err := st.convert(v, 0)
			if err != nil {
				return "", st.errorf("variable '%s': %v", name, err)
			}
			scope[sym] = val
		} else if f, ok := globals[name]; ok {
			scope[sym] = st.carry(&builtin{name, f})
		}
	}
	out, err = p.tmpl.RenderValues(scope)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Line: st.line, Msg: err.Error()}
		}
		return "", e
	}
	return out, nil
}

// convert makes a value of a Go value.
func (st *state) convert(v any, depth int) (value, error) {
	if depth > maxValueDepth {
		return value{}, fmt.Errorf("nested deeper than %d", maxValueDepth)
	}
	switch v := v.(type) {
	case json.RawMessage:
		return st.decodeJSON(v)
	case Object:
		out := jinja.NewDict()
		for _, f := range v {
			x, err := st.convert(f.Value, depth+1)
			if err != nil {
				return value{}, fmt.Errorf("%s: %w", f.Name, err)
			}
			out.AsDict().Set(stringKey(f.Name), x)
		}
		return out, nil
	case []any:
		items := make([]value, len(v))
		for i := range v {
			x, err := st.convert(v[i], depth+1)
			if err != nil {
				return value{}, fmt.Errorf("item %d: %w", i, err)
			}
			items[i] = x
		}
		return jinja.NewList(items), nil
	case nil, bool, int, int64, float64, string:
		return jinja.FromGoValue(v), nil
	}
	// Maps, named types and structs: as JSON has them.
	data, err := json.Marshal(v)
	if err != nil {
		return value{}, err
	}
	return st.decodeJSON(data)
}
