package tensor

import (
	"encoding/binary"
	"math"
)

// Superblocks of 256 values cut into 8 or 16 sub-blocks whose scales (and
// minima) are integers times the superblock's: Q2_K to Q6_K, and Q8_K.

// unpackQ4 reads the 8 scales and 8 minima of Q4_K and Q5_K, 6 bits each:
// the first four of each in the low bits of bytes 0-3 and 4-7, the others with
// their low four bits in the nibbles of bytes 8-11 and their high two bits
// above the first four.
func unpackQ4(b *[12]byte) (scales, mins [8]byte) {
	for i := range 4 {
		scales[i], mins[i] = b[i]&63, b[i+4]&63
		scales[i+4] = b[i+8]&15 | b[i]>>6<<4
		mins[i+4] = b[i+8]>>4 | b[i+4]>>6<<4
	}
	return scales, mins
}

func packQ4(b *[12]byte, scales, mins *[8]byte) {
	for i := range 4 {
		b[i] = scales[i] | scales[i+4]>>4<<6
		b[i+4] = mins[i] | mins[i+4]>>4<<6
		b[i+8] = scales[i+4]&15 | mins[i+4]&15<<4
	}
}

// unpackQ3 reads the 16 scales of Q3_K, 6 bits with an offset of 32: the low
// four bits in the nibbles of bytes 0-7, the high two in bytes 8-11.
func unpackQ3(b *[12]byte) (scales [16]int8) {
	for i := range 16 {
		low := b[i%8] >> (i / 8 * 4) & 15
		high := b[8+i%4] >> (i / 4 * 2) & 3
		scales[i] = int8(low|high<<4) - 32
	}
	return scales
}

func packQ3(b *[12]byte, scales *[16]int8) {
	*b = [12]byte{}
	for i, s := range scales {
		code := byte(s + 32)
		b[i%8] |= code & 15 << (i / 8 * 4)
		b[8+i%4] |= code >> 4 << (i / 4 * 2)
	}
}

func decodeQ2_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[84]byte)(src)
		d, dmin := f16(b[80:]), f16(b[82:])
		// Sub-block n of a half has bits 2(n/2) of 16 bytes.
		for n, s := range b[:16] {
			y, qs := (*[16]float32)(dst[16*n:]), (*[16]byte)(b[16+n/8*32+n%2*16:])
			shift := n / 2 % 4 * 2
			scale, least := d*float32(s&15), dmin*float32(s>>4)
			for i, q := range qs {
				y[i] = float32(scale*float32(q>>shift&3)) - least
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeQ3_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[110]byte)(src)
		d := f16(b[108:])
		for n, s := range unpackQ3((*[12]byte)(b[96:])) {
			y := (*[16]float32)(dst[16*n:])
			hs, qs := (*[16]byte)(b[n%2*16:]), (*[16]byte)(b[32+n/8*32+n%2*16:])
			shift, bit := n/2%4*2, n/2
			scale := d * float32(s)
			for i, q := range qs {
				y[i] = scale * float32(int(q>>shift&3|hs[i]>>bit&1<<2)-4)
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeQ4_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[144]byte)(src)
		d, dmin := f16(b[:]), f16(b[2:])
		scales, mins := unpackQ4((*[12]byte)(b[4:]))
		for n := range 4 {
			y, qs := (*[64]float32)(dst[64*n:]), (*[32]byte)(b[16+32*n:])
			d0, m0 := d*float32(scales[2*n]), dmin*float32(mins[2*n])
			d1, m1 := d*float32(scales[2*n+1]), dmin*float32(mins[2*n+1])
			for i, q := range qs {
				y[i] = float32(d0*float32(q&15)) - m0
				y[i+32] = float32(d1*float32(q>>4)) - m1
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeQ5_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[176]byte)(src)
		d, dmin := f16(b[:]), f16(b[2:])
		scales, mins := unpackQ4((*[12]byte)(b[4:]))
		hs := (*[32]byte)(b[16:])
		for n := range 4 {
			y, qs := (*[64]float32)(dst[64*n:]), (*[32]byte)(b[48+32*n:])
			d0, m0 := d*float32(scales[2*n]), dmin*float32(mins[2*n])
			d1, m1 := d*float32(scales[2*n+1]), dmin*float32(mins[2*n+1])
			for i, q := range qs {
				h := hs[i] >> (2 * n)
				y[i] = float32(d0*float32(q&15|h&1<<4)) - m0
				y[i+32] = float32(d1*float32(q>>4|h&2<<3)) - m1
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeQ6_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		b := (*[210]byte)(src)
		d := f16(b[208:])
		// A half of 128 values is 4 quarters of 32. Their low nibbles lie two
		// and two in 64 bytes, their high bits all four in 32 bytes.
		for half := range 2 {
			y := (*[128]float32)(dst[128*half:])
			low, high := (*[64]byte)(b[64*half:]), (*[32]byte)(b[128+32*half:])
			for group := range 2 {
				sc := b[192+8*half+group:]
				d0, d1 := d*float32(int8(sc[0])), d*float32(int8(sc[2]))
				d2, d3 := d*float32(int8(sc[4])), d*float32(int8(sc[6]))
				for i := 16 * group; i < 16*group+16; i++ {
					h := high[i]
					y[i] = d0 * float32(int(low[i]&15|h&3<<4)-32)
					y[i+32] = d1 * float32(int(low[i+32]&15|h>>2&3<<4)-32)
					y[i+64] = d2 * float32(int(low[i]>>4|h>>4&3<<4)-32)
					y[i+96] = d3 * float32(int(low[i+32]>>4|h>>6<<4)-32)
				}
			}
		}
		dst, src = dst[256:], src[len(b):]
	}
}

func decodeQ8_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[256]float32)(dst), (*[292]byte)(src)
		d := math.Float32frombits(binary.LittleEndian.Uint32(b[:]))
		for i, q := range b[4:260] {
			y[i] = d * float32(int8(q))
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}
