package drafts

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"ridge/engine"
	"ridge/model"
	"ridge/spec"
)

// Planting says how to measure a drafter that knows the answers, and is right as often
// as it is told to be.
type Planting struct {
	Agreements []float64 // how often a guess is right, from 0 to 1
	Guesses    int       // behind each token
	Batch      int       // answers at the same time
	Prompt     int       // tokens of a prompt, drawn at random
	Tokens     int       // of an answer
	Rounds     int       // pairs
	Each       func(done int)
}

// Planted is what was measured at one agreement, beside what follows from it: of g guesses
// that are right with chance a, each if those before it are, a step gives
// (1-a^(g+1))/(1-a) tokens (Leviathan et al. 2023), and the gain is that over how many
// times as long steps with so many rows take, which steps tell whose guesses are all wrong.
type Planted struct {
	Agreement float64 `json:"agreement"`
	PerStep   float64 `json:"per_step"`
	Formula   float64 `json:"formula"`
	Rows      float64 `json:"rows"` // how many times as long a step with guesses takes, by processor time
	Speed     float64 `json:"speed"`
	CPU       float64 `json:"cpu"`       // gain by processor time
	Predicted float64 `json:"predicted"` // Formula over Rows
	Different int     `json:"different"`
}

// plan is what planted drafters know.
type plan struct {
	texts     [][]int32 // prompts with their answers
	agreement float64
	vocab     int
	made      uint64
}

// planted drafts one text.
type planted struct {
	*plan
	text []int32
	r    *rand.Rand
}

func (p *plan) drafter(int) spec.Drafter {
	p.made++
	return &planted{plan: p, r: rand.New(rand.NewPCG(p.made, 3))}
}

func (d *planted) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	if d.text == nil {
		i := slices.IndexFunc(d.texts, func(text []int32) bool {
			return len(text) >= len(tokens) && slices.Equal(text[:len(tokens)], tokens)
		})
		if i < 0 {
			return dst
		}
		d.text = d.texts[i]
	}
	for at := len(tokens) + len(dst); n > 0 && at < len(d.text); at, n = at+1, n-1 {
		token := d.text[at]
		if d.r.Float64() >= d.agreement {
			token = (token + 1 + d.r.Int32N(int32(d.vocab-1))) % int32(d.vocab)
		}
		dst = append(dst, spec.Guess{Token: token})
	}
	return dst
}

func (d *planted) Bytes() int64 { return 0 }
func (d *planted) Close()       {}

// Plant measures a model, which it closes.
func Plant(ctx context.Context, m *model.Model, c Planting) (out []Planted, err error) {
	p := &plan{vocab: m.Config().Vocab}
	e, err := engine.New(m, engine.Options{Draft: &spec.Drafting{New: p.drafter, Most: c.Guesses, Always: true}})
	if err != nil {
		m.Close()
		return nil, err
	}
	defer func() {
		if closed := e.Close(); err == nil {
			err = closed
		}
		m.Close()
	}()
	prompts := make([]Prompt, c.Batch)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range prompts {
		for range c.Prompt {
			prompts[i].Tokens = append(prompts[i].Tokens, r.Int32N(int32(p.vocab)))
		}
	}
	cfg := Config{Tokens: c.Tokens, Rounds: max(c.Rounds, 1)}
	_, plain, err := answer(ctx, e, prompts, &cfg, c.Tokens, -1)
	if err != nil {
		return nil, err
	}
	for i := range prompts {
		p.texts = append(p.texts, slices.Concat(prompts[i].Tokens, plain[i].tokens))
	}
	var rows float64
	for k, a := range append([]float64{0}, c.Agreements...) { // the first tells what rows cost
		p.agreement = a
		t := newTable(&cfg)
		for round := range cfg.Rounds {
			pair, err := cfg.pair(ctx, e, prompts, round%2)
			if err != nil {
				return nil, err
			}
			t.add(prompts, pair)
		}
		got := t.finish()
		row := got[len(got)-1]
		if k == 0 {
			rows = ratio(1, row.CPUMedian)
			continue
		}
		x := Planted{Agreement: a, PerStep: row.PerStep, Formula: float64(c.Guesses + 1), Rows: rows, Speed: row.Median, CPU: row.CPUMedian, Different: row.Different}
		if a < 1 {
			x.Formula = (1 - math.Pow(a, float64(c.Guesses+1))) / (1 - a)
		}
		x.Predicted = ratio(x.Formula, rows)
		if out = append(out, x); c.Each != nil {
			c.Each(k)
		}
	}
	return out, nil
}

// WritePlanted writes what was measured as a table.
func WritePlanted(w io.Writer, rows []Planted) error {
	var b strings.Builder
	b.WriteString("| agreement | tokens a step | by the formula | step with guesses, times | predicted gain | gain by processor time | gain | different |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %d |\n", r.Agreement, r.PerStep, r.Formula, r.Rows, r.Predicted, r.CPU, r.Speed, r.Different)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
