package engine

import (
	"slices"

	"ridge/model"
)

// poolingOf returns the pooling of a model's classifier.
func poolingOf(p model.Pooling) Pooling {
	switch p {
	case model.PoolingCLS:
		return PoolingCLS
	case model.PoolingMean:
		return PoolingMean
	}
	return PoolingLast
}

// pools says whether the states of more tokens than the last are wanted.
func (g *group) pools() bool { return g.pool == PoolingMean || g.pool == PoolingCLS }

// represent makes what a request asks for of its states: an embedding or scores.
func (e *Engine) represent(g *group, run *runState) ([]float32, error) {
	var state []float32
	if g.pools() {
		n := 1.0
		if g.pool == PoolingMean {
			n = float64(len(g.req.Tokens))
		}
		state = make([]float32, len(g.sum))
		for i, v := range g.sum {
			state[i] = float32(v / n)
		}
	} else {
		state = slices.Clone(e.m.Hidden(run.out + run.outs - 1))
	}
	if slices.ContainsFunc(state, func(v float32) bool { return v-v != 0 }) {
		return nil, &NonFiniteError{}
	}
	switch {
	case g.req.Embed == PoolingScores:
		return e.m.Classify(state), nil
	case g.req.Raw:
		return e.m.Represent(state), nil
	case len(e.m.Net().Dense) == 0 && g.pools():
		return model.Unit(g.sum), nil // without the rounding to a mean
	}
	state = e.m.Represent(state)
	sum := make([]float64, len(state))
	for i, v := range state {
		sum[i] = float64(v)
	}
	return model.Unit(sum), nil
}

// wholePrompts makes the scheduler of a model that reads in both directions compute each
// prompt in one step, and share none.
func (e *Engine) wholePrompts() {
	cfg := *e.o.Sched
	cfg.Split, cfg.Chunk, cfg.Quantum = false, 0, 0
	cfg.ITLTarget, cfg.StepTime, cfg.ClassSlowdown = 0, 0, 0
	e.o.Sched, e.o.NoPrefixCache, e.o.Calibrate = &cfg, true, false
}
