package main

import "ridge/kernel/_asm/approx"

// rope generates the rotation of pairs (x[i], x[i+n]): a·c - b·s and b·c + a·s,
// the first product of each rounded together with the sum.
func rope() {
	k := begin("ropeNeox", "rotates the pairs (x[i], x[i+n]).", "x, cos, sin *float32, n int", "", 0)
	x, cos, sin, n := k.arg("x"), k.arg("cos"), k.arg("sin"), k.arg("n")
	y := k.gp()
	k.g("ADD %s<<2, %s, %s", n, x, y)
	k.loop(n, []pointer{{x, 4}, {y, 4}, {cos, 4}, {sin, 4}}, []int{4, 1}, func(count int) {
		size := 4 * count
		v := k.vecN(6)
		a, b, c, s, u, w := v[0], v[1], v[2], v[3], v[4], v[5]
		for i, p := range []gp{x, y, cos, sin} {
			k.load(size, v[i], p, 0)
		}
		k.fmul(u, b, s)
		k.fneg(u, u)
		k.fmul(w, a, s)
		k.fmla(u, a, c)
		k.fmla(w, b, c)
		k.store(size, u, x, 0)
		k.store(size, w, y, 0)
	})
	k.end()
}

// ropePairs generates the rotation of pairs (x[2i], x[2i+1]): with c and s
// doubled, x·c ∓ swap(x)·s. The roundings are those of rope.
func ropePairs() {
	k := begin("ropeNorm", "rotates the pairs (x[2i], x[2i+1]).", "x, cos, sin *float32, n int", "", 0)
	x, cos, sin, n := k.arg("x"), k.arg("cos"), k.arg("sin"), k.arg("n")
	k.holdBits(0x80000000, 0)
	flip := k.vec()
	k.zip1(flip, k.constant(0x80000000), k.constant(0))
	k.loop(n, []pointer{{x, 8}, {cos, 4}, {sin, 4}}, []int{2, 1}, func(count int) {
		u, v, c, s := k.vec(), k.vec(), k.vec(), k.vec()
		k.load(8*count, u, x, 0)
		k.load(4*count, c, cos, 0)
		k.load(4*count, s, sin, 0)
		k.zip1(c, c, c)
		k.zip1(s, s, s)
		k.rev64(v, u)
		k.fmul(v, v, s)
		k.eor(v, v, flip)
		k.fmla(v, u, c)
		k.store(8*count, v, x, 0)
	})
	k.end()
}

// conversions generates those between float32 and the 16-bit formats and
// bytes.
func conversions() {
	decode("decodeI8", "converts signed bytes.", 1, 16, func(k *kernel, d []reg) {
		if len(d) > 1 {
			k.widenI8(d)
		} else {
			k.sxtl8(d[0], d[0])
			k.sxtl4(d[0], d[0])
		}
		for _, v := range d {
			k.scvtf(v, v)
		}
	})
	decode("decodeF16", "converts binary16 values.", 2, 8, func(k *kernel, d []reg) {
		if len(d) > 1 {
			k.fcvtl2(d[1], d[0])
		}
		k.fcvtl(d[0], d[0])
	})
	encode("encodeKV", "converts to binary16 after limiting magnitudes to 65504.", holdLimits, func(k *kernel, v reg) {
		k.limit(v)
		k.toF16(v)
	})
}

func holdLimits(k *kernel) { k.hold(approx.MaxF16, -approx.MaxF16) }

// limit limits magnitudes; NaN stays NaN.
func (k *kernel) limit(v reg) {
	k.fmin(v, v, k.c(approx.MaxF16))
	k.fmax(v, v, k.c(-approx.MaxF16))
}

func (k *kernel) toF16(v reg) { k.fcvtn(v, v) }

// decode generates a conversion to float32 from elements of size bytes, count
// of which fill a register. body converts those in d[0] to the registers d,
// of which there is one for single elements.
func decode(name, doc string, size, count int, body func(k *kernel, d []reg)) {
	k := begin(name, doc, "dst *float32, src *byte, n int", "", 0)
	dst, src, n := k.arg("dst"), k.arg("src"), k.arg("n")
	k.loop(n, []pointer{{dst, 4}, {src, size}}, []int{count, 1}, func(count int) {
		d := k.vecN(max(1, count/4))
		k.load(size*count, d[0], src, 0)
		body(k, d)
		for i, v := range d {
			k.store(min(16, 4*count), v, dst, 16*i)
		}
	})
	k.end()
}

// encode generates a conversion from float32 to elements of two bytes. body
// converts the lanes of v to the lower half of v.
func encode(name, doc string, hold func(k *kernel), body func(k *kernel, v reg)) {
	k := begin(name, doc, "dst *byte, src *float32, n int", "", 0)
	dst, src, n := k.arg("dst"), k.arg("src"), k.arg("n")
	if hold != nil {
		hold(k)
	}
	k.loop(n, []pointer{{dst, 2}, {src, 4}}, []int{4, 1}, func(count int) {
		v := k.vec()
		k.load(4*count, v, src, 0)
		body(k, v)
		k.store(2*count, v, dst, 0)
	})
	k.end()
}

// topKV generates the search for the largest magnitude.
func topKV() {
	k := begin("topKV", "returns the bits of the largest magnitude of x, limited to 65504; n is a positive multiple of 8.", "x *float32, n int", "uint32", 0)
	x, n := k.arg("x"), k.arg("n")
	k.hold(approx.MaxF16)
	top := k.vecN(2)
	k.zero(top[0])
	k.zero(top[1])
	k.loop(n, []pointer{{x, 4}}, []int{8}, func(int) {
		for i, t := range top {
			v := k.vec()
			k.loadQ(v, x, 16*i)
			k.fabs(v, v)
			k.fmin(v, v, k.c(approx.MaxF16))
			k.umax4(t, t, v)
		}
	})
	k.umax4(top[0], top[0], top[1])
	k.umaxv(top[0], top[0])
	k.g("FMOVS F%d, %s", top[0], k.params["ret"])
	k.end()
}

// encodeI8 generates the rounding to signed bytes.
func encodeI8() {
	k := begin("encodeI8", "sets dst to src, limited to 65504, times inv, rounded to nearest even; n is a multiple of 8.", "dst *byte, src *float32, n int, inv float32", "", 0)
	dst, src, n, inv := k.arg("dst"), k.arg("src"), k.arg("n"), k.scalar("inv")
	holdLimits(k)
	k.loop(n, []pointer{{dst, 1}, {src, 4}}, []int{8}, func(int) {
		v := k.vecN(2)
		for i, u := range v {
			k.loadQ(u, src, 16*i)
			k.limit(u)
			k.fmul(u, u, inv)
			k.fcvtns(u, u)
		}
		k.xtn4(v[0], v[0])
		k.xtn4h(v[0], v[1])
		k.xtn8(v[0], v[0])
		k.store(8, v[0], dst, 0)
	})
	k.end()
}
