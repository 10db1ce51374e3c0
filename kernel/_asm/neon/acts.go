package main

import "ridge/kernel/internal/layout"

const (
	infBits   = 0x7f800000
	nanBits   = 0x7fc00000
	float127  = 0x42fe0000
	magnitude = 0x7fffffff
)

// quantize generates the quantizer of whole blocks of 32 activations.
func quantize() {
	k := begin("quantize", "quantizes n > 0 blocks of activations.", "dst *byte, x *float32, n int", "", 0)
	dst, x, n := k.arg("dst"), k.arg("x"), k.arg("n")
	top, s0, s1, all := k.gp(), k.gp(), k.gp(), k.gp()
	k.holdBits(magnitude, float127, layout.ActMagic)
	// The sums are d·(Σq, Σq of the halves, 1) and magic - 128·(the same).
	base := k.vec()
	k.mov(base, k.constant(layout.ActMagic))
	k.g("MOVW $0x%08x, %s", layout.ActMagic+128, top)
	k.setLaneW(base, 3, top)
	v := k.vecN(8)
	t, d, sums := k.vecN(2), k.vec(), k.vec()
	k.label("block")
	for i, u := range v {
		k.loadQ(u, x, 16*i)
		if i == 0 {
			k.and(t[0], u, k.constant(magnitude))
			continue
		}
		k.and(t[1], u, k.constant(magnitude))
		k.umax4(t[0], t[0], t[1])
	}
	k.umaxv(t[0], t[0])
	k.toW(top, t[0], 0)
	k.g("MOVW $0x%08x, R26", infBits)
	k.g("CMPW R26, %s", top)
	k.g("BHS nan")
	k.g("MOVW $0x%08x, R26", layout.ActTiny)
	k.g("CMPW R26, %s", top)
	k.g("BLO tiny")
	k.dupLane(t[0], t[0], 0)
	k.fdiv(d, t[0], k.constant(float127))
	k.fdiv(t[0], k.constant(float127), t[0])
	for _, u := range v {
		k.fmul(u, u, t[0])
		k.fcvtns(u, u)
	}
	for h, s := range []gp{s0, s1} {
		q := v[4*h : 4*h+4]
		k.add4(t[0], q[0], q[1])
		k.add4(t[1], q[2], q[3])
		k.add4(t[0], t[0], t[1])
		k.addv(t[0], t[0])
		k.toW(s, t[0], 0)
		k.xtn4(q[0], q[0])
		k.xtn4h(q[0], q[1])
		k.xtn4(q[2], q[2])
		k.xtn4h(q[2], q[3])
		k.xtn8(q[0], q[0])
		k.xtn8h(q[0], q[2])
		k.storeQ(q[0], dst, 16*h)
	}
	k.g("ADD %s, %s, %s", s0, s1, all)
	k.g("MOVW $1, R26")
	for i, r := range []gp{all, s0, s1, 26} {
		k.setLaneW(sums, i, r)
	}
	k.scvtf(t[0], sums)
	k.fmul(t[0], t[0], d)
	k.storeQ(t[0], dst, layout.ActDS)
	k.shl4(sums, sums, 7)
	k.sub4(sums, base, sums)
	k.storeQ(sums, dst, layout.ActN)
	k.label("next")
	k.g("ADD $128, %s", x)
	k.g("ADD $%d, %s", layout.ActBlock, dst)
	k.g("SUBS $1, %s", n)
	k.g("BNE block")
	k.end()
	k.zeroBlock(dst, top, t[0])
	k.g("B next")
}

// zeroBlock generates the blocks of zeros, with a NaN for a scale where there is
// a value that is not finite.
func (k *kernel) zeroBlock(dst, top gp, t reg) {
	k.label("nan")
	k.g("MOVW $0x%08x, %s", nanBits, top)
	k.g("B zeros")
	k.label("tiny")
	k.g("MOVW $0, %s", top)
	k.label("zeros")
	k.dupW(t, top)
	k.storeQ(t, dst, layout.ActDS)
	k.storeQ(k.constant(layout.ActMagic), dst, layout.ActN)
	k.zero(t)
	k.storeQ(t, dst, 0)
	k.storeQ(t, dst, 16)
}

// probes generates the loops that do nothing but read, or multiply.
func probes() {
	k := begin("readProbe", "reads n bytes, a positive multiple of 256.", "b *byte, n int", "", 0)
	b, n := k.arg("b"), k.arg("n")
	v := k.vecN(16)
	k.label("loop")
	for i, r := range v {
		k.loadQ(r, b, 16*i)
	}
	k.g("ADD $256, %s", b)
	k.g("SUBS $256, %s", n)
	k.g("BNE loop")
	k.end()
	for _, p := range []struct {
		name, doc string
		op        func(k *kernel, d, a, b reg)
	}{
		{"dotProbe", "does 16·n dot products of bytes.", func(k *kernel, d, a, b reg) { k.sdot(d, a, b, 0) }},
		{"fmaProbe", "does 16·n fused multiply-adds.", func(k *kernel, d, a, b reg) { k.fmlaLane(d, a, b, 0) }},
	} {
		k := begin(p.name, p.doc, "n int", "", 0)
		n, x, acc := k.arg("n"), k.vecN(2), k.vecN(16)
		for _, r := range append(x, acc...) {
			k.zero(r)
		}
		k.label("loop")
		for _, r := range acc {
			p.op(k, r, x[0], x[1])
		}
		k.g("SUBS $1, %s", n)
		k.g("BNE loop")
		k.end()
	}
}
