package cpu

import (
	"runtime"
	"strings"
	"testing"
)

// TestTiers: tiers have names, fall back to one that runs, and are those of
// the architecture.
func TestTiers(t *testing.T) {
	tiers := Tiers()
	if len(tiers) < 2 || tiers[0] != Ref || tiers[1] != Generic || tiers[len(tiers)-1] != Best() {
		t.Fatalf("tiers %v, best %v", tiers, Best())
	}
	for tier := Ref; tier <= AVX512; tier++ {
		got, err := Parse(strings.ToUpper(tier.String()))
		if err != nil || got != tier {
			t.Errorf("Parse(%v) = %v, %v", tier, got, err)
		}
		restore := Set(tier)
		switch now := Current(); {
		case tier.Runs() && now != tier:
			t.Errorf("Set(%v) made %v current", tier, now)
		case !now.Runs() || now > tier || now < min(tier, Generic):
			t.Errorf("Set(%v), which does not run, made %v current", tier, now)
		}
		restore()
	}
	foreign := map[string]Tier{"amd64": NEON, "arm64": AVX2}[runtime.GOARCH]
	if foreign != Ref && foreign.Runs() {
		t.Errorf("%v runs on %s", foreign, runtime.GOARCH)
	}
}

func TestCheck(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "Generic": "", Best().String(): "",
		"sse": "expected ref, generic, neon, avx2, avx512 or amx",
	} {
		t.Setenv("RIDGE_CPU", name)
		if err := Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("RIDGE_CPU=%s: error %v, want %q", name, err, want)
		}
	}
	if other := map[bool]Tier{true: AVX512, false: NEON}[runtime.GOARCH == "arm64"]; !other.Runs() {
		t.Setenv("RIDGE_CPU", other.String())
		if err := Check(); err == nil || !strings.Contains(err.Error(), "this processor runs") {
			t.Errorf("RIDGE_CPU=%v: error %v", other, err)
		}
	}
}
