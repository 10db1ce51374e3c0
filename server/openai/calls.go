package openai

import (
	"encoding/json"

	"ridge/server/caller"
	"ridge/server/offer"
	"ridge/server/wire"
)

// callItem is a call of a tool in a response, in the form of the tool's kind.
type callItem struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Status    string  `json:"status"`
	CallID    string  `json:"call_id"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments any     `json:"arguments,omitempty"` // of functions a text, of searches for tools an object
	Input     *string `json:"input,omitempty"`
	Action    any     `json:"action,omitempty"`
	Operation any     `json:"operation,omitempty"`
	Execution string  `json:"execution,omitempty"`

	tool offer.Tool
	flat string // the model's name for the tool
	text offer.Text
}

// localAction is what a call of local_shell wants to be run.
type localAction struct {
	Type    string            `json:"type"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	Timeout *int64            `json:"timeout_ms"`
	User    *string           `json:"user"`
	Dir     *string           `json:"working_directory"`
}

// shellAction is what a call of shell wants to be run.
type shellAction struct {
	Commands []string `json:"commands"`
	Timeout  *int64   `json:"timeout_ms"`
	Most     *int64   `json:"max_output_length"`
}

// patchOperation is what a call of apply_patch wants to be done.
type patchOperation struct {
	Type string  `json:"type"`
	Path string  `json:"path"`
	Diff *string `json:"diff,omitempty"`
}

// newCall begins a call of a tool, which the model knows as flat.
func newCall(t offer.Tool, flat, id string) *callItem {
	c := &callItem{Status: "in_progress", CallID: wire.CallID(id), tool: t, flat: flat}
	prefix := "fc_"
	switch t.Kind {
	case customTool:
		prefix, c.Type, c.Namespace, c.Name = "ctc_", "custom_tool_call", t.Namespace, t.Name
	case localShellTool:
		prefix, c.Type = "lsh_", "local_shell_call"
	case shellTool:
		prefix, c.Type = "sh_", "shell_call"
	case applyPatchTool:
		prefix, c.Type = "apc_", "apply_patch_call"
	case searchTool:
		prefix, c.Type, c.Execution = "tsc_", "tool_search_call", "client"
	default:
		c.Type, c.Namespace, c.Name = "function_call", t.Namespace, t.Name
	}
	c.ID = caller.NewID(prefix)
	c.fill("", "")
	return c
}

// fill sets what the call says, from the arguments that the model wrote and, of
// custom tools, the text in them. What they lack is empty.
func (c *callItem) fill(args, text string) {
	switch c.tool.Kind {
	case customTool:
		c.Input = &text
	case localShellTool:
		a := localAction{Type: "exec", Command: []string{}, Env: map[string]string{}}
		var in struct {
			Command json.RawMessage   `json:"command"`
			Env     map[string]string `json:"env"`
			Timeout *int64            `json:"timeout_ms"`
			Dir     *string           `json:"working_directory"`
		}
		_ = json.Unmarshal([]byte(args), &in)
		if a.Command = words(in.Command); len(a.Command) == 1 { // models write a line for a shell, too
			a.Command = []string{"bash", "-lc", a.Command[0]}
		}
		if a.Timeout, a.Dir = in.Timeout, in.Dir; in.Env != nil {
			a.Env = in.Env
		}
		c.Action = a
	case shellTool:
		var in struct {
			Commands json.RawMessage `json:"commands"`
			Timeout  *int64          `json:"timeout_ms"`
			Most     *int64          `json:"max_output_length"`
		}
		_ = json.Unmarshal([]byte(args), &in)
		c.Action = shellAction{words(in.Commands), in.Timeout, in.Most}
	case applyPatchTool:
		var op patchOperation
		_ = json.Unmarshal([]byte(args), &op)
		c.Operation = op
	case searchTool:
		c.Arguments = json.RawMessage("{}")
		if json.Valid([]byte(args)) {
			c.Arguments = json.RawMessage(args)
		}
	default:
		c.Arguments = args
	}
}

// words is a list of texts, or a text as the only one of a list.
func words(raw json.RawMessage) []string {
	out := []string{}
	var one string
	switch {
	case !wire.Present(raw):
	case json.Unmarshal(raw, &one) == nil:
		return []string{one}
	case json.Unmarshal(raw, &out) != nil || out == nil:
		return []string{}
	}
	return out
}

// openCall begins a call of the tool that the model names.
func (o *responsesOutput) openCall(flat, id string) error {
	if err := o.closeItem(); err != nil {
		return err
	}
	o.call = newCall(o.offered.Client(flat), flat, id)
	o.text.Reset()
	return o.event("response.output_item.added", map[string]any{"output_index": len(o.rep.Output), "item": o.call})
}

// arguments takes more of what the model writes for a call.
func (o *responsesOutput) arguments(piece string) error {
	o.text.WriteString(piece)
	switch o.call.tool.Kind {
	case offer.Function:
		return o.callEvent("response.function_call_arguments.delta", map[string]any{"delta": piece})
	case customTool:
		if text := o.call.text.Add(piece); text != "" {
			return o.callEvent("response.custom_tool_call_input.delta", map[string]any{"delta": text})
		}
	}
	return nil
}

// callEvent tells of the open call.
func (o *responsesOutput) callEvent(typ string, fields map[string]any) error {
	fields["item_id"], fields["output_index"] = o.call.ID, len(o.rep.Output)
	return o.event(typ, fields)
}

// closeCall ends the open call.
func (o *responsesOutput) closeCall(status string) error {
	c, args := o.call, o.text.String()
	o.call = nil
	text, rest := "", ""
	if c.tool.Kind == customTool {
		text, rest = c.text.End()
	}
	c.fill(args, text)
	c.Status = status
	kept, _ := wire.EncodeJSON(args) // strings encode
	o.said.ToolCalls = append(o.said.ToolCalls, wire.ToolCall(c.CallID, c.flat, kept))
	err := o.callDone(c, args, text, rest)
	if err == nil {
		err = o.event("response.output_item.done", map[string]any{"output_index": len(o.rep.Output), "item": c})
	}
	o.rep.Output = append(o.rep.Output, c)
	return err
}

// callDone writes the events that come before the end of a call's item.
func (o *responsesOutput) callDone(c *callItem, args, text, rest string) error {
	place := func(f map[string]any) map[string]any {
		f["item_id"], f["output_index"] = c.ID, len(o.rep.Output)
		return f
	}
	switch c.tool.Kind {
	case offer.Function:
		return o.event("response.function_call_arguments.done", place(map[string]any{"arguments": args, "name": c.Name}))
	case customTool:
		if rest != "" {
			if err := o.event("response.custom_tool_call_input.delta", place(map[string]any{"delta": rest})); err != nil {
				return err
			}
		}
		return o.event("response.custom_tool_call_input.done", place(map[string]any{"input": text}))
	case shellTool:
		for i, command := range c.Action.(shellAction).Commands {
			for _, typ := range []string{"response.shell_call_command.added", "response.shell_call_command.done"} {
				if err := o.event(typ, map[string]any{"command": command, "command_index": i, "output_index": len(o.rep.Output)}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
