package kernel

import (
	"unsafe"
)

// SiLU sets dst = x / (1 + exp(-x)).
func SiLU(dst, x []float32) {
	n := min(len(dst), len(x))
	if !swishTier(unsafe.SliceData(dst), unsafe.SliceData(x), n, -1) {
		swishGeneric(dst[:n], x[:n], 1)
	}
}

// SiLUMul sets dst = SiLU(gate) · up, the gate of SwiGLU.
func SiLUMul(dst, gate, up []float32) {
	n := min(len(dst), len(gate), len(up))
	if !siluMulTier(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n) {
		siluMulGeneric(dst[:n], gate[:n], up[:n])
	}
}

// GELU sets dst = x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³))), the tanh form of
// GELU, evaluated as x·sigmoid(2√(2/π) (x + 0.044715 x³)), which is the same
// without cancellation.
func GELU(dst, x []float32) {
	n := min(len(dst), len(x))
	if !geluTier(unsafe.SliceData(dst), unsafe.SliceData(x), n) {
		geluGeneric(dst[:n], x[:n])
	}
}

// GELUMul sets dst = GELU(gate) · up, the gate of GeGLU.
func GELUMul(dst, gate, up []float32) {
	n := min(len(dst), len(gate), len(up))
	if !geluMulTier(unsafe.SliceData(dst), unsafe.SliceData(gate), unsafe.SliceData(up), n) {
		geluMulGeneric(dst[:n], gate[:n], up[:n])
	}
}

// GELUErf sets dst = x/2 · (1 + erf(x/√2)), GELU as defined.
func GELUErf(dst, x []float32) {
	n := min(len(dst), len(x))
	if !geluErfTier(unsafe.SliceData(dst), unsafe.SliceData(x), n) {
		geluErfGeneric(dst[:n], x[:n])
	}
}

// Softcap sets x = limit · tanh(x / limit); limit must be positive.
func Softcap(x []float32, limit float32) { softcap(x, 1/limit, limit) }

// softcap sets x = out · tanh(in · x).
func softcap(x []float32, in, out float32) {
	if !softcapTier(unsafe.SliceData(x), len(x), in, out) {
		softcapGeneric(x, in, out)
	}
}
