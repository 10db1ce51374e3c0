package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// RowRef says to which sequence a row belongs, and at which position.
type RowRef struct {
	Seq *kvcache.Seq
	Pos int
}

// RopeArgs describes how queries and keys of a layer are prepared and where
// keys and values are stored.
type RopeArgs struct {
	Rows  []RowRef
	Pool  *kvcache.Pool
	Layer int

	Heads, KVHeads, HeadDim int

	QNorm, KNorm *Norm   // applied before rotation; per head or over all heads, by their length
	Clip         float32 // queries, keys and values are limited to ±Clip first; 0 for none

	Style    RopeStyle
	Dim      int       // rotated elements of a head, from the first
	Cos, Sin []float32 // per row Dim/2 values
}

type ropeTask struct {
	q, k, v *kernel.Acts
	a       RopeArgs
}

// RopeStore normalizes and rotates the queries and keys of each row and
// appends its keys and values to the row's sequence.
func (e *Exec) RopeStore(q, k, v *kernel.Acts, a *RopeArgs) {
	e.rope = ropeTask{q, k, v, *a}
	e.run(&e.rope, q.N*(q.K+2*k.K))
}

func (t *ropeTask) Do(worker, workers int) {
	r, hi := pool.Split(len(t.a.Rows), worker, workers)
	for r < hi {
		n := t.tileRows(r, hi)
		for i := range n {
			t.rotate(r + i)
		}
		t.store(r, n)
		r += n
	}
}

// tileRows returns how many rows from r on are stored at once: those of a whole
// tile, or one.
func (t *ropeTask) tileRows(r, hi int) int {
	const n = kvcache.TileTokens
	rows := t.a.Rows
	if rows[r].Pos%n != 0 || hi-r < n {
		return 1
	}
	for i := 1; i < n; i++ {
		if rows[r+i].Seq != rows[r].Seq || rows[r+i].Pos != rows[r].Pos+i {
			return 1
		}
	}
	return n
}

func (t *ropeTask) rotate(r int) {
	a := &t.a
	q, k, v := Row(t.q, r), Row(t.k, r), Row(t.v, r)
	if a.Clip > 0 {
		clip(q, a.Clip)
		clip(k, a.Clip)
		clip(v, a.Clip)
	}
	heads(q, a.QNorm)
	heads(k, a.KNorm)
	if a.Style != RopeNone {
		cos, sin := a.Cos[r*a.Dim/2:][:a.Dim/2], a.Sin[r*a.Dim/2:][:a.Dim/2]
		for _, x := range [2][]float32{q, k} {
			for ; len(x) > 0; x = x[a.HeadDim:] {
				if a.Style == RopeNorm {
					kernel.RopeNorm(x[:a.Dim], cos, sin)
				} else {
					kernel.RopeNeox(x[:a.Dim], cos, sin)
				}
			}
		}
	}
}

// store appends the keys and values of n rows from r on, all in one tile.
func (t *ropeTask) store(r, n int) {
	a, ref := &t.a, &t.a.Rows[r]
	k, v, d := t.k.F32[r*t.k.LDF:], t.v.F32[r*t.v.LDF:], a.HeadDim
	for h := range a.KVHeads {
		kTile, vTile := a.Pool.Tile(a.Layer, h, ref.Seq, ref.Pos/kvcache.TileTokens)
		if n == kvcache.TileTokens {
			kernel.StoreKVTile(kTile, vTile, k[h*d:], t.k.LDF, d, v[h*d:], t.v.LDF, d, a.Pool.DType())
		} else {
			kernel.StoreKV(kTile, vTile, ref.Pos%kvcache.TileTokens, k[h*d:][:d], v[h*d:][:d], a.Pool.DType())
		}
	}
}

// heads normalizes x in pieces as long as the norm's weights, or in its groups.
func heads(x []float32, n *Norm) {
	if n.W == nil {
		return
	}
	if d := n.Group; d > 0 {
		piece := Norm{Kind: n.Kind, Eps: n.Eps}
		for i := 0; i < len(x); i += d {
			piece.W = n.W[i : i+d]
			piece.Apply(x[i:i+d], x[i:i+d])
		}
		return
	}
	for d := len(n.W); len(x) >= d; x = x[d:] {
		n.Apply(x[:d], x[:d])
	}
}

func clip(x []float32, limit float32) {
	for i, v := range x {
		x[i] = max(min(v, limit), -limit)
	}
}

type tableTask struct {
	cos, sin []float32
	rows     []RowRef
	inv      []float32
	scale    float32
}

// RopeTables fills the cosines and sines of the rows' positions, len(inv)
// values per row.
func (e *Exec) RopeTables(cos, sin []float32, rows []RowRef, inv []float32, scale float32) {
	e.table = tableTask{cos, sin, rows, inv, scale}
	e.run(&e.table, 16*len(cos)) // a sine costs many additions
}

func (t *tableTask) Do(worker, workers int) {
	lo, hi := pool.Split(len(t.rows), worker, workers)
	n := len(t.inv)
	for r := lo; r < hi; r++ {
		kernel.RopeTables(t.cos[r*n:][:n], t.sin[r*n:][:n], t.rows[r].Pos, t.inv, t.scale)
	}
}
