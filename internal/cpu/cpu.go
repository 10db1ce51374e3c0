// Package cpu picks the instruction-set tier that the kernels run on.
package cpu

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

// Tier is a level of the kernels, each faster than the one before.
type Tier int

// The tiers. Ref runs the readable definitions on unpacked weights; Generic
// runs the packed layouts in plain Go.
const (
	Ref Tier = iota
	Generic
	AVX2
	AVX512
)

func (t Tier) String() string { return [...]string{"ref", "generic", "avx2", "avx512"}[t] }

var current = pick()

// Best returns the fastest tier that this processor can run.
func Best() Tier {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Generic
}

func pick() Tier {
	best := Best()
	for t := Ref; t <= AVX512; t++ {
		if strings.EqualFold(os.Getenv("RIDGE_CPU"), t.String()) {
			return min(t, best)
		}
	}
	return best
}

// Current returns the tier in use: the best one, or what RIDGE_CPU names.
func Current() Tier { return current }

// Set makes t, capped by what the processor can run, the tier in use and
// returns a function that puts the former one back. It must not be called
// while kernels run.
func Set(t Tier) (restore func()) {
	old := current
	current = min(t, Best())
	return func() { current = old }
}

// Features names the processor's extensions that kernels can use.
func Features() []string {
	x, a := cpu.X86, cpu.ARM64
	var out []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"avx2", x.HasAVX2}, {"fma", x.HasFMA}, {"avx512f", x.HasAVX512F}, {"avx512bw", x.HasAVX512BW},
		{"avx512dq", x.HasAVX512DQ}, {"avx512vl", x.HasAVX512VL}, {"avx512_vnni", x.HasAVX512VNNI},
		{"avx512_vbmi", x.HasAVX512VBMI}, {"avx512_bf16", x.HasAVX512BF16}, {"avx_vnni", x.HasAVXVNNI},
		{"amx_int8", x.HasAMXInt8}, {"neon", a.HasASIMD}, {"dotprod", a.HasASIMDDP}, {"sve", a.HasSVE},
	} {
		if f.has {
			out = append(out, f.name)
		}
	}
	return out
}

// Check returns an error if RIDGE_CPU names a tier that does not exist or that
// this processor cannot run.
func Check() error {
	name := os.Getenv("RIDGE_CPU")
	if name == "" {
		return nil
	}
	for t := Ref; t <= AVX512; t++ {
		if strings.EqualFold(name, t.String()) {
			if t > Best() {
				return fmt.Errorf("cpu: RIDGE_CPU: this processor runs up to %v, found %q", Best(), name)
			}
			return nil
		}
	}
	return fmt.Errorf("cpu: RIDGE_CPU: expected ref, generic, avx2 or avx512, found %q", name)
}
