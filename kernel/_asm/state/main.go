// Command state generates the kernels of recurrent layers: they move a state by
// one row, sixteen columns at a time.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/approx"
	"ridge/kernel/_asm/parts"
	"ridge/kernel/_asm/vec"
)

type one = reg.VecVirtual

func main() {
	list := []parts.Part{
		{Name: "state_avx512", Emit: func() { operations(vec.AVX512) }},
		{Name: "state_avx2", Emit: func() { operations(vec.AVX2) }},
	}
	vec.WriteTiers("state", list, "!amd64")
}

func operations(a vec.ISA) {
	maps(a)
	read(a)
	move(a)
	selective(a)
}

func maps(a vec.ISA) {
	vec.Map{Name: "addProduct", Doc: "sets dst += x·y.", Dst: "dst", In: []string{"dst", "x", "y"},
		Body: func(f *vec.Func, in, _ []one) one { VFMADD231PS(in[1], in[2], in[0]); return in[0] }}.Emit(a)
	// log(1 + e) = 2·artanh(e/(2+e)), of e = exp(-|x|) at most 1.
	vec.Map{Name: "softplus", Doc: "sets dst = log(1 + exp(x)).", Dst: "dst", In: []string{"x"}, Hold: func(f *vec.Func) {
		f.HoldExp()
		f.HoldBits(0x80000000)
		f.HoldWide(2, 0)
		f.HoldWide(approx.Artanh...)
	}, Body: func(f *vec.Func, in, _ []one) one {
		x, e, d := in[0], f.Vec(), f.Vec()
		VORPS(f.Bits(0x80000000), x, e) // -|x|
		e = f.Exp(e)
		VADDPS(f.C(2), e, d)
		VDIVPS(d, e, e)
		VMULPS(e, e, d)
		p := f.Poly(d, approx.Artanh)
		zero := f.Vec()
		VMOVUPS(f.C(0), zero)
		VMAXPS(x, zero, x) // the second operand, x, wins if it is NaN
		VFMADD231PS(p, e, x)
		return x
	}}.Emit(a)
}

// block is sixteen columns of a row: one vector, or two.
type block []one

func vectors(f *vec.Func) block {
	b := make(block, 16/f.Lanes())
	for i := range b {
		b[i] = f.Vec()
	}
	return b
}

func load(f *vec.Func, base reg.GPVirtual, disp int) block {
	b := vectors(f)
	for i, v := range b {
		VMOVUPS(operand.Mem{Base: base, Disp: disp + 4*f.Lanes()*i}, v)
	}
	return b
}

func (b block) store(f *vec.Func, base reg.GPVirtual, disp int) {
	for i, v := range b {
		VMOVUPS(v, operand.Mem{Base: base, Disp: disp + 4*f.Lanes()*i})
	}
}

// add adds the product of x and a number in memory.
func (b block) add(f *vec.Func, x block, at operand.Mem) {
	r := f.Vec()
	VBROADCASTSS(at, r)
	for i := range b {
		VFMADD231PS(x[i], r, b[i])
	}
}

// unroll is how many keys are taken at a time, each with sums of its own.
const unroll = 4

// sums returns accumulators, and what adds these up and stores the result.
func sums(f *vec.Func) (acc []block, finish func(out reg.GPVirtual)) {
	for range unroll {
		b := vectors(f)
		for _, v := range b {
			vec.Zero(v)
		}
		acc = append(acc, b)
	}
	return acc, func(out reg.GPVirtual) {
		for i := range acc[0] {
			VADDPS(acc[1][i], acc[0][i], acc[0][i])
			VADDPS(acc[3][i], acc[2][i], acc[2][i])
			VADDPS(acc[2][i], acc[0][i], acc[0][i])
		}
		acc[0].store(f, out, 0)
	}
}

// keysLoop runs body for the keys, unroll at a time, and moves the pointers on.
func keysLoop(f *vec.Func, keys, s reg.GPVirtual, vectors []reg.GPVirtual, body func(i int)) {
	f.Label("loop")
	for i := range unroll {
		body(i)
	}
	ADDQ(operand.U32(64*unroll), s)
	for _, p := range vectors {
		ADDQ(operand.Imm(4*unroll), p)
	}
	SUBQ(operand.Imm(unroll), keys)
	JG(f.Ref("loop"))
}

