package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// What the steps leave, and of which logits, is what llama.cpp's samplers do
// (testdata/llama_cpp.py).
func TestStepsAgainstLlamaCpp(t *testing.T) {
	for _, c := range llamaCases(t) {
		if c.Chain != nil {
			continue
		}
		p := Params{Temperature: 1, Seed: 1}
		step := c.put(&p, c.Sampler, c.Args)
		p.Order = []Step{step}
		if p.Mirostat > 0 {
			s := mustNew(t, p, len(c.Logits))
			s.prepare()
			checkMirostat(t, s, c.Sampler, c.Args, c.Logits, c.Left)
			continue
		}
		c.check(t, p)
	}
}

// llamaCase is what a sampler of llama.cpp, or several one after the other, leaves of
// logits after a text.
type llamaCase struct {
	Sampler string       `json:"sampler"`
	Args    []float64    `json:"args"`
	Chain   [][2]any     `json:"chain"` // names and arguments
	Logits  []float32    `json:"logits"`
	History []int32      `json:"history"`
	Left    [][2]float64 `json:"left"`
}

func llamaCases(t *testing.T) (cases []llamaCase) {
	t.Helper()
	b, err := os.ReadFile("testdata/llama_cpp.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) == 0 {
		t.Fatal(err)
	}
	return cases
}

// put puts the arguments of a sampler of llama.cpp into p.
func (c *llamaCase) put(p *Params, sampler string, args []float64) (step Step) {
	a := func(i int) float32 { return float32(args[i]) }
	switch sampler {
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
		step, p.DRY = StepDRY, DRY{Multiplier: a(0), Base: a(1), AllowedLength: int(args[2]), LastN: int(args[3])}
		if p.DRY.AllowedLength == 0 {
			p.DRY.AllowedLength = -1
		}
	case "penalties":
		step, p.PenaltyLastN, p.RepetitionPenalty, p.FrequencyPenalty, p.PresencePenalty = StepPenalties, int(args[0]), a(1), a(2), a(3)
	case "top_k":
		step, p.TopK = StepTopK, int(args[0])
	case "top_p":
		step, p.TopP = StepTopP, a(0)
	case "min_p":
		step, p.MinP = StepMinP, a(0)
	case "typical":
		step, p.TypicalP = StepTypicalP, a(0)
	}
	return step
}

// check runs the steps of p and compares what is left.
func (c *llamaCase) check(t *testing.T, p Params) {
	t.Helper()
	s := mustNew(t, p, len(c.Logits))
	for _, tok := range c.History {
		s.Accept(tok)
	}
	s.prepare()
	s.survey(c.Logits)
	left := s.above(nil, c.Logits, -math.MaxFloat32)
	for place, step := range p.Order {
		if s.p.active(step) {
			left = s.apply(step, place, left)
		}
	}
	name := fmt.Sprint(c.Sampler, c.Args, c.Chain)
	if len(left) != len(c.Left) {
		t.Errorf("%s: %d tokens are left, want %d", name, len(left), len(c.Left))
		return
	}
	// Only differences of logits count.
	shift := c.Left[0][1] - float64(left[0].logit)
	for i, x := range left {
		if int(c.Left[i][0]) != int(x.id) || math.Abs(float64(x.logit)+shift-c.Left[i][1]) > 1e-3 {
			t.Errorf("%s: token %d with %v, want %v", name, x.id, float64(x.logit)+shift, c.Left[i])
		}
	}
	c.checkDrawn(t, p)
}

// checkDrawn compares the distribution that a token is drawn from.
func (c *llamaCase) checkDrawn(t *testing.T, p Params) {
	t.Helper()
	p.LogProbs, p.Drawn = len(c.Logits), true
	s := mustNew(t, p, len(c.Logits))
	for _, tok := range c.History {
		s.Accept(tok)
	}
	top, total, want := math.Inf(-1), 0.0, map[int32]float64{}
	for _, x := range c.Left {
		top = max(top, x[1])
	}
	for _, x := range c.Left {
		want[int32(x[0])] = math.Exp(x[1] - top)
		total += want[int32(x[0])]
	}
	for id := range want {
		want[id] /= total
	}
	r := s.Sample(c.Logits)
	for _, x := range append(r.Top, TokenProb{r.Token, r.LogProb}) {
		if math.Abs(math.Exp(float64(x.LogProb))-want[x.Token]) > 1e-4 {
			t.Errorf("%s%v%v: token %d has %v, want the logarithm of %v", c.Sampler, c.Args, c.Chain, x.Token, x.LogProb, want[x.Token])
		}
	}
}

