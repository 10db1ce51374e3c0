package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// Latent is multi-head latent attention (DeepSeek-V2, 2024, arXiv 2405.04434,
// section 2.1). Keys and values of all heads are products with one vector of a
// token, the latent; the cache has that and a rotated key which the heads share.
//
// All rows are computed in the absorbed form: a head's query is multiplied with
// the matrix that would make keys of latents, so that latents are its keys, and
// what it reads of them with the matrix that makes values. The products with
// matrices are rounded in another order than in the form that makes keys and
// values first, so a row would tell in which form it was computed: one form for
// prompts and another for single tokens would break with the rule that a result
// does not depend on how rows are cut into steps.
type Latent struct {
	QDown  Linear // [query rank][hidden]; without weights Q reads x itself
	QNorm  Norm   // of its rows
	Q      Linear // [heads·(plain+rope)][query rank or hidden]: of each head, what is not rotated first
	KVDown Linear // [rank+rope][hidden]: the latent, and the shared key
	KVNorm Norm   // of latents

	KeyUp   []Linear // per head, [rank][plain]: it takes a query to latents
	ValueUp []Linear // per head, [value dim][rank]
	Out     Linear   // [hidden][heads·value dim]

	Heads, Rank, PlainDim, RopeDim, ValueDim int // Rank is a multiple of 64, ValueDim of 16

	Rope  *Rope
	Scale float32 // of query·key

	core Attention // over latents: all heads share a key, which has the value in it
}

// Ready prepares what follows from the fields. It is called once they are set.
func (a *Latent) Ready() {
	a.core = Attention{Heads: a.Heads, KVHeads: 1, HeadDim: a.keyDim(), Scale: a.Scale, valuesInKeys: a.Rank}
}

// keyDim returns the elements of a token in the cache.
func (a *Latent) keyDim() int { return a.Rank + a.RopeDim }

// plainWidth is the distance of heads in the rows that KeyUp reads: quantized
// rows are cut at multiples of 64 columns.
func (a *Latent) plainWidth() int { return (a.PlainDim + 63) &^ 63 }

// Form returns the form of the rows that queries and latents are computed from.
func (a *Latent) Form() Form { return FormOf(a.first(), &a.KVDown) }

// first returns the matrix that queries begin with.
func (a *Latent) first() *Linear {
	if a.QDown.W != nil {
		return &a.QDown
	}
	return &a.Q
}

// Inputs returns the matrices that read the layer's input.
func (a *Latent) Inputs() []*Linear { return []*Linear{a.first(), &a.KVDown} }

// Keeps returns the shape of a latent and its rotated key.
func (a *Latent) Keeps() kvcache.LayerShape {
	return kvcache.LayerShape{Heads: 1, KDim: a.keyDim()}
}

// Reads returns the regions of the matrices.
func (a *Latent) Reads() Reads {
	r := Reads{Regions: []Region{reads(1, a.Inputs()...)}, Queries: a.Heads, ValueDim: a.Rank}
	if a.QDown.W != nil {
		r.Regions = append(r.Regions, reads(1, &a.Q))
	}
	for _, ups := range [2][]Linear{a.KeyUp, a.ValueUp} {
		up := Region{Unit: 1, Active: 1}
		for h := range ups {
			up.Mats = append(up.Mats, &ups[h])
		}
		r.Regions = append(r.Regions, up)
	}
	r.Regions = append(r.Regions, reads(1, &a.Out))
	return r
}

// latentRows is what latent attention computes on the way.
type latentRows struct {
	low, normed kernel.Acts // [rows][query rank]
	q           kernel.Acts // [rows][heads·(plain+rope)]
	kv          kernel.Acts // [rows][rank+rope]
	plain       kernel.Acts // [rows][heads·plain width]: the part of q that is not rotated
	absorbed    kernel.Acts // [rows][heads·(rank+rope)]
	read        kernel.Acts // [rows][heads·rank]: of latents
	out         kernel.Acts // [rows][heads·value dim]

	prepare latentTask
	up      headsTask
}

