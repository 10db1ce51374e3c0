package main

import "ridge/kernel/_asm/approx"

func arithmetic() {
	binary := func(name, doc string, op func(k *kernel, d, x reg)) {
		mapping{name: name, doc: doc, dst: "dst", in: []string{"dst", "x"},
			body: func(k *kernel, in, _ []reg) reg { op(k, in[0], in[1]); return in[0] }}.emit()
	}
	binary("add", "sets dst += x.", func(k *kernel, d, x reg) { k.fadd(d, d, x) })
	binary("mul", "sets dst *= x.", func(k *kernel, d, x reg) { k.fmul(d, d, x) })
	mapping{name: "addScaled", doc: "sets dst += a·x.", dst: "dst", in: []string{"dst", "x"}, scalars: []string{"a"},
		body: func(k *kernel, in, s []reg) reg { k.fmla(in[0], in[1], s[0]); return in[0] }}.emit()
	mapping{name: "scale", doc: "sets x *= a.", dst: "x", in: []string{"x"}, scalars: []string{"a"},
		body: func(k *kernel, in, s []reg) reg { k.fmul(in[0], in[0], s[0]); return in[0] }}.emit()
	mapping{name: "relu", doc: "sets dst = max(x, 0).", dst: "dst", in: []string{"x"},
		hold: func(k *kernel) { k.hold(0) },
		body: func(k *kernel, in, _ []reg) reg {
			m := k.vec()
			k.fcmgt(m, k.c(0), in[0]) // not for NaN
			k.bic(in[0], in[0], m)
			return in[0]
		}}.emit()
}

func norms() {
	for _, w := range []bool{false, true} {
		for _, b := range []bool{false, true} {
			m := mapping{name: "normalize", doc: "sets dst = (x - mean)·inv", dst: "dst", in: []string{"x"}, scalars: []string{"mean", "inv"}}
			if w {
				m.name, m.doc, m.in = m.name+"W", m.doc+"·w", append(m.in, "w")
			}
			if b {
				m.name, m.doc, m.in = m.name+"B", m.doc+" + b", append(m.in, "b")
			}
			m.doc += "."
			m.body = func(k *kernel, in, s []reg) reg {
				x := in[0]
				k.fsub(x, x, s[0])
				k.fmul(x, x, s[1])
				switch {
				case w && b:
					k.fmla(in[2], x, in[1])
					return in[2]
				case w:
					k.fmul(x, x, in[1])
				case b:
					k.fadd(x, x, in[1])
				}
				return x
			}
			m.emit()
		}
	}
}

func holdSigmoid(k *kernel) {
	k.holdExp()
	k.hold(1)
}

// sigmoid divides x by 1 + e^w.
func sigmoid(k *kernel, x, w reg) reg {
	e := k.exp(w)
	k.fadd(e, e, k.c(1))
	k.fdiv(e, x, e)
	return e
}

func holdGELU(k *kernel) {
	holdSigmoid(k)
	k.pack(approx.GELU1, approx.GELU3)
}

// gelu returns the tanh form of GELU.
func gelu(k *kernel, x reg) reg {
	w, t := k.vec(), k.vec()
	k.fmul(w, x, x)
	at := k.lane(approx.GELU1)
	k.dupLane(t, at.v, at.i)
	at = k.lane(approx.GELU3)
	k.fmlaLane(t, w, at.v, at.i)
	k.fmul(w, x, t)
	return sigmoid(k, x, w)
}

