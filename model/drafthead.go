package model

import (
	"fmt"
	"slices"

	"ridge/internal/mmap"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/nn"
)

// DraftHead guesses tokens from what layers of a model compute: a small network that was
// trained beside it. It runs on the threads of the model, between its steps, and has the
// embedding and the output matrix of the model where it has none of its own.
//
// There are two forms. One has a matrix for each place ahead, which reads the state behind
// one row (Places is not 0): see Guess. The other goes on from states of its own, with keys
// and values of its own: see Forward. Row i of its sequence is of the token at place i+1 of
// a text and the state behind the token at place i, and gives the logits of the token at
// place i+2.
type DraftHead struct {
	kind  string
	m     *Model
	taps  []int
	final bool    // states are those behind the last norm of the model
	ids   []int32 // of the model, of the tokens that logits are of; nil: the same

	places []placeHead // of the first form

	fuse               nn.Linear // of the rows of all taps; without weights: there is one tap
	embNorm, stateNorm nn.Norm
	join               nn.Linear // [hidden][2·hidden], of an embedding and a state
	stateFirst         bool      // the state comes before the embedding in what join reads
	beside             *besideMixer
	normed             bool // it goes on from what its last norm gives, and not from what that reads
	embed              Embedding
	net                *Net

	w    *weights
	src  source // of its own, nil for none
	kv   *kvcache.Pool
	exec *nn.Exec
	step Step
	rows netRows

	emb, state, fused, in kernel.Acts
}

// besideMixer is attention that reads the embeddings of rows beside their states (Li et
// al., "EAGLE-3", 2025, arXiv 2503.01840).
type besideMixer struct {
	*nn.Attention
	emb, in kernel.Acts // normalized, [rows][hidden]; [rows][2·hidden]
}

// Form returns that of the states: both are rounded together.
func (b *besideMixer) Form() nn.Form { return nn.Form{} }

// Mix is that of the attention.
func (b *besideMixer) Mix(e *nn.Exec, s *nn.Step, layer int, x *kernel.Acts) (*kernel.Acts, *nn.Linear) {
	sideBySide(&b.in, &b.emb, x)
	e.Norm(&b.in, &b.in, nil, b.Attention.Form())
	return b.Attention.Mix(e, s, layer, &b.in)
}

// sideBySide makes rows of those of two.
func sideBySide(dst, first, second *kernel.Acts) {
	nn.Rows(dst, first.N, first.K+second.K, false)
	for i := range dst.N {
		row := nn.Row(dst, i)
		copy(row, nn.Row(first, i))
		copy(row[first.K:], nn.Row(second, i))
	}
}

// Kind returns the form of the head: "medusa", "eagle", "eagle3" or "mtp".
func (h *DraftHead) Kind() string { return h.kind }

// Taps returns the layers of the model that the head reads, see nn.Step.Taps.
func (h *DraftHead) Taps() []int { return h.taps }

// Width returns how many numbers the state behind a row of the model has for the head.
func (h *DraftHead) Width() int { return len(h.taps) * h.m.cfg.Hidden }

// Places returns how many places ahead a head of the first form guesses, else 0.
func (h *DraftHead) Places() int { return len(h.places) }

// Pool returns where a head of the second form keeps keys and values.
func (h *DraftHead) Pool() *kvcache.Pool { return h.kv }

// Context returns how many tokens a sequence may have.
func (h *DraftHead) Context() int { return h.m.context }

// Bytes returns the bytes of the head's own matrices.
func (h *DraftHead) Bytes() (n int64) {
	for _, p := range h.w.packed {
		n += int64(p.Size())
	}
	return n
}

// Take writes the state behind a row of the model, of whose taps rows are, to dst, which
// has room for Width numbers.
func (h *DraftHead) Take(dst []float32, rows [][]float32) {
	hidden := h.m.cfg.Hidden
	for k, row := range rows[:len(h.taps)] {
		part := dst[k*hidden:][:hidden]
		if h.final {
			h.m.net.Norm.Apply(part, row)
		} else {
			copy(part, row)
		}
	}
}

// Guess computes the logits of the token so many places behind the one that the model
// draws from the row of a state, place from 0: see Logits(0).
func (h *DraftHead) Guess(place int, state []float32) {
	h.m.setWidth(1)
	h.m.pool.Enter()
	defer h.m.pool.Leave()
	h.places[place].run(h, state)
}

