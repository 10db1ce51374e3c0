package kernel

import (
	"math"
	"math/bits"
	"unsafe"
)

// AttnScratch is the working memory of one thread; the zero value is ready.
type AttnScratch struct {
	mem         []float32
	q           []float32      // the queries of a group, one after the other
	part, total []float32      // states
	scores      []float32      // [attnWide][attnBlock]
	brain       attnBrain      // for bfloat16 and tile registers
	k, v        []float32      // a block as float32: four tiles of keys, attnBlock padded rows of values
	start, end  [attnGroup]int // the key ranges of the queries
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
		s.mem = make([]float32, attnGroup*(padded(hd)+2*st)+attnWide*attnBlock+attnBlock*(hd+vp)+6*16)
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
	s.scores = take(attnWide * attnBlock)
	s.k, s.v = take(attnBlock*hd), take(attnBlock*vp)
}

// attnGroupState is a group of at most attnGroup queries of a call.
type attnGroupState struct {
	call       *AttnCall
	scratch    *AttnScratch
	kernels    *attnKernels // nil for the definitions in plain Go
	q0, n      int          // the queries q0 to q0+n-1
	start, end int          // the union of their key ranges

	// the block at hand
	first  int      // its first key
	k, v   [4]*byte // its tiles' keys and values
	kt, vt tileElem // their elements there
	ks, vs [4]*byte // the tokens' scales, for elemI8 tiles
	next   uintptr  // memory to prefetch: the first tile of the next block
	half   uintptr  // and its third, where the weighted values are added, if it is elsewhere
	ahead  bool     // whether to
	far    [4]*byte // the tiles of a block behind the next
	many   bool     // enough queries share the block for float32 copies to pay
	wide   bool     // tile registers multiply bfloat16
}

