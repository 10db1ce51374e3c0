package kernel

import (
	"sync/atomic"
	"unsafe"
)

// ReadProbe reads b from end to end and does nothing else: the bound of
// kernels that stream weights. What is left of b after a multiple of 256 bytes
// may stay unread.
func ReadProbe(b []byte) { readProbe(b) }

// DotProbe does nothing but about 16·n vector products on registers, of int8
// values or of float32 values, with the instructions of the tier in use: the
// bound of kernels that multiply many rows. It returns the number of
// additions and multiplications done.
func DotProbe(integer bool, n int) int { return dotProbe(integer, n) }

// BrainProbe is DotProbe for products of bfloat16 values, with the instructions
// that Mul has for them in the tier in use. Where it has none it returns 0: such
// products are then float32 ones.
func BrainProbe(n int) int { return brainProbe(n) }

// probeSink keeps the compiler from dropping what the probes compute.
var probeSink atomic.Uint64

func readProbeGeneric(b []byte) {
	if len(b) < 64 {
		return
	}
	b = b[-addressOf(b)&7:]
	w := unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(b)/8)
	var s0, s1, s2, s3 uint64
	for len(w) >= 8 {
		s0 += w[0] + w[4]
		s1 += w[1] + w[5]
		s2 += w[2] + w[6]
		s3 += w[3] + w[7]
		w = w[8:]
	}
	probeSink.Store(s0 + s1 + s2 + s3)
}

func addressOf(b []byte) int { return int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// dotProbeGeneric multiplies and adds one number at a time: what plain Go can
// do.
func dotProbeGeneric(integer bool, n int) int {
	if integer {
		a0, a1, a2, a3 := int32(n), int32(1), int32(2), int32(3)
		x := int32(n | 1)
		for range 4 * n {
			a0, a1, a2, a3 = a0+a1*x, a1+a2*x, a2+a3*x, a3+a0*x
		}
		probeSink.Store(uint64(a0 + a1 + a2 + a3))
		return n * 4 * 4 * 2
	}
	x, y := float32(n)/(float32(n)+1), float32(1)
	var a0, a1, a2, a3 float32
	for range 4 * n {
		a0, a1, a2, a3 = a0*x+y, a1*x+y, a2*x+y, a3*x+y
	}
	probeSink.Store(uint64(a0 + a1 + a2 + a3))
	return n * 4 * 4 * 2
}
