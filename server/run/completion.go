package run

import (
	"context"

	"ridge/server/fault"
	"ridge/text/tokenizer"
)

// Prompt is text, or tokens if they are not nil, or parts that are either, if there
// are any.
type Prompt struct {
	Text   string
	Tokens []int32
	Parts  []Prompt
}

// Completion asks for continuations of prompts, in whatever dialect it
// came.
type Completion struct {
	Prompts  []Prompt
	Format   Format
	Probs    bool
	Top      int
	Echo     bool
	Sampling Sampling
	Defaults Sampling // of the API
	Options
}

// Plans makes a plan of each prompt.
func (c *Completion) Plans(ctx context.Context, m *Model) ([]*Plan, error) {
	if len(c.Prompts) == 0 {
		return nil, fault.BadRequest("prompt", "expected at least one prompt, found none")
	}
	if len(c.Prompts) > MaxPrompts {
		return nil, fault.BadRequest("prompt", "expected at most %d prompts, found %d", MaxPrompts, len(c.Prompts))
	}
	var out []*Plan
	for i := range c.Prompts {
		p, err := c.Plan(ctx, m, &c.Prompts[i])
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// Plan makes a plan of one prompt. The work on schemas ends when ctx does.
func (c *Completion) Plan(ctx context.Context, m *Model, in *Prompt) (*Plan, error) {
	p := &Plan{Model: m, text: in.Text, Probs: c.Probs, top: c.Top}
	special := c.AddSpecial == nil || *c.AddSpecial
	var err error
	if p.Request.Tokens, err = in.encode(m, "prompt", special, c.Truncate != nil); err != nil {
		return nil, err
	}
	if in.Tokens == nil && len(p.Request.Tokens) == 0 && m.tok.BOS() >= 0 {
		p.Request.Tokens = []int32{m.tok.BOS()} // an empty prompt: the start of any text
	}
	if err := c.Options.fill(p, c.Sampling, c.Defaults); err != nil {
		return nil, err
	}
	if c.Echo && c.Probs {
		p.Request.PromptLogProbs = max(1, c.Top, p.Request.PromptLogProbs)
	}
	f := c.Format.resolve(m, &c.Options)
	if f.Kind != "" {
		if err := p.setFormat(ctx, f); err != nil {
			return nil, err
		}
	}
	if err := p.jumpAhead(f, c.Format.Jump != nil, &c.Options); err != nil {
		return nil, err
	}
	return p, p.finish(ctx, &c.Options)
}

// encode returns the prompt's tokens. Field is where it stands in the request. With
// special the first text has the tokens around it that the tokenizer adds.
func (in *Prompt) encode(m *Model, field string, special, cut bool) ([]int32, error) {
	switch {
	case in.Parts == nil && in.Tokens == nil:
		return m.encode(in.Text, special, cut)
	case in.Parts == nil:
		return in.Tokens, m.CheckIDs(field, in.Tokens)
	}
	f, out := m.fits(cut), []int32{}
	for i := range in.Parts {
		part := &in.Parts[i]
		if part.Tokens == nil {
			out = f.Encode(out, part.Text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: true})
			special = false
			continue
		}
		if err := m.CheckIDs(field, part.Tokens); err != nil {
			return nil, err
		}
		out = append(out, part.Tokens...)
	}
	return out, f.err()
}

// CheckIDs refuses tokens that m does not have.
func (m *Model) CheckIDs(field string, ids []int32) error {
	for _, id := range ids {
		if id < 0 || int(id) >= m.tok.VocabSize() {
			return fault.BadRequest(field, "expected token ids from 0 to %d, found %d", m.tok.VocabSize()-1, id)
		}
	}
	return nil
}

// PromptText is the text of a plan's prompt.
func (p *Plan) PromptText() string {
	if p.text != "" {
		return p.text
	}
	return p.Model.tok.DecodeSpecial(p.Request.Tokens)
}

// fimTokens are the marks of a text to be filled in.
type fimTokens struct{ prefix, suffix, middle int32 }

// fimNames are the marks of known families.
var fimNames = [][3]string{
	{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
	{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
	{"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},
	{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
	{"▁<PRE>", "▁<SUF>", "▁<MID>"},
	{"<PRE>", "<SUF>", "<MID>"},
}

// FIM finds the model's marks.
func (m *Model) FIM() (t fimTokens, ok bool) {
	for _, n := range fimNames {
		var found [3]int32
		all := true
		for i, name := range n {
			id, is := m.tok.ID(name)
			found[i], all = id, all && is
		}
		if !all {
			continue
		}
		return fimTokens{found[0], found[1], found[2]}, true
	}
	return t, false
}

// Fill is the prompt for the text between prefix and suffix.
func (m *Model) Fill(prefix, suffix string) ([]int32, error) {
	t, ok := m.FIM()
	if !ok {
		return nil, fault.Unsupported("suffix", "this model was not trained to fill in text: it has no tokens for that")
	}
	plain := tokenizer.EncodeOptions{}
	f := m.fits(false)
	var ids []int32
	if m.tok.AddsBOS() {
		ids = append(ids, m.tok.BOS())
	}
	ids = f.Encode(append(ids, t.prefix), prefix, plain)
	ids = f.Encode(append(ids, t.suffix), suffix, plain)
	return append(ids, t.middle), f.err()
}
