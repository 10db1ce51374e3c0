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
		restore()
	}
}
