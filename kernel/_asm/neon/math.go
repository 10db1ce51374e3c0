package main

import "ridge/kernel/_asm/approx"

// The transcendental functions, operation by operation those of
// kernel/_asm/vec, so that results are the same bits as on amd64.

// poly returns the polynomial with the coefficients c, which are packed, at x.
func (k *kernel) poly(x reg, c []float32) reg {
	p, q := k.vec(), k.vec()
	top := k.lane(c[len(c)-1])
	k.dupLane(p, top.v, top.i)
	for i := len(c) - 2; i >= 0; i-- {
		at := k.lane(c[i])
		k.dupLane(q, at.v, at.i)
		k.fmla(q, x, p)
		p, q = q, p
	}
	return p
}

// holdExp loads what exp needs.
func (k *kernel) holdExp() {
	k.hold(approx.ExpMin, approx.ExpMax)
	k.holdBits(127)
	k.pack(approx.Log2E, approx.Ln2Hi, approx.Ln2Lo)
	k.pack(approx.Exp...)
}

// exp returns e^x and destroys x. NaN stays NaN. Results are infinite for
// arguments over 88.72, and zero for those under -87.
func (k *kernel) exp(x reg) reg {
	low, n := k.vec(), k.vec()
	k.fcmgt(low, k.c(approx.ExpMin), x)
	k.fmin(x, x, k.c(approx.ExpMax))
	at := k.lane(approx.Log2E)
	k.fmulLane(n, x, at.v, at.i)
	k.frintn(n, n)
	for _, part := range []float32{approx.Ln2Hi, approx.Ln2Lo} {
		at := k.lane(part)
		k.fmlsLane(x, n, at.v, at.i)
	}
	p := k.poly(x, approx.Exp)
	// Half the exponent is added, the other half multiplied: the product is
	// exact unless it overflows.
	k.fcvtns(n, n)
	k.sshr4(x, n, 1)
	k.sub4(n, n, x)
	k.shl4(x, x, 23)
	k.add4(p, p, x)
	k.add4(n, n, k.constant(127))
	k.shl4(n, n, 23)
	k.fmul(p, p, n)
	k.bic(p, p, low)
	return p
}

// holdExp2 loads what exp2 needs.
func (k *kernel) holdExp2() {
	k.hold(approx.Exp2Min)
	k.pack(approx.Exp2...)
}

// exp2 returns 2^x for x <= 1, or NaN for NaN, and destroys x. Results are zero
// for arguments under -125.
func (k *kernel) exp2(x reg) reg {
	low, n := k.vec(), k.vec()
	k.fcmgt(low, k.c(approx.Exp2Min), x)
	k.frintn(n, x)
	k.fsub(x, x, n)
	p := k.poly(x, approx.Exp2)
	k.fcvtns(n, n)
	k.shl4(n, n, 23)
	k.add4(p, p, n)
	k.bic(p, p, low)
	return p
}

// holdTanh loads what tanh needs.
func (k *kernel) holdTanh() {
	k.holdExp()
	k.hold(1, 2, approx.TanhSmall)
	k.pack(approx.Tanh...)
}

// tanh returns tanh x: the odd polynomial near zero, else 1 - 2/(e^2|x| + 1)
// with the sign of x.
func (k *kernel) tanh(x reg) reg {
	abs, sign, big := k.vec(), k.vec(), k.vec()
	k.fabs(abs, x)
	k.eor(sign, x, abs)
	k.fadd(big, abs, abs)
	k.scoped(func() {
		e := k.exp(big)
		k.fadd(e, e, k.c(1))
		k.fdiv(e, k.c(2), e)
		k.fsub(big, k.c(1), e)
	})
	k.eor(big, big, sign)
	z := sign
	k.fmul(z, x, x)
	p := k.poly(z, approx.Tanh)
	k.fmul(z, z, x)
	k.fmla(x, z, p)
	k.fcmgt(abs, k.c(approx.TanhSmall), abs)
	k.bit(big, x, abs)
	return big
}

// holdErfc loads what halfErfc needs.
func (k *kernel) holdErfc() {
	k.holdExp()
	k.hold(1)
	k.pack(0.5, -0.5, approx.ErfcScale)
	k.pack(approx.Erfc...)
}

// halfErfc returns erfc(|x|/√2)/2, the upper tail of the normal distribution.
func (k *kernel) halfErfc(x reg) reg {
	t, u := k.vec(), k.vec()
	k.fabs(u, x)
	k.mov(t, k.c(1))
	at := k.lane(approx.ErfcScale)
	k.fmlaLane(t, u, at.v, at.i)
	k.fdiv(t, k.c(1), t)
	p := k.poly(t, approx.Erfc)
	k.fmul(u, x, x)
	at = k.lane(-0.5)
	k.fmlaLane(p, u, at.v, at.i)
	p = k.exp(p)
	at = k.lane(0.5)
	k.fmulLane(t, t, at.v, at.i)
	k.fmul(p, p, t)
	return p
}
