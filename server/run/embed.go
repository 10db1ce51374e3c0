package run

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"ridge/engine"
	"ridge/server/fault"
)

// Embedding asks for the embeddings of texts.
type Embedding struct {
	Texts      []Prompt
	Pooling    string // mean, last, cls, or "" for the model's own
	Dimensions *int   // keep so many first numbers; nil for all
	Truncate   *int   // tokens of each text that are kept, -1 for as many as fit; nil: all
	// Prompt names what the model wants before texts, such as "query"; "" for what it
	// wants if nothing is said.
	Prompt string
	// Purpose says it in the words of other services, query or document: a model
	// without prompts wants nothing then.
	Purpose string
	Raw     bool // embeddings are not scaled to length 1
	// TruncateSide is the side that is cut: left, right; "": right.
	TruncateSide string
}

// Embed returns the embeddings of texts.
func (s *Runner) Embed(ctx context.Context, m *Model, b *Embedding, t *Totals) ([][]float32, error) {
	if len(b.Texts) == 0 {
		return nil, fault.BadRequest("input", "expected a text, found nothing")
	}
	if len(b.Texts) > MaxPrompts {
		return nil, fault.BadRequest("input", "expected at most %d texts, found %d", MaxPrompts, len(b.Texts))
	}
	pooling := m.info.Pooling
	switch b.Pooling {
	case "":
		if kind := m.info.NoPooling; kind != "" {
			return nil, fault.BadRequest("pooling", "expected mean, last or cls: the model's own, %q, cannot be computed", kind)
		}
	case "mean":
		pooling = engine.PoolingMean
	case "last":
		pooling = engine.PoolingLast
	case "cls":
		pooling = engine.PoolingCLS
	default:
		return nil, fault.BadRequest("pooling", "expected mean, last or cls, found %q", b.Pooling)
	}
	if pooling == engine.NoPooling {
		pooling = engine.PoolingMean
	}
	if m.info.Labels != nil {
		return nil, fault.Unsupported("model", "%s gives scores of texts and no embeddings: see /v1/rerank, /v1/score and /classify", m.info.Name)
	}
	size := m.info.Hidden
	if b.Dimensions != nil {
		size = *b.Dimensions
	}
	if size < 1 || size > m.info.Hidden {
		return nil, fault.BadRequest("dimensions", "expected 1 to %d, found %d", m.info.Hidden, size)
	}
	before, err := m.prompt(b.Prompt, b.Purpose)
	if err != nil {
		return nil, err
	}
	var plans []*Plan
	for i, in := range b.Texts {
		p, err := b.plan(ctx, m, before, in)
		if err != nil {
			return nil, err
		}
		if len(p.Request.Tokens) == 0 {
			return nil, fault.BadRequest("input", "text %d: expected at least one token, found none", i)
		}
		p.Request.Embed, p.Request.Raw = pooling, b.Raw
		plans = append(plans, p)
	}
	out := make([][]float32, len(plans))
	err = s.RunAll(ctx, plans, t, func(i int, d *Delta) error {
		if d.embedding != nil {
			out[i] = shorten(d.embedding, size, !b.Raw)
		}
		return nil
	}, nil)
	return out, err
}

// prompt returns what goes before texts by the name of what they are for.
func (m *Model) prompt(name, purpose string) (string, error) {
	if len(m.info.Prompts) > 0 {
		name = cmp.Or(name, strings.TrimPrefix(purpose, "search_")) // as Cohere writes it
	}
	name = cmp.Or(name, m.info.Prompt)
	text, ok := m.info.Prompts[name]
	switch {
	case name == "" || ok:
		return text, nil
	case len(m.info.Prompts) == 0:
		return "", fault.BadRequest("prompt_name", "expected none: %s has no prompts, found %q", m.info.Name, name)
	}
	return "", fault.BadRequest("prompt_name", "expected one of %q, found %q", slices.Sorted(maps.Keys(m.info.Prompts)), name)
}

// plan plans the embedding of one text. A text that is cut keeps the tokens that go
// around it.
func (b *Embedding) plan(ctx context.Context, m *Model, before string, in Prompt) (*Plan, error) {
	p := &Plan{Model: m, text: before + in.Text}
	if in.Parts == nil && in.Tokens == nil {
		in.Text = before + in.Text
	}
	side, around := cmp.Or(b.TruncateSide, "right"), 0
	whole := b.Truncate != nil && in.Parts == nil && in.Tokens == nil
	if whole {
		around = m.tok.AroundLen()
	}
	var err error
	if p.Request.Tokens, err = in.encode(m, "input", !whole, b.Truncate != nil); err != nil {
		return nil, err
	}
	keep := b.Truncate
	if whole && *keep > around {
		keep = new(*keep - around)
	}
	if err := p.truncate(ctx, keep, side, m.info.Context-around); err != nil {
		return nil, err
	}
	if whole {
		p.Request.Tokens = m.tok.Around(p.Request.Tokens)
	}
	return p, nil
}

// shorten keeps the first n numbers of an embedding, scaled to length 1 again if it
// was.
func shorten(v []float32, n int, unit bool) []float32 {
	if n >= len(v) || !unit {
		return v[:min(n, len(v))]
	}
	sum := 0.0
	for _, x := range v[:n] {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, n)
	for i, x := range v[:n] {
		if sum > 0 {
			out[i] = float32(float64(x) / math.Sqrt(sum))
		}
	}
	return out
}
