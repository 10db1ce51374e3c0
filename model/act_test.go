package model

import (
	"math"
	"strings"
	"testing"

	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/weights/tensor"
)

// budgetAct16 bounds what activations of 16 bits may change of the logits, as a
// part of what those of 8 bits do: root mean squares of the differences from
// exact activations.
const budgetAct16 = 0.01

func rms(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(a)))
}

// With activations of 16 bits the kernels are much nearer to the reference than
// with 8, and give the same bits on every tier with assembly.
func TestActInt16(t *testing.T) {
	names := []string{"tiny", "smollm2"}
	if testing.Short() {
		names = names[:1]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			path, prompt := testdata.Model(t, name), randomPrompt(24)
			on := func(tier cpu.Tier, act Act) []float32 {
				defer cpu.Set(tier)()
				m := openTiny(t, path, 64, Options{KV: tensor.F32, Act: act, Workers: 2})
				if m.Act() != act {
					t.Errorf("Act is %v, want %v", m.Act(), act)
				}
				return compute(t, m, prompt, len(prompt))
			}
			best := cpu.Current()
			ref, low, high := on(cpu.Ref, ActInt16), on(best, ActInt8), on(best, ActInt16)
			e8, e16 := rms(low, ref), rms(high, ref)
			t.Logf("logits differ from the reference by %.5f with int8, by %.6f with int16", e8, e16)
			if !(e16 <= budgetAct16*e8) {
				t.Errorf("int16 differs by %v: want at most %v of the %v of int8", e16, budgetAct16, e8)
			}
			for _, tier := range cpu.Tiers() {
				if tier <= cpu.Generic || best <= cpu.Generic || tier == best {
					continue
				}
				if got := on(tier, ActInt16); !equalBits(got, high) {
					t.Errorf("%v and %v differ by %v", tier, best, rms(got, high))
				}
			}
		})
	}
}

// Where no matrix is quantized the choice changes nothing.
func TestActOfFloats(t *testing.T) {
	prompt := randomPrompt(10)
	for i := range prompt {
		prompt[i] %= 64
	}
	var got [ActInt16 + 1][]float32
	for act := range got {
		got[act] = compute(t, openTiny(t, tinyModels+"/llama/llama.gguf", 64, Options{Act: Act(act), Workers: 1}), prompt, 4)
	}
	for act := range got {
		if !equalBits(got[0], got[act]) {
			t.Errorf("%v: logits differ", Act(act))
		}
	}
}

// budgetBF16 bounds what activations rounded to bfloat16 may change of the logits
// of a tiny model, as a part of their root mean square: half a step is 2⁻⁹ of a
// value.
const budgetBF16 = 0.01

// With bf16 the products of bfloat16 weights read activations rounded to that:
// one answer, near the exact one, the same on every tier, another fingerprint;
// quantized matrices read what they read with int8.
func TestActBF16(t *testing.T) {
	path := tinyModels + "/llama-half"
	g := readGolden(t, path)
	on := func(tier cpu.Tier, act Act) ([]float32, string) {
		defer cpu.Set(tier)()
		m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Act: act, Workers: 2})
		return compute(t, m, g.Prompt, len(g.Prompt)), m.Fingerprint()
	}
	best := cpu.Current()
	exact, name := on(best, ActInt8)
	rounded, other := on(best, ActBF16)
	if e, size := rms(rounded, exact), rms(exact, make([]float32, len(exact))); best > cpu.Ref && !(e > 0 && e <= budgetBF16*size) {
		t.Errorf("logits differ by %v of %v: want more than 0 and at most %v of it", e, size, budgetBF16)
	}
	if name == other {
		t.Error("the fingerprint does not tell that activations are rounded")
	}
	for _, tier := range cpu.Tiers()[1:] {
		if got, _ := on(tier, ActBF16); best > cpu.Ref && !equalBits(got, rounded) {
			t.Errorf("%v and %v differ by %v", tier, best, rms(got, rounded))
		}
	}
	oneAnswer(t, path, g.Prompt, g.Context, 4, Options{KV: tensor.F16, Act: ActBF16})
	prompt := randomPrompt(20)
	quantized := func(act Act) []float32 {
		return compute(t, openTiny(t, testdata.Tiny, 64, Options{KV: tensor.F32, Act: act, Workers: 1}), prompt, len(prompt))
	}
	if !equalBits(quantized(ActBF16), quantized(ActInt8)) {
		t.Error("a quantized model computes other than with int8")
	}
}

func TestParseAct(t *testing.T) {
	if a, err := ParseAct(""); a != ActInt8 || err != nil {
		t.Errorf("no name became %v, %v", a, err)
	}
	for _, a := range Acts() {
		if got, err := ParseAct(a.String()); got != a || err != nil {
			t.Errorf("%v became %v, %v", a, got, err)
		}
	}
	if _, err := ParseAct("int4"); err == nil || !strings.Contains(err.Error(), `expected bf16, int8, mixed, fine or int16, found "int4"`) {
		t.Errorf("int4: %v", err)
	}
	if m, err := Open(testdata.Tiny, Options{Act: 7}); err == nil {
		m.Close()
		t.Error("Open took an unknown choice")
	}
}
