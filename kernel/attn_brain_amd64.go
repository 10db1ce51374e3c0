package kernel

import (
	"unsafe"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// Attention over bfloat16 with tile registers: 16 queries times a block of keys
// at once, with float32 sums. Queries and the weights of values are rounded to
// bfloat16, as keys and values are; all numbers of rows go this way, so that a
// result does not depend on them.

// attnBrain is the working memory of one thread.
type attnBrain struct {
	mem     []byte
	q       []byte    // the queries of a group
	weights []byte    // [attnWide][attnBlock]
	zero    []byte    // a tile of values
	edge    [2][]byte // tiles with values that nobody may see
}

// wideTier reports whether tile registers multiply the heads of spec.
func wideTier(spec *AttnSpec) bool {
	return spec.KV == tensor.BF16 && cpu.Current() >= cpu.AMX && spec.HeadDim%32 == 0 && spec.VHeadDim%16 == 0
}

// load makes room for heads of the given sizes and rounds the queries q.
func (b *attnBrain) load(q []float32, spec *AttnSpec) {
	tile := KVTileBytes(spec.VHeadDim, tensor.BF16)
	if need := 2*attnGroup*spec.HeadDim + 2*attnWide*attnBlock + 3*tile + 64; len(b.mem) < need {
		b.mem = make([]byte, need)
	}
	mem := alignBytes(b.mem)
	take := func(n int) []byte {
		part := mem[:n:n]
		mem = mem[n:]
		return part
	}
	b.weights = take(2 * attnWide * attnBlock)
	b.zero, b.edge[0], b.edge[1] = take(tile), take(tile), take(tile)
	b.q = take(2 * attnGroup * spec.HeadDim)
	clear(b.zero)
	roundBrainAMX(&b.q[0], &q[0], len(q))
}

// tileShapes has the shapes of the tile registers for a number of queries.
var tileShapes = func() (all [attnWide + 1][64]byte) {
	for n := range all {
		c := &all[n]
		c[0] = 1 // the palette
		for t := range 8 {
			c[16+2*t], c[48+t] = 64, byte(n)
		}
		c[16+2*5] = 32           // weights
		c[48+6], c[48+7] = 16, 8 // keys, values
	}
	return all
}()

// scores computes the scores of the queries i to i+n-1 with the block at hand.
func (b *attnBrain) scores(g *attnGroupState, i, n int) {
	hd, next := g.call.Spec.HeadDim, uintptr(0)
	if g.ahead {
		next = g.next
	}
	attnScoresAMX(&g.scratch.scores[0], &b.q[2*i*hd], hd, &g.k[0], next, &tileShapes[n][0])
}

// accumulate adds the weighted values of the block at hand.
func (b *attnBrain) accumulate(g *attnGroupState, t attnStates) {
	spec, next := g.call.Spec, uintptr(0)
	switch {
	case g.ahead && g.half != 0:
		next = g.half
	case g.ahead:
		next = g.next + uintptr(attnBlock/TileTokens*spec.KeyTileBytes())
	}
	roundBrainAMX(&b.weights[0], &g.scratch.scores[0], t.n*attnBlock)
	attnValuesAMX(&t.mem[attnHeadFloats], &t.head(0).alpha, 4*t.stride, &b.weights[0], &g.v[0], spec.VHeadDim, t.n, next, &tileShapes[t.n][0])
}

// values replaces what the group does not see of the values of the block that
// starts at key first by zeros: it is multiplied with weights of zero, and may
// be anything.
func (b *attnBrain) values(g *attnGroupState, first int) {
	vd, edges := g.call.Spec.VHeadDim, 0
	for t := range g.v {
		from, to := first+t*TileTokens, first+(t+1)*TileTokens
		switch {
		case to <= g.start || from >= g.end:
			g.v[t] = &b.zero[0]
		case from < g.start || to > g.end:
			tile := b.edge[edges]
			edges++
			copy(tile, unsafe.Slice(g.v[t], len(tile)))
			for slot := range TileTokens {
				if key := from + slot; key >= g.start && key < g.end {
					continue
				}
				row := tile[slot/2*4*vd:][:4*vd]
				for i := slot % 2 * 2; i < len(row); i += 4 {
					row[i], row[i+1] = 0, 0
				}
			}
			g.v[t] = &tile[0]
		}
	}
}
