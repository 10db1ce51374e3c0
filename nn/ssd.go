package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// SSD is a state-space layer with one rate of decay for a head (Dao and Gu,
// Mamba-2, 2024): heads of linear attention, B being the keys, C the queries, and
// the rows of the heads the values. Rows are scanned one after the other, by
// blocks of columns of a head whose states stay near: a row has the same bits
// however the rows before it were cut.
type SSD struct {
	In   Linear    // [2·inner + 2·groups·states + heads][hidden]: gate, x, B, C and time steps
	Mult []float32 // of what In gives, column by column; nil for none
	Conv Conv      // of x, B and C

	Heads, HeadDim int
	Groups, States int // a group of heads shares B and C, each of so many states

	DtBias, A, D []float32 // [heads]; A negative
	DtMin, DtMax float32   // limits of time steps, DtMax 0 for none

	Norm      Norm // of gated rows; without weights: as they are
	NormFirst bool // it comes before the gate
	Out       Linear
}

// Form returns the form of the rows that the mixer reads.
func (m *SSD) Form() Form { return FormOf(&m.In) }

func (m *SSD) inner() int { return m.Heads * m.HeadDim }

// Keeps returns the state: that of each head, with a share of the last rows of the
// convolution.
func (m *SSD) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * m.Heads * (m.Conv.kept(m.Heads) + m.HeadDim*m.States), Parts: m.Heads}
}

// Reads returns the regions of the two matrices.
func (m *SSD) Reads() Reads { return Reads{Regions: []Region{reads(1, &m.In), reads(1, &m.Out)}} }

// Inputs returns the matrices that read the mixer's input, and Output the one that
// reads what it computes.
func (m *SSD) Inputs() []*Linear { return []*Linear{&m.In} }

// Output is Inputs' counterpart.
func (m *SSD) Output() *Linear { return &m.Out }

// ssdRows is what the layer computes on the way.
type ssdRows struct {
	in  kernel.Acts // [rows][2·inner + 2·groups·states + heads]
	xbc kernel.Acts // convolved, [rows][inner + 2·groups·states]
	out kernel.Acts // [rows][inner]

	scan ssdTask
	gate gateNormTask
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *SSD) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[ssdRows](e)
	e.Linear(x, Out{&m.In, &r.in})
	if m.Mult != nil {
		for i := range r.in.N {
			kernel.Mul(Row(&r.in, i), m.Mult)
		}
	}
	m.Conv.convolve(e, s, layer, m.Heads, &r.xbc, &r.in, m.inner(), Form{})
	f := FormOf(&m.Out)
	formRows(&r.out, x.N, m.inner(), f)
	r.scan.m, r.scan.r, r.scan.s, r.scan.kv, r.scan.layer = m, r, s, e.KV, layer
	e.run(&r.scan, x.N*m.inner()*m.States)
	r.gate = gateNormTask{out: &r.out, gate: &r.in, norm: &m.Norm, first: m.NormFirst, quant: f.Quant()}
	e.run(&r.gate, x.N*m.inner())
	return &r.out, &m.Out
}

// ssdTask scans. It is split by heads.
type ssdTask struct {
	m     *SSD
	r     *ssdRows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *ssdTask) Do(worker, workers int) {
	t.m.Conv.states(t.s, t.kv, t.layer, t.m.Heads, worker, workers, t.run)
}

// MaxStates is the largest number of states, or keys, of a head.
const MaxStates = 512

// run scans the rows of a run for head h.
func (t *ssdTask) run(run *Run, h int, state []float32) {
	const w = kernel.StateColumns
	m, n := t.m, t.m.States
	var decayRow, values [MaxStates]float32
	decay, v := decayRow[:n], values[:m.HeadDim]
	b := m.inner() + h/(m.Heads/m.Groups)*n
	c := b + m.Groups*n
	for row := run.First(); row < run.First()+run.Rows(); row++ {
		in, xbc := Row(&t.r.in, row), Row(&t.r.xbc, row)
		x, out := xbc[h*m.HeadDim:][:m.HeadDim], Row(&t.r.out, row)[h*m.HeadDim:][:m.HeadDim]
		dt := m.timeStep(in[len(in)-m.Heads+h], h)
		fill(decay, exp(dt*m.A[h]))
		copy(v, x)
		kernel.Scale(v, dt)
		for i := 0; i < m.HeadDim; i += w {
			kernel.StateMove(out[i:i+w], state[i*n:(i+w)*n], decay, xbc[b:b+n], xbc[c:c+n], v[i:])
		}
		kernel.AddScaled(out, x, m.D[h])
	}
}

// timeStep returns the time step of head h.
func (m *SSD) timeStep(x float32, h int) float32 {
	dt := softplus(x + m.DtBias[h])
	if m.DtMax > 0 {
		dt = min(max(dt, m.DtMin), m.DtMax)
	}
	return dt
}

func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

func softplus(x float32) float32 {
	return max(x, 0) + float32(math.Log1p(math.Exp(-math.Abs(float64(x)))))
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}

// gateNormTask multiplies rows with SiLU of a gate, and normalizes them.
type gateNormTask struct {
	out   *kernel.Acts
	gate  *kernel.Acts // its first columns
	norm  *Norm
	first bool // the norm comes before the gate
	quant bool
}

func (t *gateNormTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.out.N, worker, workers)
	for i := lo; i < hi; i++ {
		x := Row(t.out, i)
		if t.first {
			heads(x, t.norm)
		}
		kernel.SiLUMul(x, Row(t.gate, i)[:len(x)], x)
		if !t.first {
			heads(x, t.norm)
		}
		if t.quant {
			t.out.Quantize(i, 0, t.out.K)
		}
	}
}
