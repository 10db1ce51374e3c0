package main

import (
	"fmt"
	"iter"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/internal/layout"
)

func unpackName(f format) string {
	return fmt.Sprintf("unpack%sAVX512", symbol(f))
}

// unpack512 generates the unpacking of superblocks of one group to a panel.
func unpack512(f format) {
	name := unpackName(f)
	function(name, "func(u *byte, w *byte, supers int)", fmt.Sprintf("%s unpacks superblocks of a %s group.", name, f.Name))
	dst := Load(Param("u"), GP64())
	w := Load(Param("w"), GP64())
	supers := Load(Param("supers"), GP64())
	pairs := GP64()
	var v vectors
	u := newUnpacker(f, &v, true)
	s, m := v.zmm(), v.zmm()
	Label("super")
	if f.Pairs > 1 {
		u.superHead(Mem{Base: w})
		ADDQ(U32(uint32(f.Head())), w)
		MOVQ(U32(uint32(f.Pairs)), pairs)
		Label("pair")
	}
	for b := range 2 {
		to := Mem{Base: dst, Disp: b * layout.PanelBytes}
		u.scales(Mem{Base: w}, b, 0, s, m)
		VMOVUPS(s, to.Offset(layout.PanelS0))
		if f.Form.Mins() {
			VMOVUPS(m, to.Offset(layout.PanelM0))
		}
		if f.Form.Halves() {
			u.scales(Mem{Base: w}, b, 1, s, m)
			VMOVUPS(s, to.Offset(layout.PanelS1))
			if f.Form.Mins() {
				VMOVUPS(m, to.Offset(layout.PanelM1))
			}
		}
		u.quads(Mem{Base: w, Disp: f.BlockAt(b)}, func(j int, z reg.VecPhysical) {
			VMOVDQU64(z, to.Offset(layout.PanelQ+64*j))
		})
	}
	ADDQ(U32(uint32(f.PairBytes())), w)
	ADDQ(U32(2*layout.PanelBytes), dst)
	if f.Pairs > 1 {
		DECQ(pairs)
		JNE(LabelRef("pair"))
	}
	DECQ(supers)
	JNE(LabelRef("super"))
	VZEROUPPER()
	RET()
}

// tile is a kernel that multiplies mr rows with nv groups: each activation is
// read once for all groups.
type tile struct {
	form     form
	mr, nv   int
	from     weights
	x        *rows
	acc, sum []reg.VecPhysical
	xq       reg.VecPhysical // of a row
	negMagic reg.VecPhysical
}

// weights is where those of a pair of blocks come from. What a call returns
// is good until the next call for the same group.
type weights interface {
	begin(b int)                              // says what block of the pair is next
	quad(v, i int) (j int, z reg.VecPhysical) // the i-th quad of group v, quad j of the block
	scale(v, h int) reg.VecPhysical           // of half h of group v
	minimum(v, h int) reg.VecPhysical         // asked for after the scales of all groups
}

func newTile(f form, mr, nv int, ldx reg.GPVirtual, v *vectors) *tile {
	t := &tile{form: f, mr: mr, nv: nv, x: newRows(mr, ldx), acc: v.zmmN(mr * nv), sum: v.zmmN(mr * nv), xq: v.zmm(), negMagic: v.zmm()}
	broadcast32(layout.ActMagic|0x80000000, t.negMagic)
	return t
}

// outs calls f for every accumulator with its place in dst. out ends at the
// last row.
func (t *tile) outs(dst, ldd, out reg.Register, f func(z reg.VecPhysical, m Mem)) {
	MOVQ(dst, out)
	for r := range t.mr {
		for v := range t.nv {
			f(t.acc[v*t.mr+r], Mem{Base: out, Disp: 64 * v})
		}
		if r < t.mr-1 {
			ADDQ(ldd, out)
		}
	}
}

// load starts the accumulators from dst if the parameter add is set, else from
// zero and goes on at the label next.
func (t *tile) load(dst, ldd, out reg.Register, next string) {
	add := GP8()
	clearZ(t.acc...)
	Load(Param("add"), add)
	TESTB(add, add)
	JEQ(LabelRef(next))
	t.outs(dst, ldd, out, func(z reg.VecPhysical, m Mem) { VMOVUPS(m, z) })
}

func (t *tile) store(dst, ldd, out reg.Register) {
	t.outs(dst, ldd, out, func(z reg.VecPhysical, m Mem) { VMOVUPS(z, m) })
}

// block multiplies block b of the pair at hand.
func (t *tile) block(b int) {
	halves, quads := 1, 8
	if t.form.Halves() {
		halves, quads = 2, 4
	}
	t.from.begin(b)
	for h := range halves {
		t.start(b, h)
		for i := h * quads; i < (h+1)*quads; i++ {
			t.quad(b, i)
		}
		t.finish(b, h)
	}
}

