package nn

import (
	"slices"

	"ridge/internal/pool"
	"ridge/kernel"
)

// LowRank is a low-rank change of a matrix: Scale · Up (Down x) is added to its product
// (Hu et al. 2021, LoRA, arXiv 2106.09685).
type LowRank struct {
	// [rank][in] and [out][rank], of plain numbers; products of Up are added
	Down, Up *kernel.Packed
	Scale    float32
	// Gain times that, and the product of the matrix, is what there is then of each
	// output (Liu et al. 2024, DoRA, arXiv 2402.09353); nil for 1.
	Gain []float32
}

// Adapter is what a fine-tune changes of a model: of each matrix any number of deltas,
// which are added in order. It is not changed while runs have it.
type Adapter struct {
	Deltas map[*Linear][]LowRank
	// Steer is added to the rows behind each layer, see Exec.Steer; nil for nothing, as
	// is that of a layer.
	Steer [][]float32
}

// adaptedRows are consecutive rows that an adapter is for.
type adaptedRows struct {
	a      *Adapter
	lo, hi int
}

// adaptRows notes which rows of the step have adapters: all of them, or those that
// give an output.
func (e *Exec) adaptRows(s *Step) {
	e.adapted, e.adaptedOut = e.adapted[:0], e.adaptedOut[:0]
	out := 0
	for i := range s.Runs {
		r := &s.Runs[i]
		if r.Adapter != nil {
			e.adapted = appendRows(e.adapted, adaptedRows{r.Adapter, r.row, r.row + r.Rows()})
			e.adaptedOut = appendRows(e.adaptedOut, adaptedRows{r.Adapter, out, out + r.Outputs})
		}
		out += r.Outputs
	}
	e.rows = append(e.rows[:0], e.adapted...)
}

// appendRows adds rows to a list, if there are some: to those before them if they have
// the same adapter, so that its matrices are read once.
func appendRows(all []adaptedRows, r adaptedRows) []adaptedRows {
	if r.lo == r.hi {
		return all
	}
	if n := len(all) - 1; n >= 0 && all[n].a == r.a && all[n].hi == r.lo {
		all[n].hi = r.hi
		return all
	}
	return append(all, r)
}

// KeepOutputs says that from now on rows are those that give an output: count of
// them from row first on.
func (e *Exec) KeepOutputs(first, count int) {
	e.rows = e.rows[:0]
	for _, r := range e.adaptedOut {
		if lo, hi := max(r.lo-first, 0), min(r.hi-first, count); lo < hi {
			e.rows = append(e.rows, adaptedRows{r.a, lo, hi})
		}
	}
}

// lowRankPart is a delta, and the rows and the matrix that it is for.
type lowRankPart struct {
	d      *LowRank
	first  []LowRank // of which there are gains, nil for none and for those that are not first
	l      *Linear
	lo, hi int
	// What Down gives, and Up if there are gains, in their columns of all rows.
	low, out kernel.Acts
}

// lowRankTask multiplies rows with the matrices Down of all deltas of some matrices,
// in a region before that of the matrices themselves, which then raises what came of
// it.
type lowRankTask struct {
	x        *kernel.Acts
	parts    []lowRankPart
	low, out kernel.Acts // [rows][ranks of all deltas], [rows][outputs that have gains]
	shares   pool.Shares
}

// lowRows is how many rows of a part a worker multiplies with Down at a time.
const lowRows = 12

// lower multiplies the rows of x that have adapters with the first matrices of what
// these change of outs. It returns nil if that is nothing.
func (e *Exec) lower(x *kernel.Acts, outs ...Out) *lowRankTask {
	if len(e.rows) == 0 {
		return nil
	}
	t := &e.lowRank
	t.x, t.parts = x, t.parts[:0]
	width, units, gains := 0, 0, 0
	for _, o := range outs {
		more, outputs := 0, 0 // columns of this matrix: adapters are for different rows
		for _, r := range e.rows {
			at := width
			ds := r.a.Deltas[o.L]
			for k := range ds {
				p := lowRankPart{d: &ds[k], l: o.L, lo: r.lo, hi: r.hi, low: kernel.Acts{N: x.N, K: at}, out: kernel.Acts{N: x.N, K: gains}}
				if ds[k].Gain != nil {
					outputs = kernel.Lanes * o.L.W.Groups
				}
				if k == 0 && slices.ContainsFunc(ds, func(d LowRank) bool { return d.Gain != nil }) {
					p.first = ds
				}
				t.parts = append(t.parts, p)
				at += kernel.Lanes * ds[k].Down.Groups
				units += p.units()
			}
			more = max(more, at-width)
		}
		width, gains = width+more, gains+outputs
	}
	if units == 0 {
		return nil
	}
	Rows(&t.low, x.N, width, false)
	Rows(&t.out, x.N, gains, false)
	for i := range t.parts {
		p := &t.parts[i]
		p.low.F32, p.low.LDF, p.low.K = t.low.F32[p.low.K:], t.low.LDF, p.d.Down.Rows
		p.out.F32, p.out.LDF, p.out.K = t.out.F32[p.out.K:], t.out.LDF, p.l.W.Rows
	}
	e.pool.RunShared(t, &t.shares, units, 1)
	return t
}

