package kernel

import "ridge/kernel/internal/layout"

// Formats whose native blocks have 256 values: one of them makes a superblock
// of four pairs. Where a native format spreads the bits of neighbouring blocks
// over the same bytes, the packed one gives each block of 32 its own words.

// scales6 reads the 8 scales and 8 minima of Q4_K and Q5_K, 6 bits each.
func scales6(sc, mn *[8]byte, b []byte) {
	for i := range 4 {
		sc[i], mn[i] = b[i]&63, b[i+4]&63
		sc[i+4] = b[i+8]&15 | b[i]>>6<<4
		mn[i+4] = b[i+8]>>4 | b[i+4]>>6<<4
	}
}

// putScale writes the lane's scale of one byte for half h of block n of the
// superblock at dst; putMin does so for the minimum of a block.
func (p *packing) putScale(dst []byte, lane, n, h int, scale byte) {
	dst[p.at[n&7].scale[h&1]+lane] = scale
}

func (p *packing) putMin(dst []byte, lane, n int, minimum byte) {
	dst[p.at[n&7].min[0]+lane] = minimum
}

// headK writes the headers of Q4_K and Q5_K: two float16 and 12 bytes of
// scales and minima are at src.
func headK(p *packing, dst []byte, lane int, src []byte) {
	putHalf(dst[layout.Factor:], lane, src)
	putHalf(dst[layout.MinFactor:], lane, src[2:])
	var sc, mn [8]byte
	scales6(&sc, &mn, src[4:16])
	for n := range 8 {
		p.putScale(dst, lane, n, 0, sc[n])
		p.putMin(dst, lane, n, mn[n])
	}
}

func packQ4_K(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesQ4_K {
		return
	}
	headK(p, dst, lane, src)
	for n := range 4 {
		low, high := p.codes(dst, 2*n)[:4*64], p.codes(dst, 2*n+1)[:4*64]
		qs := src[16+32*n:][:32]
		for j := range 4 {
			a, b := le32(qs[4*j:]), le32(qs[16+4*j:])
			put(low, lane, j, a&every(0x0f)|b&every(0x0f)<<4)
			put(high, lane, j, a>>4&every(0x0f)|b&every(0xf0))
		}
	}
}

func packQ5_K(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesQ5_K {
		return
	}
	headK(p, dst, lane, src)
	var q [8]uint32
	for n := range 8 {
		qs := src[48+n/2*32:][:32]
		for j := range 8 {
			low := le32(qs[4*j:]) >> (n & 1 * 4) & every(0x0f)
			high := le32(src[16+4*j:]) >> n & every(0x01)
			q[j] = low<<3 | high<<7
		}
		fold5(p.codes(dst, n), lane, &q)
	}
}

func packQ6_K(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesQ6_K {
		return
	}
	putHalf(dst[layout.Factor:], lane, src[208:])
	var q [8]uint32
	for n := range 8 { // block n is quarter n%4 of half n/4
		p.putScale(dst, lane, n, 0, src[192+2*n])
		p.putScale(dst, lane, n, 1, src[192+2*n+1])
		low := src[n/4*64+n&1*32:][:32]
		high := src[128+n/4*32:][:32]
		for j := range 8 {
			l := le32(low[4*j:]) >> (n & 2 * 2) & every(0x0f)
			h := le32(high[4*j:]) >> (n & 3 * 2) & every(0x03)
			q[j] = l<<2 | h<<6
		}
		fold6(p.codes(dst, n), lane, &q)
	}
}

func packQ3_K(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesQ3_K {
		return
	}
	putHalf(dst[layout.Factor:], lane, src[108:])
	var q [8]uint32
	for n := range 8 {
		for h := range 2 {
			i := 2*n + h // scale i: four low bits of 16 nibbles, then two high ones
			low := src[96+i&7] >> (i / 8 * 4) & 15
			high := src[104+i&3] >> (i / 4 * 2) & 3
			p.putScale(dst, lane, n, h, low|high<<4-32)
		}
		qs := src[32+n/4*32:][:32]
		for j := range 8 {
			l := le32(qs[4*j:]) >> (n & 3 * 2) & every(0x03)
			h := le32(src[4*j:]) >> n & every(0x01)
			q[j] = l<<5 | h<<7
		}
		fold3(p.codes(dst, n), lane, &q)
	}
}

func packQ2_K(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesQ2_K {
		return
	}
	putHalf(dst[layout.Factor:], lane, src[80:])
	putHalf(dst[layout.MinFactor:], lane, src[82:])
	var q [8]uint32
	for n := range 8 {
		p.putScale(dst, lane, n, 0, src[2*n])
		p.putScale(dst, lane, n, 1, src[2*n+1])
		qs := src[16+n/4*32:][:32]
		for j := range 8 {
			q[j] = le32(qs[4*j:]) >> (n & 3 * 2) & every(0x03) << 6
		}
		fold2(p.codes(dst, n), lane, &q)
	}
}

// Ternary codes 0, 1, 2 for -1, 0, 1 are stored plus one, so that the code in
// the top two bits of u, less 128, is 64 times the value.

func packTQ2_0(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesTQ2_0 {
		return
	}
	putHalf(dst[layout.Factor:], lane, src[64:])
	var q [8]uint32
	for n := range 8 {
		qs := src[n/4*32:][:32]
		for j := range 8 {
			q[j] = (le32(qs[4*j:])>>(n&3*2)&every(0x03) + every(1)) & every(0x03) << 6
		}
		fold2(p.codes(dst, n), lane, &q)
	}
}

// packTQ1_0 unpacks the ternary digits, five to a byte as a fraction of 256,
// into 2-bit codes: a quarter more bytes to read, and none of the arithmetic.
func packTQ1_0(p *packing, dst []byte, lane int, src []byte) {
	if len(src) < bytesTQ1_0 {
		return
	}
	putHalf(dst[layout.Factor:], lane, src[52:])
	var code [256]byte
	at := 0
	digits := func(bytes []byte, n int) {
		for range n {
			for i, b := range bytes {
				code[at] = byte(uint16(b)*3>>8) + 1
				bytes[i] = b * 3
				at++
			}
		}
	}
	var b [52]byte
	copy(b[:], src)
	digits(b[:32], 5)
	digits(b[32:48], 5)
	digits(b[48:52], 4)
	var q [8]uint32
	for n := range 8 {
		for j := range 8 {
			q[j] = le32(code[32*n+4*j:]) << 6
		}
		fold2(p.codes(dst, n), lane, &q)
	}
}
