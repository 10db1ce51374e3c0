// Package offer lets models, which know functions, use tools of every kind that clients
// run, and gives clients the calls back in the form that they know.
package offer

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"regexp"
	"strconv"
	"strings"

	"ridge/server/fault"
	"ridge/server/run"
	"ridge/text/chat"
)

// Tool is a tool as its client knows it. To the model it is a function.
type Tool struct {
	Kind      string // type of the tool in its API; "function" for functions
	Namespace string // "" for none
	Name      string
}

// Tools are what a model is offered of the tools that a request brings. Models know
// functions with flat names; clients get calls back under the names and of the
// kinds that they know. The zero value offers nothing.
type Tools struct {
	entries []offering
	added   map[Tool]bool
	flat    map[Tool]string
	client  map[string]Tool
	left    map[string]bool // types and names of tools that are left out
}

type offering struct {
	client Tool
	where  string
	fn     chat.Tool
	raw    json.RawMessage // in place of fn, as the client wrote it
}

// own reports whether the tool keeps its name, whatever others are called.
func (e *offering) own() bool { return e.client.Kind == Function && e.client.Namespace == "" }

// Function is the kind of tools that are functions.
const Function = "function"

// maxName is how long names may be that are made here: what OpenAI allows.
const maxName = 64

// Add offers a tool, as the function f if it has another name for clients. where says
// which one it is.
func (o *Tools) Add(where string, t Tool, f chat.Tool) {
	o.add(offering{client: t, where: where, fn: f})
}

// AddRaw offers a function in the form of chat completions, which templates get as it
// is.
func (o *Tools) AddRaw(where, name string, raw json.RawMessage) {
	o.add(offering{client: Tool{Kind: Function, Name: name}, where: where, raw: raw})
}

func (o *Tools) add(e offering) {
	if o.added == nil {
		o.added = map[Tool]bool{}
	}
	o.added[e.client] = true
	o.entries = append(o.entries, e)
}

// Has reports whether a tool was added.
func (o *Tools) Has(t Tool) bool { return o.added[t] }

// serverTool matches the types of tools that servers run, which clients date.
var serverTool = regexp.MustCompile(`^(?:web_search|web_fetch|code_execution|code_interpreter|image_generation|file_search|retrieval|mcp|mcp_toolset|computer|computer_use|computer_toolset|browser_toolset|advisor|tool_search|tool_search_tool_(?:regex|bm25)|programmatic_tool_calling)(?:_preview|_[0-9]+)*$`)

// LeaveOut notes a tool that the model is not offered, since nobody here could run
// it, by its type and its name, which may be "".
func (o *Tools) LeaveOut(where, typ, name string, left *[]fault.Left) {
	if o.left == nil {
		o.left = map[string]bool{}
	}
	for _, known := range []string{typ, name} {
		if known != "" {
			o.left[known] = true
		}
	}
	what := typ
	if !serverTool.MatchString(typ) {
		what = strconv.Quote(typ) // it may be any text, which logs do not show
	}
	if name != "" && name != typ {
		what += " (" + strconv.Quote(name) + ")"
	}
	*left = append(*left, fault.Left{Where: where, What: what + ": left out: this server runs no tools itself"})
}

// Functions settles the names and returns the tools as run takes them.
func (o *Tools) Functions() ([]run.Tool, error) {
	o.settle()
	raws := make([]json.RawMessage, len(o.entries))
	for i := range o.entries {
		e := &o.entries[i]
		if raws[i] = e.raw; e.raw != nil {
			continue
		}
		var err error
		if raws[i], err = e.fn.JSON(); err != nil {
			return nil, fault.BadRequest("tools", "%s: %v", e.where, err)
		}
	}
	return run.ReadTools(raws, func(i int) string { return o.entries[i].where })
}

// settle gives each tool a name of its own. Functions without a namespace keep
// theirs; then come the others in their order, with a number behind a name that is
// taken.
func (o *Tools) settle() {
	o.flat, o.client = map[Tool]string{}, map[string]Tool{}
	take := func(i int, name string) {
		e := &o.entries[i]
		e.fn.Name = name
		o.client[name] = e.client
		if _, known := o.flat[e.client]; !known {
			o.flat[e.client] = name
		}
	}
	for i := range o.entries {
		if e := &o.entries[i]; e.own() {
			take(i, e.client.Name)
		}
	}
	tried := map[string]int{} // the number that a name has come to
	for i := range o.entries {
		e := &o.entries[i]
		if e.own() {
			continue
		}
		name := flatName(e.client)
		if e.client.Name == "" {
			name = "" // which is refused
		}
		for base := name; ; {
			if _, taken := o.client[name]; !taken {
				break
			}
			tried[base] = max(tried[base], 1) + 1
			end := "_" + strconv.Itoa(tried[base])
			name = base[:min(len(base), maxName-len(end))] + end
		}
		take(i, name)
	}
}

// Flat is the name by which the model knows a tool of the client's, offered now or
// called earlier.
func (o *Tools) Flat(t Tool) string {
	if name, ok := o.flat[t]; ok {
		return name
	}
	if t.Namespace == "" {
		return t.Name
	}
	return flatName(t)
}

// Client is the tool that the model means by a name.
func (o *Tools) Client(name string) Tool {
	if t, ok := o.client[name]; ok {
		return t
	}
	return Tool{Kind: Function, Name: name}
}

// Choice is what run takes for a choice of tools that the client names. A tool that
// must be called has to be there; of those that may be, what was left out is not.
func (o *Tools) Choice(mode string, only []Tool) (run.ToolChoice, error) {
	c := run.ToolChoice{Mode: mode}
	if only == nil {
		return c, nil
	}
	c.Only = []string{}
	for _, t := range only {
		name, ok := o.find(t)
		switch {
		case ok:
			c.Only = append(c.Only, name)
		case o.left[t.Name] || t.Kind != Function && o.left[t.Kind]:
			if mode == "required" && len(only) == 1 {
				what := t.Name
				if what == "" {
					what = t.Kind
				}
				return c, fault.Unsupported("tool_choice", "expected a tool that the client runs, found %q: this server runs no tools itself", what)
			}
		default:
			return c, fault.BadRequest("tool_choice", "expected one of the tools, found %q", strings.TrimPrefix(t.Namespace+"."+t.Name, "."))
		}
	}
	if len(c.Only) == 0 && mode == "auto" { // nothing is left that may be called
		return run.ToolChoice{Mode: "none"}, nil
	}
	return c, nil
}

// find is the model's name for a tool that a choice names, whatever it says of the
// kind and the namespace, if it can only be one.
func (o *Tools) find(t Tool) (string, bool) {
	if name, ok := o.flat[t]; ok {
		return name, true
	}
	found := ""
	for _, e := range o.entries {
		if e.client.Name == t.Name && (t.Namespace == "" || t.Namespace == e.client.Namespace) || e.fn.Name == t.Name {
			if found != "" && found != e.fn.Name {
				return "", false
			}
			found = e.fn.Name
		}
	}
	return found, found != ""
}

// flatName is a name that models accept for a tool: NAMESPACE__NAME, of letters,
// digits, "_" and "-". What is too long ends with a hash of all of it.
func flatName(t Tool) string {
	name := t.Name
	if t.Namespace != "" {
		name = strings.TrimRight(t.Namespace, "_") + "__" + strings.TrimLeft(t.Name, "_")
	}
	plain := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, name)
	if len(plain) <= maxName {
		return plain
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Namespace + "\x00" + t.Name)) // never fails
	return fmt.Sprintf("%s_%08x", plain[:maxName-9], h.Sum32())
}
