package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
)

// Linear is a matrix with an optional bias: y = W x + b.
type Linear struct {
	W    *kernel.Packed
	Bias []float32 // one per row of W, or nil
	// Planes is how many planes the quantized rows have that W reads; 0 means 1.
	// It and the columns that W keeps apart are the same for all matrices that
	// read the same rows.
	Planes int
}

// Form says how rows are kept for the matrices that read them.
type Form struct {
	Planes int     // of quantized rows; 0: they are not quantized
	Apart  []int32 // columns that quantized rows leave out: see kernel.Acts
	Brain  bool    // rounded to bfloat16 instead
}

// FormOf returns the form of the rows that the given matrices read: that of the
// first one that reads quantized rows.
func FormOf(ls ...*Linear) Form {
	for _, l := range ls {
		if l == nil || l.W == nil || !l.W.UsesQuant() {
			continue
		}
		if n := l.W.Brain(); n > 0 {
			return Form{Planes: n, Brain: true}
		}
		f := Form{Planes: max(l.Planes, 1)}
		if l.W.Apart != nil {
			f.Apart = l.W.Apart.Cols
		}
		return f
	}
	return Form{}
}

// Quant reports whether the rows are quantized, or rounded.
func (f Form) Quant() bool { return f.Planes > 0 }

// Out is where a Linear writes: rows of at least 16 * W.Groups floats.
type Out struct {
	L   *Linear
	Dst *kernel.Acts
}

// maxOuts is the number of matrices that can share an input: q, k, v and a gate.
const maxOuts = 4

type linearTask struct {
	outs  [maxOuts]Out
	n     int
	x     *kernel.Acts
	resid *kernel.Acts
	scale float32
	low   *lowRankTask // what adapters change, nil for nothing

	shares pool.Shares // of all groups of the matrices, one after the other
}

// Linear multiplies the rows of x by up to four matrices in one region. The
// inputs must be quantized if one of the matrices needs it.
func (e *Exec) Linear(x *kernel.Acts, outs ...Out) {
	t := &e.linear
	t.x, t.resid, t.n = x, nil, copy(t.outs[:], outs)
	e.startLinear(t)
}

// LinearAdd adds scale times the product of x and l to resid. y is scratch.
func (e *Exec) LinearAdd(resid, y, x *kernel.Acts, l *Linear, scale float32) {
	t := &e.linear
	t.x, t.resid, t.scale, t.n = x, resid, scale, 1
	t.outs[0] = Out{l, y}
	e.startLinear(t)
}

func (e *Exec) startLinear(t *linearTask) {
	e.watch(t.x, t.outs[0].L)
	total, most := 0, 0
	t.low = e.lower(t.x, t.outs[:t.n]...)
	for _, o := range t.outs[:t.n] {
		Rows(o.Dst, t.x.N, o.L.W.Rows, false)
		total += o.L.W.Groups
		most = max(most, o.L.W.GroupBytes)
	}
	e.pool.RunShared(t, &t.shares, total, pieceGroups(t.x.N, most))
}

// pieceGroups returns how many groups of groupBytes a worker multiplies at a
// time, at least: with few rows as many as take some 5 µs to read, with more
// what the kernels need to make use of activations that they have brought near.
func pieceGroups(rows, groupBytes int) int {
	const (
		fewRows    = 8
		fewBytes   = 64 << 10
		manyGroups = 16
	)
	if rows <= fewRows {
		return max(fewBytes/max(groupBytes, 1), 1)
	}
	return manyGroups
}

func (t *linearTask) Do(worker, _ int) {
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		first := 0
		for i := range t.outs[:t.n] {
			o := &t.outs[i]
			if g0, g1 := max(lo-first, 0), min(hi-first, o.L.W.Groups); g0 < g1 {
				t.part(o, g0, g1)
			}
			first += o.L.W.Groups
		}
	}
}

// part computes the 16-row groups [g0, g1) of one matrix.
func (t *linearTask) part(o *Out, g0, g1 int) {
	w := o.L.W
	w.Mul(o.Dst.F32, o.Dst.LDF, t.x, 0, t.x.N, g0, g1)
	c0, c1 := 16*g0, min(16*g1, w.Rows)
	if t.low != nil {
		t.low.raise(o, g0, g1)
	}
	if o.L.Bias == nil && t.resid == nil {
		return
	}
	for r := range t.x.N {
		y := Row(o.Dst, r)[c0:c1]
		if o.L.Bias != nil {
			kernel.Add(y, o.L.Bias[c0:c1])
		}
		if t.resid != nil {
			if t.scale != 1 {
				kernel.Scale(y, t.scale)
			}
			kernel.Add(Row(t.resid, r)[c0:c1], y)
		}
	}
}
