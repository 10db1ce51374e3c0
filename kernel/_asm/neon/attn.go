package main

import (
	"fmt"
	"strings"

	"ridge/kernel/internal/layout"
)

// Attention: the scores of a block of keys, their softmax, and the weighted sum
// of values, for one to six queries at once, in the order of operations of
// kernel/_asm/attn. kernel/attn_generic.go defines what they compute.

const rowBytes = 4 * layout.AttnBlock // a row of scores

type elem struct {
	name  string
	bytes int
}

var elems = []elem{{"F32", 4}, {"F16", 2}, {"I8", 1}}

// scoreTiles returns the numbers of tiles that n queries are multiplied with
// at once, valueChunks the widths, in units of 16 values, of the part of the
// accumulators of n queries that is kept in registers.
func scoreTiles(n int) []int {
	switch {
	case n == 1:
		return []int{1, 2, 4}
	case n <= 3:
		return []int{1, 2}
	}
	return []int{1}
}

func valueChunks(n int) []int { return scoreTiles(n) }

func scoresName(e elem, n, tiles int) string { return fmt.Sprintf("scores%sx%dt%d", e.name, n, tiles) }
func valuesName(e elem, n, chunks int) string {
	return fmt.Sprintf("values%sx%dc%d", e.name, n, chunks)
}

func attention() {
	for _, e := range elems {
		out.begin("attn_" + strings.ToLower(e.name))
		for n := 1; n <= layout.AttnTile; n++ {
			for _, t := range scoreTiles(n) {
				scores(e, n, t)
			}
			for _, c := range valueChunks(n) {
				values(e, n, c)
			}
		}
	}
	out.begin("attn_softmax")
	softmax()
	alibi()
	scaleTiles()
}

// sixteen loads 16 elements at off as float32.
func (k *kernel) sixteen(e elem, d []reg, base gp, off int) {
	switch e.bytes {
	case 1:
		k.loadQ(d[0], base, off)
		k.widenI8(d)
		for _, v := range d {
			k.scvtf(v, v)
		}
	case 2:
		for i := 0; i < 4; i += 2 {
			k.loadQ(d[i], base, off+8*i)
			k.fcvtl2(d[i+1], d[i])
			k.fcvtl(d[i], d[i])
		}
	default:
		for i, v := range d {
			k.loadQ(v, base, off+16*i)
		}
	}
}

// widenI8 lengthens the 16 signed bytes in d[0] to the 32-bit lanes of d.
func (k *kernel) widenI8(d []reg) {
	k.sxtl8h(d[3], d[0])
	k.sxtl8(d[0], d[0])
	k.sxtl4(d[2], d[3])
	k.sxtl4h(d[3], d[3])
	k.sxtl4h(d[1], d[0])
	k.sxtl4(d[0], d[0])
}

// prefetch reads ahead at the pointer next, in the shadow of the arithmetic.
func (k *kernel) prefetch(next, step gp, lines int) {
	for i := range max(1, lines) {
		k.g("PRFM %d(%s), PLDL2KEEP", 64*i, next)
	}
	k.g("ADD %s, %s", step, next)
}

