package chat

import (
	"encoding/json"
	"strings"
	"time"
)

// What probes say, to be looked for in what the template makes of it.
const (
	needleUser   = "ridge-user-probe"
	needleSystem = "ridge-system-probe"
	needleTool   = "ridge_tool_probe"
	needleKey    = "ridge_key_probe"
	needleArg    = "ridge-arg-probe"
)

// probeLimits bound one probe: a template may be out to waste time.
var probeLimits = Limits{Time: 2 * time.Second, Steps: 200_000, Bytes: 16 << 20}

var (
	probeUser   = Message{Role: "user", Content: needleUser}
	probeSystem = Message{Role: "system", Content: needleSystem}
	probeTools  = []json.RawMessage{json.RawMessage(`{"type": "function", "function": {"name": "` + needleTool +
		`", "description": "d", "parameters": {"type": "object", "properties": {"` + needleKey +
		`": {"type": "string", "description": "d"}}, "required": ["` + needleKey + `"]}}}`)}
	probeCall = Message{Role: "assistant", ToolCalls: []ToolCall{{
		ID: "call00001", Name: needleTool, Arguments: json.RawMessage(`{"` + needleKey + `": "` + needleArg + `"}`),
	}}}
	probeResult = Message{Role: "tool", Name: needleTool, ToolCallID: "call00001", Content: "ok"}
)

// probe renders small conversations to learn what the template does.
func (t *Template) probe() {
	limits := probeLimits
	limits.Until, limits.Done = t.opts.Limits.Until, t.opts.Limits.Done
	render := func(in Input, sh shape) string {
		in.AddGenerationPrompt = true
		in.Now = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		s, err := t.render(in, sh, limits)
		if err != nil {
			return ""
		}
		return s.text
	}
	plain := Input{Messages: []Message{probeUser}}
	s := render(plain, shape{})
	if s == "" {
		if s = render(plain, shape{toolsUndefined: true}); s != "" {
			t.shape.toolsUndefined = true
		}
	}
	sys := render(Input{Messages: []Message{probeSystem, probeUser}}, t.shape)
	t.caps.System = strings.Contains(sys, needleSystem)
	if s == "" {
		s = sys
	}
	withTools := render(Input{Messages: []Message{probeUser}, Tools: probeTools}, t.shape)
	t.caps.Tools = strings.Contains(withTools, needleTool)
	if s == "" {
		s = withTools
	}
	t.addsBOS = t.opts.BOS != "" && strings.HasPrefix(s, t.opts.BOS)

	for _, sh := range shapes {
		sh.toolsUndefined = t.shape.toolsUndefined
		in := Input{Messages: []Message{probeUser, probeCall, probeResult}, Tools: probeTools}
		if out := render(in, sh); showsCall(out, withTools) {
			t.shape, t.sure, t.caps.ToolCalls = sh, true, true
			return
		}
	}
}

// showsCall reports whether out, the prompt of a conversation with a tool
// call, contains the call in a usable form. before is the prompt with the
// tool's definition only.
func showsCall(out, before string) bool {
	switch {
	case strings.Count(out, needleTool) <= strings.Count(before, needleTool):
		return false // the call is not there
	case !strings.Contains(out, needleArg):
		return false // its arguments are not
	case strings.Contains(out, "'"+needleKey+"'"):
		return false // a mapping printed as Python prints it
	case strings.Contains(out, `\"`+needleKey):
		return false // text encoded a second time
	case strings.Count(out, "None") > strings.Count(before, "None"):
		return false // a missing content printed
	}
	return true
}
