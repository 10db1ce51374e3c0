package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Tool is a function that a model may call.
type Tool struct {
	Name        string
	Description string          // when to call it; optional
	Parameters  json.RawMessage // JSON schema of the arguments, an object; empty: none
	Strict      bool            // hold the arguments of calls to Parameters
}

// Raw returns the tool as templates take it, see JSON, if it is one.
func (t Tool) Raw() (json.RawMessage, error) {
	if t.Name == "" {
		return nil, fmt.Errorf("chat: tool: name: expected one, found nothing")
	}
	if len(t.Parameters) > 0 && !isObject(t.Parameters) {
		return nil, fmt.Errorf("chat: tool %s: parameters: expected a JSON schema, an object, found %s", t.Name, excerpt(t.Parameters))
	}
	return t.JSON()
}

// JSON returns the tool in the form of OpenAI's chat completions, with its keys in
// the order that templates were written for, whatever its fields are. Parameters
// that are null are left out.
func (t Tool) JSON() (json.RawMessage, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
		Strict      bool            `json:"strict,omitempty"`
	}
	if string(t.Parameters) == "null" {
		t.Parameters = nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // templates print it
	err := e.Encode(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function(t)})
	return bytes.TrimSpace(b.Bytes()), err
}
