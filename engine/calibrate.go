package engine

import (
	"time"

	"ridge/model"
	"ridge/sched"
)

// calibrate gives the model of step times the times of some steps: without it
// the first long prompt would be cut by a guess.
func (e *Engine) calibrate() error {
	cfg := e.sched.Config()
	shapes := sched.Shapes(min(cfg.MaxTokens, maxCalibration), min(e.limits.context, e.limits.pool))
	tokens := make([]int32, maxCalibration)
	for i := range shapes {
		// The first one warms up: buffers grow, and pages of the weights are read.
		for range 2 - min(i, 1) {
			s := shapes[i]
			if need := e.pool.PagesFor(nil, s.Start+s.N); e.pool.Reserve(need) < need {
				break // other models have the memory
			}
			elapsed, err := e.measure(s.Start, tokens[:s.N], 1)
			if err != nil {
				return err
			}
			shape := sched.Shape{Rows: s.N, Outputs: 1, Context: int64(s.N)*int64(s.Start) + int64(s.N)*int64(s.N+1)/2}
			e.sched.Cost().Observe(shape, elapsed)
		}
	}
	return nil
}

// maxCalibration bounds the rows of a step that is measured at the start.
const maxCalibration = 512

// calibrateDrafts gives the model of step times those of steps that verify guesses:
// nobody knows without whether they are worth it. A model whose steps are long is
// looked at less.
func (e *Engine) calibrateDrafts(patience time.Duration) error {
	begin := time.Now()
	tokens := make([]int32, 1+e.o.Draft.Depth())
	start := min(256, e.limits.context-len(tokens), e.limits.pool-len(tokens))
	if start < 0 {
		return nil
	}
	for round := range 3 {
		for n := 1; n <= len(tokens); n++ {
			if need := e.pool.PagesFor(nil, start+n); e.pool.Reserve(need) < need {
				return nil // other models have the memory
			}
			elapsed, err := e.measure(start, tokens[:n], n)
			if err != nil {
				return err
			}
			if round > 0 { // the first one warms up
				e.sched.Cost().Observe(sched.Shape{}.With(start, n, n), elapsed)
			}
			if time.Since(begin) > patience && round > 0 {
				return nil
			}
		}
	}
	return nil
}

// measure computes tokens after a context of empty pages.
func (e *Engine) measure(start int, tokens []int32, outputs int) (time.Duration, error) {
	seq := e.pool.NewSeq()
	defer e.pool.Free(seq)
	if err := e.pool.Grow(seq, start); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := e.m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: tokens, Outputs: outputs}}})
	return time.Since(begin), err
}
