//go:build !amd64 && !arm64

package kernel

// gemmTier multiplies with the assembly of the tier in use and reports whether
// it has any.
func gemmTier(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) bool { return false }

// attnTier returns the attention kernels of the tier in use, nil for plain Go.
func attnTier() *attnKernels { return nil }

// quantizeTier quantizes the first part of x and returns how much of it.
func quantizeTier(dst []byte, x []float32) int { return 0 }

func subtractTier([]float32, []byte) int { return 0 }

func readProbe(b []byte) { readProbeGeneric(b) }

func dotProbe(integer bool, n int) int { return dotProbeGeneric(integer, n) }

func brainProbe(int) int { return 0 }

// splitBrainTier is splitBrain for as many pairs as it returns.
func splitBrainTier(even, odd []float32, src *byte) int { return 0 }

func turnTier(value []float32, row int, key []float32, vd int) int { return 0 }
func turnPairsTier(value, key []byte, vd int) int                  { return 0 }
