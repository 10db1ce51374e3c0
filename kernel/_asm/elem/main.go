// Command elem generates the elementwise kernels of package kernel: arithmetic
// on rows, activations, norms, softmax, rotary embeddings and conversions.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/approx"
	"ridge/kernel/_asm/parts"
	"ridge/kernel/_asm/vec"
)

type (
	vecs = []reg.VecVirtual
	one  = reg.VecVirtual
)

func main() {
	list := []parts.Part{
		{Name: "elem_avx512", Emit: func() { operations(vec.AVX512) }},
		{Name: "elem_avx2", Emit: func() { operations(vec.AVX2) }},
		{Name: "kv_avx2", Emit: func() {
			topKV()
			encodeI8()
			transpose(1)
			transpose(2)
		}},
	}
	vec.WriteTiers("elem", list, "!amd64 && !arm64")
}

func operations(a vec.ISA) {
	arithmetic(a)
	norms(a)
	activations(a)
	reductions(a)
	index(a)
	if a == vec.AVX512 {
		atLeast512()
	} else {
		atLeast2()
	}
	rope(a)
	ropePairs(a)
	conversions(a)
}

func arithmetic(a vec.ISA) {
	binary := func(name, doc string, op func(f *vec.Func, d, x one)) {
		vec.Map{Name: name, Doc: doc, Dst: "dst", In: []string{"dst", "x"},
			Body: func(f *vec.Func, in, _ vecs) one { op(f, in[0], in[1]); return in[0] }}.Emit(a)
	}
	binary("add", "sets dst += x.", func(f *vec.Func, d, x one) { VADDPS(x, d, d) })
	binary("mul", "sets dst *= x.", func(f *vec.Func, d, x one) { VMULPS(x, d, d) })
	vec.Map{Name: "addScaled", Doc: "sets dst += a·x.", Dst: "dst", In: []string{"dst", "x"}, Scalars: []string{"a"},
		Body: func(f *vec.Func, in, s vecs) one { VFMADD231PS(in[1], s[0], in[0]); return in[0] }}.Emit(a)
	vec.Map{Name: "scale", Doc: "sets x *= a.", Dst: "x", In: []string{"x"}, Scalars: []string{"a"},
		Body: func(f *vec.Func, in, s vecs) one { VMULPS(s[0], in[0], in[0]); return in[0] }}.Emit(a)
	vec.Map{Name: "relu", Doc: "sets dst = max(x, 0).", Dst: "dst", In: []string{"x"},
		Hold: func(f *vec.Func) { f.Hold(0) },
		Body: func(f *vec.Func, in, _ vecs) one {
			VMAXPS(in[0], f.C(0).(one), in[0]) // the second operand wins if it is NaN
			return in[0]
		}}.Emit(a)
}

func norms(a vec.ISA) {
	for _, w := range []bool{false, true} {
		for _, b := range []bool{false, true} {
			m := vec.Map{Name: "normalize", Doc: "sets dst = (x - mean)·inv", Dst: "dst", In: []string{"x"}, Scalars: []string{"mean", "inv"}}
			if w {
				m.Name, m.Doc, m.In = m.Name+"W", m.Doc+"·w", append(m.In, "w")
			}
			if b {
				m.Name, m.Doc, m.In = m.Name+"B", m.Doc+" + b", append(m.In, "b")
			}
			m.Doc += "."
			m.Body = func(f *vec.Func, in, s vecs) one {
				x := in[0]
				VSUBPS(s[0], x, x)
				VMULPS(s[1], x, x)
				switch {
				case w && b:
					VFMADD213PS(in[2], in[1], x)
				case w:
					VMULPS(in[1], x, x)
				case b:
					VADDPS(in[1], x, x)
				}
				return x
			}
			m.Emit(a)
		}
	}
}

// sigmoid divides x by 1 + e^w.
func sigmoid(f *vec.Func, x, w one) one {
	e := f.Exp(w)
	VADDPS(f.C(1), e, e)
	VDIVPS(e, x, e)
	return e
}

