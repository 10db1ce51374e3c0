package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// Some columns of a matrix meet activations that are much larger than their
// neighbours, whose block they give a coarse scale. Such columns can be kept
// apart: the quantized row has zeros for them, which leaves the block a finer
// scale, and they are multiplied as they are, float32 activations with weights
// in plain numbers. (The idea is that of LLM.int8, Dettmers et al. 2022,
// arXiv:2208.07339, with columns that are the same for all rows.)

// Apart is the columns of a matrix that are multiplied with float32 activations.
type Apart struct {
	Cols []int32 // ascending
	W    *Packed // plain numbers, [rows of the matrix][len(Cols)]
}

// apartTiny is the least of the largest weight of a matrix whose columns are kept
// as float16: below, the steps of that type's smallest numbers would show.
const apartTiny = 0x1p-9

// ApartShape returns the columns cols of p, without their weights: as float32
// if wide is set, else as float16.
func ApartShape(p *Packed, cols []int32, wide bool) (*Apart, error) {
	if !p.UsesQuant() || len(cols) == 0 {
		return nil, fmt.Errorf("kernel: columns apart: expected some of a quantized matrix, found %d of %s", len(cols), p.Type)
	}
	for i, c := range cols {
		if c < 0 || int(c) >= p.Cols || i > 0 && c <= cols[i-1] {
			return nil, fmt.Errorf("kernel: columns apart: number %d: expected one of %d above those before it, found %d", i, p.Cols, c)
		}
	}
	m := tensor.Mat{Type: tensor.F16, Rows: p.Rows, Cols: len(cols)}
	if wide {
		m.Type = tensor.F32
	}
	w, err := plan(m)
	w.adds = true
	return &Apart{Cols: cols, W: &w}, err
}

// WideApart reports whether the groups [g0, g1) of p have weights that columns
// apart keep as float32: too large or all of them too small for float16. It
// looks at the columns cols.
func (p *Packed) WideApart(cols []int32, g0, g1 int) bool {
	top := float32(0)
	for g := g0; g < g1; g++ {
		p.columns(cols, g, func(_ int, w *[Lanes]float32) {
			for _, v := range w {
				top = max(top, float32(math.Abs(float64(v))))
			}
		})
	}
	return top < apartTiny || top > 65000
}

// Fill sets the weights of the groups [g0, g1) to those of p.
func (a *Apart) Fill(p *Packed, g0, g1 int) {
	size := plainSize(a.W.Type)
	for g := g0; g < g1; g++ {
		data := a.W.Data[g*a.W.GroupBytes:][:a.W.GroupBytes]
		p.columns(a.Cols, g, func(i int, w *[Lanes]float32) {
			at := data[i*Lanes*size:]
			for l, v := range w {
				if size == 4 {
					binary.LittleEndian.PutUint32(at[4*l:], math.Float32bits(v))
				} else {
					binary.LittleEndian.PutUint16(at[2*l:], tensor.F32ToF16(v))
				}
			}
		})
	}
}

// columns calls f with the weights of each of cols in group g.
func (p *Packed) columns(cols []int32, g int, f func(i int, w *[Lanes]float32)) {
	l, u := p.layout, blockPool.Get().(*panelBlock)
	defer blockPool.Put(u)
	data, at := p.Data[g*p.GroupBytes:][:p.GroupBytes], -1
	var w [Lanes]float32
	for i, c := range cols {
		if b := int(c) / 32; b != at {
			at = b
			sb := data[at/(2*l.Pairs)*l.SuperBytes():]
			l.unpack(u, sb, sb[l.PairAt(at/2%l.Pairs):], at&1)
		}
		u.column(&w, l.Form, int(c)%32)
		f(i, &w)
	}
}

// column sets w to the weights of column c of the block.
func (u *panelBlock) column(w *[Lanes]float32, f layout.Form, c int) {
	s, m := &u.s0, &u.m0
	if f.Halves() && c >= 16 {
		s, m = &u.s1, &u.m1
	}
	for l := range w {
		q := float32(u.q[c/4][l] >> (8 * (c % 4)) & 255)
		if f.Mins() {
			w[l] = float32(q*s[l]) + m[l]
		} else {
			w[l] = (q - 128) * s[l]
		}
	}
}

// setApart copies what row r has in the columns of a.Apart that lie in [c0, c1)
// to a.A, and leaves zeros. It returns which ones these are.
func (a *Acts) setApart(r, c0, c1 int) (lo, hi int) {
	if len(a.Apart) == 0 {
		return 0, 0
	}
	lo = sort.Search(len(a.Apart), func(i int) bool { return int(a.Apart[i]) >= c0 })
	hi = sort.Search(len(a.Apart), func(i int) bool { return int(a.Apart[i]) >= c1 })
	x, kept := a.F32[r*a.LDF:], a.A[r*a.LDA:]
	for i := lo; i < hi; i++ {
		k := a.Apart[i]
		kept[i], x[k] = x[k], 0
	}
	return lo, hi
}

// unsetApart gives row r back what setApart took.
func (a *Acts) unsetApart(r, lo, hi int) {
	for i := lo; i < hi; i++ {
		a.F32[r*a.LDF+int(a.Apart[i])] = a.A[r*a.LDA+i]
	}
}

// mulApart adds the products of the columns apart.
func (p *Packed) mulApart(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	if len(x.Apart) != len(p.Apart.Cols) {
		panic(fmt.Sprintf("kernel: multiply %s %d x %d: columns apart: expected %d, found %d", p.Type, p.Rows, p.Cols, len(p.Apart.Cols), len(x.Apart)))
	}
	kept := Acts{N: x.N, K: len(x.Apart), F32: x.A, LDF: x.LDA}
	p.Apart.W.check(dst, ldd, &kept, r1, g1)
	p.Apart.W.mul(dst, ldd, &kept, r0, r1, g0, g1)
}
