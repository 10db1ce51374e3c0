package constraint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ridge/text/chat"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
	"ridge/text/tokenizer"
)

// maxForcedCalls bounds the calls of an answer that must be calls.
const maxForcedCalls = 16

// Calls compiles answers that are calls of tools and nothing else: one, or with
// many up to 16. If or is not the format of any text, an answer may be a text of
// it instead. Of the schema of a tool that is not strict, what cannot be enforced
// is left out, and named by the grammar's Unenforced. When ctx ends, so does the
// work, and its error is returned.
func (c *Compiler) Calls(ctx context.Context, tools []chat.Tool, many bool, or Format) (*grammar.Grammar, error) {
	if or.kind == structuralTag {
		return nil, errors.New("constraint: calls: expected a format of the whole text beside them, found a structural tag")
	}
	f := c.syntax.Call
	o := schema.ToolOptions{Options: or.options(), NameKey: f.NameKey, ArgumentsKey: f.ArgumentsKey, Begin: f.Begin, End: f.End, Between: f.Between, MinCalls: 1, MaxCalls: 1}
	if !c.plain(f.Begin + f.End + f.Between) {
		// The tags are tokens of their own that a grammar cannot write: the
		// calls stand alone.
		o.Begin, o.End, o.Between = "", "", ", "
		if many {
			o.Before, o.After = "[", "]"
		}
	}
	if many {
		o.MaxCalls = maxForcedCalls
	}
	return c.tools(ctx, tools, o, or)
}

// ErrCallForm is wrapped by the error of tools that cannot be held to their
// schemas unless they must be called.
var ErrCallForm = errors.New("this model writes calls in a form that cannot be held to a schema")

// Strict makes the maskers of answers that may have calls: from the tag on that
// begins one, they are held to the tools' schemas, as with Calls. It also returns
// what of the schemas is not enforced.
func (c *Compiler) Strict(ctx context.Context, tools []chat.Tool, many, jumpAhead bool) (func() Masker, []grammar.Unenforced, error) {
	f := c.syntax.Call
	if f.Begin == "" || !c.plain(f.Begin+f.End+f.Between) {
		return nil, nil, fmt.Errorf("constraint: strict tools: %w unless they are required", ErrCallForm)
	}
	tag := strings.TrimRight(f.Begin, " \n")
	o := schema.ToolOptions{Options: Format{jump: jumpAhead}.options(), NameKey: f.NameKey, ArgumentsKey: f.ArgumentsKey, End: f.End, Between: f.Between + f.Begin, MinCalls: 1, MaxCalls: 1}
	if many {
		o.MaxCalls = -1
	}
	g, err := c.tools(ctx, tools, o, Format{})
	if err != nil {
		return nil, nil, err
	}
	gate := grammar.GateOptions{Text: tag, Optional: true}
	if id, ok := c.tok.ID(tag); ok {
		gate.Tokens = []int32{id}
	}
	gates, err := Gates(g, gate)
	return gates, g.Unenforced(), err
}

// tools compiles the grammar of calls, or of calls and of the texts of a format.
// A schema that cannot be enforced is an error if its tool is strict; of others
// what cannot be enforced is left out, and if that is all the arguments are any
// object.
func (c *Compiler) tools(ctx context.Context, tools []chat.Tool, o schema.ToolOptions, or Format) (*grammar.Grammar, error) {
	key := []string{"tools", or.key(), strconv.Itoa(int(o.Whitespace)), strconv.Itoa(o.MaxCalls), o.NameKey, o.ArgumentsKey, o.Before, o.After, o.Begin, o.End, o.Between}
	for _, t := range tools {
		key = append(key, t.Name, string(compact(t.Parameters)), strconv.FormatBool(t.Strict))
	}
	return c.cache.Get(ctx, strings.Join(key, "\x00"), func(ctx context.Context) (*grammar.Grammar, error) {
		o.Context, o.Loose = ctx, true
		list := make([]schema.Tool, len(tools))
		for i, t := range tools {
			list[i] = schema.Tool{Name: t.Name, Parameters: parameters(t), Strict: t.Strict}
		}
		g, err := c.compileTools(list, o, or)
		if err == nil || ctx.Err() != nil {
			return g, err
		}
		left := false
		for i, t := range list {
			if t.Strict || len(t.Parameters) == 0 {
				continue
			}
			if _, e := schema.Tools(nil, list[i:i+1], o); e != nil {
				list[i].Parameters, list[i].Left, left = nil, e.Error(), true
			}
		}
		if !left {
			return nil, err
		}
		return c.compileTools(list, o, or)
	})
}

func (c *Compiler) compileTools(list []schema.Tool, o schema.ToolOptions, or Format) (*grammar.Grammar, error) {
	if or.Any() {
		return schema.Tools(c.vocab(), list, o)
	}
	whole := or.options()
	whole.Context = o.Context
	part := or.part()
	if !or.loose { // what cannot be enforced of the format is refused, of tools left out
		whole.Loose, part.Strict = true, true
	}
	return schema.Union(c.vocab(), []schema.Part{part, {Tools: list, Calling: o}}, whole)
}

// parameters are what the arguments of calls of t are held to. A tool without
// parameters takes none.
func parameters(t chat.Tool) json.RawMessage {
	const none = `{"type":"object","properties":{},"additionalProperties":false}`
	switch string(compact(t.Parameters)) {
	case "", `{"type":"object","properties":{}}`, `{"properties":{},"type":"object"}`, `{"type":"object","properties":{},"required":[]}`:
		return json.RawMessage(none)
	}
	return t.Parameters
}

// compact returns JSON without white space, as a key for caches.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// plain reports whether text can be written without control tokens.
func (c *Compiler) plain(text string) bool {
	for _, id := range c.tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}) {
		if c.tok.IsControl(id) {
			return false
		}
	}
	return true
}
