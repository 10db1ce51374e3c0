package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// RWKV4 is the time mixing of RWKV-4 (Peng et al. 2023, arXiv 2305.13048): each column is
// a mean of the values before, weighted by their keys, which fade at a rate of the column.
// The exponents have their largest taken off, so that none overflows.
type RWKV4 struct {
	Lerp [rwkv4Inputs][]float32 // how much of the row before is in each input, [hidden]

	R, K, V, Out Linear    // [hidden][hidden]
	Rate         []float32 // of decay, negative, [hidden]
	First        []float32 // added to the key of a row's own value, [hidden]
}

// The inputs of RWKV4.
const (
	rwkv4K = iota
	rwkv4V
	rwkv4R
	rwkv4Inputs
)

// rwkv4Kept is how many rows of columns a part of the state has: the row before, the sums
// of weighted values and of weights, and the exponent taken off them.
const rwkv4Kept = 4

// Form returns the form of the rows that the mixer reads: those of its matrices are made
// of them.
func (m *RWKV4) Form() Form { return Form{} }

// Keeps returns the state, in parts of 16 columns.
func (m *RWKV4) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * rwkv4Kept * len(m.Rate), Parts: m.parts()}
}

func (m *RWKV4) parts() int { return len(m.Rate) / kernel.StateColumns }

// Reads returns the regions of the matrices.
func (m *RWKV4) Reads() Reads {
	return Reads{Regions: []Region{reads(1, &m.K), reads(1, &m.V), reads(1, &m.R), reads(1, &m.Out)}}
}

// rwkv4Rows is what the layer computes on the way.
type rwkv4Rows struct {
	mixed   [rwkv4Inputs]kernel.Acts
	k, v, r kernel.Acts
	out     kernel.Acts

	shift shiftTask
	scan  rwkv4Task
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *RWKV4) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[rwkv4Rows](e)
	r.shift.begin(e, s, layer, m.parts(), x)
	for i, l := range [rwkv4Inputs]*Linear{rwkv4K: &m.K, rwkv4V: &m.V, rwkv4R: &m.R} {
		r.shift.add(&r.mixed[i], m.Lerp[i], nil, FormOf(l))
	}
	r.shift.run(e)
	r.shift.keep()
	e.Linear(&r.mixed[rwkv4K], Out{&m.K, &r.k})
	e.Linear(&r.mixed[rwkv4V], Out{&m.V, &r.v})
	e.Linear(&r.mixed[rwkv4R], Out{&m.R, &r.r})
	f := FormOf(&m.Out)
	formRows(&r.out, x.N, x.K, f)
	r.scan = rwkv4Task{m, r, s, e.KV, layer}
	e.run(&r.scan, 4*x.N*x.K)
	if f.Quant() {
		e.Quantize(&r.out)
	}
	return &r.out, &m.Out
}

// rwkv4Task scans. It is split by the parts of the states.
type rwkv4Task struct {
	m     *RWKV4
	r     *rwkv4Rows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *rwkv4Task) Do(worker, workers int) {
	const w = kernel.StateColumns
	lo, hi := pool.Split(t.m.parts(), worker, workers)
	for part := lo; part < hi; part++ {
		for i := range t.s.Runs {
			run := &t.s.Runs[i]
			if run.Rows() == 0 {
				continue
			}
			state := floats(t.kv.State(t.layer, part, run.Seq))
			for row := run.First(); row < run.First()+run.Rows(); row++ {
				t.row(row, part*w, state[w:2*w], state[2*w:3*w], state[3*w:4*w])
			}
		}
	}
}

// row moves the 16 columns from c0 on by a row: values and weights are sums whose
// exponents have most taken off them.
func (t *rwkv4Task) row(row, c0 int, values, weights, most []float32) {
	m := t.m
	k, v, r, out := Row(&t.r.k, row), Row(&t.r.v, row), Row(&t.r.r, row), Row(&t.r.out, row)
	for i := range values {
		c := c0 + i
		own := m.First[c] + k[c]
		if weights[i] == 0 { // nothing came before: no exponent is taken off
			most[i] = k[c] - m.Rate[c]
		}
		peak := max(most[i], own)
		old, mine := exp(most[i]-peak), exp(own-peak)
		sum := float32(old*values[i]) + float32(mine*v[c])
		out[c] = sigmoid(r[c]) * sum / (float32(old*weights[i]) + mine)

		faded := most[i] + m.Rate[c]
		peak = max(faded, k[c])
		old, mine = exp(faded-peak), exp(k[c]-peak)
		values[i] = float32(old*values[i]) + float32(mine*v[c])
		weights[i] = float32(old*weights[i]) + mine
		most[i] = peak
	}
}
