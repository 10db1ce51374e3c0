package kernel

import (
	"testing"

	"ridge/internal/cpu"
)

// The probes run on every tier and count what they do.
func TestProbes(t *testing.T) {
	b := make([]byte, 4096+13)
	for _, tier := range cpu.Tiers() {
		restore := cpu.Set(tier)
		for off := range 9 {
			ReadProbe(b[off:])
			ReadProbe(b[:off])
		}
		ints, floats := DotProbe(true, 10), DotProbe(false, 10)
		if ints < floats || floats <= 0 || DotProbe(true, 20) != 2*ints {
			t.Errorf("%v: %d integer and %d float operations", tier, ints, floats)
		}
		brains := BrainProbe(10)
		if has := brainProducts(); has != (brains > 0) || has && (brains <= floats || BrainProbe(20) != 2*brains) {
			t.Errorf("%v: %d operations of bfloat16, %d of float32; the tier has such products: %t", tier, brains, floats, has)
		}
		restore()
	}
}
