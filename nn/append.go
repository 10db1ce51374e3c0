package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

type appendTask struct {
	a       *Attention
	rows    []rowRef
	layer   int
	kv      *kvcache.Pool
	table   *ropeTable // nil for no rotation
	q, k, v *kernel.Acts
}

// appendKV normalizes and rotates the queries and keys of each row and appends
// its keys and values, if there are any, to the row's sequence.
func (e *Exec) appendKV(a *Attention, s *Step, layer int, q, k, v *kernel.Acts) {
	var table *ropeTable
	if a.Rope != nil {
		table = e.ropeTable(a.Rope, s)
	}
	e.append = appendTask{a, s.rows, layer, e.KV, table, q, k, v}
	e.run(&e.append, q.N*(q.K+2*k.K))
}

func (t *appendTask) Do(worker, workers int) {
	r, hi := pool.Split(len(t.rows), worker, workers)
	for r < hi {
		n := tileRows(t.rows, r, hi)
		for i := range n {
			t.rotate(r + i)
		}
		t.store(r, n)
		r += n
	}
}

// tileRows returns how many rows from r on are stored at once: those of a whole
// tile, or one.
func tileRows(rows []rowRef, r, hi int) int {
	const n = kvcache.TileTokens
	if rows[r].slot%n != 0 || hi-r < n {
		return 1
	}
	for i := 1; i < n; i++ {
		if rows[r+i].seq != rows[r].seq || rows[r+i].slot != rows[r].slot+i {
			return 1
		}
	}
	return n
}

// rotate limits, normalizes, balances and rotates the queries and keys of row r.
func (t *appendTask) rotate(r int) {
	a := t.a
	q, k, v := Row(t.q, r), Row(t.k, r), Row(t.v, r)
	if a.Clip > 0 {
		clip(q, a.Clip)
		clip(k, a.Clip)
		clip(v, a.Clip)
	}
	if a.NormRotated {
		t.turn(r, q, k)
	}
	heads(q, &a.QNorm)
	heads(k, &a.KNorm)
	heads(v, &a.VNorm)
	if b := a.balanced(); b.k != nil && t.kv.DType() == tensor.Q8_0 {
		kernel.Mul(q, b.q)
		kernel.Mul(k, b.k[:len(k)])
	}
	if !a.NormRotated {
		t.turn(r, q, k)
	}
	if f := a.Temper.scale(t.rows[r].pos); f != 1 {
		kernel.Scale(q, f)
	}
}

// turn rotates the heads of a row's queries and keys.
func (t *appendTask) turn(r int, q, k []float32) {
	if t.table == nil {
		return
	}
	a := t.a
	half := len(a.Rope.Inv)
	cos, sin := t.table.cos[r*half:][:half], t.table.sin[r*half:][:half]
	for _, x := range [2][]float32{q, k} {
		for ; len(x) > 0; x = x[a.HeadDim:] {
			a.Rope.rotate(x, cos, sin)
		}
	}
}

// store appends the keys and values of n rows from r on, all in one tile.
func (t *appendTask) store(r, n int) {
	a, ref := t.a, &t.rows[r]
	if a.KeysOf != nil {
		return
	}
	k, v, d := t.k.F32[r*t.k.LDF:], t.v.F32[r*t.v.LDF:], a.HeadDim
	for h := range a.KVHeads {
		kTile, vTile := t.kv.Tile(t.layer, h, ref.seq, ref.slot/kvcache.TileTokens)
		if n == kvcache.TileTokens {
			kernel.StoreKVTile(kTile, vTile, k[h*d:], t.k.LDF, d, v[h*d:], t.v.LDF, d, t.kv.DType())
		} else {
			kernel.StoreKV(kTile, vTile, ref.slot%kvcache.TileTokens, k[h*d:][:d], v[h*d:][:d], t.kv.DType())
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
