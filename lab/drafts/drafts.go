// Package drafts measures what guessing next tokens gains: the same prompts are
// answered with guesses and without, in turns, by the same engine, and answers are
// compared token by token. It is the table of Spec-Bench (Xia et al., "Unlocking
// Efficiency in Large Language Model Inference: A Comprehensive Survey of Speculative
// Decoding", 2024), by category.
package drafts

import (
	"context"
	"slices"

	"ridge/engine"
	"ridge/sample"
)

// Prompt is a prompt of a kind.
type Prompt struct {
	Category string
	Tokens   []int32

	seed uint64 // of its draws: its place
}

// Config says how to measure.
type Config struct {
	Setting  string // who guesses, as rows and Keep name it
	Model    string // all that answers depend on beside the prompt, as Keep names it
	Tokens   int    // of each answer, at most
	Batch    int    // prompts that are answered at the same time
	Most     int    // guesses of an answer in a step, at most; 0 for as many as the engine makes
	Rounds   int    // pairs, each both ways; 0: answers are compared, and not timed
	Mixed    bool   // batches are of all kinds of prompts
	Sampling sample.Params
	Stops    []int32
	Keep     *Keep
	Each     func(done int) // told how many prompts are done, or nil
}

// pair is a batch that was answered both ways.
type pair struct {
	Plain   Side      `json:"plain"` // without guesses; nothing if only answers were compared
	Drafted Side      `json:"drafted"`
	Answers []outcome `json:"answers"`
}

// outcome is what became of one prompt.
type outcome struct {
	Tokens    int  `json:"tokens"`
	Guessed   int  `json:"guessed"`
	Right     int  `json:"right"`
	Verified  int  `json:"verified"`
	Places    int  `json:"places"`
	Different bool `json:"different"`
}

// Measure answers prompts in batches: once to warm up and then in pairs, without guesses
// and with, which of them first taking turns, too. It returns a row for each category,
// and one of all.
func Measure(ctx context.Context, e *engine.Engine, prompts []Prompt, c Config) ([]Row, error) {
	prompts = slices.Clone(prompts)
	for i := range prompts {
		prompts[i].seed = uint64(i)
	}
	t := newTable(&c)
	done := 0
	for i, batch := range batchesOf(prompts, c.Batch, c.Mixed) {
		if err := c.batch(ctx, e, batch, i, t); err != nil {
			return nil, err
		}
		if done += len(batch); c.Each != nil {
			c.Each(done)
		}
	}
	return t.finish(), nil
}

// batch measures the pairs of one batch, but for those that are kept.
func (c *Config) batch(ctx context.Context, e *engine.Engine, batch []Prompt, at int, t *table) error {
	warm := c.Rounds == 0
	for round := range max(c.Rounds, 1) {
		id := c.pairID(batch, at, round)
		p := c.Keep.pair(id)
		if p == nil {
			if !warm { // prompts are known from here on
				if _, _, err := answer(ctx, e, batch, c, 1, -1); err != nil {
					return err
				}
				warm = true
			}
			var err error
			if p, err = c.pair(ctx, e, batch, (at+round)%2); err != nil {
				return err
			}
			if err = c.Keep.putPair(id, p); err != nil {
				return err
			}
		}
		t.add(batch, p)
	}
	return nil
}

// pairID names a pair in the file of those that are kept.
func (c *Config) pairID(batch []Prompt, at, round int) string {
	var tokens [][]int32
	for _, p := range batch {
		tokens = append(tokens, p.Tokens)
	}
	return idOf("pair", c.Setting, c.Model, c.Tokens, c.Most, c.Sampling, c.Rounds > 0, tokens, at, round)
}

// pair answers a batch both ways, first that one. Without rounds, plain answers that are
// kept are not computed again.
func (c *Config) pair(ctx context.Context, e *engine.Engine, batch []Prompt, first int) (p *pair, err error) {
	var sides [2]Side
	var answers [2][]given
	plain, known := c.known(batch)
	for k := range sides {
		which := (first + k) % 2
		if which == 0 && c.Rounds == 0 && known {
			continue
		}
		most := -1
		if which == 1 {
			most = c.Most
		}
		if sides[which], answers[which], err = answer(ctx, e, batch, c, c.Tokens, most); err != nil {
			return nil, err
		}
	}
	if !known {
		plain = plain[:0]
		for i := range answers[0] {
			plain = append(plain, answers[0][i].tokens)
			if err := c.Keep.putAnswer(c.answerID(&batch[i]), plain[i]); err != nil {
				return nil, err
			}
		}
	}
	p = &pair{Plain: sides[0], Drafted: sides[1]}
	for i := range batch {
		a := &answers[1][i]
		differs := !slices.Equal(a.tokens, plain[i])
		if answers[0] != nil { // what is kept is checked, too
			differs = differs || !slices.Equal(answers[0][i].tokens, plain[i])
		}
		p.Answers = append(p.Answers, outcome{len(plain[i]), a.guessed, a.right, a.verified, a.places, differs})
	}
	if c.Rounds == 0 {
		p.Plain, p.Drafted = Side{}, Side{}
	}
	return p, nil
}

// known returns the kept answers of a batch, and whether there are all.
func (c *Config) known(batch []Prompt) (plain [][]int32, all bool) {
	for i := range batch {
		tokens, known := c.Keep.answer(c.answerID(&batch[i]))
		if !known {
			return nil, false
		}
		plain = append(plain, tokens)
	}
	return plain, true
}

// answerID names the answer of a prompt in the file of those that are kept.
func (c *Config) answerID(p *Prompt) string {
	seed := p.seed
	if c.Sampling.Temperature == 0 {
		seed = 0 // nothing is drawn
	}
	return idOf("plain", c.Model, c.Tokens, c.Sampling, seed, p.Tokens)
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
