package nn

import (
	"math"

	"ridge/kernel"
)

// Laurel is a learned augmented residual beside a mixer (Menghani et al. 2024): what
// a product of low rank makes of the mixer's input, normalized, and that input.
type Laurel struct {
	Left, Right Linear // [rank][hidden], [hidden][rank]
	Post        Norm
}

// Form returns the form of the rows that the left matrix reads.
func (l *Laurel) Form() Form { return FormOf(&l.Left) }

// Reads returns the regions of the two matrices.
func (l *Laurel) Reads() Reads {
	return Reads{Regions: []Region{reads(1, &l.Left), reads(1, &l.Right)}}
}

type laurelRows struct{ left kernel.Acts }

// Run writes what is beside the mixer of the normalized rows x to dst.
func (l *Laurel) Run(e *Exec, dst, x *kernel.Acts) {
	r := scratch[laurelRows](e)
	e.Linear(x, Out{&l.Left, &r.left})
	e.requantize(&r.left, FormOf(&l.Right))
	e.Linear(&r.left, Out{&l.Right, dst})
	for i := range dst.N {
		y := Row(dst, i)
		l.Post.Apply(y, y)
		kernel.Add(y, Row(x, i))
	}
}

// Join adds what Run gave to the rows that the mixer has added to, and keeps their
// size.
func (l *Laurel) Join(x, beside *kernel.Acts) {
	for i := range x.N {
		kernel.Add(Row(x, i), Row(beside, i))
		kernel.Scale(Row(x, i), 1/math.Sqrt2)
	}
}

// requantize gives rows the form f.
func (e *Exec) requantize(a *kernel.Acts, f Form) {
	formRows(a, a.N, a.K, f)
	if f.Quant() {
		e.Quantize(a)
	}
}
