package main

import "fmt"

// Weights in plain numbers, the 16 rows' values of a column beside each other
// (bfloat16: those of two columns in turns), times float32 activations. Even and odd columns have sums of their own.

type plain struct {
	name string
	size int // bytes of a value
}

var plains = []plain{{"F32", 4}, {"F16", 2}, {"BF16", 2}}

// maxPlain is the largest number of rows of a tile.
const maxPlain = 3

// mulPlain generates the product of groups of float weights with mr rows.
func mulPlain(p plain, mr int) {
	k := begin(plainName(p, mr), fmt.Sprintf("multiplies %s groups with %d rows. It does not prefetch. With add the products are added to what dst holds.", p.name, mr),
		"dst *float32, ldd int, w *byte, x *float32, ldx, cols, groups, groupBytes, ahead int, add bool", "", 0)
	dst, ldd, group := k.arg("dst"), k.arg("ldd"), k.arg("w")
	ldx, groups, groupBytes := k.arg("ldx"), k.arg("groups"), k.arg("groupBytes")
	k.g("LSL $2, %s", ldd)
	k.g("LSL $2, %s", ldx)
	x := make([]gp, mr)
	for r := range x {
		x[r] = k.gp()
	}
	w, left := k.gp(), k.gp()
	var acc [2][][]reg // by parity of the column, row and part
	for i := range acc {
		for range mr {
			acc[i] = append(acc[i], k.vecN(4))
		}
	}
	q, weights := k.vecN(mr), k.vecN(4)
	columns := func(n int) {
		for r, v := range q {
			k.load(4*n, v, x[r], 0)
		}
		for c := range n {
			loadPlain(k, p, weights, w, c)
			for r, v := range q {
				for part, z := range weights {
					k.fmlaLane(acc[c%2][r][part], z, v, c)
				}
			}
		}
		k.g("ADD $%d, %s", 16*n*p.size, w)
		for _, r := range x {
			k.g("ADD $%d, %s", 4*n, r)
		}
	}
	k.label("group")
	k.g("MOVD %s, %s", k.params["x"], x[0])
	k.setRows(x, ldx)
	k.g("MOVD %s, %s", k.params["cols"], left)
	for _, rows := range acc {
		for _, row := range rows {
			for _, v := range row {
				k.zero(v)
			}
		}
	}
	outs := func(f func(r, part int)) {
		k.g("MOVD %s, %s", dst, w)
		for r := range mr {
			for part := range 4 {
				f(r, part)
			}
			if r < mr-1 {
				k.g("ADD %s, %s", ldd, w)
			}
		}
	}
	k.g("MOVBU %s, R26", k.params["add"])
	k.g("CBZ R26, columns")
	outs(func(r, part int) { k.loadQ(acc[0][r][part], w, 16*part) })
	k.label("columns")
	k.g("MOVD %s, %s", group, w)
	k.g("SUBS $4, %s", left)
	k.g("BLT tail")
	k.label("loop")
	columns(4)
	k.g("SUBS $4, %s", left)
	k.g("BGE loop")
	k.label("tail")
	for _, n := range []int{2, 1} { // left is negative, but its lowest two bits are those of what is left
		next := fmt.Sprintf("below%d", n)
		k.g("TBZ $%d, %s, %s", n/2, left, next)
		columns(n)
		k.label(next)
	}
	outs(func(r, part int) {
		even, odd := acc[0][r][part], acc[1][r][part]
		k.fadd(even, even, odd)
		k.storeQ(even, w, 16*part)
	})
	k.g("ADD $64, %s", dst)
	k.g("ADD %s, %s", groupBytes, group)
	k.g("SUBS $1, %s", groups)
	k.g("BNE group")
	k.end()
}

// loadPlain loads the 16 values of column c behind w as floats.
func loadPlain(k *kernel, p plain, d []reg, w gp, c int) {
	off := 16 * p.size * c
	switch p.name {
	case "F32":
		for i, v := range d {
			k.loadQ(v, w, off+16*i)
		}
	case "F16":
		for i := 0; i < len(d); i += 2 {
			lo, hi := d[i], d[i+1]
			k.loadQ(lo, w, off+8*i)
			k.fcvtl2(hi, lo)
			k.fcvtl(lo, lo)
		}
	case "BF16":
		for i, v := range d {
			k.loadQ(v, w, 64*(c/2)+16*i)
			if c%2 == 1 {
				k.sshr4(v, v, 16)
			}
			k.shl4(v, v, 16)
		}
	}
}
