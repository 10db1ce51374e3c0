package kernel

import "ridge/internal/cpu"

// brainProducts reports whether the tier in use has products of bfloat16.
func brainProducts() bool { return cpu.Current() >= cpu.AMX || usesPairs() }

// brainTiers calls f with every way of multiplying bfloat16 that is tested
// against the definition.
func brainTiers(f func(name string)) {
	for _, tier := range cpu.Tiers()[2:] {
		for _, pairs := range []bool{false, true} {
			if pairs && tier != cpu.AVX512 {
				continue
			}
			name := tier.String()
			if pairs {
				name += " with pairs"
			}
			restore, old := cpu.Set(tier), pairProducts
			pairProducts = pairs
			f(name)
			pairProducts = old
			restore()
		}
	}
}
