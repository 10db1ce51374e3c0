package kernel

import (
	"math"
	"unsafe"

	"ridge/tensor"
)

// AttnScratch is the working memory of one thread; the zero value is ready.
type AttnScratch struct {
	mem         []float32
	q           []float32 // the queries of a group, one after the other
	part, total []float32 // states
	scores      []float32 // [attnTile][attnBlock]
	k, v        []float32 // a block as float32: four tiles of keys, attnBlock padded rows of values
	group       attnGroupState
	hd, vp      int // the sizes of head that mem was made for
}

// reserve makes room for heads of the given sizes.
func (s *AttnScratch) reserve(spec *AttnSpec) {
	hd, stride, vp := spec.HeadDim, attnStride(spec), padded(spec.VHeadDim)
	if s.mem == nil || hd > s.hd || vp > s.vp {
		hd, vp = max(hd, s.hd), max(vp, s.vp)
		st := attnHeadFloats + vp
		s.hd, s.vp = hd, vp
		s.mem = make([]float32, attnGroup*(padded(hd)+2*st)+attnTile*attnBlock+attnBlock*(hd+vp)+6*16)
		hd, vp = spec.HeadDim, padded(spec.VHeadDim)
	}
	mem := s.mem
	take := func(n int) []float32 {
		skip := int(-uintptr(unsafe.Pointer(&mem[0])) % 64 / 4)
		part := mem[skip : skip+n : skip+n]
		mem = mem[skip+n:]
		return part
	}
	s.q = take(attnGroup * hd)
	s.part, s.total = take(attnGroup*stride), take(attnGroup*stride)
	s.scores = take(attnTile * attnBlock)
	s.k, s.v = take(attnBlock*hd), take(attnBlock*vp)
}

// attnGroupState is a group of at most attnGroup queries of a call.
type attnGroupState struct {
	call       *AttnCall
	scratch    *AttnScratch
	q0, n      int // the queries q0 to q0+n-1
	start, end int // the union of their key ranges

	// the block at hand
	first int          // its first key
	k, v  [4]*byte     // its tiles
	kv    tensor.DType // their element type
}

// load copies the queries of the group that starts at q0.
func (s *AttnScratch) load(c *AttnCall, q0 int) *attnGroupState {
	g := &s.group
	*g = attnGroupState{call: c, scratch: s, q0: q0, n: min(attnGroup, c.Rows*c.Heads-q0)}
	g.start, g.end = c.keys(q0, q0+g.n)
	hd := c.Spec.HeadDim
	for i := range g.n {
		r, h := (q0+i)/c.Heads, (q0+i)%c.Heads
		copy(s.q[i*hd:(i+1)*hd], c.Q[r*c.LDQ+h*hd:])
	}
	return g
}

// states views the states of the group in mem.
func (g *attnGroupState) states(mem []float32) attnStates {
	return attnStates{mem: mem, n: g.n, stride: attnStride(g.call.Spec)}
}

// splits returns the range of splits that the group reads.
func (g *attnGroupState) splits() (lo, hi int) {
	if g.start >= g.end {
		return 0, 0
	}
	return g.start / AttnSplit, (g.end-1)/AttnSplit + 1
}

// attend computes one split of the group into st.
func (g *attnGroupState) attend(split int, st attnStates) {
	st.reset()
	for i := range g.n {
		if h := (g.q0 + i) % g.call.Heads; g.call.Slope != nil {
			st.head(i).slope = g.call.Slope[h] * math.Log2E
		}
	}
	lo, hi := max(g.start, split*AttnSplit), min(g.end, (split+1)*AttnSplit)
	for b := lo &^ (attnBlock - 1); b < hi; b += attnBlock {
		g.loadBlock(b)
		for i := 0; i < g.n; {
			n := g.tileSize(g.n - i)
			g.tile(i, n, st)
			i += n
		}
	}
}

// tileSize returns the size of the next tile of n remaining queries: they are
// spread evenly, so that the last tile is not a small one. Results do not
// depend on it.
func (g *attnGroupState) tileSize(n int) int {
	tiles := (n + attnTile - 1) / attnTile
	return (n + tiles - 1) / tiles
}

