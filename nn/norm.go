package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
)

// Norm is a normalization with its weights, each as long as a row. The zero
// Norm passes rows through.
type Norm struct {
	Kind NormKind
	W, B []float32 // B may be nil; a nil W means no normalization
	Eps  float32
	// Group, when not 0, is the length of the pieces of a row that are
	// normalized on their own, each with its own part of W.
	Group int
}

// Apply normalizes one row. A nil norm passes it through.
func (n *Norm) Apply(dst, x []float32) {
	switch {
	case n == nil || n.W == nil:
		copy(dst, x)
	case n.Kind == NormRMS:
		kernel.RMSNorm(dst, x, n.W, n.Eps)
	default:
		kernel.LayerNorm(dst, x, n.W, n.B, n.Eps)
	}
}

type normTask struct {
	dst, x *kernel.Acts
	norm   *Norm
	quant  bool
}

// Norm writes the normalized rows of x to dst, in the form f.
func (e *Exec) Norm(dst, x *kernel.Acts, n *Norm, f Form) {
	formRows(dst, x.N, x.K, f)
	e.norm = normTask{dst, x, n, f.Quant()}
	e.run(&e.norm, x.N*x.K)
}

func (t *normTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for r := lo; r < hi; r++ {
		t.norm.Apply(Row(t.dst, r), Row(t.x, r))
		if t.quant {
			t.dst.Quantize(r, 0, t.dst.K)
		}
	}
}

type quantTask struct{ a *kernel.Acts }

// Quantize quantizes the rows of a.
func (e *Exec) Quantize(a *kernel.Acts) {
	Rows(a, a.N, a.K, true)
	e.quant.a = a
	e.run(&e.quant, a.N*a.K)
}

func (t *quantTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.a.N, worker, workers)
	for r := lo; r < hi; r++ {
		t.a.Quantize(r, 0, t.a.K)
	}
}

// addNormTask adds normalized rows of y, scaled, to the rows of x.
type addNormTask struct {
	x, y  *kernel.Acts
	norm  *Norm
	scale float32
}

// AddNorm adds scale times the normalized rows of y to x. y is overwritten.
func (e *Exec) AddNorm(x, y *kernel.Acts, n *Norm, scale float32) {
	e.addNorm = addNormTask{x, y, n, scale}
	e.run(&e.addNorm, x.N*x.K)
}

func (t *addNormTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for r := lo; r < hi; r++ {
		y := Row(t.y, r)
		if t.norm != nil && t.norm.W != nil {
			t.norm.Apply(y, y)
		}
		if t.scale != 1 {
			kernel.Scale(y, t.scale)
		}
		kernel.Add(Row(t.x, r), y)
	}
}
