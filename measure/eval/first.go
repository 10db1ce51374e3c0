package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ridge/engine"
)

// ReadPrompts reads what users say to begin a conversation, one JSON object a
// line: the first of its turns, or its question, as FastChat's and GSM8K's files
// have them. Empty lines are left out. name is that of the file, for errors.
func ReadPrompts(r io.Reader, name string) ([]string, error) {
	var out []string
	err := readLines(r, name, func(line []byte) error {
		var p struct {
			Turns    []string `json:"turns"`
			Question string   `json:"question"`
		}
		if err := json.Unmarshal(line, &p); err != nil {
			return err
		}
		if len(p.Turns) > 0 {
			p.Question = p.Turns[0]
		}
		if p.Question == "" {
			return errors.New(`expected "turns" or "question" with a text, found none`)
		}
		out = append(out, p.Question)
		return nil
	})
	return out, err
}

// First says how often a model begins its answers with another token than a base
// model, as far as both take the most probable one.
type First struct {
	Prompts int `json:"prompts"`
	Differ  int `json:"differ"`
	// Low and High bound the share of such prompts: Wilson's interval for 95%.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// MeanKL is the mean of KL(base || model) of the first token, in nats, and
	// StdErr its standard error.
	MeanKL float64 `json:"mean_kl"`
	StdErr float64 `json:"std_err"`
}

// CompareFirst compares the first token that the models of base and e give after
// each of the prompts, which must not be empty. progress, when not nil, is told
// how many are done.
func CompareFirst(ctx context.Context, base, e *engine.Engine, prompts [][]int32, progress func(done, total int)) (First, error) {
	if a, b := base.Model().Config().Vocab, e.Model().Config().Vocab; a != b {
		return First{}, fmt.Errorf("eval: vocabulary: expected %d tokens as in the base model, found %d", a, b)
	}
	if len(prompts) == 0 {
		return First{}, errors.New("eval: prompts: expected at least one, found none")
	}
	var c comparison
	diffs := make([]difference, len(prompts))
	err := inOrder(ctx, len(prompts), atOnce, func(ctx context.Context, i int) error {
		tokens := append(slices.Clip(prompts[i]), 0) // any token: only what predicts it is looked at
		last := len(tokens) - 1
		var want []float32
		err := scan(ctx, base, tokens, last, func(_ int, logits []float32) { want = slices.Clone(logits) })
		if err == nil {
			err = scan(ctx, e, tokens, last, func(_ int, logits []float32) { diffs[i] = differ(want, logits, 0) })
		}
		if err != nil {
			return fmt.Errorf("eval: prompt %d: %w", i+1, err)
		}
		return nil
	}, func(i int) {
		c.add(diffs[i])
		if progress != nil {
			progress(i+1, len(prompts))
		}
	})
	if err != nil {
		return First{}, err
	}
	d, n := c.result(nil), len(prompts)
	f := First{Prompts: n, Differ: n - c.same, MeanKL: d.Mean, StdErr: d.StdErr}
	f.Low, f.High = wilson(f.Differ, n)
	return f, nil
}