// tile processes the block at hand for the queries i to i+n-1 of the group.
func (g *attnGroupState) tile(i, n int, st attnStates) {
	s, spec := g.scratch, g.call.Spec
	lo, hi := attnBlock, 0
	for j := i; j < i+n; j++ {
		r := (g.q0 + j) / g.call.Heads
		h := st.head(j)
		end := int(g.call.End[r])
		a, b := max(int(g.call.Start[r])-g.first, 0), min(end-g.first, attnBlock)
		mask := rangeMask(a, b)
		h.mask[0], h.mask[1] = uint32(mask), uint32(mask>>32)
		h.ramp = float32(g.first - (end - 1))
		if mask != 0 {
			lo, hi = min(lo, a), max(hi, b)
		}
	}
	if lo >= hi {
		return // the block is in none of the ranges; states without it are the same
	}
	hd := spec.HeadDim
	g.scores(s.scores, s.q[i*hd:], n, lo/TileTokens, (hi-1)/TileTokens)
	scale := spec.Scale * math.Log2E
	if spec.Softcap > 0 {
		softcap(s.scores[:n*attnBlock], spec.Scale/spec.Softcap, spec.Softcap)
		scale = math.Log2E
	}
	tile := attnStates{mem: st.mem[i*st.stride : (i+n)*st.stride], n: n, stride: st.stride}
	attnSoftmax(tile, s.scores, scale)
	g.accumulate(tile, s.scores, lo, hi)
}

// rangeMask returns the mask with the bits [lo, hi), none if lo >= hi; both are
// from 0 to 64 where they matter.
func rangeMask(lo, hi int) uint64 {
	if lo >= hi {
		return 0
	}
	return ^uint64(0) << lo & (^uint64(0) >> (64 - hi))
}

// loadBlock makes the block that starts at key first the one at hand.
func (g *attnGroupState) loadBlock(first int) {
	s, spec, tiles := g.scratch, g.call.Spec, &g.call.Tiles
	g.first = first
	lo, hi := max(g.start, first)/TileTokens, (min(g.end, first+attnBlock)-1)/TileTokens
	for t := range g.k {
		// A tile that nobody reads is replaced by one that is there; its
		// scores are masked.
		i := min(max(first/TileTokens+t, lo), hi)
		g.k[t], g.v[t] = tiles.key(i), tiles.value(i)
	}
	g.kv = spec.KV
	if g.kv == tensor.F32 && spec.VHeadDim == padded(spec.VHeadDim) {
		return
	}
	g.kv = tensor.F32
	vp := padded(spec.VHeadDim)
	for t := range g.k {
		k := s.k[t*TileTokens*spec.HeadDim : (t+1)*TileTokens*spec.HeadDim]
		attnConvert(k, TileTokens*spec.HeadDim, TileTokens*spec.HeadDim, 1, g.k[t], spec.KV)
		v := s.v[t*TileTokens*vp : (t+1)*TileTokens*vp]
		attnConvert(v, vp, spec.VHeadDim, TileTokens, g.v[t], spec.KV)
		g.k[t], g.v[t] = (*byte)(unsafe.Pointer(&k[0])), (*byte)(unsafe.Pointer(&v[0]))
	}
}

// finish divides by the sums and writes the output of the group. The addition
// of zero makes a negative zero positive: it may come from an underflow and
// must not depend on how many keys with weight zero were added.
func (g *attnGroupState) finish(st attnStates) {
	c := g.call
	vd := c.Spec.VHeadDim
	for i := range g.n {
		r, h := (g.q0+i)/c.Heads, (g.q0+i)%c.Heads
		out, hd := c.Out[r*c.LDO+h*vd:][:vd], st.head(i)
		if hd.sum == 0 {
			clear(out)
			continue
		}
		f := 1 / hd.sum
		if c.Sink != nil {
			sink := c.Sink[h] * math.Log2E
			top := max(sink, hd.max)
			e := exp2(hd.max - top)
			f = e / (hd.sum*e + exp2(sink-top))
		}
		copy(out, st.acc(i))
		Scale(out, f)
		for j := range out {
			out[j] += 0
		}
	}
}