// start sets the sums for half h of block b.
func (t *tile) start(b, h int) {
	at := layout.ActN
	switch {
	case t.form.Mins():
		at = layout.ActM
	case t.form == layout.Form16:
		at = []int{layout.ActN0, layout.ActN1}[h]
	}
	for i, z := range t.sum {
		if i < t.mr {
			VPBROADCASTD(t.x.at(i, b*layout.ActBlock+at), z)
		} else {
			VMOVDQA64(t.sum[i-t.mr], z)
		}
	}
}

// quad adds the products of the i-th quad of block b.
func (t *tile) quad(b, i int) {
	w := make([]reg.VecPhysical, t.nv)
	var j int
	for v := range w {
		j, w[v] = t.from.quad(v, i)
	}
	for r := range t.mr {
		at := t.x.at(r, b*layout.ActBlock+4*j)
		if t.nv == 1 {
			VPDPBUSD_BCST(at, w[0], t.sum[r])
			continue
		}
		VPBROADCASTD(at, t.xq)
		for v, z := range w {
			VPDPBUSD(t.xq, z, t.sum[v*t.mr+r])
		}
	}
}

// finish adds the sums of half h of block b, as accumulator.finish does.
func (t *tile) finish(b, h int) {
	for v := range t.nv {
		s := t.from.scale(v, h)
		VMULPS(t.negMagic, s, t.xq)
		for _, z := range t.sum[v*t.mr : (v+1)*t.mr] {
			VFMADD213PS(t.xq, s, z)
		}
	}
	t.addRows(b*layout.ActBlock+layout.ActD, t.sum)
	if !t.form.Mins() {
		return
	}
	var m []reg.VecPhysical
	for v := range t.nv {
		z := t.from.minimum(v, h)
		for range t.mr {
			m = append(m, z)
		}
	}
	t.addRows(b*layout.ActBlock+minAt(t.form, h), m)
}

// addRows adds the float at disp of each row times z to the accumulators.
func (t *tile) addRows(disp int, z []reg.VecPhysical) {
	for r := range t.mr {
		VBROADCASTSS(t.x.at(r, disp), t.xq)
		for v := range t.nv {
			VFMADD231PS(t.xq, z[v*t.mr+r], t.acc[v*t.mr+r])
		}
	}
}

// panels is weights that have been unpacked: one panel per group.
type panels struct {
	u reg.Register
	z []reg.VecPhysical
	b int
}

func (p *panels) begin(b int) { p.b = b }

func (p *panels) get(v, disp int) reg.VecPhysical {
	VMOVUPS(panelAt(p.u, v, p.b, disp), p.z[v])
	return p.z[v]
}

func (p *panels) quad(v, i int) (int, reg.VecPhysical) { return i, p.get(v, layout.PanelQ+64*i) }
func (p *panels) scale(v, h int) reg.VecPhysical       { return p.get(v, scaleAt[h]) }
func (p *panels) minimum(v, h int) reg.VecPhysical     { return p.get(v, minimumAt[h]) }

// panelAt is a place in block b of the pair at u in the panel of group v.
func panelAt(u reg.Register, v, b, disp int) Mem {
	return Mem{Base: u, Disp: v*layout.PanelNext + b*layout.PanelBytes + disp}
}

var scaleAt, minimumAt = [2]int{layout.PanelS0, layout.PanelS1}, [2]int{layout.PanelM0, layout.PanelM1}

// packedPair is weights of two groups that are unpacked on the way, and stored
// to panels for other tiles.
type packedPair struct {
	format
	u     [2]*unpacker
	w     reg.Register // the pair of the first group
	group reg.Register // distance of the second
	panel reg.Register
	b     int
	next  [2]func() (int, reg.VecPhysical, bool)
}

// newPackedPair allocates registers for vectors. What comes from the header of
// a superblock is kept in the 256 bytes in front of the panels.
func newPackedPair(f format, v *vectors) *packedPair {
	p := &packedPair{format: f, w: Load(Param("w"), GP64()), group: Load(Param("group"), GP64()), panel: Load(Param("u"), GP64())}
	first := newUnpacker(f, v, false)
	second := *first
	second.t = v.zmmN(len(first.t))
	p.u = [2]*unpacker{first, &second}
	if f.Pairs > 1 {
		kept := Load(Param("u"), GP64())
		for i, u := range p.u {
			u.d, u.dmin = Mem{Base: kept, Disp: 128*i - layout.PanelHead}, Mem{Base: kept, Disp: 128*i - layout.PanelHead + 64}
		}
	}
	return p
}

func (p *packedPair) at(v, disp int) Mem {
	m := Mem{Base: p.w, Disp: disp}
	if v == 1 {
		m.Index, m.Scale = p.group, 1
	}
	return m
}

func (p *packedPair) begin(b int) {
	p.b = b
	for v, u := range p.u {
		p.next[v], _ = iter.Pull2(func(yield func(j int, z reg.VecPhysical) bool) {
			u.quads(p.at(v, p.BlockAt(b)), func(j int, z reg.VecPhysical) { yield(j, z) })
		})
	}
}

func (p *packedPair) quad(v, _ int) (int, reg.VecPhysical) {
	j, z, _ := p.next[v]()
	VMOVDQU64(z, panelAt(p.panel, v, p.b, layout.PanelQ+64*j))
	return j, z
}

