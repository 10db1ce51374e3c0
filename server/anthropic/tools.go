package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"ridge/server/fault"
	"ridge/server/offer"
	"ridge/server/run"
	"ridge/text/chat"
)

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict"`
	Server      string          `json:"mcp_server_name"`
	Cache       json.RawMessage `json:"cache_control"`
}

// clientTools are the tools that Anthropic defines and clients run, by the beginning
// of their types: their models know them, others are told.
var clientTools = []struct{ prefix, name, description, schema string }{
	{"bash_", "bash", "Runs a command in a shell that stays open between calls and returns its output. With restart the shell begins anew.",
		`{"type":"object","properties":{"command":{"type":"string"},"restart":{"type":"boolean"}}}`},
	{"text_editor_", "str_replace_based_edit_tool", "Views, creates and edits files. view: path, view_range for some lines. create: path, file_text. str_replace: path, old_str, which must be there once, new_str. insert: path, insert_line, after which, insert_text.",
		`{"type":"object","properties":{"command":{"enum":["view","create","str_replace","insert"]},"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"}},"required":["command","path"]}`},
	{"memory_", "memory", "Keeps notes in files below /memories between conversations. view: path. create: path, file_text. str_replace: path, old_str, new_str. insert: path, insert_line, insert_text. delete: path. rename: old_path, new_path.",
		`{"type":"object","properties":{"command":{"enum":["view","create","str_replace","insert","delete","rename"]},"path":{"type":"string"},"view_range":{"type":"array","items":{"type":"integer"}},"file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"},"old_path":{"type":"string"},"new_path":{"type":"string"}},"required":["command"]}`},
}

// readTools reads the tools and the choice of them.
func (b *request) readTools(c *run.Chat) error {
	var offered offer.Tools
	for i := range b.Tools {
		b.Tools[i].offer(fmt.Sprintf("tool %d", i), &offered, &c.Left)
	}
	var err error
	if c.Tools, err = offered.Functions(); err != nil {
		return err
	}
	t := b.ToolChoice
	if t == nil {
		return nil
	}
	c.Parallel = !t.DisableParallel
	switch t.Type {
	case "auto", "none":
		c.Choice.Mode = t.Type
	case "any":
		c.Choice.Mode = "required"
	case "tool":
		c.Choice, err = offered.Choice("required", []offer.Tool{{Kind: offer.Function, Name: t.Name}})
	default:
		return fault.BadRequest("tool_choice.type", "expected auto, any, tool or none, found %q", t.Type)
	}
	return err
}

// offer adds the tool to what the model is offered, or leaves it out.
func (t *tool) offer(where string, offered *offer.Tools, left *[]fault.Left) {
	f := chat.Tool{Description: t.Description, Parameters: t.Schema, Strict: t.Strict}
	name := t.Name
	switch {
	case t.Type == "" || t.Type == "custom":
	default:
		known := false
		for _, k := range clientTools {
			if strings.HasPrefix(t.Type, k.prefix) {
				known, f.Description, f.Parameters = true, k.description, json.RawMessage(k.schema)
				if name == "" {
					name = k.name
				}
			}
		}
		if !known {
			if name == "" {
				name = t.Server
			}
			offered.LeaveOut(where, t.Type, name, left)
			return
		}
	}
	f.Name = name
	offered.Add(where, offer.Tool{Kind: offer.Function, Name: name}, f)
}
