package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// Delta is linear attention by the gated delta rule (Yang et al., Gated Delta
// Networks, 2024): a head's state decays, and what a key already reads of it is
// taken from the value before this is written. Rows are scanned one after the
// other, by blocks of columns of a head whose states stay near: a row has the same
// bits however the rows before it were cut.
type Delta struct {
	QKV  Linear // [2·keyHeads·keyDim + heads·dim][hidden]
	Z    Linear // gate, [heads·dim][hidden]
	B, A Linear // strength of a write, and decay, [heads][hidden]
	Conv Conv   // of QKV

	Heads, Dim       int // of values
	KeyHeads, KeyDim int // each for equally many heads of values
	// Tiled says that the heads of values of one of keys lie KeyHeads apart, and not
	// side by side.
	Tiled bool

	DtBias, Rate []float32 // [heads]; Rate negative
	Norm         Norm      // of each head's row, before the gate
	Out          Linear    // [hidden][heads·dim]
}

// Form returns the form of the rows that the mixer reads.
func (m *Delta) Form() Form { return FormOf(&m.QKV, &m.Z, &m.B, &m.A) }

// Keeps returns the state: that of each head, with a share of the last rows of the
// convolution.
func (m *Delta) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * m.Heads * (m.Conv.kept(m.Heads) + m.Dim*m.KeyDim), Parts: m.Heads}
}

// Reads returns the regions of the matrices.
func (m *Delta) Reads() Reads {
	return Reads{Regions: []Region{reads(1, &m.QKV, &m.Z, &m.B, &m.A), reads(1, &m.Out)}}
}

// Inputs returns the matrices that read the mixer's input, and Output the one that
// reads what it computes.
func (m *Delta) Inputs() []*Linear { return []*Linear{&m.QKV, &m.Z, &m.B, &m.A} }

// Output is Inputs' counterpart.
func (m *Delta) Output() *Linear { return &m.Out }

// deltaRows is what the layer computes on the way.
type deltaRows struct {
	in, z, b, a kernel.Acts
	qkv         kernel.Acts // convolved
	out         kernel.Acts // [rows][heads·dim]

	unit deltaUnit
	scan deltaTask
	gate gateNormTask
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *Delta) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[deltaRows](e)
	e.Linear(x, Out{&m.QKV, &r.in}, Out{&m.Z, &r.z}, Out{&m.B, &r.b}, Out{&m.A, &r.a})
	m.Conv.convolve(e, s, layer, m.Heads, &r.qkv, &r.in, 0, Form{})
	r.unit = deltaUnit{m, r}
	e.run(&r.unit, 2*x.N*m.KeyHeads*m.KeyDim)
	f := FormOf(&m.Out)
	formRows(&r.out, x.N, m.Heads*m.Dim, f)
	r.scan = deltaTask{m, r, s, e.KV, layer}
	e.run(&r.scan, x.N*r.out.K*m.KeyDim)
	r.gate = gateNormTask{out: &r.out, gate: &r.z, norm: &m.Norm, first: true, quant: f.Quant()}
	e.run(&r.gate, x.N*r.out.K)
	return &r.out, &m.Out
}

// deltaUnit makes queries and keys as long as 1, and scales queries.
type deltaUnit struct {
	m *Delta
	r *deltaRows
}

func (t *deltaUnit) Do(worker, workers int) {
	const eps = 1e-6
	n, heads := t.m.KeyDim, t.m.KeyHeads
	unit := float32(1 / math.Sqrt(float64(n)))
	lo, hi := pool.Split(t.r.qkv.N, worker, workers)
	for row := lo; row < hi; row++ {
		x := Row(&t.r.qkv, row)[:2*heads*n]
		for h := range 2 * heads {
			v := x[h*n:][:n]
			kernel.RMSNorm(v, v, nil, eps/float32(n))
			if kernel.Scale(v, unit); h < heads {
				kernel.Scale(v, unit)
			}
		}
	}
}

// deltaTask scans. It is split by heads.
type deltaTask struct {
	m     *Delta
	r     *deltaRows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *deltaTask) Do(worker, workers int) {
	t.m.Conv.states(t.s, t.kv, t.layer, t.m.Heads, worker, workers, t.run)
}

// keyHead returns the head of keys of a head of values.
func (m *Delta) keyHead(h int) int {
	if m.Tiled {
		return h % m.KeyHeads
	}
	return h / (m.Heads / m.KeyHeads)
}

// run scans the rows of a run for head h.
func (t *deltaTask) run(run *Run, h int, state []float32) {
	const w = kernel.StateColumns
	m, n := t.m, t.m.KeyDim
	var decayRow [MaxStates]float32
	var known, written [w]float32
	decay, keys := decayRow[:n], m.KeyHeads*n
	from := m.keyHead(h) * n
	for row := run.First(); row < run.First()+run.Rows(); row++ {
		x := Row(&t.r.qkv, row)
		q, k, v := x[from:][:n], x[keys+from:][:n], x[2*keys+h*m.Dim:][:m.Dim]
		out := Row(&t.r.out, row)[h*m.Dim:][:m.Dim]
		strength := sigmoid(Row(&t.r.b, row)[h])
		g := exp(m.Rate[h] * softplus(Row(&t.r.a, row)[h]+m.DtBias[h]))
		fill(decay, g)
		for i := 0; i < m.Dim; i += w {
			block := state[i*n : (i+w)*n]
			kernel.StateRead(known[:], block, k)
			for j := range written {
				written[j] = strength * (v[i+j] - float32(g*known[j]))
			}
			kernel.StateMove(out[i:i+w], block, decay, k, q, written[:])
		}
	}
}