// Mix appends the rows' latents and shared keys to their sequences, and computes
// what the rows' queries see of them.
func (a *Latent) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[latentRows](e)
	if a.QDown.W != nil {
		e.Linear(x, Out{&a.QDown, &r.low}, Out{&a.KVDown, &r.kv})
		e.Norm(&r.normed, &r.low, &a.QNorm, FormOf(&a.Q))
		e.Linear(&r.normed, Out{&a.Q, &r.q})
	} else {
		e.Linear(x, Out{&a.Q, &r.q}, Out{&a.KVDown, &r.kv})
	}
	form := FormOf(&a.KeyUp[0])
	formRows(&r.plain, x.N, a.Heads*a.plainWidth(), form)
	formRows(&r.absorbed, x.N, a.Heads*a.keyDim(), Form{})
	r.prepare = latentTask{a, r, s.rows, layer, e.KV, e.ropeTable(a.Rope, s), form.Quant()}
	e.run(&r.prepare, 2*r.q.N*r.q.K)
	e.heads(&r.up, a.KeyUp, &r.absorbed, a.keyDim(), &r.plain, a.plainWidth())
	e.attend(&a.core, s, layer, &r.read, &r.absorbed, FormOf(&a.ValueUp[0]))
	f := FormOf(&a.Out)
	formRows(&r.out, x.N, a.Heads*a.ValueDim, f)
	e.heads(&r.up, a.ValueUp, &r.out, a.ValueDim, &r.read, a.Rank)
	if f.Quant() {
		e.Quantize(&r.out)
	}
	return &r.out, &a.Out
}

// latentTask normalizes latents, rotates keys and queries, appends the keys, and
// lays the parts of queries where they are read.
type latentTask struct {
	a     *Latent
	r     *latentRows
	rows  []rowRef
	layer int
	kv    *kvcache.Pool
	table *ropeTable
	quant bool
}

func (t *latentTask) Do(worker, workers int) {
	r, hi := pool.Split(len(t.rows), worker, workers)
	for r < hi {
		n := tileRows(t.rows, r, hi)
		for i := range n {
			t.row(r + i)
		}
		t.store(r, n)
		r += n
	}
}

// row prepares row r.
func (t *latentTask) row(r int) {
	a, half := t.a, len(t.a.Rope.Inv)
	cos, sin := t.table.cos[r*half:][:half], t.table.sin[r*half:][:half]
	key, q := Row(&t.r.kv, r), Row(&t.r.q, r)
	a.KVNorm.Apply(key[:a.Rank], key[:a.Rank])
	a.Rope.rotate(key[a.Rank:], cos, sin)
	plain, absorbed := Row(&t.r.plain, r), Row(&t.r.absorbed, r)
	for h := range a.Heads {
		q := q[h*(a.PlainDim+a.RopeDim):]
		width := a.plainWidth()
		to := plain[h*width:][:width]
		clear(to[copy(to, q[:a.PlainDim]):])
		turned := absorbed[h*a.keyDim()+a.Rank:][:a.RopeDim]
		copy(turned, q[a.PlainDim:])
		a.Rope.rotate(turned, cos, sin)
	}
	if t.quant {
		t.r.plain.Quantize(r, 0, t.r.plain.K)
	}
}

// store appends the keys of n rows from r on, all in one tile.
func (t *latentTask) store(r, n int) {
	ref, kv, d := &t.rows[r], &t.r.kv, t.a.keyDim()
	tile, _ := t.kv.Tile(t.layer, 0, ref.seq, ref.slot/kvcache.TileTokens)
	if n == kvcache.TileTokens {
		kernel.StoreKVTile(tile, nil, kv.F32[r*kv.LDF:], kv.LDF, d, nil, 0, 0, t.kv.DType())
	} else {
		kernel.StoreKV(tile, nil, ref.slot%kvcache.TileTokens, Row(kv, r), nil, t.kv.DType())
	}
}

// headsTask multiplies the columns of each head with a matrix of its own.
type headsTask struct {
	mats             []Linear
	dst, x           *kernel.Acts
	dstWidth, xWidth int // distances of heads
	shares           pool.Shares
}

// heads writes the products of each head's columns of x with its matrix, all of
// one shape, to the head's columns of dst, which has room for them.
func (e *Exec) heads(t *headsTask, mats []Linear, dst *kernel.Acts, dstWidth int, x *kernel.Acts, xWidth int) {
	t.mats, t.dst, t.x, t.dstWidth, t.xWidth = mats, dst, x, dstWidth, xWidth
	w := mats[0].W
	e.pool.RunShared(t, &t.shares, len(mats)*w.Groups, pieceGroups(x.N, w.GroupBytes))
}

func (t *headsTask) Do(worker, _ int) {
	groups := t.mats[0].W.Groups
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		for lo < hi {
			h, g0 := lo/groups, lo%groups
			g1 := min(g0+hi-lo, groups)
			t.part(h, g0, g1)
			lo += g1 - g0
		}
	}
}

// part computes the groups [g0, g1) of head h.
func (t *headsTask) part(h, g0, g1 int) {
	w, x := t.mats[h].W, *t.x
	x.K = w.Cols
	if w.UsesQuant() {
		x.Q = x.Q[kernel.ActRowBytes(h*t.xWidth):]
	} else {
		x.F32 = x.F32[h*t.xWidth:]
	}
	w.Mul(t.dst.F32[h*t.dstWidth:], t.dst.LDF, &x, 0, x.N, g0, g1)
}
