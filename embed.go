package ridge

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"ridge/engine"
	"ridge/model"
	"ridge/text/tokenizer"
)

// Pooling says how the states of a text's tokens become one embedding.
type Pooling = engine.Pooling

// The poolings.
const (
	PoolMean = engine.PoolingMean // mean of all tokens
	PoolLast = engine.PoolingLast // last token
	PoolCLS  = engine.PoolingCLS  // first token

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
	out := make([][]float32, 0, len(texts))
	for v, err := range m.Embeddings(ctx, slices.Values(texts), Embedding{Pooling: p}) {
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// Long says what becomes of texts that do not fit into the context.
type Long uint8

// The ways.
const (
	LongRefused   Long = iota // an error with the counts
	LongTruncated             // the end is not read
	LongWindows               // pieces as long as fit are read each on its own, and the mean by their tokens counts
)

// Embedding says how texts become embeddings.
type Embedding struct {
	Pooling    Pooling
	Prompt     string // name of the model's own prompt that goes before each text; "" for what its files say
	Dimensions int    // numbers that are kept, the first ones (Matryoshka); 0 for all
	Long       Long
}

// embedding is one text on its way: its pieces, and how many tokens each has.
type embedding struct {
	streams []*engine.Stream
	tokens  []int
}

func (e *embedding) close() {
	for _, s := range e.streams {
		s.Close()
	}
}

// Embeddings gives the embeddings of texts in their order, each scaled to length 1.
// Texts are taken as they are needed and computed together; each gets what it would
// get alone. It ends with the first error.
func (m *Model) Embeddings(ctx context.Context, texts iter.Seq[string], o Embedding) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		pooling, err := m.pooling(o.Pooling)
		var before string
		if err == nil {
			before, err = m.embedPrompt(o.Prompt)
		}
		if size := m.m.EmbeddingSize(); err == nil && (o.Dimensions < 0 || o.Dimensions > size) {
			err = fmt.Errorf("ridge: embed: dimensions: expected 0 to %d, found %d", size, o.Dimensions)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends what is under way after an error
		var open []*embedding
		give := func() bool {
			v, err := open[0].read(ctx)
			open = open[1:]
			if err == nil && o.Dimensions > 0 {
				v = unit(v[:o.Dimensions])
			}
			return yield(v, err) && err == nil
		}
		n := 0
		for text := range texts {
			e, err := m.beginEmbedding(ctx, before+text, n, pooling, o.Long)
			if err != nil {
				yield(nil, err)
				return
			}
			n++
			if open = append(open, e); len(open) >= atOnce && !give() {
				return
			}
		}
		for len(open) > 0 {
			if !give() {
				return
			}
		}
	}
}

// embedPrompt returns what goes before texts, by its name.
func (m *Model) embedPrompt(name string) (string, error) {
	d := m.m.Defaults()
	name = cmp.Or(name, d.Prompt)
	text, ok := d.Prompts[name]
	if name != "" && !ok {
		return "", fmt.Errorf("ridge: embed: prompt: expected one of the model's own %q, found %q", slices.Sorted(maps.Keys(d.Prompts)), name)
	}
	return text, nil
}

// beginEmbedding submits the pieces of text number n.
func (m *Model) beginEmbedding(ctx context.Context, text string, n int, p Pooling, long Long) (*embedding, error) {
	ids := m.Tokenize(text)
	if len(ids) == 0 {
		return nil, fmt.Errorf("ridge: embed: text %d: expected text, found none", n)
	}
	pieces := [][]int32{ids}
	if long != LongRefused && len(ids) > m.Context() {
		pieces = m.windows(text)
		if long == LongTruncated {
			pieces = pieces[:1]
		}
	}
	e := &embedding{}
	for _, piece := range pieces {
		s, err := m.submit(ctx, engine.Request{Tokens: piece, Embed: p, Raw: len(pieces) > 1})
		if err != nil {
			e.close()
			return nil, err
		}
		e.streams, e.tokens = append(e.streams, s), append(e.tokens, len(piece))
	}
	return e, nil
}

// windows cuts the tokens of a text into pieces that fit, each with the tokens around
// it that the vocabulary asks for.
func (m *Model) windows(text string) [][]int32 {
	ids := m.tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true})
	var pieces [][]int32
	for part := range slices.Chunk(ids, max(m.Context()-m.tok.AroundLen(), 1)) {
		pieces = append(pieces, m.tok.Around(part))
	}
	return pieces
}

// read waits for an embedding.
func (e *embedding) read(ctx context.Context) ([]float32, error) {
	defer e.close()
	var sum []float32
	for i, s := range e.streams {
		ev, ok := s.Next(ctx)
		switch {
		case ev.Err != nil:
			return nil, ev.Err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case !ok || ev.Embedding == nil:
			return nil, engine.ErrClosed
		case len(e.streams) == 1:
			return ev.Embedding, nil
		}
		if sum == nil {
			sum = make([]float32, len(ev.Embedding))
		}
		for j, v := range ev.Embedding {
			sum[j] += v * float32(e.tokens[i])
		}
	}
	return unit(sum), nil
}

// unit scales numbers to length 1.
func unit(x []float32) []float32 {
	sum := make([]float64, len(x))
	for i, v := range x {
		sum[i] = float64(v)
	}
	return model.Unit(sum)
}

// pooling returns the pooling that p stands for.
func (m *Model) pooling(p Pooling) (Pooling, error) {
	switch own := m.m.Defaults().Pooling; {
	case m.m.Net().Classes != nil:
		return p, fmt.Errorf("ridge: embed: expected a model that gives embeddings, found one for scores of labels")
	case p == PoolMean, p == PoolLast, p == PoolCLS:
		return p, nil
	case p != PoolOwn:
		return p, fmt.Errorf("ridge: embed: pooling: expected PoolOwn, PoolMean, PoolLast or PoolCLS, found %d", p)
	case own == model.PoolingCLS:
		return PoolCLS, nil
	case own == model.PoolingLast:
		return PoolLast, nil
	case own == model.PoolingMean, own == model.PoolingUnsaid:
		return PoolMean, nil
	default:
		return p, fmt.Errorf("ridge: embed: pooling: expected PoolMean, PoolLast or PoolCLS: the model's own, %q, cannot be computed", own)
	}
}
