package run

import (
	"encoding/json"
	"strings"
)

// Call is a tool call of an answer. One whose arguments are no JSON object is a call
// too, so that who has to carry it out can tell the model what is wrong with it.
type Call struct {
	ID, Name string
	Args     strings.Builder
	Valid    bool   // Args are a JSON object
	Raw      string // all that the model wrote for it; "" if the answer was cut within
}

// Input are the arguments as a JSON object: those of a call that was cut off are
// empty, what is no object is wrapped in one.
func (c *Call) Input() json.RawMessage {
	switch {
	case c.Valid:
		return json.RawMessage(c.Args.String())
	case c.Raw == "":
		return json.RawMessage("{}")
	}
	// By a convention of Anthropic's.
	b, err := json.Marshal(map[string]string{"INVALID_JSON": c.Args.String()})
	if err != nil { // of a map of texts there is none
		return json.RawMessage("{}")
	}
	return b
}
