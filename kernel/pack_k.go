package kernel

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

// headK writes the headers of Q4_K and Q5_K: two float16 and 12 bytes of
// scales and minima are at src.
func headK(dst []byte, lane, pairBytes int, src []byte) {
	copy(dst[2*lane:], src[:2])
	copy(dst[32+2*lane:], src[2:4])
	var sc, mn [8]byte
	scales6(&sc, &mn, src[4:16])
	for i := range 8 {
		pair := dst[64+i/2*pairBytes:]
		pair[16*(i&1)+lane] = sc[i]
		pair[32+16*(i&1)+lane] = mn[i]
	}
}

func packQ4_K(dst []byte, lane int, src []byte) {
	const pairBytes = 64 + 2*256
	if len(src) < 144 {
		return
	}
	headK(dst, lane, pairBytes, src)
	for p := range 4 {
		pair := dst[64+p*pairBytes+64:][:512]
		qs := src[16+32*p:][:32]
		for j := range 4 {
			a, b := le32(qs[4*j:]), le32(qs[16+4*j:])
			put(pair, lane, j, a&every(0x0f)|b&every(0x0f)<<4)
			put(pair, lane, 4+j, a>>4&every(0x0f)|b&every(0xf0))
		}
	}
}

func packQ5_K(dst []byte, lane int, src []byte) {
	const pairBytes = 64 + 2*320
	if len(src) < 176 {
		return
	}
	headK(dst, lane, pairBytes, src)
	var q [8]uint32
	for n := range 8 {
		qs := src[48+n/2*32:][:32]
		for j := range 8 {
			low := le32(qs[4*j:]) >> (n & 1 * 4) & every(0x0f)
			high := le32(src[16+4*j:]) >> n & every(0x01)
			q[j] = low<<3 | high<<7
		}
		fold5(dst[64+n/2*pairBytes+64+n&1*320:][:320], lane, &q)
	}
}

func packQ6_K(dst []byte, lane int, src []byte) {
	const pairBytes = 64 + 2*384
	if len(src) < 210 {
		return
	}
	copy(dst[2*lane:], src[208:210])
	var q [8]uint32
	for n := range 8 { // block n is quarter n%4 of half n/4
		pair := dst[64+n/2*pairBytes:][:pairBytes]
		pair[32*(n&1)+lane] = src[192+2*n]
		pair[32*(n&1)+16+lane] = src[192+2*n+1]
		low := src[n/4*64+n&1*32:][:32]
		high := src[128+n/4*32:][:32]
		for j := range 8 {
			l := le32(low[4*j:]) >> (n & 2 * 2) & every(0x0f)
			h := le32(high[4*j:]) >> (n & 3 * 2) & every(0x03)
			q[j] = l<<2 | h<<6
		}
		fold6(pair[64+n&1*384:][:384], lane, &q)
	}
}

func packQ3_K(dst []byte, lane int, src []byte) {
	const pairBytes = 64 + 2*192
	if len(src) < 110 {
		return
	}
	copy(dst[2*lane:], src[108:110])
	var q [8]uint32
	for n := range 8 {
		pair := dst[64+n/2*pairBytes:][:pairBytes]
		for h := range 2 {
			i := 2*n + h // scale i: four low bits of 16 nibbles, then two high ones
			low := src[96+i&7] >> (i / 8 * 4) & 15
			high := src[104+i&3] >> (i / 4 * 2) & 3
			pair[32*(n&1)+16*h+lane] = low | high<<4 - 32
		}
		qs := src[32+n/4*32:][:32]
		for j := range 8 {
			l := le32(qs[4*j:]) >> (n & 3 * 2) & every(0x03)
			h := le32(src[4*j:]) >> n & every(0x01)
			q[j] = l<<5 | h<<7
		}
		fold3(pair[64+n&1*192:][:192], lane, &q)
	}
}

func packQ2_K(dst []byte, lane int, src []byte) {
	const pairBytes = 64 + 2*128
	if len(src) < 84 {
		return
	}
	copy(dst[2*lane:], src[80:82])
	copy(dst[32+2*lane:], src[82:84])
	var q [8]uint32
	for n := range 8 {
		pair := dst[64+n/2*pairBytes:][:pairBytes]
		pair[32*(n&1)+lane] = src[2*n]
		pair[32*(n&1)+16+lane] = src[2*n+1]
		qs := src[16+n/4*32:][:32]
		for j := range 8 {
			q[j] = le32(qs[4*j:]) >> (n & 3 * 2) & every(0x03) << 6
		}
		fold2(pair[64+n&1*128:][:128], lane, &q)
	}
}

// Ternary codes 0, 1, 2 for -1, 0, 1 are stored plus one, so that the code in
// the top two bits of u, less 128, is 64 times the value.

func packTQ2_0(dst []byte, lane int, src []byte) {
	const pairBytes = 2 * 128
	if len(src) < 66 {
		return
	}
	copy(dst[2*lane:], src[64:66])
	var q [8]uint32
	for n := range 8 {
		qs := src[n/4*32:][:32]
		for j := range 8 {
			q[j] = (le32(qs[4*j:])>>(n&3*2)&every(0x03) + every(1)) & every(0x03) << 6
		}
		fold2(dst[64+n/2*pairBytes+n&1*128:][:128], lane, &q)
	}
}

// packTQ1_0 unpacks the ternary digits, five to a byte as a fraction of 256,
// into 2-bit codes: a quarter more bytes to read, and none of the arithmetic.
func packTQ1_0(dst []byte, lane int, src []byte) {
	const pairBytes = 2 * 128
	if len(src) < 54 {
		return
	}
	copy(dst[2*lane:], src[52:54])
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
		fold2(dst[64+n/2*pairBytes+n&1*128:][:128], lane, &q)
	}
}
