package kernel

import (
	"unsafe"
)

// DecodeF16 converts len(dst) little-endian binary16 values of src, exactly;
// a NaN keeps its payload and becomes quiet.
func DecodeF16(dst []float32, src []byte) {
	n := len(dst)
	src = src[:2*n]
	if m := decodeF16Tier(unsafe.SliceData(dst), unsafe.SliceData(src), n); m < n {
		decodeF16Generic(dst[m:], src[2*m:])
	}
}

// EncodeF16 converts src to little-endian binary16 values, rounding to nearest
// even; values that round beyond 65504 become infinities.
func EncodeF16(dst []byte, src []float32) {
	n := len(src)
	dst = dst[:2*n]
	if m := encodeF16Tier(unsafe.SliceData(dst), unsafe.SliceData(src), n); m < n {
		encodeF16Generic(dst[2*m:], src[m:])
	}
}

// DecodeBF16 converts len(dst) little-endian bfloat16 values of src, exactly.
func DecodeBF16(dst []float32, src []byte) {
	n := len(dst)
	src = src[:2*n]
	if m := decodeBF16Tier(unsafe.SliceData(dst), unsafe.SliceData(src), n); m < n {
		decodeBF16Generic(dst[m:], src[2*m:])
	}
}

// EncodeBF16 converts src to little-endian bfloat16 values, rounding to nearest
// even; a NaN becomes quiet.
func EncodeBF16(dst []byte, src []float32) {
	n := len(src)
	dst = dst[:2*n]
	if m := encodeBF16Tier(unsafe.SliceData(dst), unsafe.SliceData(src), n); m < n {
		encodeBF16Generic(dst[2*m:], src[m:])
	}
}
