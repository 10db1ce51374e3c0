package kernel

import (
	"unsafe"

	"ridge/internal/cpu"
)

// DecodeF16 converts len(dst) little-endian binary16 values of src, exactly;
// a NaN keeps its payload and becomes quiet.
func DecodeF16(dst []float32, src []byte) {
	n := len(dst)
	src = src[:2*n]
	switch cpu.Current() {
	case cpu.AVX512:
		decodeF16AVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	case cpu.AVX2:
		m := n &^ 7
		decodeF16AVX2(unsafe.SliceData(dst), unsafe.SliceData(src), m)
		decodeF16Generic(dst[m:], src[2*m:])
	case cpu.NEON:
		decodeF16NEON(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	default:
		decodeF16Generic(dst, src)
	}
}

// EncodeF16 converts src to little-endian binary16 values, rounding to nearest
// even; values that round beyond 65504 become infinities.
func EncodeF16(dst []byte, src []float32) {
	n := len(src)
	dst = dst[:2*n]
	switch cpu.Current() {
	case cpu.AVX512:
		encodeF16AVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	case cpu.AVX2:
		m := n &^ 7
		encodeF16AVX2(unsafe.SliceData(dst), unsafe.SliceData(src), m)
		encodeF16Generic(dst[2*m:], src[m:])
	case cpu.NEON:
		encodeF16NEON(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	default:
		encodeF16Generic(dst, src)
	}
}

// DecodeBF16 converts len(dst) little-endian bfloat16 values of src, exactly.
func DecodeBF16(dst []float32, src []byte) {
	n := len(dst)
	src = src[:2*n]
	switch cpu.Current() {
	case cpu.AVX512:
		decodeBF16AVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	case cpu.AVX2:
		m := n &^ 7
		decodeBF16AVX2(unsafe.SliceData(dst), unsafe.SliceData(src), m)
		decodeBF16Generic(dst[m:], src[2*m:])
	case cpu.NEON:
		decodeBF16NEON(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	default:
		decodeBF16Generic(dst, src)
	}
}

// EncodeBF16 converts src to little-endian bfloat16 values, rounding to nearest
// even; a NaN becomes quiet.
func EncodeBF16(dst []byte, src []float32) {
	n := len(src)
	dst = dst[:2*n]
	switch cpu.Current() {
	case cpu.AVX512:
		encodeBF16AVX512(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	case cpu.AVX2:
		m := n &^ 7
		encodeBF16AVX2(unsafe.SliceData(dst), unsafe.SliceData(src), m)
		encodeBF16Generic(dst[2*m:], src[m:])
	case cpu.NEON:
		encodeBF16NEON(unsafe.SliceData(dst), unsafe.SliceData(src), n)
	default:
		encodeBF16Generic(dst, src)
	}
}