func read(a vec.ISA) {
	f := vec.Begin(a, "stateRead", "sets out = Σ q[k]·s[k], of rows of 16 values.", "(out, s, q *float32, keys int)")
	s, q, keys := f.Ptr("s"), f.Ptr("q"), f.Ptr("keys")
	acc, finish := sums(f)
	keysLoop(f, keys, s, []reg.GPVirtual{q}, func(i int) {
		acc[i].add(f, load(f, s, 64*i), operand.Mem{Base: q, Disp: 4 * i})
	})
	finish(f.Ptr("out"))
	f.End()
}

func move(a vec.ISA) {
	f := vec.Begin(a, "stateMove", "sets s[k] = w[k]·s[k] + k[k]·v and out = Σ q[k]·s[k], of rows of 16 values.",
		"(out, s, w, k, q *float32, keys int, v *float32)")
	s, w, k, q, keys := f.Ptr("s"), f.Ptr("w"), f.Ptr("k"), f.Ptr("q"), f.Ptr("keys")
	v := load(f, f.Ptr("v"), 0)
	acc, finish := sums(f)
	keysLoop(f, keys, s, []reg.GPVirtual{w, k, q}, func(i int) {
		row, r := load(f, s, 64*i), f.Vec()
		VBROADCASTSS(operand.Mem{Base: w, Disp: 4 * i}, r)
		for _, x := range row {
			VMULPS(r, x, x)
		}
		row.add(f, v, operand.Mem{Base: k, Disp: 4 * i})
		row.store(f, s, 64*i)
		acc[i].add(f, row, operand.Mem{Base: q, Disp: 4 * i})
	})
	finish(f.Ptr("out"))
	f.End()
}

// selective generates a row of a selective scan. Its states are few, and most of
// the time goes into exponentials: those of eight columns, or sixteen, at a time.
func selective(a vec.ISA) {
	f := vec.Begin(a, "selective", "sets s[n] = exp(dt·a[n])·s[n] + b[n]·dt·x and out = Σ c[n]·s[n], of rows of 16 values.",
		"(out, s, a *float32, states int, dt, x, b, c *float32)")
	f.HoldExp()
	out, s, decay, dt, x := f.Ptr("out"), f.Ptr("s"), f.Ptr("a"), f.Ptr("dt"), f.Ptr("x")
	for half := range 16 / a.Lanes() {
		at := 4 * a.Lanes() * half
		b, c, n := f.Ptr("b"), f.Ptr("c"), f.Ptr("states")
		i := GP64()
		XORQ(i, i)
		step, in, sum := f.Load(operand.Mem{Base: dt, Disp: at}), f.Load(operand.Mem{Base: x, Disp: at}), f.Vec()
		VMULPS(step, in, in)
		vec.Zero(sum)
		loop := [2]string{"loop", "upper"}[half]
		f.Label(loop)
		e := f.Load(operand.Mem{Base: decay, Index: i, Scale: 1, Disp: at})
		VMULPS(step, e, e)
		e = f.Exp(e)
		row := f.Load(operand.Mem{Base: s, Index: i, Scale: 1, Disp: at})
		VMULPS(e, row, row)
		r := f.Vec()
		VBROADCASTSS(operand.Mem{Base: b}, r)
		VFMADD231PS(in, r, row)
		f.Store(row, operand.Mem{Base: s, Index: i, Scale: 1, Disp: at})
		VBROADCASTSS(operand.Mem{Base: c}, r)
		VFMADD231PS(row, r, sum)
		ADDQ(operand.Imm(64), i)
		ADDQ(operand.Imm(4), b)
		ADDQ(operand.Imm(4), c)
		DECQ(n)
		JG(f.Ref(loop))
		f.Store(sum, operand.Mem{Base: out, Disp: at})
	}
	f.End()
}
