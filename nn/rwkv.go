package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// RWKV7 is the time mixing of RWKV-7 (Peng et al. 2025, arXiv 2503.14456): linear
// attention whose states decay by key, where a delta rule removes what one direction
// reads and writes it back weighted. Rows are mixed with the rows before them first.
// They are scanned one after the other, by blocks of columns of a head whose states stay
// near: a row has the same bits however the rows before it were cut.
type RWKV7 struct {
	Lerp [rwkvInputs][]float32 // how much of the row before is in each input, [hidden]

	R, K, V Linear // [hidden][hidden]
	// Low-rank matrices: of the decay, of the weights of what is written back, of the
	// part of the first layer's values, which that layer has not, and of the gate.
	Decay, Write, First, Gate LowRankMLP

	KeyUnit, KeyWrite []float32 // scale of the direction; how far Write changes keys, [hidden]
	Bonus             []float32 // of a row's own value, [hidden]

	Heads, Dim int
	IsFirst    bool // its values are those that later layers take a part of
	Norm       Norm // of each head's columns, with weights of all
	Out        Linear
}

// LowRankMLP is Up act(Down x) + Base.
type LowRankMLP struct {
	Down, Up Linear // [rank][hidden], [hidden][rank]
	Base     []float32
}

// The inputs of RWKV7, in the order in which GGUF has them.
const (
	rwkvR = iota
	rwkvW
	rwkvK
	rwkvV
	rwkvA
	rwkvG
	rwkvInputs
)

// Form returns the form of the rows that the mixer reads: those of its matrices are made
// of them.
func (m *RWKV7) Form() Form { return Form{} }

// Keeps returns the state: that of each head, with its columns of the row before.
func (m *RWKV7) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * m.Heads * (m.Dim + m.Dim*m.Dim), Parts: m.Heads}
}

// Reads returns the regions of the matrices.
func (m *RWKV7) Reads() Reads {
	var r []Region
	for i, in := range m.inputs() {
		if i == rwkvV && !m.IsFirst {
			r = append(r, reads(1, in, &m.First.Down))
		} else {
			r = append(r, reads(1, in))
		}
	}
	for _, up := range []*LowRankMLP{&m.Decay, &m.Write, &m.First, &m.Gate} {
		if up.Up.W != nil {
			r = append(r, reads(1, &up.Up))
		}
	}
	return Reads{Regions: append(r, reads(1, &m.Out))}
}

// inputs returns the first of the matrices that read each of the mixed rows.
func (m *RWKV7) inputs() [rwkvInputs]*Linear {
	return [rwkvInputs]*Linear{rwkvR: &m.R, rwkvW: &m.Decay.Down, rwkvK: &m.K, rwkvV: &m.V, rwkvA: &m.Write.Down, rwkvG: &m.Gate.Down}
}

// rwkvRows is what the layer computes on the way.
type rwkvRows struct {
	mixed      [rwkvInputs]kernel.Acts // [rows][hidden]
	low        [4]kernel.Acts          // [rows][rank]
	r, k, v    kernel.Acts             // [rows][hidden]
	w, a, f, g kernel.Acts             // what the low-rank matrices give, [rows][hidden]
	first      kernel.Acts             // values of the first layer, [rows][hidden]
	out        kernel.Acts

	shift shiftTask
	scan  rwkvTask
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *RWKV7) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[rwkvRows](e)
	r.shift.begin(e, s, layer, m.Heads, x)
	for i, l := range m.inputs() {
		f := FormOf(l)
		if i == rwkvV && !m.IsFirst {
			f = FormOf(l, &m.First.Down)
		}
		r.shift.add(&r.mixed[i], m.Lerp[i], nil, f)
	}
	r.shift.run(e)
	r.shift.keep()
	e.Linear(&r.mixed[rwkvR], Out{&m.R, &r.r})
	e.Linear(&r.mixed[rwkvW], Out{&m.Decay.Down, &r.low[0]})
	m.Decay.raise(e, &r.w, &r.low[0], tanhRow)
	e.Linear(&r.mixed[rwkvK], Out{&m.K, &r.k})
	if m.IsFirst {
		e.Linear(&r.mixed[rwkvV], Out{&m.V, &r.v})
		Rows(&r.first, x.N, x.K, false)
	} else {
		e.Linear(&r.mixed[rwkvV], Out{&m.V, &r.v}, Out{&m.First.Down, &r.low[1]})
		m.First.raise(e, &r.f, &r.low[1], nil)
	}
	e.Linear(&r.mixed[rwkvA], Out{&m.Write.Down, &r.low[2]})
	m.Write.raise(e, &r.a, &r.low[2], nil)
	e.Linear(&r.mixed[rwkvG], Out{&m.Gate.Down, &r.low[3]})
	m.Gate.raise(e, &r.g, &r.low[3], sigmoidRow)
	f := FormOf(&m.Out)
	formRows(&r.out, x.N, x.K, f)
	r.scan = rwkvTask{m, r, s, e.KV, layer}
	e.run(&r.scan, x.N*x.K*m.Dim)
	if f.Quant() {
		e.Quantize(&r.out)
	}
	return &r.out, &m.Out
}

