package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/wire"
	"ridge/text/chat"
)

// Types of tools that clients run, beside functions.
const (
	customTool     = "custom"
	localShellTool = "local_shell"
	shellTool      = "shell"
	applyPatchTool = "apply_patch"
	searchTool     = "tool_search" // if its execution is the client's
)

// toolDef is a tool of a request, in the form of responses or in that of chat
// completions.
type toolDef struct {
	Type        string            `json:"type"`
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  json.RawMessage   `json:"parameters"`
	Strict      *bool             `json:"strict"`
	Format      json.RawMessage   `json:"format"`
	Tools       []json.RawMessage `json:"tools"` // of a namespace
	Execution   string            `json:"execution"`
	Label       string            `json:"server_label"`
	Function    *toolDef          `json:"function"`
	Custom      *toolDef          `json:"custom"`
}

// offerTools reads tools in either of OpenAI's forms. Tools that a server would have
// to run are left out.
func offerTools(raws []json.RawMessage, offered *offer.Tools, left *[]fault.Left) error {
	for i, raw := range raws {
		var t toolDef
		where := fmt.Sprintf("tool %d", i)
		if err := json.Unmarshal(raw, &t); err != nil {
			return fault.BadRequest("tools", "%s: expected a function, found %s", where, fault.Excerpt(raw))
		}
		if err := t.offer(where, "", raw, offered, left); err != nil {
			return err
		}
	}
	return nil
}

// offerMore offers the tools that an item of the input brings. One that is offered
// already is the same.
func offerMore(raws []json.RawMessage, offered *offer.Tools, left *[]fault.Left) error {
	var more []json.RawMessage
	for _, raw := range raws {
		if t := toolNamed(raw); t.Kind == "namespace" || !offered.Has(t) {
			more = append(more, raw)
		}
	}
	return offerTools(more, offered, left)
}

// offer adds one tool, in a namespace or, with "", in none.
func (t *toolDef) offer(where, namespace string, raw json.RawMessage, offered *offer.Tools, left *[]fault.Left) error {
	d := t
	switch {
	case t.Function != nil:
		d = t.Function
	case t.Custom != nil:
		d = t.Custom
	}
	add := func(name, description, parameters string) error {
		offered.Add(where, offer.Tool{Kind: t.Type, Namespace: namespace, Name: name}, chat.Tool{Description: description, Parameters: json.RawMessage(parameters)})
		return nil
	}
	switch {
	case t.Function != nil && (t.Type == offer.Function || t.Type == ""):
		offered.AddRaw(where, d.Name, raw)
		return nil
	case t.Type == offer.Function:
		offered.Add(where, offer.Tool{Kind: offer.Function, Namespace: namespace, Name: d.Name}, chat.Tool{Description: d.Description, Parameters: d.Parameters, Strict: d.Strict != nil && *d.Strict})
		return nil
	case t.Type == customTool:
		return add(d.Name, d.Description, d.textParameters(where, left))
	case t.Type == "namespace" && namespace == "":
		if t.Name == "" {
			return fault.BadRequest("tools", "%s: name: expected a name, found nothing", where)
		}
		for j, raw := range t.Tools {
			inner, at := toolDef{}, fmt.Sprintf("%s: tool %d", where, j)
			if err := json.Unmarshal(raw, &inner); err != nil {
				return fault.BadRequest("tools", "%s: expected a function, found %s", at, fault.Excerpt(raw))
			}
			if offered.Has(offer.Tool{Kind: inner.Type, Namespace: t.Name, Name: inner.Name}) {
				continue
			}
			if err := inner.offer(at, t.Name, raw, offered, left); err != nil {
				return err
			}
		}
		return nil
	case t.Type == "namespace":
		return fault.BadRequest("tools", "%s: expected a function or a custom tool in a namespace, found a namespace", where)
	case t.Type == localShellTool:
		return add(localShellTool, "Runs a command on the user's machine and returns its output.", `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"the program and its arguments"},"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"}},"required":["command"]}`)
	case t.Type == shellTool:
		return add(shellTool, "Runs shell commands one after the other and returns their output.", `{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"}},"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}`)
	case t.Type == applyPatchTool:
		return add(applyPatchTool, "Creates, updates or deletes a file.", `{"type":"object","properties":{"type":{"enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},"diff":{"type":"string","description":"what changes, as a unified diff without headers; of a new file each line begins with +"}},"required":["type","path"]}`)
	case t.Type == searchTool && t.Execution == "client":
		return add(searchTool, t.Description, string(t.Parameters))
	case t.Type == "":
		return fault.BadRequest("tools", "%s: type: expected function, found nothing", where)
	}
	name := d.Name
	if name == "" {
		name = t.Label
	}
	offered.LeaveOut(where, t.Type, name, left)
	return nil
}

// textParameters is the schema of the one argument of a custom tool. A grammar for
// it is shown to the model, which is not held to it.
func (t *toolDef) textParameters(where string, left *[]fault.Left) string {
	type format struct {
		Type, Syntax, Definition string
		Grammar                  *struct{ Syntax, Definition string } // of chat completions
	}
	var f format
	_ = json.Unmarshal(t.Format, &f) // there may be none
	if f.Grammar != nil {
		f.Syntax, f.Definition = f.Grammar.Syntax, f.Grammar.Definition
	}
	text := "the whole input, as plain text"
	if f.Definition != "" {
		text += ", in the form of this " + strings.TrimSpace(f.Syntax+" grammar") + ":\n" + f.Definition
		*left = append(*left, fault.Left{Where: where, What: "format: the model is shown the grammar, and not held to it"})
	}
	quoted, _ := wire.EncodeJSON(text) // strings encode
	return `{"type":"object","properties":{"input":{"type":"string","description":` + string(quoted) + `}},"required":["input"]}`
}

// textCall is an earlier call of a custom tool as the call of a function.
func textCall(id, name, input string) chat.ToolCall {
	args, _ := wire.EncodeJSON(map[string]string{"input": input}) // strings encode
	return wire.ToolCall(id, name, args)
}
