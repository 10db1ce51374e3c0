package tensor

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// Superblocks of 256 values whose magnitudes come from codebooks (iqgrids.go):
// IQ1, IQ2 and IQ3. An index stands for 8 (IQ1, IQ2) or 4 (IQ3) values.

var (
	iq2Levels   = [4]float32{8, 25, 43} // a codebook has no level 3
	iq3xxLevels = [8]float32{4, 12, 20, 28, 36, 44, 52, 62}
)

// signs7 restores the 8 signs of formats that store 7: their number is even.
func signs7(s uint32) byte {
	s &= 127
	return byte(s) | byte(bits.OnesCount32(s)&1)<<7
}

// negateIf returns -v if bit i of signs is set.
func negateIf(v float32, signs byte, i int) float32 {
	return math.Float32frombits(math.Float32bits(v) ^ uint32(signs>>i)<<31)
}

// decodeIQ2 writes the 8 values of a codebook entry.
func decodeIQ2(y *[8]float32, entry uint16, d float32, signs byte) {
	for i := range y {
		y[i] = negateIf(d*iq2Levels[entry>>(2*i)&3], signs, i)
	}
}

// iq2Scale returns the scale of a sub-block of an IQ2 format with the 4-bit code s.
func iq2Scale(d float32, s byte) float32 { return d * (0.5 + float32(s)) * 0.25 }

func decodeIQ2_XXS(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[66]byte)(src)
		d := f16(b[:])
		for n := range 8 {
			// 4 indices of 8 bits; 4 times 7 signs and a scale in 32 bits.
			y, q := dst[32*n:], b[2+8*n:]
			rest := binary.LittleEndian.Uint32(q[4:])
			scale := iq2Scale(d, byte(rest>>28))
			for i, index := range q[:4] {
				decodeIQ2((*[8]float32)(y[8*i:]), iq2xxsGrid[index], scale, signs7(rest>>(7*i)))
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeIQ2_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[74]byte)(src)
		d := f16(b[:])
		for n := range 32 {
			// 9 bits of index, 7 signs; a scale of 4 bits for two entries.
			q := binary.LittleEndian.Uint16(b[2+2*n:])
			scale := iq2Scale(d, b[66+n/4]>>(n/2%2*4)&15)
			decodeIQ2((*[8]float32)(dst[8*n:]), iq2xsGrid[q&511], scale, signs7(uint32(q>>9)))
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeIQ2_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[82]byte)(src)
		d := f16(b[:])
		low, signs, high, scales := b[2:34], b[34:66], b[66:74], b[74:82]
		for n := range 32 {
			index := int(low[n]) | int(high[n/4]>>(n%4*2)&3)<<8
			scale := iq2Scale(d, scales[n/4]>>(n/2%2*4)&15)
			decodeIQ2((*[8]float32)(dst[8*n:]), iq2sGrid[index], scale, signs[n])
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeIQ3_XXS(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[98]byte)(src)
		d := f16(b[:])
		for n := range 8 {
			// 8 indices of 8 bits; 4 times 7 signs and a scale in 32 bits.
			rest := binary.LittleEndian.Uint32(b[66+4*n:])
			scale := d * (0.5 + float32(rest>>28)) * 0.5
			for i := range 4 {
				y := (*[8]float32)(dst[32*n+8*i:])
				signs := signs7(rest >> (7 * i))
				e0, e1 := iq3xxsGrid[b[2+8*n+2*i]], iq3xxsGrid[b[3+8*n+2*i]]
				for j := range 4 {
					y[j] = negateIf(scale*iq3xxLevels[e0>>(3*j)&7], signs, j)
					y[j+4] = negateIf(scale*iq3xxLevels[e1>>(3*j)&7], signs, j+4)
				}
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeIQ3_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[110]byte)(src)
		d := f16(b[:])
		low, high, signs, scales := b[2:66], b[66:74], b[74:106], b[106:110]
		for n := range 64 {
			y := (*[4]float32)(dst[4*n:])
			entry := iq3sGrid[int(low[n])|int(high[n/8]>>(n%8)&1)<<8]
			scale := d * float32(1+2*(scales[n/16]>>(n/8%2*4)&15))
			s := signs[n/2] >> (n % 2 * 4)
			for i := range y {
				// The levels are 1, 3, ... 15.
				y[i] = negateIf(scale*float32(2*(entry>>(3*i)&7)+1), s, i)
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

// iq1Delta shifts the levels -1, 0, 1 of an IQ1 sub-block, up or down.
const iq1Delta = 0.125

// decodeIQ1 writes the 8 values of a codebook entry; down selects the shift.
func decodeIQ1(y *[8]float32, entry uint16, d float32, down bool) {
	shift := float32(-1 + iq1Delta)
	if down {
		shift = -1 - iq1Delta
	}
	for i := range y {
		y[i] = d * (float32(entry>>(2*i)&3) + shift)
	}
}

func decodeIQ1_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[50]byte)(src)
		d := f16(b[:])
		for n := range 8 {
			// 4 times 3 high bits of an index, a scale, the shift.
			h := int(binary.LittleEndian.Uint16(b[34+2*n:]))
			scale := d * float32(2*(h>>12&7)+1)
			for i := range 4 {
				index := int(b[2+4*n+i]) | h>>(3*i)&7<<8
				decodeIQ1((*[8]float32)(dst[32*n+8*i:]), iq1Grid[index], scale, h>>15 != 0)
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeIQ1_M(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[56]byte)(src)
		// 4 words of 4 scales of 3 bits; their top nibbles are the float16.
		var scales [4]uint16
		var half uint16
		for i := range scales {
			scales[i] = binary.LittleEndian.Uint16(b[48+2*i:])
			half |= scales[i] >> 12 << (4 * i)
		}
		d := F16ToF32(half)
		for n := range 32 {
			// 8 low bits of the index; a nibble with 3 high bits and the shift.
			h := b[32+n/2] >> (n % 2 * 4) & 15
			scale := d * float32(2*(scales[n/8]>>(n/2%4*3)&7)+1)
			decodeIQ1((*[8]float32)(dst[8*n:]), iq1Grid[int(b[n])|int(h&7)<<8], scale, h>>3 != 0)
		}
		dst, src = dst[256:], src[len(b):]
	}
}
