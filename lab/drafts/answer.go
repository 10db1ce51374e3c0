package drafts

import (
	"context"
	"fmt"
	"time"

	"ridge/engine"
	"ridge/internal/cpu"
)

// Side is one of the two ways in which a batch was answered.
type Side struct {
	Took     time.Duration   `json:"took"` // from the first token of any to the last of any
	CPU      time.Duration   `json:"cpu"`  // of all threads
	Saved    time.Duration   `json:"saved"`
	Drafting time.Duration   `json:"drafting"` // making guesses
	Steps    int64           `json:"steps"`    // of the engine
	Gaps     []time.Duration `json:"gaps"`     // between tokens
}

// given is one answer.
type given struct {
	tokens                           []int32
	first, last                      time.Time
	guessed, right, verified, places int
	err                              error
	gaps                             []time.Duration
}

// read takes an answer from its stream.
func (g *given) read(ctx context.Context, st *engine.Stream) {
	for ev, ok := st.Next(ctx); ok; ev, ok = st.Next(ctx) {
		now := time.Now()
		if ev.Token >= 0 {
			if g.tokens = append(g.tokens, ev.Token); len(g.tokens) > 1 {
				g.gaps = append(g.gaps, now.Sub(g.last))
			}
		}
		g.last, g.err = now, ev.Err
		if len(g.tokens) == 1 && g.first.IsZero() {
			g.first = g.last
		}
		g.guessed, g.right, g.verified, g.places = ev.Guessed, ev.Right, ev.Verified, ev.Places
	}
}

// answer has a batch answered. draft is engine.Request.MaxDraft.
func answer(ctx context.Context, e *engine.Engine, batch []Prompt, c *Config, tokens, draft int) (s Side, done []given, err error) {
	before, begin := e.Stats(), cpu.Time()
	var streams []*engine.Stream
	for _, p := range batch {
		r := engine.Request{Tokens: p.Tokens, MaxTokens: tokens, Sampling: c.Sampling, StopTokens: c.Stops, MaxDraft: draft}
		r.Sampling.Seed += p.seed
		st, err := e.Submit(ctx, r)
		if err != nil {
			return s, nil, fmt.Errorf("drafts: prompt %q: %w", p.Category, err)
		}
		defer st.Close()
		streams = append(streams, st)
	}
	done = make([]given, len(streams))
	ends := make(chan struct{})
	for i, st := range streams {
		go func() {
			done[i].read(ctx, st)
			ends <- struct{}{}
		}()
	}
	for range streams {
		<-ends
	}
	s.CPU = cpu.Time() - begin
	var first, last time.Time
	for i := range done {
		o := &done[i]
		if o.err != nil {
			return s, nil, fmt.Errorf("drafts: %w", o.err)
		}
		if first.IsZero() || !o.first.IsZero() && o.first.Before(first) {
			first = o.first
		}
		if o.last.After(last) {
			last = o.last
		}
		s.Gaps = append(s.Gaps, o.gaps...)
	}
	after := e.Stats()
	s.Steps = after.Steps - before.Steps
	s.Took, s.Saved, s.Drafting = last.Sub(first), after.Saved-before.Saved, after.Drafting-before.Drafting
	return s, done, ctx.Err()
}
