package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// Conv is a causal convolution in front of a recurrent layer: a sum over the last
// few rows, each column for itself, and SiLU of it unless it is plain.
type Conv struct {
	Taps [][]float32 // per row of the sum, the oldest first, [columns]
	Bias []float32   // [columns], or nil
	// Plain leaves SiLU out.
	Plain bool
}

// older returns how many rows before its own a sum wants.
func (c *Conv) older() int { return max(len(c.Taps)-1, 0) }

// columns returns how many columns there are.
func (c *Conv) columns() int {
	if len(c.Taps) == 0 {
		return 0
	}
	return len(c.Taps[0])
}

// share returns how many columns lie in each of so many equal parts of a state.
func (c *Conv) share(parts int) int {
	return (c.columns() + parts*kernel.StateColumns - 1) / (parts * kernel.StateColumns) * kernel.StateColumns
}

// kept returns the floats that a part of a state has for the convolution, which
// are its first.
func (c *Conv) kept(parts int) int { return c.older() * c.share(parts) }

// states calls scan for each run with rows and each of worker's parts of the states,
// with what lies there behind the rows of the convolution.
func (c *Conv) states(s *Step, kv *kvcache.Pool, layer, parts, worker, workers int, scan func(run *Run, part int, state []float32)) {
	lo, hi := pool.Split(parts, worker, workers)
	for part := lo; part < hi; part++ {
		for i := range s.Runs {
			if run := &s.Runs[i]; run.Rows() > 0 {
				scan(run, part, floats(kv.State(layer, part, run.Seq))[c.kept(parts):])
			}
		}
	}
}

// convolve computes the rows of out, [rows][columns] in the form f, from the
// columns of in from at on, and moves the states on. The states are in so many
// parts.
func (c *Conv) convolve(e *Exec, s *Step, layer, parts int, out, in *kernel.Acts, at int, f Form) {
	formRows(out, in.N, c.columns(), f)
	t := scratch[causalTask](e)
	*t = causalTask{c, out, in, at, s, e.KV, layer, parts}
	e.run(t, in.N*out.K*len(c.Taps))
	if f.Quant() {
		e.Quantize(out)
	}
}

// causalTask is split by the parts of the states.
type causalTask struct {
	c            *Conv
	out, in      *kernel.Acts
	at           int
	s            *Step
	kv           *kvcache.Pool
	layer, parts int
}

func (t *causalTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.parts, worker, workers)
	for part := lo; part < hi; part++ {
		share := t.c.share(t.parts)
		c0, c1 := part*share, min((part+1)*share, t.c.columns())
		for i := range t.s.Runs {
			if run := &t.s.Runs[i]; c0 < c1 && run.Rows() > 0 {
				t.run(run, floats(t.kv.State(t.layer, part, run.Seq)), share, c0, c1)
			}
		}
	}
}

// run computes the columns [c0, c1) of a run, and leaves its last rows in kept.
func (t *causalTask) run(run *Run, kept []float32, share, c0, c1 int) {
	older := t.c.older()
	// input returns the row that is so many after the first of the run.
	input := func(row int) []float32 {
		if row < 0 {
			return kept[(older+row)*share:][:c1-c0]
		}
		return Row(t.in, run.First()+row)[t.at+c0 : t.at+c1]
	}
	for row := range run.Rows() {
		out := Row(t.out, run.First()+row)[c0:c1]
		if t.c.Bias != nil {
			copy(out, t.c.Bias[c0:c1])
		} else {
			clear(out)
		}
		for k, tap := range t.c.Taps {
			kernel.AddProduct(out, tap[c0:c1], input(row-older+k))
		}
		if !t.c.Plain {
			kernel.SiLU(out, out)
		}
	}
	for k := range older {
		copy(kept[k*share:][:c1-c0], input(run.Rows()-older+k))
	}
}