// load copies the queries of the group that starts at q0.
func (s *AttnScratch) load(c *AttnCall, q0 int) *attnGroupState {
	g := &s.group
	*g = attnGroupState{call: c, scratch: s, q0: q0, kernels: attnTier(), wide: wideTier(c.Spec)}
	most := attnGroup
	if g.wide {
		most = attnWideGroup
	}
	g.n = min(most, c.Rows*c.Heads-q0)
	g.start, g.end = c.keys(q0, q0+g.n)
	hd := c.Spec.HeadDim
	r, h := q0/c.Heads, q0%c.Heads
	for i := range g.n {
		copy(s.q[i*hd:(i+1)*hd], c.Q[r*c.LDQ+h*hd:])
		s.start[i], s.end[i] = int(c.Start[r]), int(c.End[r])
		if h++; h == c.Heads {
			r, h = r+1, 0
		}
	}
	if g.wide {
		s.brain.load(s.q[:g.n*hd], c.Spec)
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
	if slope := g.call.Slope; slope != nil {
		for i := range g.n {
			st.head(i).slope = slope[(g.q0+i)%g.call.Heads] * math.Log2E
		}
	}
	lo, hi := max(g.start, split*AttnSplit), min(g.end, (split+1)*AttnSplit)
	for b := lo &^ (attnBlock - 1); b < hi; b += attnBlock {
		g.loadBlock(b)
		for i := 0; i < g.n; {
			n := tileSize(g.n-i, attnTile)
			if g.wide {
				n = tileSize(g.n-i, attnWide)
			}
			g.tile(i, n, st)
			i += n
			g.ahead = false // the next block has been fetched
		}
	}
}

const (
	// busyQueries is how many queries make a tile take longer to compute with
	// than to read.
	busyQueries = 4
	// touchBlocks is how far behind the block at hand tiles are touched.
	touchBlocks = 3
)

// tileSize returns the size of the next tile of n remaining queries, at most
// most: they are spread evenly, so that the last tile is not a small one.
// Results do not depend on it.
func tileSize(n, most int) int {
	tiles := (n + most - 1) / most
	return (n + tiles - 1) / tiles
}

// tile processes the block at hand for the queries i to i+n-1 of the group.
func (g *attnGroupState) tile(i, n int, st attnStates) {
	s, spec := g.scratch, g.call.Spec
	lo, hi := attnBlock, 0
	for j := i; j < i+n; j++ {
		h := st.head(j)
		a, b := max(s.start[j]-g.first, 0), min(s.end[j]-g.first, attnBlock)
		h.ramp = float32(g.first - (s.end[j] - 1))
		mask := uint64(0)
		if a < b {
			mask = ^uint64(0) << a & (^uint64(0) >> (attnBlock - b))
		}
		if mask != 0 {
			lo, hi = min(lo, bits.TrailingZeros64(mask)), max(hi, bits.Len64(mask))
		}
		h.mask[0], h.mask[1] = uint32(mask), uint32(mask>>32)
	}
	if lo >= hi {
		return // the block is in none of the ranges; states without it are the same
	}
	t := attnStates{mem: st.mem[i*st.stride : (i+n)*st.stride], n: n, stride: st.stride}
	t0, t1 := lo/TileTokens, (hi-1)/TileTokens
	if g.wide {
		s.brain.scores(g, i, n)
	} else {
		g.scores(s.q[i*spec.HeadDim:], n, t0, t1)
	}
	g.scale(&g.ks, n, t0, t1)
	scale := spec.Scale * math.Log2E
	if spec.Softcap > 0 {
		softcap(s.scores[:n*attnBlock], spec.Scale/spec.Softcap, spec.Softcap)
		scale = math.Log2E
	}
	k := g.kernels
	if g.call.Slope != nil {
		if k == nil {
			alibiGeneric(t, s.scores, scale)
		} else {
			k.alibi(&t.mem[0], 4*t.stride, &s.scores[0], n, scale)
		}
		scale = 1
	}
	if b := g.call.Bias; b != nil {
		for j := range n {
			query := g.q0 + i + j
			row := s.scores[j*attnBlock:][:attnBlock]
			Scale(row, scale)
			at := b.Zero + g.first - (b.First + query/g.call.Heads)
			Add(row, b.Table[query%g.call.Heads*b.Stride+at:][:attnBlock])
		}
		scale = 1
	}
	if k == nil {
		softmaxGeneric(t, s.scores, scale)
		g.scale(&g.vs, n, t0, t1)
		accumulateGeneric(t, s.scores, &g.v, lo, hi)
		return
	}
	k.softmax(&t.mem[0], 4*t.stride, &s.scores[0], n, scale)
	g.scale(&g.vs, n, t0, t1)
	if g.wide {
		s.brain.accumulate(g, t)
		return
	}
	g.accumulate(t, lo, hi)
}

// scale multiplies the scores or weights of n queries for the tiles lo to hi
// with the tokens' scales.
func (g *attnGroupState) scale(scales *[4]*byte, n, lo, hi int) {
	s := g.scratch.scores[lo*TileTokens:]
	switch {
	case scales[0] == nil:
	case g.kernels == nil:
		scaleTilesGeneric(s, n, scales[lo:hi+1])
	default:
		g.kernels.scale(&s[0], n, &scales[lo], hi+1-lo)
	}
}

// loadBlock makes the block that starts at key first the one at hand.
func (g *attnGroupState) loadBlock(first int) {
	spec, tiles := g.call.Spec, &g.call.Tiles
	elem := kvElem(spec.KV)
	g.first, g.kt, g.vt = first, elem, elem
	lo, hi := max(g.start, first)/TileTokens, (min(g.end, first+attnBlock)-1)/TileTokens
	for t := range g.k {
		// A tile that nobody reads is replaced by one that is there; its
		// scores are masked.
		i := min(max(first/TileTokens+t, lo), hi)
		if g.k[t] = tiles.key(i); !spec.ValuesInKeys {
			g.v[t] = tiles.value(i)
		}
	}
	g.next, g.ahead = address(g.k[0]), false
	if elem == elemI8 {
		g.ks, g.vs = g.k, g.v
		if spec.ValuesInKeys {
			g.vs = g.k
		}
		for t := range g.k {
			g.k[t] = (*byte)(unsafe.Add(unsafe.Pointer(g.k[t]), kvScales))
			if !spec.ValuesInKeys {
				g.v[t] = (*byte)(unsafe.Add(unsafe.Pointer(g.v[t]), kvScales))
			}
		}
	}
	if g.wide {
		if spec.ValuesInKeys {
			g.turnPairs()
		}
		g.scratch.brain.values(g, first)
		g.many = g.n > attnWide
		g.fetch(first / TileTokens)
		return
	}
	g.many = g.kernels == nil || g.n > 2*attnTile || elem == elemBF16 || spec.ValuesInKeys
	if g.many && elem != elemF32 {
		g.convertKeys()
	}
	if spec.ValuesInKeys {
		g.turnKeys()
	} else if vd := spec.VHeadDim; g.many && elem != elemF32 || vd != padded(vd) {
		g.convertValues()
	}
	g.fetch(first / TileTokens)
}

// fetch has the kernels of the block that starts at the given tile fetch the
// next one.
func (g *attnGroupState) fetch(tile int) {
	const blockTiles = attnBlock / TileTokens
	spec, tiles := g.call.Spec, &g.call.Tiles
	after := tile + blockTiles
	if g.half = 0; g.many || after*TileTokens >= g.end {
		return
	}
	if n := min(blockTiles, (g.end-1)/TileTokens+1-(tile+touchBlocks*blockTiles)); n > 0 && g.kernels.touch != nil {
		for t := range n {
			g.far[t] = tiles.key(tile + touchBlocks*blockTiles + t)
		}
		g.kernels.touch(&g.far[0], n)
	}
	switch {
	case tiles.PerPage%blockTiles == 0:
		// The tiles of a block are next to each other.
		g.next, g.ahead = address(tiles.key(after)), true
	case tiles.PerPage%2 == 0 && spec.KeyTileBytes() == spec.ValueTileBytes():
		// They come in pairs: one is fetched with the scores, one with the values.
		g.next, g.ahead = address(tiles.key(after)), true
		g.half = g.next
		if (after+2)*TileTokens < g.end {
			g.half = address(tiles.key(after + 2))
		}
	}
}

// convertKeys replaces the keys of the block at hand by float32 copies, not yet
// times their scales.
func (g *attnGroupState) convertKeys() {
	n := TileTokens * g.call.Spec.HeadDim
	for t := range g.k {
		to := g.scratch.k[t*n : (t+1)*n]
		if g.kt == elemBF16 {
			decodeKeyPairs(to, g.k[t], g.call.Spec.HeadDim)
		} else {
			g.kt.decode(to, g.k[t])
		}
		g.k[t] = (*byte)(unsafe.Pointer(&to[0]))
	}
	g.kt = elemF32
}

// convertValues replaces the values of the block at hand by float32 copies with
// padded rows, not yet times their scales.
func (g *attnGroupState) convertValues() {
	vd := g.call.Spec.VHeadDim
	vp := padded(vd)
	for t := range g.v {
		to := g.scratch.v[t*TileTokens*vp : (t+1)*TileTokens*vp]
		from := g.v[t]
		g.v[t] = (*byte)(unsafe.Pointer(&to[0]))
		switch {
		case g.vt == elemBF16:
			decodeValuePairs(to, from, vd, vp)
			continue
		case vp == vd:
			g.vt.decode(to, from)
			continue
		}
		for r := range TileTokens {
			g.vt.decode(to[r*vp:][:vd], (*byte)(unsafe.Add(unsafe.Pointer(from), r*vd*g.vt.bytes())))
			clear(to[r*vp+vd : (r+1)*vp])
		}
	}
	g.vt = elemF32
}

// scores computes the scores of n queries at q with the tiles lo to hi.
func (g *attnGroupState) scores(q []float32, n, lo, hi int) {
	hd, s := g.call.Spec.HeadDim, g.scratch.scores
	if g.kernels == nil {
		scoresGeneric(s, q, n, hd, &g.k, lo, hi)
		return
	}
	kernels := &g.kernels.scores[g.kt][n]
	for t := lo; t <= hi; {
		// Several tiles at once are faster where arithmetic bounds; where
		// memory does, tiles are read strictly forward, one by one.
		size, step := 0, 0
		for (g.many || n >= busyQueries) && size < 2 && kernels[size+1] != nil && 2<<size <= attnBlock/TileTokens-t && size+2 <= hi-t+1 {
			size++
		}
		if g.ahead {
			step = 2 * TileTokens * g.kt.bytes() << size
		}
		kernels[size](&s[t*TileTokens], &q[0], hd, &g.k[t], g.next, step)
		g.next += uintptr(hd / 2 * step)
		t += 1 << size
	}
}

// accumulate adds the weighted values of the keys lo to hi-1.
func (g *attnGroupState) accumulate(t attnStates, lo, hi int) {
	kernels := &g.kernels.values[g.vt][t.n]
	width, size := t.stride-attnHeadFloats, g.vt.bytes()
	if g.half != 0 {
		g.next = g.half
	}
	for c := 0; c < width; {
		wide := 0
		for wide < 3 && kernels[wide+1] != nil && 32<<wide <= width-c {
			wide++
		}
		step := 0
		if g.ahead {
			step = 16 << wide * size
		}
		kernels[wide](&t.mem[attnHeadFloats+c], &t.head(0).alpha, 4*t.stride, &g.scratch.scores[0], &g.v[0], c*size, width*size, lo, hi, g.next, step)
		g.next += uintptr((hi - lo) * step)
		c += 16 << wide
	}
}

// finish divides by the sums and writes the output of the group. The result is
// added to zero, which makes a negative zero positive: it may come from an
// underflow and must not depend on how many keys with weight zero were added.
func (g *attnGroupState) finish(st attnStates) {
	c := g.call
	vd := c.Spec.VHeadDim
	for i := range g.n {
		r, h := (g.q0+i)/c.Heads, (g.q0+i)%c.Heads
		out, hd := c.Out[r*c.LDO+h*vd:][:vd], st.head(i)
		clear(out)
		if hd.sum == 0 {
			continue
		}
		f := 1 / hd.sum
		if c.Sink != nil {
			sink := c.Sink[h] * math.Log2E
			top := max(sink, hd.max)
			e := exp2(hd.max - top)
			f = e / (float32(hd.sum*e) + exp2(sink-top)) // not fused, on any architecture
		}
		AddScaled(out, st.acc(i), f)
	}
}

// The kernels of a tier; see the documentation of the generated functions.
type (
	scoresFunc  func(s, q *float32, hd int, k **byte, next uintptr, step int)
	valuesFunc  func(acc, alpha *float32, stride int, p *float32, v **byte, offset, row, lo, hi int, next uintptr, step int)
	softmaxFunc func(state *float32, stride int, s *float32, n int, scale float32)
	scaleFunc   func(s *float32, n int, tile **byte, tiles int)
	touchFunc   func(tile **byte, tiles int)

	attnKernels struct {
		scores  [3][attnTile + 1][3]scoresFunc
		values  [3][attnTile + 1][4]valuesFunc
		softmax softmaxFunc
		alibi   softmaxFunc
		scale   scaleFunc
		touch   touchFunc // nil for none
	}
)

// address returns p as a number, for prefetching, which never faults.
func address(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }
