package chat

import (
	"encoding/json"
	"slices"
)

// toolSet holds the parameters of the tools offered, by name; nil for those that
// were offered without any.
type toolSet map[string]map[string]json.RawMessage

func (t *toolSet) read(tools []json.RawMessage) {
	*t = toolSet{}
	for _, raw := range tools {
		var d struct {
			Name       string
			Parameters json.RawMessage
			Function   struct {
				Name       string
				Parameters json.RawMessage
			}
		}
		if json.Unmarshal(raw, &d) != nil {
			continue
		}
		name, params := d.Function.Name, d.Function.Parameters
		if name == "" {
			name, params = d.Name, d.Parameters
		}
		if len(params) == 0 || string(params) == "null" {
			(*t)[name] = nil
			continue
		}
		var schema struct{ Properties map[string]json.RawMessage }
		_ = json.Unmarshal(params, &schema) // no properties: every value is judged by its form
		if schema.Properties == nil {
			schema.Properties = map[string]json.RawMessage{}
		}
		(*t)[name] = schema.Properties
	}
}

// takeNone reports whether the tool was offered without parameters: whatever the
// model writes, it is called with none. Code is for those that run it.
func (t toolSet) takeNone(name string) bool {
	params, ok := t[name]
	return ok && params == nil && !slices.Contains(codeTools, name)
}

// value returns text, the value of a parameter written without quotes, as
// JSON: by the type that the tool's schema gives it, or by its form.
func (t toolSet) value(tool, param, text string) []byte {
	s := readSchema(t[tool][param])
	return s.value(text)
}