// scores generates the dot products of n queries with the keys of some tiles.
// Every product is one chain of multiply-adds in the order of the dimensions.
func scores(e elem, n, tiles int) {
	k := begin(scoresName(e, n, tiles),
		fmt.Sprintf("sets rows of s to the dot products of %d queries at q, hd values each, with the keys of %d tiles. For every two values it prefetches %d cache lines at next, which it moves by step.", n, tiles, max(1, tiles*e.bytes/2)),
		"s, q *float32, hd int, k **byte, next uintptr, step int", "", 0)
	q, hd, list := k.arg("q"), k.arg("hd"), k.arg("k")
	next, step := k.arg("next"), k.arg("step")
	stride := k.gp()
	k.g("LSL $2, %s, %s", hd, stride)
	query := k.rowsOf(q, stride, n)
	var moved []pointer
	for t := range tiles {
		p := k.gp()
		k.g("MOVD %d(%s), %s", 8*t, list, p)
		moved = append(moved, pointer{p, layout.TileTokens * e.bytes})
	}
	acc := make([][]reg, n)
	for i := range acc {
		acc[i] = k.vecN(4 * tiles)
		for _, v := range acc[i] {
			k.zero(v)
		}
	}
	dimension := func(u int) {
		k.scoped(func() {
			keys, x := k.vecN(4), k.vecN(min(n, tiles*n-n+1)) // one query, or all of them for several tiles
			for t := range tiles {
				k.sixteen(e, keys, moved[t].r, u*layout.TileTokens*e.bytes)
				for i := range n {
					v := x[i%len(x)]
					if t == 0 {
						k.loadNext(v, query[i])
					}
					for j, key := range keys {
						k.fmla(acc[i][4*t+j], key, v)
					}
				}
			}
		})
	}
	k.loop(hd, moved, []int{2, 1}, func(count int) {
		if count > 1 {
			k.prefetch(next, step, tiles*e.bytes/2)
		}
		for u := range count {
			dimension(u)
		}
	})
	s := list
	k.g("MOVD %s, %s", k.params["s"], s)
	for i := range acc {
		for j, v := range acc[i] {
			k.storeQ(v, s, rowBytes*i+16*j)
		}
	}
	k.end()
}

// values generates the weighted sum of values: a part of the accumulators of n
// queries, scaled by alpha first, gets one multiply-add for each key, in order.
func values(e elem, n, chunks int) {
	k := begin(valuesName(e, n, chunks),
		fmt.Sprintf("adds to %d values of the accumulators of %d queries, stride bytes apart, after scaling them by their alpha, the values at offset in the rows of v times the weights p, for the keys lo to hi-1. For every key it prefetches %d cache lines at next, which it moves by step.", 16*chunks, n, max(1, chunks*e.bytes/4)),
		"acc, alpha *float32, stride int, p *float32, v **byte, offset, row, lo, hi int, next uintptr, step int", "", 0)
	to, alpha, stride := k.arg("acc"), k.arg("alpha"), k.arg("stride")
	at := k.gp()
	k.g("MOVD %s, %s", to, at)
	acc, x := make([][]reg, n), k.vec()
	for i := range acc {
		acc[i] = k.vecN(4 * chunks)
		k.load(4, x, alpha, 0)
		for j, v := range acc[i] {
			k.loadQ(v, at, 16*j)
			k.fmulLane(v, v, x, 0)
		}
		if i < n-1 {
			k.g("ADD %s, %s", stride, alpha)
			k.g("ADD %s, %s", stride, at)
		}
	}
	k.keys(e, acc, x, at)
	for i := range acc {
		for j, v := range acc[i] {
			k.storeQ(v, to, 16*j)
		}
		if i < n-1 {
			k.g("ADD %s, %s", stride, to)
		}
	}
	k.end()
}

// keys emits the loop over the keys, tile by tile; it uses the registers x and
// at.
func (k *kernel) keys(e elem, acc [][]reg, x reg, at gp) {
	p, v, offset, row := k.arg("p"), k.arg("v"), k.arg("offset"), k.arg("row")
	lo, hi, next, step := k.arg("lo"), k.arg("hi"), k.arg("next"), k.arg("step")
	count, tmp := k.gp(), k.gp()
	n, chunks := len(acc), len(acc[0])/4
	k.g("ADD %s<<2, %s", lo, p)
	k.g("SUB %s, %s", lo, hi) // keys left
	k.g("LSR $4, %s, %s", lo, tmp)
	k.g("ADD %s<<3, %s", tmp, v)
	k.g("AND $15, %s", lo)
	k.label("tile") // the first one starts at key lo, others at their first
	k.g("MOVD.P 8(%s), %s", v, at)
	k.g("ADD %s, %s", offset, at)
	k.g("MADD %s, %s, %s, %s", lo, at, row, at)
	k.g("MOVD $%d, %s", layout.TileTokens, count)
	k.g("SUB %s, %s", lo, count)
	k.g("MOVD $0, %s", lo)
	k.g("CMP %s, %s", hi, count)
	k.g("CSEL LT, %s, %s, %s", count, hi, count)
	k.g("SUB %s, %s", count, hi)
	k.label("key")
	k.prefetch(next, step, chunks*e.bytes/4)
	weights := []reg{x}
	if chunks > 1 {
		weights = append(weights, k.vecN(n-1)...)
	}
	vals := k.vecN(4)
	for c := range chunks {
		k.sixteen(e, vals, at, 16*c*e.bytes)
		for i := range n {
			w := weights[i%len(weights)]
			if c == 0 {
				k.load(4, w, p, rowBytes*i)
			}
			for j, val := range vals {
				k.fmlaLane(acc[i][4*c+j], val, w, 0)
			}
		}
	}
	k.g("ADD %s, %s", row, at)
	k.g("ADD $4, %s", p)
	k.g("SUBS $1, %s", count)
	k.g("BNE key")
	k.g("CBNZ %s, tile", hi)
}

