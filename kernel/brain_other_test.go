//go:build !amd64

package kernel

import "ridge/internal/cpu"

// brainProducts reports whether the tier in use has products of bfloat16.
func brainProducts() bool { return false }

// brainTiers calls f with every tier that is tested against the definition.
func brainTiers(f func(name string)) {
	for _, tier := range cpu.Tiers()[2:] {
		restore := cpu.Set(tier)
		f(tier.String())
		restore()
	}
}
