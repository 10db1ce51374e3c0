package kernel

import (
	"encoding/binary"
	"math"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// The IQ1, IQ2 and IQ3 formats code 4 or 8 values at a time as an index into a
// large table. Their values are few, though: a small integer scale for 16 or
// 32 values times one of at most 16 levels. The packed form has the level of
// each value as a 4-bit code, with the levels in the superblock's header: it
// reads some more bytes and needs no tables. IQ4_XS has that form already.

// levels are the values of the codes of a 4-bit codebook plus 128, and the
// factor of the scale that makes them the format's.
type levels struct {
	u    [16]byte
	unit float32
}

func levelsOf(unit float32, values ...int) *levels {
	l := &levels{unit: unit}
	for i := range l.u {
		l.u[i] = 128
		if i < len(values) {
			l.u[i] = byte(values[i] + 128)
		}
	}
	return l
}

var (
	levelsIQ4_XS  = &levels{codesIQ4, 1}
	levelsIQ3_S   = levelsOf(1, 1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15)
	levelsIQ3_XXS = levelsOf(1./4, 4, 12, 20, 28, 36, 44, 52, 62, -4, -12, -20, -28, -36, -44, -52, -62)
	levelsIQ2     = levelsOf(1./8, 8, 25, 43, -8, -25, -43)
	levelsIQ1     = levelsOf(1./8, -9, -7, -1, 1, 7, 9) // 8·(-1, 0 or 1) ± 1
)

// head writes the header of a superblock: the float16 factor of a row, and the
// levels and their unit, which are the same for all rows.
func (l *levels) head(dst []byte, lane int, d uint16) {
	binary.LittleEndian.PutUint16(dst[layout.Factor+2*lane:], d)
	copy(dst[layout.Levels:], l.u[:])
	binary.LittleEndian.PutUint32(dst[layout.Unit:], math.Float32bits(l.unit))
}

func packIQ4_XS(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesIQ4_XS {
		return
	}
	levelsIQ4_XS.head(dst, lane, binary.LittleEndian.Uint16(src))
	high := binary.LittleEndian.Uint16(src[2:])
	for n := range 8 {
		low := src[4+n/2] >> (n & 1 * 4) & 15
		p.putScale(dst, lane, n, 0, low|byte(high>>(2*n)&3)<<4-32)
		copyNibbles(p.codes(dst, n), lane, src[8+16*n:][:16])
	}
}

// readScales reads the float16 factor of a native block and the integer scale
// of each 16 values.
type readScales func(b []byte) (d uint16, scales [16]byte)

// packLevels packs blocks of type t.
func packLevels(t tensor.DType, l *levels, read readScales) packFunc {
	var codes [256]byte // by value, as int8
	for i := len(l.u) - 1; i >= 0; i-- {
		codes[l.u[i]-128] = byte(i) << 4
	}
	return func(p *packing, dst []byte, lane int, src []byte) {
		if len(src) < t.BlockBytes() {
			return
		}
		var values [256]float32
		t.Decode(values[:], src)
		d, scales := read(src)
		l.head(dst, lane, d)
		var u [256]byte
		for n, s := range scales {
			scale := tensor.F16ToF32(d) * l.unit * float32(s)
			for i, v := range values[16*n : 16*n+16] {
				if ratio := v / scale; ratio > -128 && ratio < 128 { // else 0/0, or not finite
					u[16*n+i] = codes[byte(int8(math.RoundToEven(float64(ratio))))]
				}
			}
		}
		var q [8]uint32
		for n := range 8 {
			p.putScale(dst, lane, n, 0, scales[2*n])
			if p.Form.Halves() {
				p.putScale(dst, lane, n, 1, scales[2*n+1])
			}
			for j := range q {
				q[j] = le32(u[32*n+4*j:])
			}
			fold4(p.codes(dst, n), lane, &q)
		}
	}
}

// oddNibbles reads 16 or 8 scales 2s+1 from nibbles s.
func oddNibbles(scales *[16]byte, b []byte) {
	per := len(scales) / (2 * len(b)) // scales of 16 values for a nibble
	for i := range scales {
		scales[i] = 2*(b[i/per/2]>>(i/per%2*4)&15) + 1
	}
}

func scalesIQ2_XXS(b []byte) (d uint16, scales [16]byte) {
	for i := range scales {
		scales[i] = 2*(b[2+8*(i/2)+7]>>4) + 1
	}
	return lane16(b, 0), scales
}

func scalesIQ2_XS(b []byte) (d uint16, scales [16]byte) {
	oddNibbles(&scales, b[66:74])
	return lane16(b, 0), scales
}

func scalesIQ2_S(b []byte) (d uint16, scales [16]byte) {
	oddNibbles(&scales, b[74:82])
	return lane16(b, 0), scales
}

func scalesIQ3_XXS(b []byte) (d uint16, scales [16]byte) {
	for i := range scales {
		scales[i] = 2*(b[66+4*(i/2)+3]>>4) + 1
	}
	return lane16(b, 0), scales
}

func scalesIQ3_S(b []byte) (d uint16, scales [16]byte) {
	oddNibbles(&scales, b[106:110])
	return lane16(b, 0), scales
}

func scalesIQ1_S(b []byte) (d uint16, scales [16]byte) {
	for i := range scales {
		scales[i] = 2*(b[34+2*(i/2)+1]>>4&7) + 1
	}
	return lane16(b, 0), scales
}

// scalesIQ1_M reads four words of four scales of 3 bits; the top nibbles of
// the words are the float16.
func scalesIQ1_M(b []byte) (d uint16, scales [16]byte) {
	for i := range scales {
		w := lane16(b[48:], i/4)
		d |= w >> 12 << (i / 4 * 4)
		scales[i] = byte(2*(w>>(i%4*3)&7) + 1)
	}
	return d, scales
}
