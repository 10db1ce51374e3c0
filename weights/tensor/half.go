package tensor

import (
	"encoding/binary"
	"math"
)

// F16ToF32 converts an IEEE 754 binary16 value. The conversion is exact;
// subnormals, infinities and the sign of zero are kept, a NaN keeps its
// payload and becomes quiet.
func F16ToF32(h uint16) float32 {
	rest := uint32(h&0x7fff) << 13
	// The exponent is now biased by 15 instead of 127. A multiplication by
	// 2^(127-15) corrects it and normalizes subnormals on the way.
	bits := math.Float32bits(math.Float32frombits(rest)*0x1p112) | uint32(h&0x8000)<<16
	if rest >= 0x0f800000 { // infinity or NaN
		bits |= 0x7f800000
		if rest != 0x0f800000 {
			bits |= 0x00400000
		}
	}
	return math.Float32frombits(bits)
}

// F32ToF16 converts to IEEE 754 binary16, rounding to nearest even. Values
// that round beyond 65504 become infinities, a NaN becomes quiet and keeps the
// high bits of its payload.
func F32ToF16(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(abs>>13&0x3ff)
	case abs >= 0x47800000: // 65536 and above
		return sign | 0x7c00
	case abs < 0x38800000: // below the smallest normal, 2^-14
		// Next to 0.5 a float32 has steps of 2^-24, those of a binary16
		// subnormal: the addition rounds to them.
		return sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-0x3f000000)
	}
	// Rounding may carry into the exponent, up to infinity: that is right.
	return sign | uint16((abs+0xfff+abs>>13&1)>>13-112<<10)
}

// BF16ToF32 converts a bfloat16 value, the upper half of a float32; exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 converts to bfloat16, rounding to nearest even; values that round
// beyond the largest become infinities, a NaN becomes quiet and keeps the high
// bits of its payload.
func F32ToBF16(f float32) uint16 {
	bits := math.Float32bits(f)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// f16 reads the little-endian binary16 at the start of b.
func f16(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// putF16 writes f as a little-endian binary16 at the start of b and returns
// the value that will be read back.
func putF16(b []byte, f float32) float32 {
	h := F32ToF16(f)
	binary.LittleEndian.PutUint16(b, h)
	return F16ToF32(h)
}

func decodeF64(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
	}
}

func encodeF64(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(v)))
	}
}

func decodeF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func encodeF32(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func decodeF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = f16(src[2*i:])
	}
}

func encodeF16(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(v))
	}
}

func decodeBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func encodeBF16(dst []byte, src []float32) {
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(v))
	}
}
