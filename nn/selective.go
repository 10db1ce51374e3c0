package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// Selective is a selective state-space layer (Gu and Dao, Mamba, 2023). Each
// column of its inner rows has some states of its own, which decay at rates that
// the row decides: see kernel.Selective. Rows are scanned one after the other, by
// blocks of columns whose states stay near: a row has the same bits however the
// rows before it were cut.
type Selective struct {
	In   Linear // [2·inner][hidden]: what is scanned, and the gate
	Conv Conv   // [inner]
	X    Linear // [rank + 2·states][inner]: time step, B and C
	Dt   Linear // [inner][rank]
	// DtNorm, BNorm and CNorm normalize what X gives; without weights: as it is.
	DtNorm, BNorm, CNorm Norm

	A   []float32 // negative rates, in blocks: [inner/16][states][16]
	D   []float32 // [inner]
	Out Linear    // [hidden][inner]
}

// Form returns the form of the rows that the mixer reads.
func (m *Selective) Form() Form { return FormOf(&m.In) }

func (m *Selective) inner() int  { return len(m.D) }
func (m *Selective) states() int { return len(m.A) / len(m.D) }

// selectivePart is how many blocks of columns lie in one part of a state at most.
const selectivePart = 16

// parts returns the parts of the state: equal numbers of blocks of columns.
func (m *Selective) parts() int {
	blocks := m.inner() / kernel.StateColumns
	parts := (blocks + selectivePart - 1) / selectivePart
	for blocks%parts != 0 {
		parts++
	}
	return parts
}

// Keeps returns the state: the last rows of the convolution, and the states of
// the columns.
func (m *Selective) Keeps() kvcache.LayerShape {
	parts := m.parts()
	return kvcache.LayerShape{State: 4 * (parts*m.Conv.kept(parts) + len(m.A)), Parts: parts}
}

// Reads returns the regions of the four matrices.
func (m *Selective) Reads() Reads {
	return Reads{Regions: []Region{reads(1, &m.In), reads(1, &m.X), reads(1, &m.Dt), reads(1, &m.Out)}}
}

// Inputs returns the matrices that read the mixer's input, and Output the one that
// reads what it computes.
func (m *Selective) Inputs() []*Linear { return []*Linear{&m.In} }

// Output is Inputs' counterpart.
func (m *Selective) Output() *Linear { return &m.Out }

// selectiveRows is what a selective layer computes on the way.
type selectiveRows struct {
	in   kernel.Acts // [rows][2·inner]
	u    kernel.Acts // convolved, [rows][inner]
	dbc  kernel.Acts // [rows][rank + 2·states]
	rank kernel.Acts // normalized time steps, [rows][rank]
	step kernel.Acts // [rows][inner]
	out  kernel.Acts // [rows][inner]

	norms selectiveNorms
	scan  selectiveTask
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *Selective) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[selectiveRows](e)
	e.Linear(x, Out{&m.In, &r.in})
	m.Conv.convolve(e, s, layer, m.parts(), &r.u, &r.in, 0, FormOf(&m.X))
	e.Linear(&r.u, Out{&m.X, &r.dbc})
	f := FormOf(&m.Dt)
	formRows(&r.rank, x.N, r.dbc.K-2*m.states(), f)
	r.norms = selectiveNorms{m, r, f.Quant()}
	e.run(&r.norms, x.N*r.dbc.K)
	e.Linear(&r.rank, Out{&m.Dt, &r.step})
	f = FormOf(&m.Out)
	formRows(&r.out, x.N, m.inner(), f)
	r.scan = selectiveTask{m, r, s, e.KV, layer}
	e.run(&r.scan, x.N*len(m.A))
	if f.Quant() {
		e.Quantize(&r.out)
	}
	return &r.out, &m.Out
}

// selectiveNorms normalizes time steps, B and C.
type selectiveNorms struct {
	m     *Selective
	r     *selectiveRows
	quant bool
}

func (t *selectiveNorms) Do(worker, workers int) {
	lo, hi := pool.Split(t.r.dbc.N, worker, workers)
	rank, n := t.r.rank.K, t.m.states()
	for row := lo; row < hi; row++ {
		x := Row(&t.r.dbc, row)
		t.m.DtNorm.Apply(Row(&t.r.rank, row), x[:rank])
		b, c := x[rank:rank+n], x[rank+n:]
		t.m.BNorm.Apply(b, b)
		t.m.CNorm.Apply(c, c)
		if t.quant {
			t.r.rank.Quantize(row, 0, rank)
		}
	}
}

// selectiveTask scans. It is split by the parts of the states.
type selectiveTask struct {
	m     *Selective
	r     *selectiveRows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *selectiveTask) Do(worker, workers int) {
	t.m.Conv.states(t.s, t.kv, t.layer, t.m.parts(), worker, workers, t.run)
}

// run scans the columns of a part.
func (t *selectiveTask) run(run *Run, part int, state []float32) {
	const w = kernel.StateColumns
	columns := t.m.inner() / t.m.parts()
	c0, c1 := part*columns, (part+1)*columns
	m, n, rank := t.m, t.m.states(), t.r.rank.K
	for row := run.First(); row < run.First()+run.Rows(); row++ {
		dt, u := Row(&t.r.step, row)[c0:c1], Row(&t.r.u, row)[c0:c1]
		gate, out := Row(&t.r.in, row)[m.inner()+c0:][:c1-c0], Row(&t.r.out, row)[c0:c1]
		bc := Row(&t.r.dbc, row)[rank:]
		kernel.Softplus(dt, dt)
		for i := 0; i < c1-c0; i += w {
			kernel.Selective(out[i:i+w], state[i*n:(i+w)*n], m.A[(c0+i)*n:(c0+i+w)*n], dt[i:], u[i:], bc[:n], bc[n:2*n])
		}
		kernel.AddProduct(out, m.D[c0:c1], u)
		kernel.SiLUMul(out, gate, out)
	}
}