func holdSigmoid(f *vec.Func) {
	f.HoldExp()
	f.HoldWide(1)
}

func gelu(f *vec.Func, x one) one {
	w, t := f.Vec(), f.Vec()
	VMULPS(x, x, w)
	VMOVUPS(f.C(approx.GELU1), t)
	VFMADD231PS(f.C(approx.GELU3), w, t)
	VMULPS(x, t, w)
	return sigmoid(f, x, w)
}

func holdGELU(f *vec.Func) {
	holdSigmoid(f)
	f.HoldWide(approx.GELU1, approx.GELU3)
}

func activations(a vec.ISA) {
	vec.Map{Name: "swish", Doc: "sets dst = x / (1 + exp(c·x)).", Dst: "dst", In: []string{"x"}, Scalars: []string{"c"}, Hold: holdSigmoid,
		Body: func(f *vec.Func, in, s vecs) one {
			w := f.Vec()
			VMULPS(s[0], in[0], w)
			return sigmoid(f, in[0], w)
		}}.Emit(a)
	vec.Map{Name: "siluMul", Doc: "sets dst = gate / (1 + exp(-gate)) · up.", Dst: "dst", In: []string{"gate", "up"}, Hold: func(f *vec.Func) {
		holdSigmoid(f)
		f.HoldWide(-1)
	}, Body: func(f *vec.Func, in, _ vecs) one {
		w := f.Vec()
		VMULPS(f.C(-1), in[0], w)
		y := sigmoid(f, in[0], w)
		VMULPS(in[1], y, y)
		return y
	}}.Emit(a)
	vec.Map{Name: "gelu", Doc: "sets dst to the tanh form of GELU of x.", Dst: "dst", In: []string{"x"}, Hold: holdGELU,
		Body: func(f *vec.Func, in, _ vecs) one { return gelu(f, in[0]) }}.Emit(a)
	vec.Map{Name: "geluMul", Doc: "sets dst to the tanh form of GELU of gate, times up.", Dst: "dst", In: []string{"gate", "up"}, Hold: holdGELU,
		Body: func(f *vec.Func, in, _ vecs) one {
			y := gelu(f, in[0])
			VMULPS(in[1], y, y)
			return y
		}}.Emit(a)
	vec.Map{Name: "geluErf", Doc: "sets dst = x·Φ(x), Φ the normal distribution.", Dst: "dst", In: []string{"x"}, Hold: func(f *vec.Func) { f.HoldErfc() },
		Body: func(f *vec.Func, in, _ vecs) one {
			x, h := in[0], f.HalfErfc(in[0])
			VMULPS(x, h, h) // for negative x, x - h else
			y := f.Vec()
			VSUBPS(h, x, y)
			if f.ISA == vec.AVX512 {
				k := K()
				VPMOVD2M(x, k)
				VMOVAPS(h, k, y)
			} else {
				VBLENDVPS(x, h, y, y)
			}
			return y
		}}.Emit(a)
	vec.Map{Name: "softcap", Doc: "sets x = out·tanh(in·x).", Dst: "x", In: []string{"x"}, Scalars: []string{"in", "out"}, Hold: func(f *vec.Func) { f.HoldTanh() },
		Body: func(f *vec.Func, in, s vecs) one {
			VMULPS(s[0], in[0], in[0])
			y := f.Tanh(in[0])
			VMULPS(s[1], y, y)
			return y
		}}.Emit(a)
}

