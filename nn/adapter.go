package nn

import (
	"slices"

	"ridge/internal/pool"
	"ridge/kernel"
)

// LowRank is a low-rank change of a matrix: Scale · Up (Down x) is added to its product
// (Hu et al. 2021, LoRA, arXiv 2106.09685).
type LowRank struct {
	Down, Up *kernel.Packed // [rank][in] and [out][rank], of plain numbers
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

// adapts reports whether some row's adapter changes one of the matrices.
func (e *Exec) adapts(ls ...*Linear) bool {
	for _, r := range e.rows {
		for _, l := range ls {
			if len(r.a.Deltas[l]) > 0 {
				return true
			}
		}
	}
	return false
}

// lowRankPart is a delta and the rows that it is for.
type lowRankPart struct {
	d      *LowRank
	gains  []LowRank // whose gains come first, if there are some
	lo, hi int
}

// lowRankTask adds deltas in two regions: what Down gives, and then what Up gives.
type lowRankTask struct {
	x, y     *kernel.Acts
	dst      *kernel.Acts
	bias     []float32
	scale    float32
	parts    []lowRankPart
	low, out kernel.Acts // [rows][rank], [rows][outputs]
	up       bool
}

// lowRows is how many rows of a part a worker multiplies with Down at a time.
const lowRows = 8

// adapt adds to the rows of dst that have an adapter what it changes of l, times
// scale. x are the rows that l was multiplied with, y what came of it, times scale.
// Other rows are not touched.
func (e *Exec) adapt(x, y, dst *kernel.Acts, l *Linear, scale float32) {
	t := &e.lowRank
	for k, more := 0, len(e.rows) > 0; more; k++ {
		more = false
		t.parts = t.parts[:0]
		rank, rows := 0, 0
		for _, r := range e.rows {
			if ds := r.a.Deltas[l]; k < len(ds) {
				t.parts = append(t.parts, lowRankPart{&ds[k], nil, r.lo, r.hi})
				if k == 0 {
					t.parts[len(t.parts)-1].gains = ds
				}
				rank, rows = max(rank, ds[k].Down.Rows), rows+r.hi-r.lo
				more = more || k+1 < len(ds)
			}
		}
		if rows == 0 {
			continue
		}
		t.x, t.y, t.dst, t.bias, t.scale, t.up = x, y, dst, l.Bias, scale, false
		Rows(&t.low, x.N, rank, false)
		e.run(t, rows*rank*l.W.Cols/kernel.Lanes)
		t.up = true
		Rows(&t.out, x.N, l.W.Rows, false)
		e.run(t, rows*rank*l.W.Rows/kernel.Lanes)
	}
}

func (t *lowRankTask) Do(worker, workers int) {
	if t.up {
		t.add(worker, workers)
		return
	}
	units := 0
	for _, p := range t.parts {
		units += (p.hi - p.lo + lowRows - 1) / lowRows
	}
	lo, hi := pool.Split(units, worker, workers)
	first := 0
	for _, p := range t.parts {
		n := (p.hi - p.lo + lowRows - 1) / lowRows
		for u := max(lo-first, 0); u < min(hi-first, n); u++ {
			r := p.lo + u*lowRows
			p.d.Down.Mul(t.low.F32, t.low.LDF, t.x, r, min(r+lowRows, p.hi), 0, p.d.Down.Groups)
		}
		first += n
	}
}

// add adds the columns of a worker's groups.
func (t *lowRankTask) add(worker, workers int) {
	up := t.parts[0].d.Up
	g0, g1 := pool.Split(up.Groups, worker, workers)
	if g0 == g1 {
		return
	}
	c0, c1 := kernel.Lanes*g0, min(kernel.Lanes*g1, up.Rows)
	for _, p := range t.parts {
		t.gain(&p, c0, c1)
		p.d.Up.Mul(t.out.F32, t.out.LDF, &t.low, p.lo, p.hi, g0, g1)
		for r := p.lo; r < p.hi; r++ {
			if g := p.d.Gain; g != nil {
				kernel.Mul(Row(&t.out, r)[c0:c1], g[c0:c1])
			}
			kernel.AddScaled(Row(t.dst, r)[c0:c1], Row(&t.out, r)[c0:c1], p.d.Scale*t.scale)
		}
	}
}

// gain adds what gains make of the products that there are already, in the columns
// [c0, c1). The bias stays as it is.
func (t *lowRankTask) gain(p *lowRankPart, c0, c1 int) {
	if !slices.ContainsFunc(p.gains, func(d LowRank) bool { return d.Gain != nil }) {
		return
	}
	for r := p.lo; r < p.hi; r++ {
		from, to := Row(t.y, r), Row(t.dst, r)
		for c := c0; c < c1; c++ {
			more := float32(0)
			for i := range p.gains {
				if g := p.gains[i].Gain; g != nil {
					more += g[c] - 1
				}
			}
			v := from[c]
			if t.bias != nil {
				v -= t.scale * t.bias[c]
			}
			to[c] += more * v
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
