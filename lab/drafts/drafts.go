// Package drafts measures what guessing next tokens gains: the same prompts are
// answered with guesses and without, in turns, by the same engine, and answers are
// compared token by token. It is the table of Spec-Bench (Xia et al., "Unlocking
// Efficiency in Large Language Model Inference: A Comprehensive Survey of Speculative
// Decoding", 2024), by category.
package drafts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"ridge/engine"
	"ridge/internal/cpu"
	"ridge/sample"
)

// Prompt is a prompt of a kind.
type Prompt struct {
	Category string
	Tokens   []int32
}

// Config says how to measure.
type Config struct {
	Tokens   int  // of each answer, at most
	Batch    int  // prompts that are answered at the same time
	Rounds   int  // pairs, each both ways
	Mixed    bool // batches are of all kinds of prompts
	Sampling sample.Params
	Stops    []int32
	Each     func(done int) // told how many prompts are done, or nil
}

// Row is what was measured of the prompts of a category, or of all.
type Row struct {
	Category  string  `json:"category"`
	Prompts   int     `json:"prompts"`
	Tokens    int     `json:"tokens"`       // of answers
	Guessed   int     `json:"guessed"`      // tokens that were guessed and computed
	Accepted  int     `json:"accepted"`     // of these, those that came true
	Share     float64 `json:"share"`        // Accepted of Guessed
	PerStep   float64 `json:"per_step"`     // tokens that a step of a sequence gave, the first token of each answer not counted
	Plain     float64 `json:"plain_tps"`    // tokens a second without guesses
	Drafted   float64 `json:"draft_tps"`    // with guesses
	Speed     float64 `json:"speed"`        // their ratio: of all times
	Median    float64 `json:"median"`       // median of the ratios of pairs
	Low       float64 `json:"low"`          // the lower quartile of those
	CPU       float64 `json:"cpu"`          // median of the pairs' ratios of processor time, which others on the machine disturb less
	PlainP99  float64 `json:"plain_p99_ms"` // 99th percentile of the times between tokens without guesses
	DraftP99  float64 `json:"draft_p99_ms"` // with guesses
	Estimated float64 `json:"estimated"`    // ratio that the engine has estimated itself
	Different int     `json:"different"`    // answers that were not the same
	plain     time.Duration
	drafted   time.Duration
	saved     time.Duration
	ratios    []float64 // of pairs
	cpus      []float64
	gaps      [2][]time.Duration
}

// side is one of the two ways.
type side struct {
	answers        [][]int32
	took           time.Duration // from the first token of any to the last of any
	cpu            time.Duration // of all threads
	guessed, right int
	saved          time.Duration
	gaps           []time.Duration // between tokens
}

// Measure answers prompts in batches, each once to warm up and then in pairs, without
// guesses and with, which of them first taking turns, too.
func Measure(ctx context.Context, e *engine.Engine, prompts []Prompt, c Config) ([]Row, error) {
	rows := map[string]*Row{}
	var order []string
	done := 0
	for i, batch := range batchesOf(prompts, c.Batch, c.Mixed) {
		if _, err := answer(ctx, e, batch, c, 1, -1); err != nil { // prompts are known from here on
			return nil, err
		}
		kind := batch[0].Category
		if c.Mixed {
			kind = "mixed"
		}
		for pair := range max(c.Rounds, 1) {
			var sides [2]side
			for k := range sides {
				which := (i + pair + k) % 2
				s, err := answer(ctx, e, batch, c, c.Tokens, which-1)
				if err != nil {
					return nil, err
				}
				sides[which] = s
			}
			for _, name := range []string{kind, "all"} {
				r := rows[name]
				if r == nil {
					r = &Row{Category: name}
					rows[name], order = r, append(order, name)
				}
				r.add(&sides[0], &sides[1])
			}
		}
		if done += len(batch); c.Each != nil {
			c.Each(done)
		}
	}
	var out []Row
	order = append(slices.DeleteFunc(order, func(s string) bool { return s == "all" }), "all")
	for _, name := range order {
		rows[name].finish()
		rows[name].share(max(c.Rounds, 1))
		out = append(out, *rows[name])
	}
	return out, nil
}

// batchesOf cuts prompts into batches of one category each, or of all in turns.
func batchesOf(prompts []Prompt, size int, mixed bool) (out [][]Prompt) {
	if mixed {
		prompts = inTurns(prompts)
	}
	for len(prompts) > 0 {
		n := 1
		for n < min(size, len(prompts)) && (mixed || prompts[n].Category == prompts[0].Category) {
			n++
		}
		out, prompts = append(out, prompts[:n]), prompts[n:]
	}
	return out
}

// inTurns returns the first prompt of each category, the second of each, and so on.
func inTurns(prompts []Prompt) []Prompt {
	place, seen := make([]int, len(prompts)), map[string]int{}
	order := make([]int, len(prompts))
	for i, p := range prompts {
		order[i], place[i] = i, seen[p.Category]
		seen[p.Category]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return place[a] - place[b] })
	out := make([]Prompt, len(prompts))
	for k, i := range order {
		out[k] = prompts[i]
	}
	return out
}

