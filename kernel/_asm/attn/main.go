// Command attn generates the attention kernels of package kernel: the scores of
// a block of keys, their softmax, and the weighted sum of values, each for one
// to six queries at once. kernel/attn_generic.go defines what they compute.
package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/parts"
	"ridge/kernel/_asm/vec"
	"ridge/kernel/internal/layout"
)

const rowBytes = 4 * layout.AttnBlock // a row of scores

type elem struct {
	name  string
	bytes int
}

var (
	elems = []elem{{"F32", 4}, {"F16", 2}, {"I8", 1}}
	isas  = []vec.ISA{vec.AVX512, vec.AVX2}
)

func main() {
	var list []parts.Part
	for _, a := range isas {
		tier := strings.ToLower(a.String())
		for _, e := range elems {
			list = append(list, parts.Part{Name: "attn_" + strings.ToLower(e.name) + "_" + tier, Emit: func() { products(a, e) }})
		}
		list = append(list, parts.Part{Name: "attn_softmax_" + tier, Emit: func() {
			softmax(a)
			alibi(a)
			scaleTiles(a)
			touch(a)
		}})
	}
	list = append(list, parts.Part{Name: "attn_amx", Emit: amx}, parts.Part{Name: "attn_split_avx2", Emit: splitBrain},
		parts.Part{Name: "attn_turn_avx2", Emit: turn})
	parts.Generate(list)
	writeTable()
}

// products generates what reads keys and values of one type of elements.
func products(a vec.ISA, e elem) {
	for n := 1; n <= layout.AttnTile; n++ {
		for _, t := range scoreTiles(a, n) {
			scores(a, e, n, t)
		}
		for _, c := range valueChunks(a, n) {
			values(a, e, n, c)
		}
	}
}

// scoreTiles returns the numbers of tiles that n queries are multiplied with
// at once: as many as the accumulators have registers for.
func scoreTiles(a vec.ISA, n int) []int {
	switch {
	case a == vec.AVX512 || n == 1:
		return []int{1, 2, 4}
	case n <= 3:
		return []int{1, 2}
	}
	return []int{1}
}

// valueChunks returns the widths, in units of 16 values, of the part of the
// accumulators of n queries that is kept in registers.
func valueChunks(a vec.ISA, n int) []int {
	switch {
	case a == vec.AVX512 && n <= 3:
		return []int{1, 2, 4, 8}
	case a == vec.AVX512:
		return []int{1, 2, 4}
	case n == 1:
		return []int{1, 2, 4}
	case n <= 3:
		return []int{1, 2}
	}
	return []int{1}
}

func scoresName(e elem, n, tiles int) string { return fmt.Sprintf("scores%sx%dt%d", e.name, n, tiles) }

func valuesName(e elem, n, chunks int) string {
	return fmt.Sprintf("values%sx%dc%d", e.name, n, chunks)
}

// load reads one vector of elements as float32.
func load(e elem, m operand.Mem, v operand.Op) {
	switch e.bytes {
	case 1:
		VPMOVSXBD(m, v)
		VCVTDQ2PS(v, v)
	case 2:
		VCVTPH2PS(m, v)
	default:
		VMOVUPS(m, v)
	}
}

