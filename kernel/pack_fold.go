package kernel

import "encoding/binary"

// The codes of a block are eight quads: quad j has columns 4j to 4j+3 in its
// four bytes, each code in the top bits of its byte. fold puts the quads of
// one row in as many 32-bit words as a code has bits, with no bit unused and
// placed so that unfold needs few operations: most quads come from one shift
// and one mask, which leaves them where the kernels want them. (That the length
// of a block is a constant there saves most checks of bounds.)

// put stores v as the lane's part of vector vec of the block at dst.
func put(dst []byte, lane, vec int, v uint32) {
	at := 64*vec + 4*lane
	binary.LittleEndian.PutUint32(dst[at:at+4], v)
}

// every repeats a byte in all four bytes of a quad.
func every(b uint32) uint32 { return b * 0x01010101 }

func fold4(dst []byte, lane int, q *[8]uint32) {
	dst = dst[:4*64]
	for j := range 4 {
		put(dst, lane, j, q[j]>>4|q[4+j])
	}
}

func fold5(dst []byte, lane int, q *[8]uint32) {
	dst = dst[:5*64]
	for j := range 4 {
		put(dst, lane, 1+j, q[j]|q[4+j]>>5&every(0x07))
	}
	put(dst, lane, 0, q[4]>>3&every(0x03)|q[5]>>1&every(0x0c)|q[6]<<1&every(0x30)|q[7]<<3&every(0xc0))
}

func fold6(dst []byte, lane int, q *[8]uint32) {
	dst = dst[:6*64]
	for i := range 3 {
		put(dst, lane, i, q[i]|q[6]>>(6-2*i)&every(0x03))
		put(dst, lane, 3+i, q[3+i]|q[7]>>(6-2*i)&every(0x03))
	}
}

func fold3(dst []byte, lane int, q *[8]uint32) {
	dst = dst[:3*64]
	put(dst, lane, 0, q[0]|q[3]>>3&every(0x1c)|q[6]>>6&every(0x03))
	put(dst, lane, 1, q[1]|q[4]>>3&every(0x1c)|q[7]>>6&every(0x03))
	put(dst, lane, 2, q[2]|q[5]>>3&every(0x1c)|q[6]>>4&every(0x02)|q[7]>>5&every(0x01))
}

func fold2(dst []byte, lane int, q *[8]uint32) {
	dst = dst[:2*64]
	put(dst, lane, 0, q[0]|q[1]>>2|q[2]>>4|q[3]>>6)
	put(dst, lane, 1, q[4]|q[5]>>2|q[6]>>4|q[7]>>6)
}

// unfold is the inverse of fold for one row: src starts at the block.
func unfold(q *[8]uint32, src []byte, lane, bits int) {
	var v [8]uint32
	for i := range bits {
		v[i] = binary.LittleEndian.Uint32(src[64*i+4*lane:])
	}
	switch bits {
	case 8:
		*q = v
	case 6:
		for i := range 6 {
			q[i] = v[i] & every(0xfc)
		}
		q[6] = v[0]<<6&every(0xc0) | v[1]<<4&every(0x30) | v[2]<<2&every(0x0c)
		q[7] = v[3]<<6&every(0xc0) | v[4]<<4&every(0x30) | v[5]<<2&every(0x0c)
	case 5:
		for i := range 4 {
			q[i] = v[1+i] & every(0xf8)
			q[4+i] = v[1+i] << 5 & every(0xe0)
		}
		q[4] |= v[0] << 3 & every(0x18)
		q[5] |= v[0] << 1 & every(0x18)
		q[6] |= v[0] >> 1 & every(0x18)
		q[7] |= v[0] >> 3 & every(0x18)
	case 4:
		for i := range 4 {
			q[i] = v[i] << 4 & every(0xf0)
			q[4+i] = v[i] & every(0xf0)
		}
	case 3:
		for i := range 3 {
			q[i] = v[i] & every(0xe0)
			q[3+i] = v[i] << 3 & every(0xe0)
		}
		q[6] = v[0]<<6&every(0xc0) | v[2]<<4&every(0x20)
		q[7] = v[1]<<6&every(0xc0) | v[2]<<5&every(0x20)
	case 2:
		for i := range 4 {
			q[i] = v[0] << (2 * i) & every(0xc0)
			q[4+i] = v[1] << (2 * i) & every(0xc0)
		}
	}
}

// lookup replaces the top-aligned 4-bit codes of q by their codebook's bytes.
func lookup(q *[8]uint32, codebook *[16]byte) {
	for j, v := range q {
		q[j] = uint32(codebook[v>>4&15]) | uint32(codebook[v>>12&15])<<8 |
			uint32(codebook[v>>20&15])<<16 | uint32(codebook[v>>28])<<24
	}
}
