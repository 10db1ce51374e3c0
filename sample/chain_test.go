package sample

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// What the steps leave, and of which logits, is what llama.cpp's samplers do
// (testdata/llama_cpp.py).
func TestStepsAgainstLlamaCpp(t *testing.T) {
	var cases []struct {
		Sampler string       `json:"sampler"`
		Args    []float64    `json:"args"`
		Logits  []float32    `json:"logits"`
		History []int32      `json:"history"`
		Left    [][2]float64 `json:"left"`
	}
	b, err := os.ReadFile("testdata/llama_cpp.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	for _, c := range cases {
		p, a := Params{Temperature: 1, Seed: 1}, func(i int) float32 { return float32(c.Args[i]) }
		var step Step
		switch c.Sampler {
		case "top_n_sigma":
			step, p.TopNSigma = StepTopNSigma, a(0)
		case "temp_ext":
			step, p.Temperature, p.TemperatureRange, p.TemperatureExponent = StepTemperature, a(0), a(1), a(2)
		case "xtc":
			step, p.XTCProbability, p.XTCThreshold = StepXTC, a(0), a(1)
		case "mirostat":
			p.Mirostat, p.MirostatTau, p.MirostatEta = 1, a(2), a(3)
		case "mirostat_v2":
			p.Mirostat, p.MirostatTau, p.MirostatEta = 2, a(1), a(2)
		case "dry":
			step, p.DRY = StepDRY, DRY{Multiplier: a(0), Base: a(1), AllowedLength: int(c.Args[2]), LastN: int(c.Args[3])}
		}
		p.Order = []Step{step}
		s, err := New(p, len(c.Logits))
		if err != nil {
			t.Fatal(err)
		}
		for _, tok := range c.History {
			s.Accept(tok)
		}
		s.prepare()
		if p.Mirostat > 0 {
			checkMirostat(t, s, c.Sampler, c.Args, c.Logits, c.Left)
			continue
		}
		s.survey(c.Logits)
		left := s.apply(step, s.above(nil, c.Logits, -math.MaxFloat32))
		if len(left) != len(c.Left) {
			t.Errorf("%s %v: %d tokens are left, want %d", c.Sampler, c.Args, len(left), len(c.Left))
			continue
		}
		// Only differences of logits count.
		shift := c.Left[0][1] - float64(left[0].logit)
		for i, x := range left {
			if int(c.Left[i][0]) != int(x.id) || math.Abs(float64(x.logit)+shift-c.Left[i][1]) > 1e-3 {
				t.Errorf("%s %v: token %d with %v, want %v", c.Sampler, c.Args, x.id, float64(x.logit)+shift, c.Left[i])
			}
		}
	}
}

// checkMirostat draws many times: all that llama.cpp leaves is drawn, and nothing
// else.
func checkMirostat(t *testing.T, s *Sampler, name string, args []float64, logits []float32, left [][2]float64) {
	t.Helper()
	var want, got []int32
	for _, x := range left {
		want = append(want, int32(x[0]))
	}
	for range 20000 {
		s.step++ // another random number, with mu as it is at the beginning
		if tok := s.Sample(logits).Token; !slices.Contains(got, tok) {
			got = append(got, tok)
		}
	}
	for _, tok := range got {
		if !slices.Contains(want, tok) {
			t.Errorf("%s %v: drew %d, which llama.cpp leaves out", name, args, tok)
		}
	}
	if len(got) < len(want)*2/3 {
		t.Errorf("%s %v: drew %d tokens of %d", name, args, len(got), len(want))
	}
}