// rows returns a function that addresses row i of up to six rows that start at
// base, stride bytes apart.
func rows(base, stride reg.GPVirtual, n int) (at func(i int) operand.Mem, bases []reg.GPVirtual) {
	bases = []reg.GPVirtual{base}
	if n > 3 {
		third := GP64()
		LEAQ(operand.Mem{Base: base, Index: stride, Scale: 2}, third)
		ADDQ(stride, third)
		bases = append(bases, third)
	}
	return func(i int) operand.Mem {
		m := operand.Mem{Base: bases[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = stride, uint8(i%3)
		}
		return m
	}, bases
}

// scores generates the dot products of n queries with the keys of some tiles.
// Every product is one chain of multiply-adds in the order of the dimensions.
func scores(a vec.ISA, e elem, n, tiles int) {
	f := vec.Begin(a, scoresName(e, n, tiles),
		fmt.Sprintf("sets rows of s to the dot products of %d queries at q, hd values each, with the keys of %d tiles. For every two values it prefetches %d cache lines at next, which it moves by step.", n, tiles, max(1, tiles*e.bytes/2)),
		"(s, q *float32, hd int, k **byte, next uintptr, step int)")
	q, hd := f.Ptr("q"), f.Ptr("hd")
	list := f.Ptr("k")
	var k []reg.GPVirtual
	for t := range tiles {
		p := GP64()
		MOVQ(operand.Mem{Base: list, Disp: 8 * t}, p)
		k = append(k, p)
	}
	next, step := f.Ptr("next"), f.Ptr("step")
	stride := GP64()
	MOVQ(hd, stride)
	SHLQ(operand.Imm(2), stride)
	query, bases := rows(q, stride, n)
	vt := 16 / a.Lanes() // vectors in a tile
	acc := make([][]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = make([]reg.VecVirtual, tiles*vt)
		for j := range acc[i] {
			acc[i][j] = f.Vec()
			vec.Zero(acc[i][j])
		}
	}
	index := GP64()
	XORQ(index, index)
	body := func(u int) {
		key := func(j int) operand.Mem {
			return operand.Mem{Base: k[j/vt], Index: index, Scale: 1, Disp: e.bytes * (layout.TileTokens*u + j%vt*a.Lanes())}
		}
		addDimension(f, e, acc, key, func(i int) operand.Mem { return query(i).Offset(4 * u) }, a == vec.AVX512 || tiles == 1)
	}
	advance := func(n int) {
		ADDQ(operand.U32(uint32(n*layout.TileTokens*e.bytes)), index)
		for _, b := range bases {
			ADDQ(operand.Imm(uint64(4*n)), b)
		}
	}
	SUBQ(operand.Imm(2), hd)
	JLT(f.Ref("last"))
	f.Label("loop")
	prefetch(next, step, tiles*e.bytes/2)
	body(0)
	body(1)
	advance(2)
	SUBQ(operand.Imm(2), hd)
	JGE(f.Ref("loop"))
	f.Label("last")
	CMPQ(hd, operand.I8(-2))
	JEQ(f.Ref("done"))
	body(0)
	f.Label("done")
	s := f.Ptr("s")
	for i := range acc {
		for j, v := range acc[i] {
			VMOVUPS(v, operand.Mem{Base: s, Disp: rowBytes*i + 4*a.Lanes()*j})
		}
	}
	f.End()
}

// addDimension adds the products of one dimension of the queries and of the
// keys. Either the keys or the queries stay in registers.
func addDimension(f *vec.Func, e elem, acc [][]reg.VecVirtual, key, query func(i int) operand.Mem, holdKeys bool) {
	n, vecs := len(acc), len(acc[0])
	broadcast := func(i int) reg.VecVirtual {
		x := f.Vec()
		VBROADCASTSS(query(i), x)
		return x
	}
	if holdKeys {
		keys := make([]reg.VecVirtual, vecs)
		for j := range keys {
			keys[j] = f.Vec()
			load(e, key(j), keys[j])
		}
		for i := range n {
			x := broadcast(i)
			for j := range keys {
				VFMADD231PS(keys[j], x, acc[i][j])
			}
		}
		return
	}
	var x []reg.VecVirtual
	for i := range n {
		x = append(x, broadcast(i))
	}
	for j := range vecs {
		k := f.Vec()
		load(e, key(j), k)
		for i := range n {
			VFMADD231PS(k, x[i], acc[i][j])
		}
	}
}

// prefetch reads ahead at the pointer next, in the shadow of the arithmetic.
func prefetch(next, step reg.GPVirtual, lines int) {
	for i := range max(1, lines) {
		PREFETCHT1(operand.Mem{Base: next, Disp: 64 * i})
	}
	ADDQ(step, next)
}

// values generates the weighted sum of values: a part of the accumulators of n
// queries, scaled by alpha first, gets one multiply-add for each key, in order.
func values(a vec.ISA, e elem, n, chunks int) {
	f := vec.Begin(a, valuesName(e, n, chunks),
		fmt.Sprintf("adds to %d values of the accumulators of %d queries, stride bytes apart, after scaling them by their alpha, the values at offset in the rows of v times the weights p, for the keys lo to hi-1. For every key it prefetches %d cache lines at next, which it moves by step.", 16*chunks, n, max(1, chunks*e.bytes/4)),
		"(acc, alpha *float32, stride int, p *float32, v **byte, offset, row, lo, hi int, next uintptr, step int)")
	accBase, alpha, stride := f.Ptr("acc"), f.Ptr("alpha"), f.Ptr("stride")
	accAt, _ := rows(accBase, stride, n)
	vc := chunks * 16 / a.Lanes()
	acc := make([][]reg.VecVirtual, n)
	for i := range acc {
		acc[i] = make([]reg.VecVirtual, vc)
		x := f.Vec()
		VBROADCASTSS(operand.Mem{Base: alpha}, x)
		if i < n-1 {
			ADDQ(stride, alpha)
		}
		for j := range acc[i] {
			acc[i][j] = f.Vec()
			VMULPS(accAt(i).Offset(4*a.Lanes()*j), x, acc[i][j])
		}
	}
	p, v, offset, row := f.Ptr("p"), f.Ptr("v"), f.Ptr("offset"), f.Ptr("row")
	lo, hi := f.Ptr("lo"), f.Ptr("hi")
	next, step := f.Ptr("next"), f.Ptr("step")
	LEAQ(operand.Mem{Base: p, Index: lo, Scale: 4}, p)
	SUBQ(lo, hi) // keys left
	// The first tile starts at key lo%16 of tile lo/16.
	at, count, tmp := GP64(), GP64(), GP64()
	MOVQ(lo, tmp)
	SHRQ(operand.Imm(4), tmp)
	LEAQ(operand.Mem{Base: v, Index: tmp, Scale: 8}, v)
	ANDQ(operand.Imm(15), lo)
	f.Label("tile")
	MOVQ(operand.Mem{Base: v}, at)
	ADDQ(operand.Imm(8), v)
	ADDQ(offset, at)
	MOVQ(row, tmp)
	IMULQ(lo, tmp)
	ADDQ(tmp, at)
	MOVQ(operand.I32(layout.TileTokens), count)
	SUBQ(lo, count)
	XORQ(lo, lo)
	CMPQ(count, hi)
	CMOVQGT(hi, count)
	SUBQ(count, hi)
	f.Label("key")
	prefetch(next, step, chunks*e.bytes/4)
	addKey(f, e, acc, at, p)
	ADDQ(row, at)
	ADDQ(operand.Imm(4), p)
	DECQ(count)
	JNE(f.Ref("key"))
	TESTQ(hi, hi)
	JNE(f.Ref("tile"))
	for i := range acc {
		for j, x := range acc[i] {
			VMOVUPS(x, accAt(i).Offset(4*a.Lanes()*j))
		}
	}
	f.End()
}

// addKey adds the values of one key times its weights. Either the values or
// the weights stay in registers, as the instruction set has room for.
func addKey(f *vec.Func, e elem, acc [][]reg.VecVirtual, at, p reg.GPVirtual) {
	weight := func(i int) reg.VecVirtual {
		x := f.Vec()
		VBROADCASTSS(operand.Mem{Base: p, Disp: rowBytes * i}, x)
		return x
	}
	value := func(j int) reg.VecVirtual {
		x := f.Vec()
		load(e, operand.Mem{Base: at, Disp: e.bytes * f.Lanes() * j}, x)
		return x
	}
	n, vc := len(acc), len(acc[0])
	if n >= vc { // few values
		var vs []reg.VecVirtual
		for j := range vc {
			vs = append(vs, value(j))
		}
		for i := range n {
			x := weight(i)
			for j := range vc {
				VFMADD231PS(vs[j], x, acc[i][j])
			}
		}
		return
	}
	var ws []reg.VecVirtual
	for i := range n {
		ws = append(ws, weight(i))
	}
	for j := range vc {
		x := value(j)
		for i := range n {
			VFMADD231PS(x, ws[i], acc[i][j])
		}
	}
}

func writeTable() {
	var b strings.Builder
	b.WriteString("package kernel\n\n")
	b.WriteString("// The kernels of a tier, by tileElem, number of queries, and\n// log2 of the number of tiles or of chunks of 16 values.\n")
	for _, a := range isas {
		fmt.Fprintf(&b, "var attn%s = attnKernels{\n\tscores: [3][%d][3]scoresFunc{\n", a, layout.AttnTile+1)
		for _, e := range elems {
			fmt.Fprintf(&b, "\t\t{\n")
			for n := 1; n <= layout.AttnTile; n++ {
				fmt.Fprintf(&b, "\t\t\t%d: {", n)
				for i, t := range scoreTiles(a, n) {
					fmt.Fprintf(&b, "%s%s%s", sep(i), scoresName(e, n, t), a)
				}
				b.WriteString("},\n")
			}
			b.WriteString("\t\t},\n")
		}
		fmt.Fprintf(&b, "\t},\n\tvalues: [3][%d][4]valuesFunc{\n", layout.AttnTile+1)
		for _, e := range elems {
			fmt.Fprintf(&b, "\t\t{\n")
			for n := 1; n <= layout.AttnTile; n++ {
				fmt.Fprintf(&b, "\t\t\t%d: {", n)
				for i, c := range valueChunks(a, n) {
					fmt.Fprintf(&b, "%s%s%s", sep(i), valuesName(e, n, c), a)
				}
				b.WriteString("},\n")
			}
			b.WriteString("\t\t},\n")
		}
		fmt.Fprintf(&b, "\t},\n\tsoftmax: attnSoftmax%s,\n\talibi:   attnAlibi%s,\n\tscale:   attnScale%s,\n\ttouch:   attnTouch%s,\n}\n\n", a, a, a, a)
	}
	parts.WriteGo("attn_table_amd64.go", "attn", b.String())
}

func sep(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}
