package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// RWKV6 is the time mixing of RWKV 5 and 6 (Peng et al. 2024, Eagle and Finch, arXiv
// 2404.05892): linear attention whose states decay by key, with a bonus for a row's own
// value. In version 6 the decay, and how a row is mixed with the one before it, depend on
// the row. Without a bonus it is gated linear attention, which writes what has decayed (Yang
// et al. 2023, arXiv 2312.06635), as hybrids with Qwen have it; their gate is a sigmoid.
// Rows are scanned one after the other: see RWKV7.
type RWKV6 struct {
	Lerp [rwkv6Inputs][]float32 // how much of the row before is in each input, [hidden]
	// What a row adds to Lerp, of version 6: up tanh(down x), where x has LerpFirst of the
	// row before.
	LerpFirst []float32            // [hidden]; nil for nothing
	LerpDown  Linear               // [5·rank][hidden]
	LerpUp    [rwkv6Inputs]*Linear // [hidden][rank]

	R, K, V, Gate Linear     // [hidden][hidden], K and V [kvHeads·dim][hidden]
	Decay         LowRankMLP // of -log decay the logarithm; without matrices it is Base
	Bonus         []float32  // [hidden]; nil for none

	Heads, KVHeads, Dim int
	Norm                Norm // of each head's columns, with weights of all; or none
	Out                 Linear
}

// The inputs of RWKV6, in the order in which GGUF has them.
const (
	rwkv6W = iota
	rwkv6K
	rwkv6V
	rwkv6R
	rwkv6G
	rwkv6Inputs
)

// Form returns the form of the rows that the mixer reads: those of its matrices are made
// of them.
func (m *RWKV6) Form() Form { return Form{} }

// Keeps returns the state: that of each head, with its columns of the row before.
func (m *RWKV6) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{State: 4 * m.Heads * (m.Dim + m.Dim*m.Dim), Parts: m.Heads}
}

// Reads returns the regions of the matrices.
func (m *RWKV6) Reads() Reads {
	var r []Region
	one := func(l *Linear) {
		if l != nil && l.W != nil {
			r = append(r, reads(1, l))
		}
	}
	one(&m.LerpDown)
	for _, up := range m.LerpUp {
		one(up)
	}
	for _, in := range m.inputs() {
		one(in)
	}
	one(&m.Decay.Up)
	one(&m.Out)
	return Reads{Regions: r}
}

// inputs returns the matrix that reads each of the mixed rows.
func (m *RWKV6) inputs() [rwkv6Inputs]*Linear {
	return [rwkv6Inputs]*Linear{rwkv6W: &m.Decay.Down, rwkv6K: &m.K, rwkv6V: &m.V, rwkv6R: &m.R, rwkv6G: &m.Gate}
}

// rwkv6Rows is what the layer computes on the way.
type rwkv6Rows struct {
	first, down   kernel.Acts              // what LerpDown reads and gives
	low           kernel.Acts              // rows of a low rank
	lerp          [rwkv6Inputs]kernel.Acts // [rows][hidden]
	mixed         [rwkv6Inputs]kernel.Acts // [rows][hidden]
	w, k, v, r, g kernel.Acts
	out           kernel.Acts

	shift shiftTask
	scan  rwkv6Task
}

// Mix computes the rows for the output matrix and moves the states on.
func (m *RWKV6) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[rwkv6Rows](e)
	m.shift(e, s, layer, x, r)
	if m.Decay.Down.W != nil {
		e.Linear(&r.mixed[rwkv6W], Out{&m.Decay.Down, &r.low})
		m.Decay.raise(e, &r.w, &r.low, tanhRow)
	}
	e.Linear(&r.mixed[rwkv6K], Out{&m.K, &r.k})
	e.Linear(&r.mixed[rwkv6V], Out{&m.V, &r.v})
	e.Linear(&r.mixed[rwkv6R], Out{&m.R, &r.r})
	e.Linear(&r.mixed[rwkv6G], Out{&m.Gate, &r.g})
	f := FormOf(&m.Out)
	formRows(&r.out, x.N, x.K, f)
	r.scan = rwkv6Task{m, r, s, e.KV, layer}
	e.run(&r.scan, x.N*x.K*m.Dim)
	if f.Quant() {
		e.Quantize(&r.out)
	}
	return &r.out, &m.Out
}