// softmax generates the softmax of a block of scores of some queries; see
// softmaxGeneric.
func softmax() {
	k := begin("attnSoftmax", "turns the scores s of n queries into weights and updates their states, stride bytes apart.",
		"state *float32, stride int, s *float32, n int, scale float32", "", 0)
	state, stride, s, n := k.arg("state"), k.arg("stride"), k.arg("s"), k.arg("n")
	scale := k.scalar("scale")
	k.holdExp2()
	k.hold(1)
	k.holdBits(negInf)
	bits := k.words(1, 2, 4, 8)
	words := k.vecN(2)
	k.label("query")
	for i, w := range words {
		k.load(4, w, state, layout.HeadMask+4*i)
		k.dupLane(w, w, 0)
	}
	// seen sets m to the mask of the keys of vector j that the query sees.
	seen := func(m reg, j int) {
		b := bits
		if j%8 > 0 {
			k.shl4(m, bits, 4*(j%8))
			b = m
		}
		k.cmtst(m, b, words[j/8])
	}
	top := k.vecN(4)
	for _, t := range top {
		k.mov(t, k.constant(negInf))
	}
	for j := range 16 {
		k.scoped(func() {
			x, m := k.vec(), k.vec()
			k.loadQ(x, s, 16*j)
			seen(m, j)
			k.bsl(m, x, k.constant(negInf))
			k.merge(top[j%4], m, true)
		})
	}
	k.horizontal(top, true)
	max, alpha, neg := top[0], top[1], top[2]
	k.fmul(max, max, scale)
	k.scoped(func() { k.newMax(state, max, alpha) })
	k.dupLane(neg, max, 0)
	k.fneg(neg, neg)
	sums := k.vecN(8)
	for j := range 16 {
		k.scoped(func() {
			x, m := k.vec(), k.vec()
			k.loadQ(m, s, 16*j)
			k.mov(x, neg)
			k.fmla(x, m, scale)
			p := k.exp2(x)
			seen(m, j)
			k.and(p, p, m)
			k.storeQ(p, s, 16*j)
			if sum := sums[j/8*4+j%4]; j/4%2 == 0 {
				k.mov(sum, p)
			} else {
				k.fadd(sum, sum, p)
			}
		})
	}
	for i := range 4 {
		k.fadd(sums[i], sums[i], sums[4+i])
	}
	k.horizontal(sums[:4], false)
	k.load(4, max, state, layout.HeadSum)
	k.fmla(sums[0], max, alpha)
	k.store(4, sums[0], state, layout.HeadSum)
	k.g("ADD %s, %s", stride, state)
	k.g("ADD $%d, %s", rowBytes, s)
	k.g("SUBS $1, %s", n)
	k.g("BNE query")
	k.end()
}

// newMax makes max, in lane 0, the larger of itself and the running maximum,
// which it becomes, and sets alpha to 2^(old maximum - max): exactly 1, without
// computing it, where the maximum has not changed.
func (k *kernel) newMax(state gp, max, alpha reg) {
	old := k.vec()
	k.load(4, old, state, layout.HeadMax)
	k.merge(max, old, true)
	k.mov(alpha, k.c(1))
	k.g("FCMPS F%d, F%d", max, old)
	k.g("BEQ kept")
	k.fsub(old, old, max)
	e := k.exp2(old)
	k.mov(alpha, e)
	k.label("kept")
	k.store(4, alpha, state, layout.HeadAlpha)
	k.store(4, max, state, layout.HeadMax)
}

