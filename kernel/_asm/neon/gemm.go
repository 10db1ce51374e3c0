package main

import (
	"fmt"

	"ridge/kernel/internal/layout"
)

// Products of packed weights with rows of quantized activations. The 16 lanes
// of a group are worked on in four parts of one register: a part of a block is
// unpacked and multiplied with all rows, an integer sum per row, and its
// results are added to the row's float32 sums, which stay in registers.

const (
	maxDirect = 3 // rows that packed weights are multiplied with
	maxPanel  = 4 // rows that panels are multiplied with
)

// product is a tile of rows times a group.
type product struct {
	*kernel
	form form
	x    []gp    // per row: its activation block
	acc  [][]reg // per row and part: the results
	sum  []reg   // per row: the integer sum
	q    [][]reg // per row: the activations of a block
	s, m reg     // scales and minima
}

// newProduct allocates the registers of a tile of mr rows.
func newProduct(k *kernel, f form, mr int) *product {
	p := &product{kernel: k, form: f, sum: k.vecN(mr), s: k.vec(), m: k.vec()}
	for range mr {
		p.acc = append(p.acc, k.vecN(4))
		p.q = append(p.q, k.vecN(2))
	}
	return p
}

// rowsOf makes pointers to mr rows, stride bytes apart, from the first one.
func (k *kernel) rowsOf(first, stride gp, mr int) []gp {
	list := []gp{first}
	for r := 1; r < mr; r++ {
		list = append(list, k.gp())
	}
	k.setRows(list, stride)
	return list
}

// setRows makes all pointers from the first one.
func (k *kernel) setRows(list []gp, stride gp) {
	for r := 1; r < len(list); r++ {
		k.g("ADD %s, %s, %s", stride, list[r-1], list[r])
	}
}

