package tensor

import "math"

// Q1_0: 128 values of one bit, the scale or its negative. Q2_0: 64 values of two
// bits, -1 to 2 times the scale. Both have a float16 scale before the codes, the
// lowest bits of a byte first. Models are trained for them.

func decodeQ1_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[128]float32)(dst), (*[18]byte)(src)
		d := f16(b[:])
		for i := range y {
			if y[i] = -d; b[2+i/8]>>(i%8)&1 != 0 {
				y[i] = d
			}
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeQ1_0(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[128]float32)(src), (*[18]byte)(dst)
		clear(b[:])
		var sum float32
		for i, v := range x {
			sum += abs32(v)
			if v >= 0 {
				b[2+i/8] |= 1 << (i % 8)
			}
		}
		putF16(b[:], sum/128)
		src, dst = src[len(x):], dst[len(b):]
	}
}

func encodeQ2_0(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[64]float32)(src), (*[18]byte)(dst)
		clear(b[:])
		d := abs32(farthest(x[:]))
		inv := inverse(d)
		putF16(b[:], d)
		for i, v := range x {
			b[2+i/4] |= byte(clamp(roundAway(v*inv)+1, 0, 3)) << (2 * (i % 4))
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

func decodeQ2_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[64]float32)(dst), (*[18]byte)(src)
		d := f16(b[:])
		for i := range y {
			y[i] = float32(int(b[2+i/4]>>(2*(i%4))&3)-1) * d
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

// NVFP4: 64 values with the codes of MXFP4, in sub-blocks of 16 that have a scale
// of 8 bits each (unsigned E4M3: four bits of exponent, three of mantissa). The
// scales come first.

func decodeNVFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[64]float32)(dst), (*[36]byte)(src)
		for s, code := range b[:4] {
			d, values, codes := halfE4M3(code), y[16*s:][:16], b[4+8*s:][:8]
			for i, q := range codes {
				values[i] = mxfp4Values[q&15] * d
				values[i+8] = mxfp4Values[q>>4] * d
			}
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

func encodeNVFP4(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[64]float32)(src), (*[36]byte)(dst)
		for s := range 4 {
			values, codes := x[16*s:][:16], b[4+8*s:][:8]
			b[s] = toE4M3(abs32(farthest(values)) / 6)
			d := halfE4M3(b[s])
			for i := range codes {
				codes[i] = nearestMXFP4(values[i], d) | nearestMXFP4(values[i+8], d)<<4
			}
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

// halfE4M3 returns half of what an unsigned E4M3 number stands for. The format's
// code of NaN, 127, is 0 as in ggml; the highest bit has no meaning.
func halfE4M3(x byte) float32 {
	exp, man := int(x>>3&15), float32(x&7)
	switch {
	case x == 0x7f:
		return 0
	case exp == 0:
		return man / (1 << 10)
	case exp >= 8:
		return (1 + man/8) * float32(int(1)<<(exp-8))
	}
	return (1 + man/8) / float32(int(1)<<(8-exp))
}

// toE4M3 returns the unsigned E4M3 number nearest to x, at least 0: halves round up,
// what is too large becomes the largest.
func toE4M3(x float32) byte {
	bits := math.Float32bits(min(x, 448))
	switch exp := int(bits>>23) - 127 + 7; {
	case !(x > 0):
		return 0
	case exp <= 0:
		return byte(min(7, int(float32(x*512)+0.5)))
	case exp >= 15:
		return 0x7e
	default:
		return byte(min(0x7e, exp<<3+int(bits>>20&7+bits>>19&1)))
	}
}
