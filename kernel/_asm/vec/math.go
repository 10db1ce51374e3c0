package vec

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/approx"
)

// HoldExp loads what Exp needs.
func (f *Func) HoldExp() {
	f.Hold(approx.ExpMax)
	f.HoldWide(approx.ExpMin, approx.Log2E, approx.Ln2Hi, approx.Ln2Lo)
	f.HoldWide(approx.Exp...)
}

// HoldExp2 loads what Exp2 needs.
func (f *Func) HoldExp2() {
	f.HoldWide(approx.Exp2Min)
	f.HoldWide(approx.Exp2...)
}

// Poly returns the polynomial c at x.
func (f *Func) Poly(x reg.VecVirtual, c []float32) reg.VecVirtual {
	p := f.Vec()
	VMOVUPS(f.C(c[len(c)-1]), p)
	for i := len(c) - 2; i >= 0; i-- {
		VFMADD213PS(f.C(c[i]), x, p)
	}
	return p
}

// round sets n to the nearest integer of n, ties to even.
func (f *Func) round(n reg.VecVirtual) {
	if f.ISA == AVX512 {
		VRNDSCALEPS(operand.Imm(8), n, n)
	} else {
		VROUNDPS(operand.Imm(8), n, n)
	}
}

// scale sets p, between 1/2 and 2, to p·2^n for integers n, -125 <= n <= 129,
// and to zero in the lanes outside keep. n is lost.
func (f *Func) scale(p, n reg.VecVirtual, keep operand.Op) {
	if f.ISA == AVX512 {
		VSCALEFPS_Z(n, p, keep, p)
		return
	}
	// Half the exponent is added, the other half multiplied: the product is
	// exact unless it overflows.
	VCVTPS2DQ(n, n)
	half := f.Vec()
	VPSRAD(operand.Imm(1), n, half)
	VPSUBD(half, n, n)
	VPSLLD(operand.Imm(23), half, half)
	VPADDD(half, p, p)
	VPADDD(f.Bits(127), n, n)
	VPSLLD(operand.Imm(23), n, n)
	VMULPS(n, p, p)
	VANDPS(keep.(reg.VecVirtual), p, p)
}

// atLeast returns the mask of the lanes in which x >= min, or x is NaN.
func (f *Func) atLeast(x reg.VecVirtual, min float32) operand.Op {
	const notLess = 5
	if f.ISA == AVX512 {
		k := K()
		VCMPPS(operand.Imm(notLess), f.C(min), x, k)
		return k
	}
	m := f.Vec()
	VCMPPS(operand.Imm(notLess), f.C(min), x, m)
	return m
}

// Exp returns e^x and destroys x. NaN stays NaN. Results are infinite for
// arguments over 88.72, and zero for those under -87.
func (f *Func) Exp(x reg.VecVirtual) reg.VecVirtual {
	keep := f.atLeast(x, approx.ExpMin)
	VMINPS(x, f.C(approx.ExpMax).(reg.VecVirtual), x) // the second operand, x, wins if it is NaN
	n := f.Vec()
	VMULPS(f.C(approx.Log2E), x, n)
	f.round(n)
	VFNMADD231PS(f.C(approx.Ln2Hi), n, x)
	VFNMADD231PS(f.C(approx.Ln2Lo), n, x)
	p := f.Poly(x, approx.Exp)
	f.scale(p, n, keep)
	return p
}

// Exp2 returns 2^x for x <= 1, or NaN for NaN, and destroys x. Results are zero
// for arguments under -125, and in the lanes outside mask, if it is not nil.
func (f *Func) Exp2(x reg.VecVirtual, mask operand.Op) reg.VecVirtual {
	keep := f.atLeast(x, approx.Exp2Min)
	n := f.Vec()
	if f.ISA == AVX512 {
		if mask != nil {
			KANDW(mask, keep, keep)
		}
		VRNDSCALEPS(operand.Imm(8), x, n)
	} else {
		if mask != nil {
			VANDPS(mask, keep.(reg.VecVirtual), keep)
		}
		VROUNDPS(operand.Imm(8), x, n)
	}
	VSUBPS(n, x, x)
	p := f.Poly(x, approx.Exp2)
	if f.ISA == AVX512 {
		VSCALEFPS_Z(n, p, keep, p)
		return p
	}
	VCVTPS2DQ(n, n)
	VPSLLD(operand.Imm(23), n, n)
	VPADDD(n, p, p)
	VANDPS(keep.(reg.VecVirtual), p, p)
	return p
}

// HoldTanh loads what Tanh needs.
func (f *Func) HoldTanh() {
	f.HoldExp()
	if f.ISA == AVX512 {
		f.HoldBits(0x7fffffff)
	}
	f.HoldWide(1, 2, approx.TanhSmall)
	f.HoldWide(approx.Tanh...)
}

// Tanh returns tanh x: the odd polynomial near zero, else 1 - 2/(e^2|x| + 1)
// with the sign of x.
func (f *Func) Tanh(x reg.VecVirtual) reg.VecVirtual {
	abs, sign, e := f.Vec(), f.Vec(), f.Vec()
	f.and(f.Bits(0x7fffffff), x, abs)
	f.xor(abs, x, sign)
	VADDPS(abs, abs, e)
	e = f.Exp(e)
	VADDPS(f.C(1), e, e)
	big := f.Vec()
	VMOVUPS(f.C(2), big)
	VDIVPS(e, big, e)
	VMOVUPS(f.C(1), big)
	VSUBPS(e, big, big)
	f.xor(sign, big, big)
	z, small := f.Vec(), f.Vec()
	VMULPS(x, x, z)
	p := f.Poly(z, approx.Tanh)
	VMULPS(x, z, z)
	VMOVAPS(x, small)
	VFMADD231PS(z, p, small)
	if f.ISA == AVX512 {
		k := K()
		VCMPPS(operand.Imm(1), f.C(approx.TanhSmall), abs, k) // abs < approx.TanhSmall
		VMOVAPS(small, k, big)
		return big
	}
	VCMPPS(operand.Imm(1), f.C(approx.TanhSmall), abs, abs)
	VBLENDVPS(abs, small, big, big)
	return big
}

func (f *Func) and(b operand.Op, a, dst reg.VecVirtual) { VANDPS(b, a, dst) }

func (f *Func) xor(b operand.Op, a, dst reg.VecVirtual) { VXORPS(b, a, dst) }

// HoldErfc loads what HalfErfc needs.
func (f *Func) HoldErfc() {
	f.HoldExp()
	if f.ISA == AVX512 {
		f.HoldBits(0x7fffffff)
	}
	f.HoldWide(1, 0.5, -0.5, approx.ErfcScale)
	f.HoldWide(approx.Erfc...)
}

// HalfErfc returns erfc(|x|/√2)/2, the upper tail of the normal distribution.
func (f *Func) HalfErfc(x reg.VecVirtual) reg.VecVirtual {
	t, one := f.Vec(), f.Vec()
	f.and(f.Bits(0x7fffffff), x, t)
	VMOVUPS(f.C(1), one)
	VFMADD132PS(f.C(approx.ErfcScale), one, t)
	VDIVPS(t, one, t)
	p := f.Poly(t, approx.Erfc)
	z := f.Vec()
	VMULPS(x, x, z)
	VFMADD231PS(f.C(-0.5), z, p)
	p = f.Exp(p)
	VMULPS(f.C(0.5), t, t)
	VMULPS(t, p, p)
	return p
}
