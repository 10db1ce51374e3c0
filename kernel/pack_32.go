package kernel

import "encoding/binary"

// Formats whose native blocks have 32 values: two of them make a superblock,
// which is one pair.

// The bytes of a block in the file, that of IQ4_NL being as long as that of
// Q4_0. Package tensor has them too, but a compiler that knows them leaves out
// checks of bounds, and packing is up to twice as fast; a test compares them.
const (
	bytesQ8_0   = 34
	bytesQ4_0   = 18
	bytesQ4_1   = 20
	bytesQ5_0   = 22
	bytesQ5_1   = 24
	bytesMXFP4  = 17
	bytesQ4_K   = 144
	bytesQ5_K   = 176
	bytesQ6_K   = 210
	bytesQ3_K   = 110
	bytesQ2_K   = 84
	bytesIQ4_XS = 136
	bytesTQ1_0  = 54
	bytesTQ2_0  = 66
)

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// putHalf copies the two bytes at src to the lane of a row of them.
func putHalf(dst []byte, lane int, src []byte) {
	binary.LittleEndian.PutUint16(dst[2*lane:], binary.LittleEndian.Uint16(src))
}

func packQ8_0(p *packing, dst []byte, lane int, src []byte) {
	const size = bytesQ8_0
	for b := 0; b < 2 && len(src) >= size; b++ {
		x := (*[size]byte)(src)
		putHalf(dst[p.at[b].scale[0]:], lane, x[:])
		block := (*[8 * 64]byte)(p.codes(dst, b))[4*lane:]
		for j := range 8 {
			put(block, 0, j, le32(x[2+4*j:])^every(0x80))
		}
		src = src[size:]
	}
}

// codes returns the superblock at dst from the codes of block n on.
func (p *packing) codes(dst []byte, n int) []byte { return dst[p.at[n&7].codes:] }

// packNibbles copies blocks of a float16 scale and 16 bytes with columns i and
// i+16 in the nibbles of byte i: the order that fold4 makes.
func packNibbles(p *packing, dst []byte, lane int, src []byte) {
	const size = bytesQ4_0
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[p.at[b].scale[0]:], lane, src)
		copyNibbles(p.codes(dst, b), lane, src[2:18])
		src = src[size:]
	}
}

func copyNibbles(block []byte, lane int, src []byte) {
	block = block[:4*64]
	for j := range 4 {
		put(block, lane, j, le32(src[4*j:]))
	}
}

// packNibblesMin is packNibbles for blocks that begin with a scale and a
// minimum.
func packNibblesMin(p *packing, dst []byte, lane int, src []byte) {
	const size = bytesQ4_1
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[p.at[b].scale[0]:], lane, src)
		putHalf(dst[p.at[b].min[0]:], lane, src[2:])
		copyNibbles(p.codes(dst, b), lane, src[4:20])
		src = src[size:]
	}
}

// packMXFP4 turns the power-of-two scale of a block into a bfloat16. The code
// of an exponent byte e is 2^(e-127) for values in halves, so the scale of the
// codebook's integers is 2^(e-128), which is subnormal for the first two.
func packMXFP4(p *packing, dst []byte, lane int, src []byte) {
	const size = bytesMXFP4
	for b := 0; b < 2 && len(src) >= size; b++ {
		scale := uint16(0x20) << (src[0] & 1) // e = 0 and e = 1
		if src[0] >= 2 {
			scale = uint16(src[0]-1) << 7
		}
		binary.LittleEndian.PutUint16(dst[p.at[b].scale[0]+2*lane:], scale)
		copyNibbles(p.codes(dst, b), lane, src[1:17])
		src = src[size:]
	}
}

// spread has, for 4 bits, a quad with the top bit of byte i set for bit i.
var spread = func() (t [16]uint32) {
	for i := range t {
		n := uint32(i)
		t[i] = n&1<<7 | n>>1&1<<15 | n>>2&1<<23 | n>>3<<31
	}
	return t
}()

// quads5 makes the quads of 5-bit codes from 16 bytes of nibbles and the 32
// bits above them.
func quads5(q *[8]uint32, nibbles []byte, high uint32) {
	for j := range 4 {
		x := le32(nibbles[4*j:])
		q[j] = x<<3&every(0x78) | spread[high>>(4*j)&15]
		q[4+j] = x>>1&every(0x78) | spread[high>>(16+4*j)&15]
	}
}

func packQ5_0(p *packing, dst []byte, lane int, src []byte) {
	const size = bytesQ5_0
	var q [8]uint32
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[p.at[b].scale[0]:], lane, src)
		quads5(&q, src[6:22], le32(src[2:]))
		fold5(p.codes(dst, b), lane, &q)
		src = src[size:]
	}
}

func packQ5_1(p *packing, dst []byte, lane int, src []byte) {
	const size = bytesQ5_1
	var q [8]uint32
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[p.at[b].scale[0]:], lane, src)
		putHalf(dst[p.at[b].min[0]:], lane, src[2:])
		quads5(&q, src[8:24], le32(src[4:]))
		fold5(p.codes(dst, b), lane, &q)
		src = src[size:]
	}
}
