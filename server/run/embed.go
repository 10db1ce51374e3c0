package run

import (
	"cmp"
	"context"
	"math"

	"ridge/engine"
	"ridge/server/fault"
)

// Embedding asks for the embeddings of texts.
type Embedding struct {
	Texts      []Prompt
	Pooling    string // mean, last, or "" for the model's own
	Dimensions *int   // keep so many first numbers; nil for all
	Truncate   *int   // tokens of each text that are kept, -1 for as many as fit; nil: all
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
			return nil, fault.BadRequest("pooling", "expected mean or last: the model's own, %q, cannot be computed", kind)
		}
	case "mean":
		pooling = engine.PoolingMean
	case "last":
		pooling = engine.PoolingLast
	default:
		return nil, fault.BadRequest("pooling", "expected mean or last, found %q", b.Pooling)
	}
	if pooling == engine.NoPooling {
		pooling = engine.PoolingMean
	}
	size := m.info.Hidden
	if b.Dimensions != nil {
		size = *b.Dimensions
	}
	if size < 1 || size > m.info.Hidden {
		return nil, fault.BadRequest("dimensions", "expected 1 to %d, found %d", m.info.Hidden, size)
	}
	var plans []*Plan
	for i, in := range b.Texts {
		p := &Plan{Model: m, text: in.Text}
		var err error
		if p.Request.Tokens, err = in.encode(m, "input", true, b.Truncate != nil); err != nil {
			return nil, err
		}
		if err := p.truncate(ctx, b.Truncate, cmp.Or(b.TruncateSide, "right"), m.info.Context); err != nil {
			return nil, err
		}
		if len(p.Request.Tokens) == 0 {
			return nil, fault.BadRequest("input", "text %d: expected at least one token, found none", i)
		}
		p.Request.Embed = pooling
		plans = append(plans, p)
	}
	out := make([][]float32, len(plans))
	err := s.RunAll(ctx, plans, t, func(i int, d *Delta) error {
		if d.embedding != nil {
			out[i] = shorten(d.embedding, size)
		}
		return nil
	}, nil)
	return out, err
}

// shorten keeps the first n numbers of an embedding, scaled to length 1 again.
func shorten(v []float32, n int) []float32 {
	if n >= len(v) {
		return v
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