// units returns how many pieces of rows a part has.
func (p *lowRankPart) units() int { return (p.hi - p.lo + lowRows - 1) / lowRows }

func (t *lowRankTask) Do(worker, _ int) {
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		first := 0
		for i := range t.parts {
			p := &t.parts[i]
			n := p.units()
			for u := max(lo-first, 0); u < min(hi-first, n); u++ {
				t.down(i, p.lo+u*lowRows, min(p.lo+(u+1)*lowRows, p.hi))
			}
			first += n
		}
	}
}

// down multiplies the rows [r0, r1) with the first matrix of a part, and its scale.
// Those of the part after it are likely to be next.
func (t *lowRankTask) down(i, r0, r1 int) {
	p := &t.parts[i]
	next := t.parts[min(i+1, len(t.parts)-1)].d.Down
	p.d.Down.MulThen(next, p.low.F32, p.low.LDF, t.x, r0, r1, 0, p.d.Down.Groups)
	if p.d.Scale == 1 {
		return
	}
	for r := r0; r < r1; r++ {
		kernel.Scale(Row(&p.low, r), p.d.Scale)
	}
}

// raise adds to the groups [g0, g1) of the products of a matrix, without its bias, what
// adapters change of them.
func (t *lowRankTask) raise(o *Out, g0, g1 int) {
	for i := range t.parts {
		p, next := &t.parts[i], &t.parts[min(i+1, len(t.parts)-1)]
		if p.l != o.L {
			continue
		}
		if p.first != nil {
			p.gain(o.Dst, g0, g1)
		}
		if p.d.Gain == nil {
			p.d.Up.MulThen(next.d.Up, o.Dst.F32, o.Dst.LDF, &p.low, p.lo, p.hi, g0, g1)
			continue
		}
		c0, c1 := kernel.Lanes*g0, min(kernel.Lanes*g1, o.L.W.Rows)
		for r := p.lo; r < p.hi; r++ {
			clear(p.out.F32[r*p.out.LDF:][c0 : kernel.Lanes*g1])
		}
		p.d.Up.Mul(p.out.F32, p.out.LDF, &p.low, p.lo, p.hi, g0, g1)
		for r := p.lo; r < p.hi; r++ {
			out := Row(&p.out, r)[c0:c1]
			kernel.Mul(out, p.d.Gain[c0:c1])
			kernel.Add(Row(o.Dst, r)[c0:c1], out)
		}
	}
}

// gain makes of the products of a matrix what the gains of its deltas leave.
func (p *lowRankPart) gain(y *kernel.Acts, g0, g1 int) {
	c0, c1 := kernel.Lanes*g0, min(kernel.Lanes*g1, p.l.W.Rows)
	for r := p.lo; r < p.hi; r++ {
		to := Row(y, r)
		for c := c0; c < c1; c++ {
			more := float32(0)
			for i := range p.first {
				if g := p.first[i].Gain; g != nil {
					more += g[c] - 1
				}
			}
			to[c] += more * to[c]
		}
	}
}

// Steer adds what the adapters of rows have for a layer to the rows x behind it (Turner
// et al. 2023, activation addition, arXiv 2308.10248).
func (e *Exec) Steer(x *kernel.Acts, layer int) {
	for _, a := range e.rows {
		if layer >= len(a.a.Steer) || a.a.Steer[layer] == nil {
			continue
		}
		for r := a.lo; r < min(a.hi, x.N); r++ {
			kernel.Add(Row(x, r), a.a.Steer[layer])
		}
	}
}