func activations() {
	mapping{name: "swish", doc: "sets dst = x / (1 + exp(c·x)).", dst: "dst", in: []string{"x"}, scalars: []string{"c"}, hold: holdSigmoid,
		body: func(k *kernel, in, s []reg) reg {
			w := k.vec()
			k.fmul(w, in[0], s[0])
			return sigmoid(k, in[0], w)
		}}.emit()
	mapping{name: "siluMul", doc: "sets dst = gate / (1 + exp(-gate)) · up.", dst: "dst", in: []string{"gate", "up"}, hold: holdSigmoid,
		body: func(k *kernel, in, _ []reg) reg {
			w := k.vec()
			k.fneg(w, in[0])
			y := sigmoid(k, in[0], w)
			k.fmul(y, y, in[1])
			return y
		}}.emit()
	mapping{name: "gelu", doc: "sets dst to the tanh form of GELU of x.", dst: "dst", in: []string{"x"}, hold: holdGELU,
		body: func(k *kernel, in, _ []reg) reg { return gelu(k, in[0]) }}.emit()
	mapping{name: "geluMul", doc: "sets dst to the tanh form of GELU of gate, times up.", dst: "dst", in: []string{"gate", "up"}, hold: holdGELU,
		body: func(k *kernel, in, _ []reg) reg {
			y := gelu(k, in[0])
			k.fmul(y, y, in[1])
			return y
		}}.emit()
	mapping{name: "geluErf", doc: "sets dst = x·Φ(x), Φ the normal distribution.", dst: "dst", in: []string{"x"}, hold: (*kernel).holdErfc,
		body: func(k *kernel, in, _ []reg) reg {
			x, y := in[0], k.vec()
			h := k.halfErfc(x)
			k.fmul(h, h, x) // for negative x, x - h else
			k.fsub(y, x, h)
			k.sshr4(x, x, 31)
			k.bit(y, h, x)
			return y
		}}.emit()
	mapping{name: "softcap", doc: "sets x = out·tanh(in·x).", dst: "x", in: []string{"x"}, scalars: []string{"in", "out"}, hold: (*kernel).holdTanh,
		body: func(k *kernel, in, s []reg) reg {
			k.fmul(in[0], in[0], s[0])
			y := k.tanh(in[0])
			k.fmul(y, y, s[1])
			return y
		}}.emit()
}

func zeroPad(k *kernel, _ []reg) reg {
	k.hold(0)
	return k.c(0)
}

func infPad(k *kernel, _ []reg) reg {
	k.holdBits(negInf)
	return k.constant(negInf)
}

func reductions() {
	reduction{name: "sum", doc: "returns Σx.", in: []string{"x"}, pad: zeroPad,
		body: func(k *kernel, acc reg, in, _ []reg, _ func(v, spare reg)) { k.fadd(acc, acc, in[0]) }}.emit()
	reduction{name: "sumSquares", doc: "returns Σ(x-mean)².", in: []string{"x"}, scalars: []string{"mean"},
		pad: func(k *kernel, s []reg) reg { return s[0] },
		body: func(k *kernel, acc reg, in, s []reg, _ func(v, spare reg)) {
			k.fsub(in[0], in[0], s[0])
			k.fmla(acc, in[0], in[0])
		}}.emit()
	reduction{name: "expSum", doc: "sets x = exp(x-top) and returns the sum.", in: []string{"x"}, scalars: []string{"top"},
		pad: zeroPad, stored: true, cleared: true, hold: (*kernel).holdExp,
		body: func(k *kernel, acc reg, in, s []reg, clear func(v, spare reg)) {
			k.fsub(in[0], in[0], s[0])
			k.scoped(func() {
				e := k.exp(in[0])
				clear(e, in[0])
				k.mov(in[0], e)
			})
			k.fadd(acc, acc, in[0])
		}}.emit()
	reduction{name: "weigh", doc: "returns Σexp((x-top)·inv).", in: []string{"x"}, scalars: []string{"top", "inv"},
		pad: zeroPad, cleared: true, hold: (*kernel).holdExp,
		body: func(k *kernel, acc reg, in, s []reg, clear func(v, spare reg)) {
			k.fsub(in[0], in[0], s[0])
			k.fmul(in[0], in[0], s[1])
			e := k.exp(in[0])
			clear(e, in[0])
			k.fadd(acc, acc, e)
		}}.emit()
	reduction{name: "max", doc: "returns the largest value of x that is not NaN.", in: []string{"x"}, max: true, pad: infPad,
		body: func(k *kernel, acc reg, in, _ []reg, _ func(v, spare reg)) {
			m := k.vec()
			k.fcmgt(m, in[0], acc) // not for NaN
			k.bit(acc, in[0], m)
		}}.emit()
}

