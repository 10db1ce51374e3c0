package ridge

import (
	"context"
	"fmt"
	"math"

	"ridge/engine"
	"ridge/model"
)

// Pooling says how the states of a text's tokens become one embedding.
type Pooling = engine.Pooling

// The poolings.
const (
	PoolMean = engine.PoolingMean // mean of all tokens
	PoolLast = engine.PoolingLast // last token

	// PoolOwn is the model's own, as its files say; the mean if they do not.
	PoolOwn Pooling = math.MaxUint8
)

// Embed returns an embedding of text, [hidden size] numbers scaled to length 1.
func (m *Model) Embed(ctx context.Context, text string, p Pooling) ([]float32, error) {
	all, err := m.EmbedAll(ctx, []string{text}, p)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// atOnce bounds the texts that the engine gets at one time: more would not be
// computed sooner.
const atOnce = 64

// EmbedAll returns an embedding of each text. They are computed together, and
// each is what Embed returns of it.
func (m *Model) EmbedAll(ctx context.Context, texts []string, p Pooling) ([][]float32, error) {
	p, err := m.pooling(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends what is under way after an error
	out := make([][]float32, len(texts))
	streams := make([]*engine.Stream, len(texts))
	next := 0
	for i := range texts {
		for ; next < min(len(texts), i+atOnce); next++ {
			ids := m.Tokenize(texts[next])
			if len(ids) == 0 {
				return nil, fmt.Errorf("ridge: embed: text %d: expected text, found none", next)
			}
			var err error
			if streams[next], err = m.submit(ctx, engine.Request{Tokens: ids, Embed: p}); err != nil {
				return nil, err
			}
		}
		ev, ok := streams[i].Next(ctx)
		streams[i].Close()
		switch {
		case ev.Err != nil:
			return nil, ev.Err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !ok || ev.Embedding == nil:
			return nil, engine.ErrClosed
		}
		out[i] = ev.Embedding
	}
	return out, nil
}

// pooling returns the pooling that p stands for.
func (m *Model) pooling(p Pooling) (Pooling, error) {
	switch own := m.m.Defaults().Pooling; {
	case p == PoolMean, p == PoolLast:
		return p, nil
	case p != PoolOwn:
		return p, fmt.Errorf("ridge: embed: pooling: expected PoolOwn, PoolMean or PoolLast, found %d", p)
	case own == model.PoolingLast:
		return PoolLast, nil
	case own == model.PoolingMean, own == model.PoolingUnsaid:
		return PoolMean, nil
	default:
		return p, fmt.Errorf("ridge: embed: pooling: expected PoolMean or PoolLast: the model's own, %q, cannot be computed", own)
	}
}
