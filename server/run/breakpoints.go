package run

import (
	"slices"
	"strings"
	"time"

	"ridge/engine"
	"ridge/text/chat"
)

// leastOpening is the length of a prompt from which on its opening is looked for.
const leastOpening = 128

// breakpoints are where other prompts are likely to leave this one: behind its
// opening, and at its end if the request says so.
func (c *Chat) breakpoints(m *Model, tools []Tool, tokens []int32) (out []engine.Breakpoint) {
	e := m.Engine()
	if e == nil || !e.KeepsPrefixes() || len(tokens) < leastOpening || c.Template != "" || m.foreign || c.AddSpecial != nil || c.Truncate != nil {
		return nil
	}
	if n := c.openingLength(m, tools, tokens); n > 0 {
		out = append(out, engine.Breakpoint{Tokens: n, Pin: c.PinOpening})
	}
	if c.PinPrompt {
		out = append(out, engine.Breakpoint{Tokens: len(tokens), Pin: true})
	}
	return out
}

// openingLength is how many of tokens are the opening of the conversation, which
// is what templates make of system messages and tools: what they have in common
// with a conversation that goes on otherwise.
func (c *Chat) openingLength(m *Model, tools []Tool, tokens []int32) int {
	msgs, _ := m.omit.from(c.Messages)
	k := slices.IndexFunc(msgs, func(x chat.Message) bool { return x.Role != "system" })
	if k < 0 || k == 0 && len(tools) == 0 && m.system == "" {
		return 0
	}
	other := "#"
	if strings.HasPrefix(msgs[k].Content, other) {
		other = "+"
	}
	in := chat.Input{
		Messages:            m.opening(append(slices.Clone(msgs[:k]), chat.Message{Role: "user", Content: other})),
		AddGenerationPrompt: true, Extra: m.templateArgs(c.Args), Now: time.Now(),
	}
	for _, t := range tools {
		in.Tools = append(in.Tools, t.raw)
	}
	p, err := m.tmpl.Prompt(in, m.fits(false))
	if err != nil { // it is a guess
		return 0
	}
	n := 0
	for n < min(len(p.Tokens), len(tokens)) && p.Tokens[n] == tokens[n] {
		n++
	}
	return n
}
