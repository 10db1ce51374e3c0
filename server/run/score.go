package run

import (
	"cmp"
	"context"
	"math"
	"strconv"

	"ridge/engine"
	"ridge/model"
	"ridge/server/fault"
	"ridge/text/tokenizer"
)

// labels names the labels of a model's classifier, nil if it has none.
func labels(m *model.Model) []string {
	k := m.Net().Classes
	if k == nil {
		return nil
	}
	if names := m.Defaults().Labels; len(names) == k.Labels {
		return names
	}
	names := make([]string, k.Labels)
	for i := range names {
		names[i] = "LABEL_" + strconv.Itoa(i)
	}
	return names
}

// Scores returns the scores that a model's classifier gives of texts, or of pairs of
// texts that it reads together, for each label, before any sigmoid or softmax.
// instruction tells a reranker that can be told what makes a text relevant, "" for what
// it takes for that. keep is how many tokens are kept of each, -1 for as many as fit, nil
// for all: the last text is cut, at side: left, right, "" for right.
func (s *Runner) Scores(ctx context.Context, m *Model, input [][]string, instruction string, keep *int, side string, t *Totals) ([][]float32, error) {
	if len(input) > MaxPrompts {
		return nil, fault.BadRequest("input", "expected at most %d texts, found %d", MaxPrompts, len(input))
	}
	if side = cmp.Or(side, "right"); side != "left" && side != "right" {
		return nil, fault.BadRequest("truncation_side", "expected left or right, found %q", side)
	}
	if instruction != "" && m.pair == nil {
		return nil, fault.BadRequest("instruction", "expected none: %s is not told what makes a text relevant", m.info.Name)
	}
	var plans []*Plan
	for _, texts := range input {
		plan := m.scorePlan
		if m.pair != nil && len(texts) == 2 {
			plan = func(texts []string, keep *int, side string) (*Plan, error) {
				return m.pairPlan(instruction, texts[0], texts[1], keep, side)
			}
		}
		p, err := plan(texts, keep, side)
		if err != nil {
			return nil, err
		}
		plans = append(plans, p)
	}
	out := make([][]float32, len(plans))
	err := s.RunAll(ctx, plans, t, func(i int, d *Delta) error {
		if d.embedding != nil {
			out[i] = d.embedding
		}
		return nil
	}, nil)
	return out, err
}

// scorePlan plans the scores of one text, or of two.
func (m *Model) scorePlan(texts []string, keep *int, side string) (*Plan, error) {
	room := m.info.Context
	if keep != nil && *keep > 0 {
		room = min(*keep, room)
	}
	ids := make([][]int32, len(texts))
	n, around := 0, m.tok.AroundLen()
	if len(texts) == 2 {
		around = m.tok.AroundPairLen()
	}
	for i, text := range texts {
		f := m.fits(keep != nil)
		ids[i] = f.Encode(nil, text, tokenizer.EncodeOptions{})
		if err := f.err(); err != nil {
			return nil, err
		}
		n += len(ids[i])
	}
	p := &Plan{Model: m, text: texts[len(texts)-1]}
	if over := n + around - room; over > 0 {
		last := &ids[len(ids)-1]
		if keep == nil || over >= len(*last) {
			return nil, &engine.ContextError{Tokens: n + around, Context: room}
		}
		if p.Truncated = over; side == "left" {
			*last = (*last)[over:]
		} else {
			*last = (*last)[:len(*last)-over]
		}
	}
	if len(ids) == 2 {
		p.Request.Tokens, p.Request.Second = m.tok.AroundPair(ids[0], ids[1])
	} else {
		p.Request.Tokens = m.tok.Around(ids[0])
	}
	if len(p.Request.Tokens) == 0 {
		return nil, fault.BadRequest("input", "expected texts that are not empty")
	}
	p.Request.Embed = engine.PoolingScores
	return p, nil
}

// Relevance makes one number of the scores of a query and a text: that of the only
// label, behind a sigmoid unless raw is set or the model means it as it is, or the
// probability of yes, or of the second of two.
func (m *Model) Relevance(scores []float32, raw bool) (float64, error) {
	switch {
	case len(scores) == 1 && (raw || m.info.RawScore):
		return float64(scores[0]), nil
	case len(scores) == 1:
		return 1 / (1 + math.Exp(-float64(scores[0]))), nil
	case len(scores) == 2:
		i := 1
		if m.info.Labels[0] == "yes" {
			i = 0
		}
		if raw || m.info.RawScore && m.pair != nil {
			return float64(scores[i]) - float64(scores[1-i]), nil
		}
		return softmax(scores)[i], nil
	}
	return 0, fault.Unsupported("model", "%s gives scores of %d labels and none of relevance: see /classify", m.info.Name, len(scores))
}

// Probabilities returns those of a classifier's labels.
func (m *Model) Probabilities(scores []float32) []float64 {
	if len(scores) == 1 {
		p, _ := m.Relevance(scores, false) // of one label there is one
		return []float64{p}
	}
	return softmax(scores)
}

func softmax(scores []float32) []float64 {
	top, sum := math.Inf(-1), 0.0
	for _, v := range scores {
		top = max(top, float64(v))
	}
	out := make([]float64, len(scores))
	for i, v := range scores {
		out[i] = math.Exp(float64(v) - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
