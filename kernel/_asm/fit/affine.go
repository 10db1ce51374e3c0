package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ridge/kernel/_asm/vec"
)

// affine generates fitAffine of package tensor, which says what it computes.
func affine(a vec.ISA, name string, abs bool) {
	f := vec.Begin(a, name, "fits sixteen sub-blocks by scales and minima: rows of out are scale, least, inv and from, places the numbers of codes tried.",
		"(out, x, w, codes, places *float32, n, tries int, top float32)")
	out, x, w, codes, n := f.Ptr("out"), f.Ptr("x"), f.Ptr("w"), f.Ptr("codes"), f.Ptr("n")
	holdNearest(f)
	holdAbsolute(f)
	halves(f, n, func(l *lanes) {
		s := &affineSearch{lanes: l, out: out, x: x, w: w, codes: codes, abs: abs}
		s.begin()
		s.tries()
	})
	f.End()
}

// affineSearch is the state of the search. What is seldom used lies in rows of out:
// scale, least (negated until the end), inv, from, highest, Σw, Σwx, the best error.
type affineSearch struct {
	*lanes
	out, x, w, codes reg.GPVirtual
	abs              bool
}

// Rows of out.
const (
	rowScale = iota
	rowOffset
	rowInv
	rowFrom
	rowHighest
	rowSumW
	rowSumX
	rowError
)

func (s *affineSearch) load(row int) reg.VecVirtual { return copyOf(s.Func, s.fixed(s.out, row)) }

func (s *affineSearch) store(v reg.VecVirtual, row int) { VMOVUPS(v, s.fixed(s.out, row)) }

// begin finds the bounds and the sums of weights, and fits the plain scale.
func (s *affineSearch) begin() {
	f := s.Func
	offset, highest := copyOf(f, s.fixed(s.x, 0)), copyOf(f, s.fixed(s.x, 0))
	sumW, sumX := zero(f), zero(f)
	s.each("sums", func() {
		v, w := copyOf(f, s.row(s.x)), copyOf(f, s.row(s.w))
		VADDPS(w, sumW, sumW)
		VMINPS(offset, v, offset) // the second of two zeros stays
		VMAXPS(highest, v, highest)
		VMULPS(w, v, w)
		VADDPS(w, sumX, sumX)
	})
	s.store(sumW, rowSumW)
	s.store(sumX, rowSumX)
	none := zero(f)
	VMINPS(offset, none, offset)
	s.store(offset, rowOffset)
	s.store(offset, rowFrom)
	s.store(highest, rowHighest)
	inv, span := f.Scalar("top"), f.Vec()
	VSUBPS(offset, highest, span)
	VDIVPS(span, inv, inv)
	some := compare(f, notEqual, highest, offset)
	one, scale := f.Vec(), f.Vec()
	VBROADCASTSS(vec.Constant(0x3f800000), one)
	VDIVPS(inv, one, scale)
	// Where all values are alike inv, scale and the best error become zero: the codes
	// are zero and nothing is better.
	for _, v := range []reg.VecVirtual{inv, scale} {
		keep := zero(f)
		move(f, some, v, keep)
		VMOVUPS(keep, v)
	}
	s.store(scale, rowScale)
	s.store(inv, rowInv)
	s.choose("first", inv, offset, nil)
	best := s.error("error", scale, offset)
	s.store(best, rowError)
}

// choose computes codes for inv and offset, and calls more with each value, its weight
// and its code.
func (s *affineSearch) choose(name string, inv, offset reg.VecVirtual, more func(v, w, code reg.VecVirtual)) {
	f := s.Func
	low, high := zero(f), integer(f, "top")
	s.each(name, func() {
		v, code := copyOf(f, s.row(s.x)), f.Vec()
		VSUBPS(offset, v, code)
		VMULPS(inv, code, code)
		nearest(f, code, low, high)
		VCVTDQ2PS(code, code)
		VMOVUPS(code, s.row(s.codes))
		if more != nil {
			more(v, copyOf(f, s.row(s.w)), code)
		}
	})
}

// error returns Σ w·|scale·code + offset - x|, or of squares.
func (s *affineSearch) error(name string, scale, offset reg.VecVirtual) reg.VecVirtual {
	f := s.Func
	sum := zero(f)
	s.each(name, func() {
		d := f.Vec()
		VMULPS(s.row(s.codes), scale, d)
		VADDPS(offset, d, d)
		VSUBPS(s.row(s.x), d, d)
		if s.abs {
			absolute(f, d, d)
		} else {
			VMULPS(d, d, d)
		}
		VMULPS(s.row(s.w), d, d)
		VADDPS(d, sum, sum)
	})
	return sum
}

// tries tries all places, and turns the minimum's sign in the end.
func (s *affineSearch) tries() {
	f := s.Func
	places, left := f.Ptr("places"), f.Ptr("tries")
	s.label("try")
	inv, offset, span := f.Vec(), s.load(rowOffset), s.load(rowHighest)
	VSUBPS(offset, span, span)
	VBROADCASTSS(operand.Mem{Base: places}, inv)
	VDIVPS(span, inv, inv)
	sumL, sumL2, sumXL := zero(f), zero(f), zero(f)
	s.choose("choose", inv, offset, func(v, w, code reg.VecVirtual) {
		VMULPS(code, w, w)
		VADDPS(w, sumL, sumL)
		VMULPS(w, v, v)
		VADDPS(v, sumXL, sumXL)
		VMULPS(code, w, w)
		VADDPS(w, sumL2, sumL2)
	})
	sumW, sumX := s.load(rowSumW), s.load(rowSumX)
	det, t := f.Vec(), f.Vec()
	VMULPS(sumL2, sumW, det)
	VMULPS(sumL, sumL, t)
	VSUBPS(t, det, det)
	none := zero(f)
	good := compare(f, greater, det, none)
	newScale, newOffset := f.Vec(), f.Vec()
	VMULPS(sumXL, sumW, newScale)
	VMULPS(sumL, sumX, t)
	VSUBPS(t, newScale, newScale)
	VDIVPS(det, newScale, newScale)
	VMULPS(sumX, sumL2, newOffset)
	VMULPS(sumXL, sumL, t)
	VSUBPS(t, newOffset, newOffset)
	VDIVPS(det, newOffset, newOffset)
	VDIVPS(sumL2, sumXL, t)
	above := compare(f, greater, newOffset, none)
	move(f, above, t, newScale)
	move(f, above, none, newOffset)
	sum := s.error("errors", newScale, newOffset)
	best := s.load(rowError)
	good = both(f, good, compare(f, less, sum, best))
	for _, set := range []struct {
		row int
		to  reg.VecVirtual
	}{{rowError, sum}, {rowScale, newScale}, {rowInv, inv}, {rowFrom, offset}, {rowOffset, newOffset}} {
		old := s.load(set.row)
		move(f, good, set.to, old)
		s.store(old, set.row)
	}
	ADDQ(operand.Imm(4), places)
	DECQ(left)
	JG(s.ref("try"))
	least := f.Vec()
	VBROADCASTSS(vec.Constant(0x80000000), least)
	VXORPS(s.fixed(s.out, rowOffset), least, least)
	s.store(least, rowOffset)
}