// Forward computes the rows of a run, whose tokens are one place behind those that states
// are of: of the model, Width numbers each, or if own is set the head's, see State. They are
// appended to the sequence. Logits(i) and State(i) are those of the rows that give an output.
// On an error the sequence is what it was.
func (h *DraftHead) Forward(run Run, states []float32, own bool) (err error) {
	m, s := h.m, &h.step
	width := h.Width()
	if own {
		width = h.hidden()
	}
	if n := run.Rows(); n == 0 || len(states) != n*width {
		return fmt.Errorf("model: %s head: expected %d rows of %d numbers, found %d numbers", h.kind, n, width, len(states))
	}
	for _, t := range run.Tokens {
		if t < 0 || int(t) >= h.embed.Tokens.Rows {
			return fmt.Errorf("model: %s head: token: expected 0 to %d, found %d", h.kind, h.embed.Tokens.Rows-1, t)
		}
	}
	if n := run.Seq.Len() + run.Rows(); n > m.context {
		return fmt.Errorf("model: %s head: %w: %d tokens, the context has %d", h.kind, errContext, n, m.context)
	}
	if err := h.kv.Grow(run.Seq, run.Rows()); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			h.kv.Truncate(run.Seq, run.Seq.Len()-run.Rows())
		}
	}()
	s.Runs = append(s.Runs[:0], run)
	s.Place()
	m.setWidth(s.Rows())
	m.pool.Enter()
	defer m.pool.Leave()
	h.exec.Begin(s)
	if err := h.lookUp(run.Tokens); err != nil {
		return fmt.Errorf("model: %s head: %w", h.kind, err)
	}
	nn.Rows(&h.state, s.Rows(), width, false)
	for i := range h.state.N {
		copy(nn.Row(&h.state, i), states[i*width:][:width])
	}
	return m.guard(func() {
		h.enter(own)
		h.net.run(h.exec, s, &h.rows)
		if n := len(s.Wanted()); n > 0 {
			h.net.project(h.exec, &h.rows, 0, n)
		}
	})
}

// hidden returns the width of the head's residual stream.
func (h *DraftHead) hidden() int { return h.embed.Tokens.Cols }

// lookUp decodes the embeddings of tokens.
func (h *DraftHead) lookUp(tokens []int32) (err error) {
	nn.Rows(&h.emb, len(tokens), h.hidden(), false)
	cut := mmap.Guard(func() {
		for i, t := range tokens {
			if err = h.embed.lookUp(nn.Row(&h.emb, i), int(t)); err != nil {
				return
			}
		}
	})
	if cut != nil {
		return cut
	}
	return err
}

// enter computes the rows that the layers read.
func (h *DraftHead) enter(own bool) {
	e, state, x := h.exec, &h.state, &h.rows.x
	if !own && h.fuse.W != nil {
		e.Norm(&h.in, state, nil, nn.FormOf(&h.fuse))
		e.Linear(&h.in, nn.Out{L: &h.fuse, Dst: &h.fused})
		state = &h.fused
	}
	if b := h.beside; b != nil {
		e.Norm(&b.emb, &h.emb, &h.embNorm, nn.Form{})
		e.Norm(x, state, &h.stateNorm, nn.Form{})
		return
	}
	e.Norm(&h.emb, &h.emb, &h.embNorm, nn.Form{})
	e.Norm(state, state, &h.stateNorm, nn.Form{})
	if h.stateFirst {
		sideBySide(&h.in, state, &h.emb)
	} else {
		sideBySide(&h.in, &h.emb, state)
	}
	e.Norm(&h.in, &h.in, nil, nn.FormOf(&h.join))
	e.Linear(&h.in, nn.Out{L: &h.join, Dst: x})
}

// Logits returns the logits of output row i, one for each token that the head knows: see
// Token. The slice is valid until the next Forward or Guess.
func (h *DraftHead) Logits(i int) []float32 { return nn.Row(&h.rows.logits, i) }

// State returns what the head goes on with behind output row i, valid until the next
// Forward.
func (h *DraftHead) State(i int) []float32 {
	if h.normed {
		return nn.Row(&h.rows.out, i)
	}
	return nn.Row(&h.rows.x, i)
}

// Token returns the model's token that logit id is of.
func (h *DraftHead) Token(id int32) int32 {
	if h.ids == nil {
		return id
	}
	return h.ids[id]
}

// Close gives back what the head has of its own. The model must still be open.
func (h *DraftHead) Close() error {
	var err error
	if h.kv != nil {
		err = h.kv.Close()
	}
	if h.w != nil {
		if free := h.w.free(); err == nil {
			err = free
		}
	}
	if h.src != nil {
		if shut := h.src.close(); err == nil {
			err = shut
		}
	}
	h.kv, h.w, h.src = nil, nil, nil
	return err
}

// ready makes what a head computes in, once it is built.
func (h *DraftHead) ready() error {
	h.exec = nn.NewExec(h.m.pool)
	if h.net == nil {
		return nil
	}
	for l, n := range h.net.Planes(h.m.act) {
		if l != &h.net.Head.Out {
			l.Planes = n
		}
	}
	cfg := kvcache.Config{Layers: h.net.Keeps(), DType: h.m.kv.DType(), PageTokens: h.m.kv.PageTokens()}
	if slices.ContainsFunc(cfg.Layers, func(l kvcache.LayerShape) bool { return l.State > 0 }) {
		return fmt.Errorf("model: %s head: expected layers that can drop their last tokens, found some with states", h.kind)
	}
	var err error
	if cfg.MaxBytes, err = kvcache.SequenceBytes(cfg, h.m.context+cfg.PageTokens, 0); err != nil {
		return err
	}
	h.kv, err = kvcache.New(cfg)
	h.exec.KV = h.kv
	return err
}
