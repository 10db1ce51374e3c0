package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// RGLRU is Griffin's recurrent block (De et al. 2024, arXiv 2402.19427): the
// columns of a convolved row are weighed by one gate and added to a state, of which
// another gate says how much stays; what comes out is multiplied by GELU of a second
// product of the row. Gates of a head read the columns of that head alone. Rows are
// scanned one after the other: a row has the same bits however the rows before it
// were cut.
type RGLRU struct {
	X, Y Linear // [width][hidden]: what is scanned, and what it is multiplied by
	Conv Conv   // of X

	Heads    int
	In, Stay Linear    // [width][width/heads], float: a gate's rows of a head read its columns
	Rate     []float32 // [width], negative: of the logarithm of what stays

	Out Linear // [hidden][width]
}

// Form returns the form of the rows that the mixer reads.
func (m *RGLRU) Form() Form { return FormOf(&m.X, &m.Y) }

func (m *RGLRU) width() int { return len(m.Rate) / m.Heads }

// Keeps returns the state: that of each head, with a share of the last rows of the
// convolution.
func (m *RGLRU) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * m.Heads * (m.Conv.kept(m.Heads) + m.width()), Parts: m.Heads}
}

// Reads returns the regions of the matrices.
func (m *RGLRU) Reads() Reads {
	gates := reads(m.width()/kernel.Lanes, &m.In, &m.Stay)
	gates.Floats = true // a head's columns are no whole blocks
	return Reads{Regions: []Region{reads(1, &m.X, &m.Y), gates, reads(1, &m.Out)}}
}

// Inputs returns the matrices that read the mixer's input, and Output the one that
// reads what it computes.
func (m *RGLRU) Inputs() []*Linear { return []*Linear{&m.X, &m.Y} }

// Output is Inputs' counterpart.
func (m *RGLRU) Output() *Linear { return &m.Out }

// rglruRows is what the block computes on the way, [rows][width].
type rglruRows struct {
	x, y     kernel.Acts
	conv     kernel.Acts // convolved x
	in, stay kernel.Acts // gates
	out      kernel.Acts
	heads    []kernel.Acts // the columns of conv of each head

	scan rglruTask
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *RGLRU) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[rglruRows](e)
	e.Linear(x, Out{&m.X, &r.x}, Out{&m.Y, &r.y})
	m.Conv.convolve(e, s, layer, m.Heads, &r.conv, &r.x, 0, Form{})
	for _, gate := range [2]*kernel.Acts{&r.in, &r.stay} {
		Rows(gate, x.N, len(m.Rate), false)
	}
	if len(r.heads) < m.Heads {
		r.heads = make([]kernel.Acts, m.Heads)
	}
	f := FormOf(&m.Out)
	formRows(&r.out, x.N, len(m.Rate), f)
	r.scan = rglruTask{m, r, s, e.KV, layer}
	e.run(&r.scan, x.N*len(m.Rate)*(16+2*m.width()))
	if f.Quant() {
		e.Quantize(&r.out)
	}
	return &r.out, &m.Out
}

// rglruTask computes the gates and scans. It is split by heads.
type rglruTask struct {
	m     *RGLRU
	r     *rglruRows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *rglruTask) Do(worker, workers int) {
	m, r, width := t.m, t.r, t.m.width()
	lo, hi := pool.Split(m.Heads, worker, workers)
	for h := lo; h < hi; h++ {
		in := &r.heads[h]
		*in = kernel.Acts{N: r.conv.N, K: width, LDF: r.conv.LDF, F32: r.conv.F32[h*width:]}
		g0, g1 := h*width/kernel.Lanes, (h+1)*width/kernel.Lanes
		m.In.W.Mul(r.in.F32, r.in.LDF, in, 0, in.N, g0, g1)
		m.Stay.W.Mul(r.stay.F32, r.stay.LDF, in, 0, in.N, g0, g1)
	}
	m.Conv.states(t.s, t.kv, t.layer, m.Heads, worker, workers, t.run)
}

// run scans the rows of a run for head h. At the first position of a sequence
// nothing stays, and what is written is not made smaller.
func (t *rglruTask) run(run *Run, h int, state []float32) {
	m, width := t.m, t.m.width()
	c0, c1 := h*width, (h+1)*width
	for row := run.First(); row < run.First()+run.Rows(); row++ {
		x, in, stay := Row(&t.r.conv, row)[c0:c1], Row(&t.r.in, row)[c0:c1], Row(&t.r.stay, row)[c0:c1]
		kernel.Add(in, m.In.Bias[c0:c1])
		kernel.Add(stay, m.Stay.Bias[c0:c1])
		first := t.s.rows[row].pos == 0
		for i, v := range x {
			log := float64(m.Rate[c0+i] * sigmoid(stay[i]))
			v = float32(v * sigmoid(in[i]))
			if !first {
				v = float32(v * float32(math.Sqrt(-math.Expm1(2*log))))
			}
			state[i] = float32(float32(math.Exp(log))*state[i]) + v
		}
		kernel.GELUMul(Row(&t.r.out, row)[c0:c1], Row(&t.r.y, row)[c0:c1], state[:width])
	}
}
