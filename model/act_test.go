package model

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/text/tokenizer"
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

// budgetDefault bounds the divergence that activations cost where nothing is said,
// as a part of what 8 bits cost, for the model that is part of the program, whose
// columns are much alike, and for a real one.
var budgetDefault = map[string]float64{"tiny": 0.9, "smollm2": 0.5}

// divergence returns the mean divergence in nats of rows of n logits q from those
// of p.
func divergence(p, q []float32, n int) float64 {
	logs := func(x []float32) []float64 {
		top, sum := slices.Max(x), 0.0
		for _, v := range x {
			sum += math.Exp(float64(v - top))
		}
		out := make([]float64, len(x))
		for i, v := range x {
			out[i] = float64(v-top) - math.Log(sum)
		}
		return out
	}
	sum := 0.0
	for i := 0; i < len(p); i += n {
		a, b := logs(p[i:i+n]), logs(q[i:i+n])
		for j := range a {
			sum += math.Exp(a[j]) * (a[j] - b[j])
		}
	}
	return sum / float64(len(p)/n)
}

// Where nothing is said the largest columns are kept apart, and the predictions of
// trained models are nearer to those of exact activations than 8 bits are.
func TestActDefault(t *testing.T) {
	if name := (Options{}).Act.String(); name != "mixed" {
		t.Errorf("the default is %q, want mixed", name)
	}
	for name, budget := range budgetDefault {
		if name == "smollm2" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) { checkDefault(t, testdata.Model(t, name), budget) })
	}
}

func checkDefault(t *testing.T, path string, budget float64) {
	var prompt []int32
	on := func(o Options) []float32 {
		o.KV, o.Workers = tensor.F32, 2
		m := openTiny(t, path, 256, o)
		if prompt == nil {
			prompt = m.Tokenizer().Encode(nil, "The little dog went to the park with his friend. They wanted to play with a big red ball, but it was raining. What should they do now?", tokenizer.EncodeOptions{})
		}
		return compute(t, m, prompt, len(prompt))
	}
	exact, low, got := on(Options{Act: ActInt16}), on(Options{Act: ActInt8}), on(Options{})
	vocab := len(exact) / len(prompt)
	kl8, kl := divergence(exact, low, vocab), divergence(exact, got, vocab)
	t.Logf("divergence from int16 over %d tokens: int8 %.6f, default %.6f", len(prompt), kl8, kl)
	if !(kl8 > 0 && kl <= budget*kl8) {
		t.Errorf("the default diverges by %v, int8 by %v: want at most %v of it", kl, kl8, budget)
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

// roundings are the choices that round what floats are multiplied with, and what
// that may change of the logits of a tiny model, as a part of their root mean
// square: half a step is 2⁻⁹ of a value, and of a sum of two 2⁻¹⁸.
var roundings = []struct {
	act    Act
	model  string
	budget float64
}{
	{ActBF16, "/llama-half", 0.01},
	{ActBF16x2, "/llama-half", 2e-5},
	{ActBF16x2, "/llama/llama.gguf", 2e-5},
	{ActBF16x2, "/mixtral", 2e-5},
	{ActBF16x2, "/mamba2", 2e-5},
}

// With bf16 the products of bfloat16 weights read activations rounded to that, and
// with bf16x2 those of float32 too, as sums of two: one answer, near the exact one,
// the same on every tier with assembly, another fingerprint; quantized matrices read
// what they read with int8.
func TestActBF16(t *testing.T) {
	for _, r := range roundings {
		t.Run(r.act.String()+r.model, func(t *testing.T) {
			path := tinyModels + r.model
			prompt := randomPrompt(24)
			for i := range prompt {
				prompt[i] %= 64
			}
			on := func(tier cpu.Tier, act Act) ([]float32, string) {
				defer cpu.Set(tier)()
				m := openTiny(t, path, 64, Options{KV: tensor.F32, Act: act, Workers: 2})
				return compute(t, m, prompt, len(prompt)), m.Fingerprint()
			}
			best := cpu.Current()
			exact, name := on(best, ActInt8)
			rounded, other := on(best, r.act)
			if e, size := rms(rounded, exact), rms(exact, make([]float32, len(exact))); best > cpu.Ref && !(e > 0 && e <= r.budget*size) {
				t.Errorf("logits differ by %v of %v: want more than 0 and at most %v of it", e, size, r.budget)
			}
			if name == other {
				t.Error("the fingerprint does not tell that activations are rounded")
			}
			var first []float32
			for _, tier := range cpu.Tiers()[2:] {
				got, _ := on(tier, r.act)
				if first == nil {
					first = got
				}
				if !equalBits(got, first) {
					t.Errorf("%v and %v differ by %v", tier, cpu.Tiers()[2], rms(got, first))
				}
			}
			if got, _ := on(cpu.Generic, r.act); r.act == ActBF16 && !equalBits(got, first) {
				t.Errorf("%v and %v differ by %v", cpu.Generic, cpu.Tiers()[2], rms(got, first))
			}
			if best > cpu.Generic && !equalBits(rounded, first) {
				t.Errorf("%v and %v differ by %v", best, cpu.Tiers()[2], rms(rounded, first))
			}
			oneAnswer(t, path, prompt, 64, 4, Options{KV: tensor.F16, Act: r.act})
		})
	}
	prompt := randomPrompt(20)
	quantized := func(act Act) []float32 {
		return compute(t, openTiny(t, testdata.Tiny, 64, Options{KV: tensor.F32, Act: act, Workers: 1}), prompt, len(prompt))
	}
	for _, act := range []Act{ActBF16, ActBF16x2} {
		if !equalBits(quantized(act), quantized(ActInt8)) {
			t.Errorf("a quantized model computes other with %v than with int8", act)
		}
	}
	if m, err := Open(testdata.Tiny, Options{Act: ActBF16x2, PackCache: PackCache{Dir: t.TempDir()}}); err == nil {
		m.Close()
		t.Error("weights in two pieces were taken from a cache")
	}
}

// Matrices of every family read rows in the form that the choice gives them.
func TestBrainOfFamilies(t *testing.T) {
	for _, dir := range tinyCases(t) {
		for _, act := range []Act{ActBF16, ActBF16x2} {
			t.Run(filepath.Base(dir)+" "+act.String(), func(t *testing.T) {
				compute(t, openTiny(t, dir, 0, Options{KV: tensor.F32, Act: act, Workers: 1}), []int32{1, 2, 3, 4, 5}, 5)
			})
		}
	}
}

func TestParseAct(t *testing.T) {
	if a, err := ParseAct(""); a != ActMixed || err != nil {
		t.Errorf("no name became %v, %v", a, err)
	}
	for _, a := range Acts() {
		if got, err := ParseAct(a.String()); got != a || err != nil {
			t.Errorf("%v became %v, %v", a, got, err)
		}
	}
	if _, err := ParseAct("int4"); err == nil || !strings.Contains(err.Error(), `expected bf16, bf16x2, int8, mixed, fine or int16, found "int4"`) {
		t.Errorf("int4: %v", err)
	}
	if m, err := Open(testdata.Tiny, Options{Act: 70}); err == nil {
		m.Close()
		t.Error("Open took an unknown choice")
	}
}
