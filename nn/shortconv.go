package nn

import (
	"unsafe"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// ShortConv is LFM2's gated short convolution: a row is C * conv(B * x), with B,
// C and x of the same input, and conv a causal sum over the last few rows, each
// column for itself. A sequence keeps the rows that the next sums want.
type ShortConv struct {
	In   Linear      // [3·hidden][hidden]: B, C and x
	Taps [][]float32 // per row of the sum, the oldest first, [hidden]
	Bias []float32   // [hidden], or nil
	Out  Linear      // [hidden][hidden]
}

// Form returns the form of the rows that the mixer reads.
func (c *ShortConv) Form() Form { return FormOf(&c.In) }

// Keeps returns the state: all rows of a sum but the newest.
func (c *ShortConv) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * (len(c.Taps) - 1) * len(c.Taps[0])}
}

// Reads returns the regions of the two matrices.
func (c *ShortConv) Reads() Reads { return Reads{Regions: []Region{reads(1, &c.In), reads(1, &c.Out)}} }

// convRows is what a short convolution computes on the way.
type convRows struct {
	in  kernel.Acts // [rows][3·hidden]
	out kernel.Acts // [rows][hidden]

	task convTask
}

// Mix computes the rows for the output matrix and moves the states on.
func (c *ShortConv) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[convRows](e)
	e.Linear(x, Out{&c.In, &r.in})
	f := FormOf(&c.Out)
	formRows(&r.out, x.N, len(c.Taps[0]), f)
	r.task = convTask{c, r, s, e.KV, layer, f.Quant()}
	e.run(&r.task, x.N*r.in.K)
	return &r.out, &c.Out
}

// convTask is split by columns, which do not know of each other.
type convTask struct {
	c     *ShortConv
	r     *convRows
	s     *Step
	kv    *kvcache.Pool
	layer int
	quant bool
}

// convUnit is how many columns stay together: two quantized blocks.
const convUnit = 64

func (t *convTask) Do(worker, workers int) {
	hidden := t.r.out.K
	lo, hi := pool.Split((hidden+convUnit-1)/convUnit, worker, workers)
	c0, c1 := lo*convUnit, min(hi*convUnit, hidden)
	if c0 >= c1 {
		return
	}
	for i := range t.s.Runs {
		t.run(&t.s.Runs[i], c0, c1)
	}
}

// run computes the columns [c0, c1) of a run, and leaves its last rows in the
// state.
func (t *convTask) run(run *Run, c0, c1 int) {
	if run.Rows() == 0 {
		return
	}
	hidden, older := t.r.out.K, len(t.c.Taps)-1
	kept := floats(t.kv.State(t.layer, 0, run.Seq)) // [older][hidden]
	// input returns the row that is so many after the first of the run.
	input := func(row int) []float32 {
		if row < 0 {
			return kept[(older+row)*hidden:][c0:c1]
		}
		return Row(&t.r.in, run.First()+row)[2*hidden+c0 : 2*hidden+c1]
	}
	for row := range run.Rows() {
		at := run.First() + row
		in, out := Row(&t.r.in, at), Row(&t.r.out, at)[c0:c1]
		kernel.Mul(in[2*hidden+c0:2*hidden+c1], in[c0:c1])
		clear(out)
		if t.c.Bias != nil {
			copy(out, t.c.Bias[c0:c1])
		}
		for k, tap := range t.c.Taps {
			addProduct(out, tap[c0:c1], input(row-older+k))
		}
		kernel.Mul(out, in[hidden+c0:hidden+c1])
		if t.quant {
			t.r.out.Quantize(at, c0, c1)
		}
	}
	for k := range older {
		copy(kept[k*hidden:][c0:c1], input(run.Rows()-older+k))
	}
}

// addProduct adds the products of a and b to dst. Products are rounded, on every
// architecture.
func addProduct(dst, a, b []float32) {
	for i, v := range a {
		dst[i] += float32(v * b[i])
	}
}

// floats views a state as float32.
func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }
