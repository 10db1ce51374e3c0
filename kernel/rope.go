package kernel

import (
	"math"
	"unsafe"
)

// RopeTables fills cos and sin, len(invFreq) values each, for the position pos:
// cos[i] = scale·cos(pos·invFreq[i]), the same for sin. The angle and its
// functions are computed in float64 and rounded once. scale is 1 except for
// scalings that also change the magnitude (YaRN's attention factor).
func RopeTables(cos, sin []float32, pos int, invFreq []float32, scale float32) {
	for i, f := range invFreq {
		s, c := math.Sincos(float64(pos) * float64(f))
		cos[i] = float32(float64(scale) * c)
		sin[i] = float32(float64(scale) * s)
	}
}

// RopeNorm rotates the pairs (x[2i], x[2i+1]) by the angle whose cosine and
// sine are cos[i] and sin[i] (RoPE as published, GPT-J and llama GGUF order).
// x is the rotary part of one head: 2·len(cos) values.
func RopeNorm(x, cos, sin []float32) {
	n := len(cos)
	x, sin = x[:2*n], sin[:n]
	if !ropeNormTier(unsafe.SliceData(x), unsafe.SliceData(cos), unsafe.SliceData(sin), n) {
		ropeNormGeneric(x, cos, sin)
	}
}

// RopeNeox rotates the pairs (x[i], x[i+n]), n = len(cos), by the angle whose
// cosine and sine are cos[i] and sin[i] (GPT-NeoX and Hugging Face order).
// x is the rotary part of one head: 2·len(cos) values.
func RopeNeox(x, cos, sin []float32) {
	n := len(cos)
	x, sin = x[:2*n], sin[:n]
	if !ropeNeoxTier(unsafe.SliceData(x), unsafe.SliceData(cos), unsafe.SliceData(sin), n) {
		ropeNeoxGeneric(x, cos, sin)
	}
}

func ropeNormGeneric(x, cos, sin []float32) {
	for i, c := range cos {
		a, b, s := x[2*i], x[2*i+1], sin[i]
		x[2*i] = a*c - b*s
		x[2*i+1] = b*c + a*s
	}
}

func ropeNeoxGeneric(x, cos, sin []float32) {
	n := len(cos)
	for i, c := range cos {
		a, b, s := x[i], x[i+n], sin[i]
		x[i] = a*c - b*s
		x[i+n] = b*c + a*s
	}
}