// answer has a batch answered. draft is engine.Request.MaxDraft.
func answer(ctx context.Context, e *engine.Engine, batch []Prompt, c Config, tokens, draft int) (s side, err error) {
	before, begin := e.Stats().Saved, cpu.Time()
	var streams []*engine.Stream
	for i, p := range batch {
		r := engine.Request{Tokens: p.Tokens, MaxTokens: tokens, Sampling: c.Sampling, StopTokens: c.Stops, MaxDraft: draft}
		r.Sampling.Seed += uint64(i)
		st, err := e.Submit(ctx, r)
		if err != nil {
			return s, fmt.Errorf("drafts: prompt %q: %w", p.Category, err)
		}
		defer st.Close()
		streams = append(streams, st)
	}
	type one struct {
		tokens         []int32
		first, last    time.Time
		guessed, right int
		err            error
		gaps           []time.Duration
	}
	done := make([]one, len(streams))
	ends := make(chan struct{})
	for i, st := range streams {
		go func() {
			o := &done[i]
			for ev, ok := st.Next(ctx); ok; ev, ok = st.Next(ctx) {
				now := time.Now()
				if ev.Token >= 0 {
					if o.tokens = append(o.tokens, ev.Token); len(o.tokens) > 1 {
						o.gaps = append(o.gaps, now.Sub(o.last))
					}
				}
				o.last, o.err = now, ev.Err
				if len(o.tokens) == 1 && o.first.IsZero() {
					o.first = o.last
				}
				o.guessed, o.right = ev.Guessed, ev.Right
			}
			ends <- struct{}{}
		}()
	}
	for range streams {
		<-ends
	}
	s.cpu = cpu.Time() - begin
	var first, last time.Time
	for i := range done {
		o := &done[i]
		if o.err != nil {
			return s, fmt.Errorf("drafts: %w", o.err)
		}
		if first.IsZero() || !o.first.IsZero() && o.first.Before(first) {
			first = o.first
		}
		if o.last.After(last) {
			last = o.last
		}
		s.answers, s.gaps = append(s.answers, o.tokens), append(s.gaps, o.gaps...)
		s.guessed, s.right = s.guessed+o.guessed, s.right+o.right
	}
	s.took, s.saved = last.Sub(first), e.Stats().Saved-before
	return s, ctx.Err()
}

// add enters a pair.
func (r *Row) add(plain, drafted *side) {
	for i, a := range plain.answers {
		r.Prompts++
		r.Tokens += len(a)
		if !slices.Equal(a, drafted.answers[i]) {
			r.Different++
		}
	}
	r.Guessed, r.Accepted = r.Guessed+drafted.guessed, r.Accepted+drafted.right
	r.plain, r.drafted, r.saved = r.plain+plain.took, r.drafted+drafted.took, r.saved+drafted.saved
	if plain.took > 0 && drafted.took > 0 {
		r.ratios = append(r.ratios, plain.took.Seconds()/drafted.took.Seconds())
		r.cpus = append(r.cpus, ratio(plain.cpu.Seconds(), drafted.cpu.Seconds()))
	}
	r.gaps[0], r.gaps[1] = append(r.gaps[0], plain.gaps...), append(r.gaps[1], drafted.gaps...)
}

// finish computes what follows from the sums.
func (r *Row) finish() {
	after := r.Tokens - r.Prompts // the first of each comes with the prompt
	r.Share = ratio(float64(r.Accepted), float64(r.Guessed))
	r.PerStep = ratio(float64(after), float64(after-r.Accepted))
	r.Plain, r.Drafted = ratio(float64(after), r.plain.Seconds()), ratio(float64(after), r.drafted.Seconds())
	r.Speed = ratio(r.Drafted, r.Plain)
	r.Estimated = ratio((r.drafted + r.saved).Seconds(), r.drafted.Seconds())
	if n := len(r.ratios); n > 0 {
		slices.Sort(r.ratios)
		slices.Sort(r.cpus)
		r.Median, r.Low, r.CPU = (r.ratios[(n-1)/2]+r.ratios[n/2])/2, r.ratios[n/4], (r.cpus[(n-1)/2]+r.cpus[n/2])/2
	}
	r.PlainP99, r.DraftP99 = p99(r.gaps[0]), p99(r.gaps[1])
}

// share makes the counts of so many rounds those of one.
func (r *Row) share(rounds int) {
	for _, n := range []*int{&r.Prompts, &r.Tokens, &r.Guessed, &r.Accepted} {
		*n /= rounds
	}
}

// p99 returns the 99th percentile in milliseconds.
func p99(gaps []time.Duration) float64 {
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[(len(gaps)-1)*99/100].Seconds() * 1e3
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// WriteMarkdown writes rows as a table.
func WriteMarkdown(w io.Writer, rows []Row) error {
	out := "| category | prompts | tokens | guessed | accepted | tokens a step | plain tok/s | drafted tok/s | speed | median | lower quartile | processor | estimated | p99 plain | p99 drafted | different |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	for i := range rows {
		r := &rows[i]
		out += fmt.Sprintf("| %s | %d | %d | %d | %.0f%% | %.2f | %.1f | %.1f | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f ms | %.1f ms | %d |\n",
			r.Category, r.Prompts, r.Tokens, r.Guessed, 100*r.Share, r.PerStep, r.Plain, r.Drafted, r.Speed, r.Median, r.Low, r.CPU, r.Estimated, r.PlainP99, r.DraftP99, r.Different)
	}
	_, err := io.WriteString(w, out)
	return err
}

// WriteJSON writes rows, one a line.
func WriteJSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	for i := range rows {
		if err := enc.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}
