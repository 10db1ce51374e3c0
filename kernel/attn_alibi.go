package kernel

import "math"

// AlibiSlopes returns the slopes of ALiBi for the given number of heads, as in
// "Train Short, Test Long" (Press et al., 2021): for n a power of two, the
// geometric sequence that starts at 2^(-maxBias/n) and has that value as its
// ratio; for other n, the slopes of the next lower power of two p followed by
// every second one of those for 2p. maxBias is 8 in the paper.
func AlibiSlopes(heads int, maxBias float32) []float32 {
	if heads <= 0 {
		return nil
	}
	p := 1
	for 2*p <= heads {
		p *= 2
	}
	slopes := make([]float32, heads)
	for h := range slopes {
		e := float64(h+1) / float64(p)
		if h >= p {
			e = float64(2*(h-p)+1) / float64(2*p)
		}
		slopes[h] = float32(math.Exp2(-float64(maxBias) * e))
	}
	return slopes
}