// shift mixes rows with those before them.
func (m *RWKV6) shift(e *Exec, s *Step, layer int, x *kernel.Acts, r *rwkv6Rows) {
	if m.LerpFirst != nil {
		r.shift.begin(e, s, layer, m.Heads, x)
		r.shift.add(&r.first, m.LerpFirst, nil, FormOf(&m.LerpDown))
		r.shift.run(e)
		e.Linear(&r.first, Out{&m.LerpDown, &r.down})
	}
	r.shift.begin(e, s, layer, m.Heads, x)
	for i, l := range m.inputs() {
		var more *kernel.Acts
		switch {
		case l.W == nil:
			continue
		case m.LerpFirst != nil:
			more = &r.lerp[i]
			m.lerp(e, more, i, r)
		}
		r.shift.add(&r.mixed[i], m.Lerp[i], more, FormOf(l))
	}
	r.shift.run(e)
	r.shift.keep()
}

// lerp computes what rows add to Lerp of input i.
func (m *RWKV6) lerp(e *Exec, out *kernel.Acts, i int, r *rwkv6Rows) {
	up := m.LerpUp[i]
	rank, f := up.W.Cols, FormOf(up)
	formRows(&r.low, r.down.N, rank, f)
	for row := range r.down.N {
		x := Row(&r.low, row)
		copy(x, Row(&r.down, row)[i*rank:])
		tanhRow(x)
	}
	if f.Quant() {
		e.Quantize(&r.low)
	}
	e.Linear(&r.low, Out{up, out})
}

// rwkv6Task scans. It is split by heads.
type rwkv6Task struct {
	m     *RWKV6
	r     *rwkv6Rows
	s     *Step
	kv    *kvcache.Pool
	layer int
}

func (t *rwkv6Task) Do(worker, workers int) {
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
func (t *rwkv6Task) run(run *Run, h int, state []float32) {
	m, n := t.m, t.m.Dim
	c0, kv0 := h*n, h/(m.Heads/m.KVHeads)*n
	var decays [MaxStates]float32
	decay := decays[:n]
	if m.Decay.Down.W == nil {
		copy(decay, m.Decay.Base[c0:])
		decaysOf(decay)
	}
	for row := run.First(); row < run.First()+run.Rows(); row++ {
		if m.Decay.Down.W != nil {
			copy(decay, Row(&t.r.w, row)[c0:])
			decaysOf(decay)
		}
		k, v := Row(&t.r.k, row)[kv0:][:n], Row(&t.r.v, row)[kv0:][:n]
		r, out, gate := Row(&t.r.r, row)[c0:][:n], Row(&t.r.out, row)[c0:][:n], Row(&t.r.g, row)[c0:][:n]
		if m.Bonus == nil {
			gatedRow(out, state, decay, k, r, v)
		} else {
			bonusRow(out, state, decay, k, r, v, m.Bonus[c0:])
		}
		if m.Norm.W != nil {
			kernel.LayerNorm(out, out, m.Norm.W[c0:][:n], m.Norm.B[c0:][:n], m.Norm.Eps)
		}
		if m.Bonus == nil {
			sigmoidRow(gate)
			kernel.Mul(out, gate)
		} else {
			kernel.SiLUMul(out, gate, out)
		}
	}
}

// decaysOf makes decays of the logarithms of their negative logarithms.
func decaysOf(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Exp(-math.Exp(float64(v))))
	}
}

// bonusRow moves the state of a head by a row, whose own value is read with the bonus.
func bonusRow(out, state, decay, k, r, v, bonus []float32) {
	const w = kernel.StateColumns
	var unused [w]float32
	n, own := len(k), float32(0)
	for i, x := range r {
		own += float32(float32(x*k[i]) * bonus[i])
	}
	for i := 0; i < n; i += w {
		block := state[i*n : (i+w)*n]
		kernel.StateRead(out[i:i+w], block, r)
		kernel.StateMove(unused[:], block, decay, k, r, v[i:i+w])
	}
	kernel.AddScaled(out, v, own)
}

// gatedRow moves the state of a head by a row of gated linear attention.
func gatedRow(out, state, decay, k, r, v []float32) {
	const w = kernel.StateColumns
	var keys [MaxStates]float32
	n := len(k)
	for i, x := range k {
		keys[i] = x * (1 - decay[i])
	}
	for i := 0; i < n; i += w {
		kernel.StateMove(out[i:i+w], state[i*n:(i+w)*n], decay, keys[:n], r, v[i:i+w])
	}
	kernel.Scale(out, float32(1/math.Sqrt(float64(n))))
}
