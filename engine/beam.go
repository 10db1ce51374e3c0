package engine

import (
	"cmp"
	"math"
	"slices"

	"ridge/sample"
	"ridge/sched"
)

// Beam search, step by step as Hugging Face transformers does it. A beam is a
// sequence; all beams of a request take a step together. One that has its
// candidates waits for the others on hold, with a token that stands for the one
// to be chosen.

// beamSearch is the state of a search.
type beamSearch struct {
	steps int      // tokens chosen
	ended []result // the best complete answers, best first
	err   error
	picks []pick
}

// pick is a beam and a token that goes on from it.
type pick struct {
	parent *sequence
	beam   int // place of parent among the beams
	token  int32
	prob   float32
	total  float64
}

// candidates notes what may come next in a beam.
func (e *Engine) candidates(q *sequence, j *job) {
	q.tokens = append(q.tokens, 0) // to be chosen
	q.cands, q.ready, q.Hold = j.res.Top, true, true
	if j.err != nil {
		q.g.beams.err = j.err
	}
	if !slices.Contains(e.beams, q.g) {
		e.beams = append(e.beams, q.g)
	}
}

// search takes a step of a search if all its beams have their candidates.
func (e *Engine) search(g *group) {
	b := g.beams
	for _, q := range g.seqs {
		if !q.ready {
			return
		}
	}
	if b.err != nil {
		e.abort(g, FinishError, b.err)
		return
	}
	b.steps++
	next := b.choose(g)
	if len(next) == 0 || b.over(&g.req, next) {
		for _, q := range g.seqs {
			e.remove(q)
		}
		if len(b.ended) == 0 {
			e.abort(g, FinishError, ErrNoToken)
			return
		}
		g.kept = b.ended
		e.complete(g)
		return
	}
	e.counts.tokens += int64(len(next))
	e.advance(g, next)
}

// choose returns the continuations that become the next beams, and stores the
// answers that are complete.
func (b *beamSearch) choose(g *group) (next []pick) {
	r := &g.req
	all := b.picks[:0]
	for i, q := range g.seqs {
		for _, c := range q.cands {
			all = append(all, pick{q, i, c.Token, c.LogProb, q.total + float64(c.LogProb)})
		}
	}
	slices.SortFunc(all, func(x, y pick) int {
		return cmp.Or(cmp.Compare(y.total, x.total), cmp.Compare(x.beam, y.beam), cmp.Compare(x.token, y.token))
	})
	b.picks = all
	rank := 0
	for _, p := range all {
		stop := slices.Contains(r.StopTokens, p.token)
		if stop && b.steps <= r.MinTokens || math.IsInf(p.total, -1) {
			continue
		}
		switch {
		case stop || b.steps >= r.MaxTokens:
			// One that is not among the best ends nothing.
			if rank < r.Beam.Width {
				b.finish(r, p, stop)
			}
		case len(next) < r.Beam.Width:
			next = append(next, p)
		}
		rank++
	}
	return next
}

// finish stores a complete answer, if it is one of the best.
func (b *beamSearch) finish(r *Request, p pick, stop bool) {
	q := p.parent
	res := result{
		tokens: slices.Clone(q.tokens[q.Prompt : len(q.tokens)-1]),
		probs:  slices.Clone(q.probs),
		tops:   slices.Clone(q.tops),
		last:   Event{Token: -1, StopToken: p.token, LogProb: p.prob, Finish: FinishStop},
		score:  p.total / math.Pow(float64(b.steps), float64(r.Beam.LengthPenalty)),
	}
	if !stop {
		res.tokens = append(res.tokens, p.token)
		if r.Sampling.LogProbs > 0 {
			res.probs, res.tops = append(res.probs, p.prob), append(res.tops, q.top())
		}
		res.last = Event{Token: -1, StopToken: -1, Finish: FinishLength}
	}
	b.ended = append(b.ended, res)
	slices.SortStableFunc(b.ended, func(x, y result) int { return cmp.Compare(y.score, x.score) })
	b.ended = b.ended[:min(len(b.ended), r.Beam.Width)]
}

// top returns the candidates that the request wants to see.
func (q *sequence) top() []sample.TokenProb {
	return q.cands[:min(q.g.req.Sampling.LogProbs, len(q.cands))]
}

// over says whether the search has found what it looks for.
func (b *beamSearch) over(r *Request, next []pick) bool {
	if len(b.ended) < r.Beam.Width {
		return false
	}
	best := next[0].total / math.Pow(float64(b.steps), float64(r.Beam.LengthPenalty))
	return r.Beam.EarlyStop || best <= b.ended[len(b.ended)-1].score
}

// advance makes the beams that next describes. The first continuation of a beam
// goes on in its sequence, others in forks of it.
func (e *Engine) advance(g *group, next []pick) {
	old := g.seqs
	g.seqs = make([]*sequence, len(next))
	used := make([]bool, len(old))
	for i, p := range next {
		if !used[p.beam] {
			used[p.beam] = true
			g.seqs[i] = p.parent
			continue
		}
		child, err := e.cloneBeam(p.parent)
		if err != nil {
			g.seqs = old
			e.abort(g, FinishError, err)
			return
		}
		g.seqs[i] = child
	}
	for i, p := range next {
		q := g.seqs[i]
		q.tokens[len(q.tokens)-1] = p.token
		q.total = p.total
		if g.req.Sampling.LogProbs > 0 {
			q.probs, q.tops = append(q.probs, p.prob), append(q.tops, p.parent.top())
		}
	}
	for i, p := range next {
		if g.seqs[i] != p.parent {
			if e.fork(p.parent, g.seqs[i]); g.removed {
				break
			}
		}
	}
	for i, q := range old {
		if !used[i] || g.removed {
			e.remove(q)
		}
	}
	for _, q := range g.seqs {
		q.n, q.ready, q.cands, q.Hold = q.n+1, false, nil, false
	}
}

// cloneBeam returns a sequence with the tokens of q that is not computed yet.
func (e *Engine) cloneBeam(q *sequence) (*sequence, error) {
	c, err := e.newSequence(q.g, q.choice)
	if err != nil {
		return nil, err
	}
	c.Seq = sched.Seq{
		Tenant: q.Tenant, Weight: q.Weight, Priority: q.Priority,
		Prompt: q.Prompt, MaxNew: q.MaxNew, Arrived: q.Arrived, Deadline: q.Deadline,
	}
	c.begin(q.tokens)
	c.probs, c.tops, c.n = slices.Clone(q.probs), slices.Clone(q.tops), q.n
	return c, nil
}

// deliver returns what a complete request has kept back: its best answers.
func (e *Engine) deliver(g *group) (first *PromptInfo, rest []result) {
	if len(g.kept) == 0 {
		return nil, nil
	}
	for i := range g.kept {
		if g.kept[i].last.Finish == FinishError {
			g.kept[i].score = math.Inf(-1)
		}
	}
	slices.SortStableFunc(g.kept, func(x, y result) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.last.Choice, y.last.Choice))
	})
	rest = g.kept[:min(g.req.N, len(g.kept))]
	for i := range rest {
		rest[i].last.Choice = i
		e.counts.finished[rest[i].last.Finish]++
	}
	if g.told {
		return nil, rest
	}
	g.told = true
	return &g.info, rest
}