// words loads four words into the lanes of a register.
func (k *kernel) words(vals ...uint32) reg {
	v := k.vec()
	for i, w := range vals {
		k.g("MOVW $0x%08x, R26", w)
		k.setLaneW(v, i, 26)
	}
	return v
}

// alibi generates the addition of ALiBi's ramp to scaled scores.
func alibi() {
	k := begin("attnAlibi", "sets the scores s of n queries to scale·s + slope·distance, from their states, stride bytes apart.",
		"state *float32, stride int, s *float32, n int, scale float32", "", 0)
	state, stride, s, n := k.arg("state"), k.arg("stride"), k.arg("s"), k.arg("n")
	scale := k.scalar("scale")
	k.hold(4)
	first := k.words(0, 0x3f800000, 0x40000000, 0x40400000) // 0, 1, 2, 3
	slope, dist, ramp, t, r := k.vec(), k.vec(), k.vec(), k.vec(), k.vec()
	k.label("query")
	k.load(4, slope, state, layout.HeadSlope)
	k.load(4, dist, state, layout.HeadRamp)
	k.dupLane(dist, dist, 0)
	k.mov(ramp, first)
	for j := range 16 {
		k.loadQ(t, s, 16*j)
		k.fmul(t, t, scale)
		k.fadd(r, ramp, dist)
		k.fmlaLane(t, r, slope, 0)
		k.storeQ(t, s, 16*j)
		k.fadd(ramp, ramp, k.c(4))
	}
	k.g("ADD %s, %s", stride, state)
	k.g("ADD $%d, %s", rowBytes, s)
	k.g("SUBS $1, %s", n)
	k.g("BNE query")
	k.end()
}

// scaleTiles generates the multiplication of scores or weights with the scales
// of the tokens.
func scaleTiles() {
	k := begin("attnScale", "multiplies the part of s that belongs to some tiles, for n queries, with the 16 float32 that each tile begins with.",
		"s *float32, n int, tile **byte, tiles int", "", 0)
	s, n, tile, tiles := k.arg("s"), k.arg("n"), k.arg("tile"), k.arg("tiles")
	at, row, left := k.gp(), k.gp(), k.gp()
	scales, t := k.vecN(4), k.vecN(4)
	k.label("tile")
	k.g("MOVD.P 8(%s), %s", tile, at)
	for i, z := range scales {
		k.loadQ(z, at, 16*i)
	}
	k.g("MOVD %s, %s", s, row)
	k.g("MOVD %s, %s", n, left)
	k.label("query")
	for i, z := range scales {
		k.loadQ(t[i], row, 16*i)
		k.fmul(t[i], t[i], z)
		k.storeQ(t[i], row, 16*i)
	}
	k.g("ADD $%d, %s", rowBytes, row)
	k.g("SUBS $1, %s", left)
	k.g("BNE query")
	k.g("ADD $%d, %s", 4*layout.TileTokens, s)
	k.g("SUBS $1, %s", tiles)
	k.g("BNE tile")
	k.end()
}

// attnTable returns the table of the attention kernels.
func attnTable() string {
	var b strings.Builder
	b.WriteString("package kernel\n\nvar attnNEON = attnKernels{\n")
	list := func(field string, room int, sizes func(n int) []int, name func(e elem, n, size int) string, typ string) {
		fmt.Fprintf(&b, "%s: [3][%d][%d]%s{\n", field, layout.AttnTile+1, room, typ)
		for _, e := range elems {
			b.WriteString("{\n")
			for n := 1; n <= layout.AttnTile; n++ {
				var names []string
				for _, size := range sizes(n) {
					names = append(names, name(e, n, size)+"NEON")
				}
				fmt.Fprintf(&b, "%d: {%s},\n", n, strings.Join(names, ", "))
			}
			b.WriteString("},\n")
		}
		b.WriteString("},\n")
	}
	list("scores", 3, scoreTiles, scoresName, "scoresFunc")
	list("values", 4, valueChunks, valuesName, "valuesFunc")
	b.WriteString("softmax: attnSoftmaxNEON,\nalibi: attnAlibiNEON,\nscale: attnScaleNEON,\n}\n")
	return b.String()
}
