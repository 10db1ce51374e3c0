package kernel

import "encoding/binary"

// Formats whose native blocks have 32 values: two of them make a superblock,
// which is one pair.

func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }

// putHalf copies the two bytes at src to the lane of a row of them.
func putHalf(dst []byte, lane int, src []byte) {
	binary.LittleEndian.PutUint16(dst[2*lane:], binary.LittleEndian.Uint16(src))
}

func packQ8_0(dst []byte, lane int, src []byte) {
	const size = 34
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[32*b:], lane, src)
		block := dst[64+512*b : 64+512*b+512]
		for j := range 8 {
			put(block, lane, j, le32(src[2+4*j:])^every(0x80))
		}
		src = src[size:]
	}
}

// packNibbles copies blocks of size bytes, a float16 scale and 16 bytes with
// columns i and i+16 in the nibbles of byte i: the order that fold4 makes.
func packNibbles(size int) packFunc {
	return func(dst []byte, lane int, src []byte) {
		for b := 0; b < 2 && len(src) >= size; b++ {
			putHalf(dst[32*b:], lane, src)
			copyNibbles(dst[64+256*b:64+256*b+256], lane, src[2:18])
			src = src[size:]
		}
	}
}

func copyNibbles(block []byte, lane int, src []byte) {
	for j := range 4 {
		put(block, lane, j, le32(src[4*j:]))
	}
}

// packNibblesMin is packNibbles for blocks that begin with a scale and a
// minimum.
func packNibblesMin(dst []byte, lane int, src []byte) {
	const size = 20
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[32*b:], lane, src)
		putHalf(dst[64+32*b:], lane, src[2:])
		copyNibbles(dst[128+256*b:128+256*b+256], lane, src[4:20])
		src = src[size:]
	}
}

// packMXFP4 turns the power-of-two scale of a block into a bfloat16. The code
// of an exponent byte e is 2^(e-127) for values in halves, so the scale of the
// codebook's integers is 2^(e-128), which is subnormal for the first two.
func packMXFP4(dst []byte, lane int, src []byte) {
	const size = 17
	for b := 0; b < 2 && len(src) >= size; b++ {
		scale := uint16(0x20) << (src[0] & 1) // e = 0 and e = 1
		if src[0] >= 2 {
			scale = uint16(src[0]-1) << 7
		}
		binary.LittleEndian.PutUint16(dst[32*b+2*lane:], scale)
		copyNibbles(dst[64+256*b:64+256*b+256], lane, src[1:17])
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

func packQ5_0(dst []byte, lane int, src []byte) {
	const size = 22
	var q [8]uint32
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[32*b:], lane, src)
		quads5(&q, src[6:22], le32(src[2:]))
		fold5(dst[64+320*b:64+320*b+320], lane, &q)
		src = src[size:]
	}
}

func packQ5_1(dst []byte, lane int, src []byte) {
	const size = 24
	var q [8]uint32
	for b := 0; b < 2 && len(src) >= size; b++ {
		putHalf(dst[32*b:], lane, src)
		putHalf(dst[64+32*b:], lane, src[2:])
		quads5(&q, src[8:24], le32(src[4:]))
		fold5(dst[128+320*b:128+320*b+320], lane, &q)
		src = src[size:]
	}
}