func reductions(a vec.ISA) {
	vec.Reduction{Name: "sum", Doc: "returns Σx.", In: []string{"x"},
		Body: func(f *vec.Func, acc one, in, _ vecs, _ []operand.Mem) { VADDPS(in[0], acc, acc) }}.Emit(a)
	vec.Reduction{Name: "sumSquares", Doc: "returns Σ(x-mean)².", In: []string{"x"}, Scalars: []string{"mean"},
		Body: func(f *vec.Func, acc one, in, s vecs, _ []operand.Mem) {
			VSUBPS(s[0], in[0], in[0])
			f.Clear(in[0])
			VFMADD231PS(in[0], in[0], acc)
		}}.Emit(a)
	vec.Reduction{Name: "expSum", Doc: "sets x = exp(x-top) and returns the sum.", In: []string{"x"}, Scalars: []string{"top"},
		Hold: func(f *vec.Func) { f.HoldExp() },
		Body: func(f *vec.Func, acc one, in, s vecs, addr []operand.Mem) {
			VSUBPS(s[0], in[0], in[0])
			e := f.Exp(in[0])
			f.Store(e, addr[0])
			f.Clear(e)
			VADDPS(e, acc, acc)
		}}.Emit(a)
	vec.Reduction{Name: "weigh", Doc: "returns Σexp((x-top)·inv).", In: []string{"x"}, Scalars: []string{"top", "inv"},
		Hold: func(f *vec.Func) { f.HoldExp() },
		Body: func(f *vec.Func, acc one, in, s vecs, _ []operand.Mem) {
			VSUBPS(s[0], in[0], in[0])
			VMULPS(s[1], in[0], in[0])
			e := f.Exp(in[0])
			f.Clear(e)
			VADDPS(e, acc, acc)
		}}.Emit(a)
	vec.Reduction{Name: "max", Doc: "returns the largest value of x that is not NaN.", In: []string{"x"}, Max: true,
		Hold: func(f *vec.Func) { f.HoldBits(0xff800000) },
		Body: func(f *vec.Func, acc one, in, _ vecs, addr []operand.Mem) {
			// Long rows of logits come from far away, often half of them from
			// another core: faster than the processor reads ahead by itself.
			if f.Mask() == nil {
				PREFETCHT0(addr[0].Offset(2048))
			}
			f.Fill(in[0], f.Bits(0xff800000).(one))
			VMAXPS(acc, in[0], acc) // the second operand, acc, wins if the first is NaN
		}}.Emit(a)
}

// index generates the search for the first element equal to v.
func index(a vec.ISA) {
	f := vec.Begin(a, "index", "returns the index of the first value of x equal to v, or -1.", "(x *float32, n int, v float32) int")
	x, n, v := f.Ptr("x"), f.Ptr("n"), f.Scalar("v")
	w := a.Lanes()
	i, bits := GP64(), GP64()
	XORQ(i, i)
	compare := func() {
		u := f.Load(operand.Mem{Base: x, Index: i, Scale: 4})
		if a == vec.AVX512 {
			k := K()
			VCMPPS(operand.Imm(0), v, u, k)
			KMOVW(k, bits.As32())
		} else {
			VCMPPS(operand.Imm(0), v, u, u)
			VMOVMSKPS(u, bits.As32())
		}
	}
	SUBQ(operand.Imm(uint64(w)), n)
	JLT(f.Ref("tail"))
	f.Label("loop")
	compare()
	TESTL(bits.As32(), bits.As32())
	JNE(f.Ref("found"))
	ADDQ(operand.Imm(uint64(w)), i)
	SUBQ(operand.Imm(uint64(w)), n)
	JGE(f.Ref("loop"))
	f.Label("tail")
	ADDQ(operand.Imm(uint64(w)), n)
	JLE(f.Ref("none"))
	f.Tail(n, 0)
	compare()
	f.EndTail()
	// Lanes outside the row compare as zeros.
	t := GP64()
	MOVQ(operand.I32(-1), t)
	BZHIQ(n, t, t)
	ANDL(t.As32(), bits.As32())
	JNE(f.Ref("found"))
	f.Label("none")
	MOVQ(operand.I32(-1), i)
	Store(i, ReturnIndex(0))
	f.End()
	f.Label("found")
	BSFL(bits.As32(), bits.As32())
	ADDQ(bits, i)
	Store(i, ReturnIndex(0))
	f.End()
}