// block multiplies block b of a pair.
func (p *product) block(src source, b int) {
	for r, q := range p.q {
		p.loadQ(q[0], p.x[r], b*layout.ActBlock)
		p.loadQ(q[1], p.x[r], b*layout.ActBlock+16)
	}
	for part := range 4 {
		p.clear()
		done := 0
		src.quads(b, part, func(j int, v reg) {
			for r, s := range p.sum {
				p.sdot(s, v, p.q[r][j/4], j%4)
			}
			done++
			if p.form.Halves() && done == 4 {
				p.finish(src, b, 0, part)
				p.clear()
			}
		})
		p.finish(src, b, done/8*btoi(p.form.Halves()), part)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// laneOf is the lane of a float of an activation block among the four behind
// its integers, which are loaded together.
func laneOf(at int) int { return (at - layout.ActDS) / 4 }

func (p *product) clear() {
	for _, s := range p.sum {
		p.zero(s)
	}
}

// finish adds the sums of half h of block b: first the product of sum and
// scale, rounded, times d, then the minimum times d·Σq.
func (p *product) finish(src source, b, h, part int) {
	m := reg(-1)
	if p.form.Mins() {
		m = p.m
	}
	src.scales(b, h, part, p.s, m)
	lane := 0 // d·Σq
	if p.form.Halves() {
		lane = 1 + h
	}
	for _, sum := range p.sum {
		p.scvtf(sum, sum)
		p.fmul(sum, sum, p.s)
	}
	d := p.s // no longer needed
	for r, sum := range p.sum {
		p.loadQ(d, p.x[r], b*layout.ActBlock+layout.ActDS)
		p.fmlaLane(p.acc[r][part], sum, d, laneOf(layout.ActD))
		if p.form.Mins() {
			p.fmlaLane(p.acc[r][part], p.m, d, lane)
		}
	}
}

const mulParams = "dst *float32, ldd int, w, x *byte, ldx, supers, groups, ahead int"

// mulDirect generates the product of groups of packed weights with mr rows.
func mulDirect(f format, mr int) {
	k := begin(mulName(f, mr), fmt.Sprintf("multiplies %s groups with %d rows. It does not prefetch.", f.Name, mr), mulParams, "", 0)
	dst, ldd, w := k.arg("dst"), k.arg("ldd"), k.arg("w")
	ldx, groups := k.arg("ldx"), k.arg("groups")
	k.g("LSL $2, %s", ldd)
	u := newUnpacker(k, f, w)
	p := newProduct(k, f.Form, mr)
	supers, pairs := k.gp(), k.gp()
	p.x = make([]gp, mr)
	for r := range p.x {
		p.x[r] = k.gp()
	}
	k.label("group")
	k.g("MOVD %s, %s", k.params["x"], p.x[0])
	k.setRows(p.x, ldx)
	k.g("MOVD %s, %s", k.params["supers"], supers)
	for _, acc := range p.acc {
		for _, v := range acc {
			k.zero(v)
		}
	}
	k.label("super")
	u.startSuper()
	if f.Pairs > 1 {
		k.g("MOVD $%d, %s", f.Pairs, pairs)
		k.label("pair")
	}
	for b := range 2 {
		p.block(u, b)
	}
	k.g("ADD $%d, %s", f.PairBytes(), w)
	for _, x := range p.x {
		k.g("ADD $%d, %s", 2*layout.ActBlock, x)
	}
	if f.Pairs > 1 {
		k.g("SUBS $1, %s", pairs)
		k.g("BNE pair")
	}
	k.g("SUBS $1, %s", supers)
	k.g("BNE super")
	p.store(dst, ldd)
	k.g("ADD $64, %s", dst)
	k.g("SUBS $1, %s", groups)
	k.g("BNE group")
	k.end()
}

// store writes the results, row by row; it uses the pointer to the first
// row's activations.
func (p *product) store(dst, ldd gp) {
	at := p.x[0]
	p.g("MOVD %s, %s", dst, at)
	for r, acc := range p.acc {
		if r > 0 {
			p.g("ADD %s, %s", ldd, at)
		}
		for part, v := range acc {
			p.storeQ(v, at, 16*part)
		}
	}
}

// unpack generates the unpacking of superblocks of a group to panel blocks.
func unpack(f format) {
	k := begin(unpackName(f), fmt.Sprintf("unpacks %s superblocks of a group to panel blocks of signed bytes.", f.Name), "u, w *byte, supers int", "", 0)
	to, w, supers := k.arg("u"), k.arg("w"), k.arg("supers")
	u := newUnpacker(k, f, w)
	s, m, pairs := k.vec(), k.vec(), k.gp()
	k.label("super")
	u.startSuper()
	k.g("MOVD $%d, %s", f.Pairs, pairs)
	k.label("pair")
	for b := range 2 {
		for part := range 4 {
			u.quads(b, part, func(j int, v reg) {
				k.storeQ(v, to, layout.PanelBytes*b+layout.PanelQ+64*j+16*part)
			})
			for h := range 1 + btoi(f.Form.Halves()) {
				u.scales(b, h, part, s, m)
				k.storeQ(s, to, layout.PanelBytes*b+scaleAt[h]+16*part)
				if f.Form.Mins() {
					k.storeQ(m, to, layout.PanelBytes*b+minimumAt[h]+16*part)
				}
			}
		}
	}
	k.g("ADD $%d, %s", f.PairBytes(), w)
	k.g("ADD $%d, %s", 2*layout.PanelBytes, to)
	k.g("SUBS $1, %s", pairs)
	k.g("BNE pair")
	k.g("SUBS $1, %s", supers)
	k.g("BNE super")
	k.end()
}

// mulPanel generates the product of a panel with mr rows.
func mulPanel(f form, mr int) {
	k := begin(panelName(f, mr), fmt.Sprintf("multiplies a panel of %s blocks with %d rows. With add, dst holds what the lower columns gave.", f, mr),
		"dst *float32, ldd int, u, x *byte, ldx, pairs int, add bool", "", 0)
	dst, ldd, u, x, ldx, pairs := k.arg("dst"), k.arg("ldd"), k.arg("u"), k.arg("x"), k.arg("ldx"), k.arg("pairs")
	add := k.gp()
	k.g("MOVBU %s, %s", k.params["add"], add)
	k.g("LSL $2, %s", ldd)
	p := newProduct(k, f, mr)
	src := &panel{kernel: k, u: u, t: k.vecN(2)}
	p.x = k.rowsOf(x, ldx, mr)
	for _, acc := range p.acc {
		for _, v := range acc {
			k.zero(v)
		}
	}
	k.g("CBZ %s, pair", add)
	at := add
	k.g("MOVD %s, %s", dst, at)
	for r, acc := range p.acc {
		if r > 0 {
			k.g("ADD %s, %s", ldd, at)
		}
		for part, v := range acc {
			k.loadQ(v, at, 16*part)
		}
	}
	k.label("pair")
	for b := range 2 {
		p.block(src, b)
	}
	k.g("ADD $%d, %s", 2*layout.PanelBytes, u)
	for _, x := range p.x {
		k.g("ADD $%d, %s", 2*layout.ActBlock, x)
	}
	k.g("SUBS $1, %s", pairs)
	k.g("BNE pair")
	p.store(dst, ldd)
	k.end()
}
