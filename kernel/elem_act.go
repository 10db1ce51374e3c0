package kernel

import (
	"unsafe"

	"ridge/internal/cpu"
)

// The factors c of swish: x·sigmoid(c·x) is SiLU for 1 and QuickGELU for
// 1.702.
const (
	swishSiLU  = 1
	swishQuick = 1.702
)

// SiLU sets dst = x / (1 + exp(-x)).
func SiLU(dst, x []float32) {
	swishRow(dst, x, swishSiLU)
}

// SiLUMul sets dst = SiLU(gate) · up, the gate of SwiGLU.
func SiLUMul(dst, gate, up []float32) {
	n := min(len(dst), len(gate), len(up))
	switch cpu.Current() {
	case cpu.AVX512:
		siluMulAVX512(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n)
	case cpu.AVX2:
		siluMulAVX2(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n)
	case cpu.NEON:
		siluMulNEON(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n)
	default:
		siluMulGeneric(dst[:n], gate[:n], up[:n])
	}
}

// GELUQuick sets dst = x / (1 + exp(-1.702 x)).
func GELUQuick(dst, x []float32) {
	swishRow(dst, x, swishQuick)
}

// swishRow sets dst = x·sigmoid(c·x).
func swishRow(dst, x []float32, c float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		swishAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n, -c)
	case cpu.AVX2:
		swishAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n, -c)
	case cpu.NEON:
		swishNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n, -c)
	default:
		swishGeneric(dst[:n], x[:n], c)
	}
}

// GELU sets dst = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), the tanh form of
// GELU, evaluated as x·sigmoid(2√(2/π) (x + 0.044715 x³)), which is the same
// without cancellation.
func GELU(dst, x []float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		geluAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.AVX2:
		geluAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.NEON:
		geluNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	default:
		geluGeneric(dst[:n], x[:n])
	}
}

// GELUMul sets dst = GELU(gate) · up, the gate of GeGLU.
func GELUMul(dst, gate, up []float32) {
	n := min(len(dst), len(gate), len(up))
	switch cpu.Current() {
	case cpu.AVX512:
		geluMulAVX512(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n)
	case cpu.AVX2:
		geluMulAVX2(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n)
	case cpu.NEON:
		geluMulNEON(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n)
	default:
		geluMulGeneric(dst[:n], gate[:n], up[:n])
	}
}

// GELUErf sets dst = x/2 · (1 + erf(x/√2)), GELU as defined.
func GELUErf(dst, x []float32) {
	n := min(len(dst), len(x))
	switch cpu.Current() {
	case cpu.AVX512:
		geluErfAVX512(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.AVX2:
		geluErfAVX2(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	case cpu.NEON:
		geluErfNEON(unsafe.SliceData(dst), unsafe.SliceData(x), n)
	default:
		geluErfGeneric(dst[:n], x[:n])
	}
}

// Softcap sets x = limit · tanh(x / limit); limit must be positive.
func Softcap(x []float32, limit float32) { softcap(x, 1/limit, limit) }

// softcap sets x = out · tanh(in · x).
func softcap(x []float32, in, out float32) {
	switch cpu.Current() {
	case cpu.AVX512:
		softcapAVX512(unsafe.SliceData(x), len(x), in, out)
	case cpu.AVX2:
		softcapAVX2(unsafe.SliceData(x), len(x), in, out)
	case cpu.NEON:
		softcapNEON(unsafe.SliceData(x), len(x), in, out)
	default:
		softcapGeneric(x, in, out)
	}
}