func (p *packedPair) scale(v, h int) reg.VecPhysical {
	s, m := p.u[v].t[0], p.u[v].t[1]
	p.u[v].scales(p.at(v, 0), p.b, h, s, m)
	VMOVUPS(s, panelAt(p.panel, v, p.b, scaleAt[h]))
	if p.Form.Mins() {
		VMOVUPS(m, panelAt(p.panel, v, p.b, minimumAt[h]))
	}
	return s
}

func (p *packedPair) minimum(v, h int) reg.VecPhysical { return p.u[v].t[1] }

func panelName(f form, mr, nv int) string {
	return fmt.Sprintf("panel%sx%dx%dAVX512", strings.TrimPrefix(f.String(), "Form"), mr, nv)
}

// panel512 generates the product of unpacked panels of nv groups with tiles of
// mr rows.
func panel512(f form, mr, nv int) {
	name := panelName(f, mr, nv)
	function(name, "func(dst *float32, ldd int, u *byte, x *byte, ldx int, pairs int, tiles int, add bool, ahead uintptr, end uintptr, group int, lines int)",
		fmt.Sprintf("%s multiplies %d panels with tiles of %d rows. For every pair it prefetches lines lines at ahead, until it is at end, and as many group bytes behind.", name, nv, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	SHLQ(Imm(2), ldd)
	var v vectors
	t := newTile(f, mr, nv, ldx, &v)
	u, out, pairs, x := GP64(), GP64(), GP64(), GP64()
	t.from = &panels{u: u, z: v.zmmN(nv)}
	Load(Param("x"), x)
	ahead := Load(Param("ahead"), GP64())
	group := Load(Param("group"), GP64())

	Label("tile")
	t.x.set(x)
	Load(Param("u"), u)
	Load(Param("pairs"), pairs)
	t.load(dst, ldd, out, "pair")
	Label("pair")
	lines := out // only used at the ends of a tile
	Load(Param("lines"), lines)
	Label("line")
	CMPQ(ahead, NewParamAddr("end", 72))
	JCC(LabelRef("fetched"))
	PREFETCHT1(Mem{Base: ahead})
	PREFETCHT1(Mem{Base: ahead, Index: group, Scale: 1})
	ADDQ(Imm(64), ahead)
	DECQ(lines)
	JNE(LabelRef("line"))
	Label("fetched")
	t.block(0)
	t.block(1)
	ADDQ(U32(2*layout.PanelBytes), u)
	t.x.advance(2 * layout.ActBlock)
	DECQ(pairs)
	JNE(LabelRef("pair"))
	t.store(dst, ldd, out)
	LEAQ(Mem{Base: out, Index: ldd, Scale: 1}, dst)
	for range mr {
		ADDQ(ldx, x)
	}
	DECQ(NewParamAddr("tiles", 48))
	JNE(LabelRef("tile"))
	VZEROUPPER()
	RET()
}

// firstRows has the row counts of the kernels that unpack on the way.
var firstRows = []int{4, 5}

func firstName(f format, mr int) string {
	return fmt.Sprintf("first%sx%dAVX512", symbol(f), mr)
}

// first512 generates the product of superblocks of two groups with mr rows
// that leaves the unpacked weights in panels.
func first512(f format, mr int) {
	name := firstName(f, mr)
	function(name, "func(dst *float32, ldd int, u *byte, w *byte, group int, x *byte, ldx int, supers int, add bool)",
		fmt.Sprintf("%s multiplies superblocks of two %s groups, group bytes apart, with %d rows and unpacks them to panels.", name, f.Name, mr))
	dst := Load(Param("dst"), GP64())
	ldd := Load(Param("ldd"), GP64())
	ldx := Load(Param("ldx"), GP64()).(reg.GPVirtual)
	SHLQ(Imm(2), ldd)
	var v vectors
	t := newTile(f.Form, mr, 2, ldx, &v)
	p := newPackedPair(f, &v)
	t.from = p
	out, pairs := GP64(), GP64()
	Load(Param("x"), t.x.base[0])
	t.x.set(t.x.base[0])
	t.load(dst, ldd, out, "super")
	Label("super")
	if f.Pairs > 1 {
		for v, u := range p.u {
			u.superHead(p.at(v, 0))
		}
		ADDQ(U32(uint32(f.Head())), p.w)
		MOVQ(U32(uint32(f.Pairs)), pairs)
		Label("pair")
	}
	for b := range 2 {
		t.block(b)
	}
	ADDQ(U32(uint32(f.PairBytes())), p.w)
	ADDQ(U32(2*layout.PanelBytes), p.panel)
	t.x.advance(2 * layout.ActBlock)
	if f.Pairs > 1 {
		DECQ(pairs)
		JNE(LabelRef("pair"))
	}
	DECQ(NewParamAddr("supers", 56))
	JNE(LabelRef("super"))
	t.store(dst, ldd, out)
	VZEROUPPER()
	RET()
}
