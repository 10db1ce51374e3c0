package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
)

// signed generates fitSigned of package tensor, which says what it computes. The first
// place is taken as it is.
func signed(a vec.ISA) {
	f := vec.Begin(a, "fitSigned", "fits sixteen sub-blocks by scales: rows of out are scale and inv, places the negative codes tried for the farthest value.",
		"(out, x, w, wx, places *float32, n, tries int, low, high float32)")
	out, x, w, wx, n := f.Ptr("out"), f.Ptr("x"), f.Ptr("w"), f.Ptr("wx"), f.Ptr("n")
	holdNearest(f)
	holdAbsolute(f)
	low, high := integer(f, "low"), integer(f, "high")
	halves(f, n, func(l *lanes) {
		top, most := zero(f), zero(f)
		l.each("top", func() {
			v, size := copyOf(f, l.row(x)), f.Vec()
			absolute(f, v, size)
			farther := compare(f, greater, size, most)
			move(f, farther, v, top)
			move(f, farther, size, most)
			VMULPS(l.row(w), v, v)
			VMOVUPS(v, l.row(wx))
		})
		tiny := f.Vec()
		VBROADCASTSS(vec.Constant(allZero), tiny)
		some := compare(f, notLess, most, tiny)
		places, left := f.Ptr("places"), f.Ptr("tries")
		scale, best := zero(f), zero(f)
		try := func(name string) (inv, lx, l2 reg.VecVirtual) {
			inv = f.Vec()
			VBROADCASTSS(operand.Mem{Base: places}, inv)
			VDIVPS(top, inv, inv)
			lx, l2 = zero(f), zero(f)
			l.each(name, func() {
				code, t := f.Vec(), f.Vec()
				VMULPS(l.row(x), inv, code)
				nearest(f, code, low, high)
				VCVTDQ2PS(code, code)
				VMULPS(l.row(wx), code, t)
				VADDPS(t, lx, lx)
				VMULPS(l.row(w), code, t)
				VMULPS(t, code, t)
				VADDPS(t, l2, l2)
			})
			return inv, lx, l2
		}
		inv, lx, l2 := try("first")
		none := zero(f)
		ok := compare(f, notEqual, l2, none)
		VDIVPS(l2, lx, l2)
		move(f, ok, l2, scale)
		VMULPS(lx, scale, best)
		chosen := inv
		l.label("try")
		ADDQ(operand.Imm(4), places)
		inv, lx, l2 = try("tries")
		x2, b2, r := f.Vec(), f.Vec(), f.Vec()
		VMULPS(lx, lx, x2)
		VMULPS(l2, best, b2)
		better := both(f, compare(f, greater, x2, b2), compare(f, greater, l2, none))
		VDIVPS(l2, lx, r)
		move(f, better, r, scale)
		VMULPS(lx, r, r)
		move(f, better, r, best)
		move(f, better, inv, chosen)
		DECQ(left)
		JG(l.ref("try"))
		for i, v := range []reg.VecVirtual{scale, chosen} {
			keep := zero(f)
			move(f, some, v, keep)
			VMOVUPS(keep, l.fixed(out, i))
		}
	})
	f.End()
}

const (
	allZero = 0x26901d7d // 1e-15, as package tensor has it
	notLess = 13         // false for NaN
)
