package constraint

import (
	"bytes"
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
// it instead.
func (c *Compiler) Calls(tools []chat.Tool, many bool, or Format) (*grammar.Grammar, error) {
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
	return c.tools(tools, o, or)
}

// ErrCallForm is wrapped by the error of tools that cannot be held to their
// schemas unless they must be called.
var ErrCallForm = errors.New("this model writes calls in a form that cannot be held to a schema")

// Strict makes the maskers of answers that may have calls: from the tag on that
// begins one, they are held to the tools' schemas.
func (c *Compiler) Strict(tools []chat.Tool, many, jumpAhead bool) (func() Masker, error) {
	f := c.syntax.Call
	if f.Begin == "" || !c.plain(f.Begin+f.End+f.Between) {
		return nil, fmt.Errorf("constraint: strict tools: %w unless they are required", ErrCallForm)
	}
	tag := strings.TrimRight(f.Begin, " \n")
	o := schema.ToolOptions{Options: Format{jump: jumpAhead}.options(), NameKey: f.NameKey, ArgumentsKey: f.ArgumentsKey, End: f.End, Between: f.Between + f.Begin, MinCalls: 1, MaxCalls: 1}
	if many {
		o.MaxCalls = -1
	}
	g, err := c.tools(tools, o, Format{})
	if err != nil {
		return nil, err
	}
	gate := grammar.GateOptions{Text: tag, Optional: true}
	if id, ok := c.tok.ID(tag); ok {
		gate.Tokens = []int32{id}
	}
	return Gates(g, gate)
}

// tools compiles the grammar of calls, or of calls and of the texts of a format.
// A schema that cannot be enforced is an error if its tool is strict; the
// arguments of others are any object then.
func (c *Compiler) tools(tools []chat.Tool, o schema.ToolOptions, or Format) (*grammar.Grammar, error) {
	compile := func(list []schema.Tool) (*grammar.Grammar, error) { return schema.Tools(c.vocab(), list, o) }
	if !or.Any() {
		compile = func(list []schema.Tool) (*grammar.Grammar, error) {
			return schema.Union(c.vocab(), []schema.Part{or.part(), {Tools: list, Calling: o}}, o.Options)
		}
	}
	key := []string{"tools", or.key(), strconv.Itoa(int(o.Whitespace)), strconv.Itoa(o.MaxCalls), o.NameKey, o.ArgumentsKey, o.Before, o.After, o.Begin, o.End, o.Between}
	list := make([]schema.Tool, len(tools))
	for i, t := range tools {
		key = append(key, t.Name, string(compact(t.Parameters)), strconv.FormatBool(t.Strict))
		list[i] = schema.Tool{Name: t.Name, Parameters: t.Parameters}
	}
	return c.cache.Get(strings.Join(key, "\x00"), func() (*grammar.Grammar, error) {
		g, err := compile(list)
		if err == nil {
			return g, nil
		}
		loose := false
		for i, t := range tools {
			if t.Strict || len(t.Parameters) == 0 {
				continue
			}
			if _, e := schema.Compile(nil, t.Parameters, schema.Options{}); e != nil {
				list[i].Parameters, loose = nil, true
			}
		}
		if !loose {
			return nil, err
		}
		return compile(list)
	})
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
