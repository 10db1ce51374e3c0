//go:build !amd64 && !arm64

package kernel

// mulTier multiplies with the assembly of the tier in use and reports whether
// it has any.
func mulTier(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) bool { return false }

// quantizeTier quantizes the first part of x and returns how much of it.
func quantizeTier(dst []byte, x []float32) int { return 0 }

func readProbe(b []byte) { readProbeGeneric(b) }

func dotProbe(integer bool, n int) int { return dotProbeGeneric(integer, n) }
