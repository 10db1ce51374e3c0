package tensor

import "math"

// MXFP4, the OCP microscaling format: 32 values of 4 bits (sign, two bits of
// exponent, one of mantissa) that share a power of two.

// mxfp4Values are twice the values of the 16 codes, so that all are integers;
// the shared scale is halved in turn.
var mxfp4Values = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// halfE8M0 returns half the power of two that e stands for: 2^(e-128). The
// format's code 255, NaN, is not given a special meaning.
func halfE8M0(e byte) float32 {
	if e < 2 { // subnormal
		return math.Float32frombits(0x00200000 << e)
	}
	return math.Float32frombits(uint32(e-1) << 23)
}

func decodeMXFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := (*[32]float32)(dst), (*[17]byte)(src)
		d := halfE8M0(b[0])
		for i, q := range b[1:] {
			y[i] = mxfp4Values[q&15] * d
			y[i+16] = mxfp4Values[q>>4] * d
		}
		dst, src = dst[len(y):], src[len(b):]
	}
}

// encodeMXFP4 takes the scale that puts the largest magnitude into the last
// binade of the codes, and for each value the nearest code. Below 2^-125 that
// scale has no code: the smallest is taken (where ggml's quantizer wraps around
// to a large one and stores zeros).
func encodeMXFP4(dst []byte, src []float32) {
	for len(src) > 0 {
		x, b := (*[32]float32)(src), (*[17]byte)(dst)
		b[0] = 0
		if top := abs32(farthest(x[:])); top > 0 {
			// The logarithm is rounded to float32 before its fraction is dropped.
			exponent := math.Floor(float64(float32(math.Log2(float64(top)))))
			b[0] = byte(max(0, exponent-2+127))
		}
		d := halfE8M0(b[0])
		for i := range 16 {
			b[1+i] = nearestMXFP4(x[i], d) | nearestMXFP4(x[i+16], d)<<4
		}
		src, dst = src[len(x):], dst[len(b):]
	}
}

// nearestMXFP4 returns the first code whose value times d is nearest to x.
func nearestMXFP4(x, d float32) byte {
	best, bestErr := 0, abs32(float32(mxfp4Values[0]*d)-x)
	for i, v := range mxfp4Values {
		if err := abs32(float32(v*d) - x); err < bestErr {
			best, bestErr = i, err
		}
	}
	return byte(best)
}