// raise computes the rows of out from low, what Down gives.
func (m *LowRankMLP) raise(e *Exec, out, low *kernel.Acts, act func([]float32)) {
	f := FormOf(&m.Up)
	formRows(low, low.N, low.K, f)
	if act != nil {
		for i := range low.N {
			act(Row(low, i))
		}
	}
	if f.Quant() {
		e.Quantize(low)
	}
	e.Linear(low, Out{&m.Up, out})
	if m.Base == nil {
		return
	}
	for i := range out.N {
		kernel.Add(Row(out, i), m.Base)
	}
}

func tanhRow(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Tanh(float64(v)))
	}
}

func sigmoidRow(x []float32) {
	for i, v := range x {
		x[i] = sigmoid(v)
	}
}

// rwkvTask scans. It is split by heads.
type rwkvTask struct {
	m     *RWKV7
	r     *rwkvRows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *rwkvTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.m.Heads, worker, workers)
	for h := lo; h < hi; h++ {
		for i := range t.s.Runs {
			if run := &t.s.Runs[i]; run.Rows() > 0 {
				t.run(run, h, floats(t.kv.State(t.layer, h, run.Seq))[t.m.Dim:])
			}
		}
	}
}

// run scans the rows of a run for head h.
func (t *rwkvTask) run(run *Run, h int, state []float32) {
	const w = kernel.StateColumns
	m, n := t.m, t.m.Dim
	c0, c1 := h*n, (h+1)*n
	var units, writes, ones [MaxStates]float32
	var known [w]float32
	unit, write, one := units[:n], writes[:n], ones[:n]
	fill(one, 1)
	at := func(a *kernel.Acts, row int) []float32 { return Row(a, row)[c0:c1] }
	for row := run.First(); row < run.First()+run.Rows(); row++ {
		r, k, v, decay, a, out := at(&t.r.r, row), at(&t.r.k, row), at(&t.r.v, row), at(&t.r.w, row), at(&t.r.a, row), at(&t.r.out, row)
		m.keys(c0, k, decay, a, unit, write)
		if m.IsFirst {
			copy(at(&t.r.first, row), v)
		} else {
			first, part := at(&t.r.first, row), at(&t.r.f, row)
			for i, x := range v {
				v[i] = x + float32((first[i]-x)*sigmoid(part[i]))
			}
		}
		for i := 0; i < n; i += w {
			block := state[i*n : (i+w)*n]
			kernel.StateRead(known[:], block, unit)
			kernel.Scale(known[:], -1)
			kernel.StateMove(out[i:i+w], block, decay, write, r, known[:])
			kernel.StateMove(out[i:i+w], block, one, k, r, v[i:i+w])
		}
		kernel.LayerNorm(out, out, m.Norm.W[c0:c1], m.Norm.B[c0:c1], m.Norm.Eps)
		bonus := float32(0)
		for i, x := range r {
			bonus += float32(float32(x*k[i]) * m.Bonus[c0+i])
		}
		kernel.AddScaled(out, v, bonus)
		kernel.Mul(out, at(&t.r.g, row))
	}
}

// keys makes of a head's row what the scan works with: decays, the direction that is
// removed, what is written back of it, and keys.
func (m *RWKV7) keys(c0 int, k, decay, a, unit, write []float32) {
	const tiny = 1e-12
	length := float64(0)
	for i, v := range k {
		decay[i] = exp(-rwkvDecay * sigmoid(decay[i]))
		a[i] = sigmoid(a[i])
		unit[i] = v * m.KeyUnit[c0+i]
		length += float64(unit[i]) * float64(unit[i])
	}
	kernel.Scale(unit, float32(1/max(math.Sqrt(length), tiny)))
	for i, v := range k {
		write[i] = unit[i] * a[i]
		k[i] = v * (1 + float32((a[i]-1)*m.KeyWrite[c0+i]))
	}
}

// rwkvDecay is the largest decay's logarithm, exp(-0.5) as the authors round it.
const rwkvDecay = 0.606531
