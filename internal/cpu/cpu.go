// Package cpu picks the instruction-set tier that the kernels run on, and tells the
// processor time of the process.
package cpu

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// Tier is a level of the kernels. Of those that a processor can run, each is
// faster than the one before.
type Tier int

// The tiers. Ref runs the readable definitions on unpacked weights; Generic
// runs the packed layouts in plain Go. NEON is that of arm64 processors with
// dot products, those after it are those of amd64; AMX is AVX512 with tile
// registers, for products of many rows.
const (
	Ref Tier = iota
	Generic
	NEON
	AVX2
	AVX512
	AMX
)

var names = [...]string{"ref", "generic", "neon", "avx2", "avx512", "amx"}

func (t Tier) String() string { return names[t] }

// Parse returns the tier with the given name, in any case.
func Parse(name string) (Tier, error) {
	for t, n := range names {
		if strings.EqualFold(name, n) {
			return Tier(t), nil
		}
	}
	last := len(names) - 1
	return 0, fmt.Errorf("expected %s or %s, found %q", strings.Join(names[:last], ", "), names[last], name)
}

// Runs reports whether this processor can run t.
func (t Tier) Runs() bool {
	x := cpu.X86
	switch t {
	case NEON:
		return cpu.ARM64.HasASIMDDP || runtime.GOARCH == "arm64" && runtime.GOOS == "darwin" // every Mac has them
	case AVX2:
		return x.HasAVX2 && x.HasFMA
	case AVX512:
		return x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI
	case AMX:
		return AVX512.Runs() && x.HasAMXTile && x.HasAMXBF16 && x.HasAVX512BF16 && tileRegisters()
	}
	return true
}

// Tiers returns the tiers that this processor can run, the fastest last.
func Tiers() []Tier {
	var out []Tier
	for t := range Tier(len(names)) {
		if t.Runs() {
			out = append(out, t)
		}
	}
	return out
}

// atMost returns the fastest tier that this processor can run, up to t.
func atMost(t Tier) Tier {
	for !t.Runs() {
		t--
	}
	return t
}

// Best returns the fastest tier that this processor can run.
func Best() Tier { return atMost(AMX) }

var current = pick()

func pick() Tier {
	t, err := Parse(os.Getenv("RIDGE_CPU"))
	if err != nil {
		return Best()
	}
	return atMost(t)
}

// Current returns the tier in use: the best one, or what RIDGE_CPU names.
func Current() Tier { return current }

// Vectors returns the tier in use, or the one below it if that has the same
// vector instructions: AVX512 for AMX.
func Vectors() Tier { return min(current, AVX512) }

// BrainProducts reports whether the tier in use has products of bfloat16 in
// vectors.
func BrainProducts() bool { return current >= AVX512 && cpu.X86.HasAVX512BF16 }

// Set makes t, or the fastest tier below it that the processor can run, the
// tier in use and returns a function that puts the former one back. It must
// not be called while kernels run.
func Set(t Tier) (restore func()) {
	old := current
	current = atMost(t)
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
		{"amx_bf16", AMX.Runs()}, {"neon", a.HasASIMD}, {"dotprod", a.HasASIMDDP}, {"sve", a.HasSVE},
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
	t, err := Parse(name)
	switch {
	case err != nil:
		return fmt.Errorf("cpu: RIDGE_CPU: %w", err)
	case !t.Runs():
		return fmt.Errorf("cpu: RIDGE_CPU: this processor runs %v, found %q", Tiers(), name)
	}
	return nil
}