// index generates the search for the first element equal to v: by 16, then one
// by one from where it may be.
func index() {
	k := begin("index", "returns the index of the first value of x equal to v, or -1.", "x *float32, n int, v float32", "int", 0)
	x, n, v := k.arg("x"), k.arg("n"), k.scalar("v")
	start, bits := k.gp(), k.gp()
	u := k.vecN(4)
	one := k.vec()
	k.g("MOVD %s, %s", x, start)
	k.g("SUBS $16, %s", n)
	k.g("BLT tail")
	k.label("loop")
	for i, r := range u {
		k.loadQ(r, x, 16*i)
		k.fcmeq(r, r, v)
	}
	k.orr(u[0], u[0], u[1])
	k.orr(u[2], u[2], u[3])
	k.orr(u[0], u[0], u[2])
	k.umaxv(u[0], u[0])
	k.toW(bits, u[0], 0)
	k.g("CBNZW %s, tail", bits)
	k.g("ADD $64, %s", x)
	k.g("SUBS $16, %s", n)
	k.g("BGE loop")
	k.label("tail")
	k.g("ADDS $16, %s", n)
	k.g("BEQ none")
	k.label("each")
	k.load(4, one, x, 0)
	k.g("FCMPS F%d, F%d", v, one)
	k.g("BEQ found")
	k.g("ADD $4, %s", x)
	k.g("SUBS $1, %s", n)
	k.g("BNE each")
	k.label("none")
	k.g("MOVD $-1, %s", x)
	k.g("MOVD %s, %s", x, k.params["ret"])
	k.end()
	k.label("found")
	k.g("SUB %s, %s", start, x)
	k.g("LSR $2, %s", x)
	k.g("MOVD %s, %s", x, k.params["ret"])
	k.end()
}

// atLeast generates the search for all elements that are at least v: those of
// 16 that have one are looked at one by one.
func atLeast() {
	k := begin("atLeast", "writes the indices of the values of x that are at least v to dst, which has room for n, and returns how many they are.",
		"dst *int32, x *float32, n int, v float32", "int", 0)
	dst, x, n, v := k.arg("dst"), k.arg("x"), k.arg("n"), k.scalar("v")
	begin, i, left, bits := k.gp(), k.gp(), k.gp(), k.gp()
	u, one := k.vecN(4), k.vec()
	k.g("MOVD %s, %s", dst, begin)
	k.g("MOVD $0, %s", i)
	k.label("loop")
	k.g("CMP $16, %s", n)
	k.g("BLT tail")
	for j, r := range u {
		k.loadQ(r, x, 16*j)
		k.fcmge(r, r, v)
	}
	k.orr(u[0], u[0], u[1])
	k.orr(u[2], u[2], u[3])
	k.orr(u[0], u[0], u[2])
	k.umaxv(u[0], u[0])
	k.toW(bits, u[0], 0)
	k.g("SUB $16, %s", n)
	k.g("MOVD $16, %s", left)
	k.g("CBNZW %s, each", bits)
	k.g("ADD $64, %s", x)
	k.g("ADD $16, %s", i)
	k.g("B loop")
	k.label("tail")
	k.g("CBZ %s, end", n)
	k.g("MOVD %s, %s", n, left)
	k.g("MOVD $0, %s", n)
	k.label("each")
	k.load(4, one, x, 0)
	k.g("FCMPS F%d, F%d", v, one)
	k.g("BLT skip") // if less, or not comparable
	k.g("MOVW.P %s, 4(%s)", i, dst)
	k.label("skip")
	k.g("ADD $4, %s", x)
	k.g("ADD $1, %s", i)
	k.g("SUBS $1, %s", left)
	k.g("BNE each")
	k.g("B loop")
	k.label("end")
	k.g("SUB %s, %s", begin, dst)
	k.g("LSR $2, %s", dst)
	k.g("MOVD %s, %s", dst, k.params["ret"])
	k.end()
}
