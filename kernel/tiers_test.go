package kernel

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ridge/internal/cpu"
)

// TestTiersAgree: AVX2 and AVX-512 compute the same bits.
func TestTiersAgree(t *testing.T) {
	if cpu.Best() < cpu.AVX512 {
		t.Skip("needs AVX-512")
	}
	same := func(what string, n int, f func() []float32) {
		t.Helper()
		restore := cpu.Set(cpu.AVX512)
		a := append([]float32(nil), f()...)
		cpu.Set(cpu.AVX2)
		b := f()
		restore()
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]) {
				t.Fatalf("%s, length %d: element %d is %g with AVX-512, %g with AVX2", what, n, i, a[i], b[i])
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n < 1200; n += 1 + n/20 {
		x, y, dst := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = sample(r, -3e38, 3e38), float32(r.NormFloat64())
		}
		if n > 30 {
			x[0], x[1], x[2] = float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))
		}
		for _, c := range mapCases {
			same(c.name, n, func() []float32 { c.f(dst, x, y); return dst })
		}
		z := randomRow(r, n, 3)
		same("reductions", n, func() []float32 {
			return []float32{sum(z), sumSquares(z, 0.3), MaxF32(x), float32(Argmax(x)), ExpSum(append(dst[:0], z...), 4), Weigh(z, 4, 0.7)}
		})
		same("RMSNorm", n, func() []float32 { RMSNorm(dst, z, y, 1e-5); return dst })
		same("LayerNorm", n, func() []float32 { LayerNorm(dst, z, y, x, 1e-5); return dst })
		same("RopeNorm", n, func() []float32 { copy(dst, z); RopeNorm(dst, y[:n/2], z[:n/2]); return dst })
		same("RopeNeox", n, func() []float32 { copy(dst, z); RopeNeox(dst, y[:n/2], z[:n/2]); return dst })
	}
}

// TestAsmRegisters: functions for AVX2 use no register that only AVX-512 has;
// the generator's allocator does not know the difference.
func TestAsmRegisters(t *testing.T) {
	files, err := filepath.Glob("*_amd64.s")
	if err != nil || len(files) == 0 {
		t.Fatalf("no assembly: %v", err)
	}
	wide := regexp.MustCompile(`\b(Z[0-9]+|[XY](1[6-9]|2[0-9]|3[01])|K[0-7])\b`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for i, line := range strings.Split(string(text), "\n") {
			if rest, ok := strings.CutPrefix(line, "TEXT ·"); ok {
				name, _, _ = strings.Cut(rest, "(")
			}
			if strings.HasSuffix(name, "AVX2") && !strings.HasPrefix(line, "//") && wide.MatchString(line) {
				t.Errorf("%s:%d: %s: %s", file, i+1, name, strings.TrimSpace(line))
			}
		}
	}
}

// TestAttentionTiersAgree: the same for attention.
func TestAttentionTiersAgree(t *testing.T) {
	if cpu.Best() < cpu.AVX512 {
		t.Skip("needs AVX-512")
	}
	r := rand.New(rand.NewPCG(8, 8))
	var scratch AttnScratch
	for i := range 30 {
		s := &AttnSpec{HeadDim: 1 + r.IntN(140), VHeadDim: 1 + r.IntN(140), Scale: 0.2, KV: kvTypes[i%len(kvTypes)]}
		seq := newKVSeq(r, s, 1+r.IntN(700), 4)
		c := randomCall(r, s, seq, 1+r.IntN(20), 1+r.IntN(8))
		name := decorate(r, c)
		restore := cpu.Set(cpu.AVX512)
		Attend(c, &scratch)
		want := append([]float32(nil), c.Out...)
		cpu.Set(cpu.AVX2)
		Attend(c, &scratch)
		restore()
		for j, x := range c.Out {
			if math.Float32bits(x) != math.Float32bits(want[j]) {
				t.Fatalf("case %d%s: %g with AVX2, %g with AVX-512", i, name, x, want[j])
			}
		}
	}
}