// Steps in any order, some of them twice, do what llama.cpp's do.
func TestOrderAgainstLlamaCpp(t *testing.T) {
	n := 0
	for _, c := range llamaCases(t) {
		p := Params{Temperature: 1, Seed: 1}
		for _, x := range c.Chain {
			var args []float64
			for _, a := range x[1].([]any) {
				args = append(args, a.(float64))
			}
			p.Order = append(p.Order, c.put(&p, x[0].(string), args))
		}
		if len(c.Chain) > 0 {
			c.check(t, p)
			n++
		}
	}
	if n < 10 {
		t.Errorf("only %d chains", n)
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

// Where an order says what would be done anyway, tokens are those that are drawn
// without it; what it leaves out is off.
func TestOrderOfDefaults(t *testing.T) {
	const vocab = 3000
	long := DRY{Multiplier: 2, AllowedLength: 1, LastN: -1}
	all := Params{Temperature: 0.8, TopK: 400, TypicalP: 0.95, TopP: 0.9, MinP: 0.02, RepetitionPenalty: 1.3, FrequencyPenalty: 0.1, DRY: long}
	for i, c := range []struct {
		p, same Params
		order   []Step
	}{
		{p: all, same: all, order: DefaultOrder()},
		{all, Params{Temperature: 0.8, TopK: 400, TopP: 0.9}, []Step{StepTopK, StepTopP, StepTemperature}},
		{all, Params{Temperature: 1, DRY: long}, []Step{StepDRY}},
		{all, Params{Temperature: 1}, []Step{}},
		{Params{TopK: 30}, Params{Temperature: 1, TopK: 30}, []Step{StepTopK}}, // not greedy: the temperature is left out
		{Params{Temperature: 0.8, TopP: 0.9}, Params{Temperature: 0.8, TopP: 0.9}, []Step{StepTopP, StepTopK, StepMinP, StepTemperature}},
		// What mirostat takes the place of.
		{all, all, nil},
	} {
		c.p.Order, c.p.Seed, c.same.Seed = c.order, 5, 5
		if c.order == nil {
			c.p.Mirostat, c.p.XTCProbability, c.p.TopNSigma, c.p.TemperatureRange = 2, 1, 1, 0.5
			c.same = Params{Temperature: 0.8, Mirostat: 2, Seed: 5}
		}
		a, b := mustNew(t, c.p, vocab), mustNew(t, c.same, vocab)
		if c.p.Mirostat == 0 && a.p.chained() {
			t.Errorf("case %d: all candidates are gone through", i)
		}
		for n := range 60 {
			logits := testLogits(vocab, uint64(n%7))
			x, y := a.Sample(logits).Token, b.Sample(logits).Token
			if x != y {
				t.Fatalf("case %d: token %d is %d, want %d", i, n, x, y)
			}
			a.Accept(x)
			b.Accept(x)
		}
	}
}

// A warm sampler allocates nothing, whatever its steps.
func TestChainAllocates(t *testing.T) {
	const vocab = 2000
	logits := testLogits(vocab, 1)
	var heads []int32
	for i := range int32(50) {
		heads = append(heads, i*40)
	}
	breakers := NewBreakers(vocab, [][]int32{nil, {7}}, func(yield func(id, tail int32) bool) {
		for i, id := range heads {
			if !yield(id, int32(i%2)) {
				return
			}
		}
	})
	for i, p := range []Params{
		{Temperature: 1, DRY: DRY{Multiplier: 1, Breakers: breakers}},
		{Temperature: 1, XTCProbability: 0.5, XTCThreshold: 0.05},
		{Temperature: 1, TopNSigma: 1},
		{Temperature: 1, TemperatureRange: 0.5},
		{Temperature: 1, Mirostat: 1},
		{Temperature: 1, Mirostat: 2},
		{Temperature: 1, TopP: 0.9, RepetitionPenalty: 1.1, DRY: DRY{Multiplier: 1}, TypicalP: 0.9, TopK: 100, MinP: 0.01, XTCProbability: 1,
			Order: []Step{StepTemperature, StepTopP, StepTypicalP, StepXTC, StepTopK, StepMinP, StepPenalties, StepDRY}},
	} {
		s := mustNew(t, p, vocab)
		step := func() { s.Accept(s.Sample(logits).Token) }
		for range 300 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("case %d: %v allocations a token", i, n)
		}
	}
}

// Mirostat holds the surprise of tokens near its target, as its paper says.
func TestMirostatHoldsSurprise(t *testing.T) {
	const vocab = 2000
	for version := 1; version <= 2; version++ {
		for _, tau := range []float32{2, 4} {
			s := mustNew(t, Params{Temperature: 1, Seed: 3, Mirostat: version, MirostatTau: tau}, vocab)
			sum, n := 0.0, 0
			for i := range 600 {
				logits := testLogits(vocab, uint64(i))
				for j := range logits {
					logits[j] /= 2
				}
				s.Accept(s.Sample(logits).Token)
				if i >= 100 {
					sum += s.miro.surprise
					n++
				}
			}
			if mean := sum / float64(n); math.Abs(mean-float64(tau)) > 0.15 {
				t.Errorf("version %d: a surprise of %.2f bits, want %v", version, mean, tau)
			}
		}
	}
}

func TestParseSteps(t *testing.T) {
	steps, err := ParseSteps("edskypmxt")
	if err != nil || !slices.Equal(steps, DefaultOrder()) {
		t.Errorf("letters: %v, %v", steps, err)
	}
	if _, err := ParseSteps("kz"); err == nil || err.Error() != `sample: samplers: expected letters of edskypmxt, found "kz"` {
		t.Errorf("an unknown letter: %v", err)
	}
	for name, want := range map[string]Step{"Temp": StepTemperature, "topk": StepTopK, "min-p": StepMinP, "typ": StepTypicalP, "top-n-sigma": StepTopNSigma, "penalties": StepPenalties} {
		if got, err := ParseStep(name); err != nil || got != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := ParseStep("infill"); err == nil || !strings.Contains(err.Error(), "samplers: expected penalties, dry, top_n_sigma") {
		t.Errorf("an unknown name: %v", err)
	}
}
