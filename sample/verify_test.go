package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// textModel is a model of few tokens whose logits depend on all of the text.
type textModel struct {
	vocab int
	known map[uint64][]float32
}

func newTextModel(vocab int) textModel { return textModel{vocab, map[uint64][]float32{}} }

func (m textModel) logits(text []int32) []float32 {
	seed := uint64(1)
	for _, id := range text {
		seed = mix(seed*31 + uint64(id))
	}
	out := m.known[seed]
	if out == nil {
		r := rand.New(rand.NewPCG(seed, 5))
		out = make([]float32, m.vocab)
		for i := range out {
			out[i] = float32(r.NormFloat64() * 1.5)
		}
		m.known[seed] = out
	}
	return out
}

// guessed is a text of that model whose next tokens were guessed.
type guessed struct {
	s       *Sampler
	m       textModel
	text    []int32
	guesses []int32
	parents []int32
	most    int
	results []Result
}

func (g *guessed) Logits(i int) []float32 {
	path := pathTo(g.guesses, g.parents, i-1)
	return g.m.logits(slices.Concat(g.text[:len(g.text)-len(path)], path))
}

// pathTo returns the guesses up to guess i.
func pathTo(guesses, parents []int32, i int) (path []int32) {
	if parents == nil {
		return guesses[:i+1]
	}
	for ; i >= 0; i = int(parents[i]) {
		path = append(path, guesses[i])
	}
	slices.Reverse(path)
	return path
}

func (g *guessed) Forced(int) (Result, bool) { return Result{}, false }

func (g *guessed) Take(r Result) bool {
	g.results = append(g.results, r)
	if r.Token < 0 {
		return false
	}
	g.text = append(g.text, r.Token)
	g.s.Accept(r.Token)
	return len(g.text) < g.most
}

// drafters are ways to guess, from the best to the worst.
var drafters = map[string]func(m textModel, text []int32, n int) []int32{
	"none": func(textModel, []int32, int) []int32 { return nil },
	"best": func(m textModel, text []int32, n int) (out []int32) {
		for range n {
			out = append(out, argmax(m.logits(slices.Concat(text, out))))
		}
		return out
	},
	"any": func(m textModel, text []int32, n int) (out []int32) {
		random := mix(uint64(len(text))<<32 + uint64(text[len(text)-1]))
		for i := range 1 + random%uint64(n+1) {
			out = append(out, int32(mix(random+i)%uint64(m.vocab)))
		}
		return out
	},
	"none of them": func(_ textModel, _ []int32, n int) []int32 { return slices.Repeat([]int32{-7, 1 << 30}, n) },
}

// treeOf returns a tree of guesses: what other drafters guess, each beside others.
func treeOf(m textModel, text []int32, n int) (guesses, parents []int32) {
	at := int32(-1)
	for i, id := range drafters["best"](m, text, n) {
		random := mix(uint64(len(text))<<32 + uint64(i) + uint64(text[len(text)-1])<<8)
		for k := range random % 3 {
			guesses, parents = append(guesses, int32(mix(random+k)%uint64(m.vocab))), append(parents, int32(mix(random*3+k)%uint64(len(guesses)+1))-1)
		}
		guesses, parents = append(guesses, id), append(parents, at)
		at = int32(len(guesses)) - 1
	}
	return guesses, parents
}

// generate goes on with a text until it has most tokens. It returns how many of
// the guesses were right, too.
func generate(t testing.TB, m textModel, p Params, mask Masker, text []int32, most, depth int, drafter string) (g *guessed, right int) {
	t.Helper()
	g = &guessed{s: mustNew(t, p, m.vocab), m: m, text: slices.Clone(text), most: most}
	g.s.SetMasker(mask)
	for _, id := range text {
		g.s.Accept(id)
	}
	for len(g.text) < most {
		before := len(g.results)
		if drafter == "tree" {
			g.guesses, g.parents = treeOf(m, g.text, depth)
		} else {
			g.guesses = drafters[drafter](m, g.text, depth)
		}
		n := g.s.Verify(g, g.guesses, g.parents)
		if right += n; len(g.results) == before || len(g.results) > before+n+1 {
			t.Fatalf("%d tokens of %d guesses of which %d were right", len(g.results)-before, len(g.guesses), n)
		}
	}
	return g, right
}

// verified are settings of all steps whose distribution the naive chain knows.
var verified = map[string]Params{
	"temperature":        {Temperature: 1},
	"hot":                {Temperature: 1.7},
	"top-k":              {Temperature: 0.9, TopK: 3},
	"top-p":              {Temperature: 1.1, TopP: 0.8},
	"min-p":              {Temperature: 1.3, MinP: 0.15},
	"typical":            {Temperature: 1, TypicalP: 0.7},
	"all cuts":           {Temperature: 1.2, TopK: 5, TypicalP: 0.95, TopP: 0.9, MinP: 0.05},
	"penalties":          {Temperature: 1, RepetitionPenalty: 1.3, PresencePenalty: 0.4, FrequencyPenalty: 0.3},
	"bias":               {Temperature: 1, LogitBias: map[int32]float32{0: 1, 2: -1, 4: float32(math.Inf(-1))}},
	"bias, cuts, memory": {Temperature: 0.8, TopP: 0.9, FrequencyPenalty: 0.5, PenaltyLastN: 2, LogitBias: map[int32]float32{1: 1}},
}

// A text whose guesses are verified has the probability that the chain gives it:
// the frequencies of all texts of three tokens against those that enumeration has,
// by a chi-squared test. Seeds are fixed: it cannot fail by chance, only after a
// change.
func TestVerifyDistribution(t *testing.T) {
	const length, draws = 3, 3000
	m := newTextModel(6)
	start := []int32{2, 5, 2}
	masks := map[string]maskTokens{"": nil, " under a mask": {3}}
	for name, p := range verified {
		for masked, mask := range masks {
			if masked != "" && name != "temperature" && name != "all cuts" {
				continue
			}
			want := map[string]float64{}
			enumerate(m, p, mask, start, length, 1, want)
			for _, drafter := range []string{"best", "any", "tree"} {
				t.Run(name+masked+" "+drafter, func(t *testing.T) {
					got, right := map[string]int{}, 0
					for i := range draws {
						p.Seed = uint64(i)
						g, n := generate(t, m, p, mask, start, len(start)+length, 2, drafter)
						got[fmt.Sprint(g.text[len(start):])]++
						right += n
					}
					if drafter != "any" && right < draws/5 {
						t.Errorf("%d guesses were right", right)
					}
					chiSquared(t, got, want, draws)
				})
			}
		}
	}
}

// enumerate adds the probability of each text of n more tokens.
func enumerate(m textModel, p Params, mask maskTokens, text []int32, n int, prob float64, out map[string]float64) {
	const start = 3
	if n == 0 {
		out[fmt.Sprint(text[start:])] += prob
		return
	}
	logits := slices.Clone(m.logits(text))
	mask.Mask(logits)
	for id, x := range (&naive{p: p, hist: text}).run(logits) {
		enumerate(m, p, mask, slices.Concat(text, []int32{id}), n-1, prob*x, out)
	}
}

// chiSquared compares counts with what is expected of so many draws. What is rare
// counts as one.
func chiSquared(t *testing.T, got map[string]int, want map[string]float64, draws int) {
	t.Helper()
	chi, cells, rare, few := 0.0, 0, 0.0, draws
	for text, p := range want {
		expected := p * float64(draws)
		if expected < 5 {
			rare += expected
			continue
		}
		d := float64(got[text]) - expected
		chi += d * d / expected
		few -= got[text]
		cells++
	}
	for text := range got {
		if want[text] == 0 {
			t.Errorf("%s cannot be drawn", text)
		}
	}
	if rare >= 5 {
		d := float64(few) - rare
		chi += d * d / rare
		cells++
	}
	free := float64(cells - 1)
	if limit := free + 4*math.Sqrt(2*free) + 8; chi > limit {
		t.Errorf("χ² = %.1f with %d cells, want at most %.1f", chi, cells, limit)
	}
}

// Guesses change nothing about a text but how many rows are looked at: each token,
// its log-probability and what it was drawn from are those without guesses,
// whatever the steps look at, seeded or greedy.
func TestVerifyEqualsSample(t *testing.T) {
	m := newTextModel(40)
	settings := map[string]Params{
		"greedy":             {LogProbs: 3},
		"greedy, penalties":  {RepetitionPenalty: 1.5, FrequencyPenalty: 0.5, LogProbs: 1},
		"greedy, bias":       {LogitBias: map[int32]float32{1: 2, 2: float32(math.Inf(-1))}},
		"greedy, top-k":      {Temperature: 1, TopK: 1},
		"dry":                {Temperature: 0.5, DRY: DRY{Multiplier: 2, AllowedLength: 1, LastN: -1}},
		"xtc":                {Temperature: 1, XTCProbability: 0.5, XTCThreshold: 0.05},
		"mirostat":           {Temperature: 1, Mirostat: 1, MirostatTau: 3},
		"mirostat 2":         {Temperature: 1, Mirostat: 2, MirostatTau: 3},
		"n-sigma, range":     {Temperature: 1, TopNSigma: 1.5, TemperatureRange: 0.5},
		"steps out of order": {Temperature: 1.3, TopP: 0.8, RepetitionPenalty: 1.2, Order: []Step{StepTemperature, StepTopP, StepPenalties}},
		"traced":             {Temperature: 1, TopP: 0.9, LogProbs: 4, Trace: true},
	}
	for name, p := range verified {
		settings[name] = p
	}
	for name, p := range settings {
		t.Run(name, func(t *testing.T) {
			right := 0
			for seed := range uint64(8) {
				p.Seed = seed
				start := []int32{1, 2, int32(3 + seed)}
				want, _ := generate(t, m, p, maskTokens{9, 11}, start, 30, 0, "none")
				names := []string{"tree"}
				for drafter := range drafters {
					names = append(names, drafter)
				}
				for _, drafter := range names {
					for _, depth := range []int{1, 3, 8} {
						got, n := generate(t, m, p, maskTokens{9, 11}, start, 30, depth, drafter)
						if right += n; !slices.Equal(got.text, want.text) {
							t.Fatalf("%s, %d guesses: %v, without guesses %v", drafter, depth, got.text, want.text)
						}
						if a, b := fmt.Sprintf("%+v", flat(got.results)), fmt.Sprintf("%+v", flat(want.results)); a != b {
							t.Fatalf("%s, %d guesses: %s, without guesses %s", drafter, depth, a, b)
						}
					}
				}
			}
			if right == 0 {
				t.Error("no guess was right")
			}
		})
	}
}

// flat returns results without pointers.
func flat(results []Result) (out []any) {
	for _, r := range results {
		if r.Trace != nil {
			out = append(out, *r.Trace)
			r.Trace = nil
		}
		out = append(out, r)
	}
	return out
}

// rows is a chain of the same row that allocates nothing.
type rows struct {
	s      *Sampler
	logits []float32
}

func (r *rows) Logits(int) []float32 { return r.logits }

func (r *rows) Forced(int) (Result, bool) { return Result{}, false }

func (r *rows) Take(x Result) bool { r.s.Accept(x.Token); return true }

// Verification allocates nothing.
func TestVerifyAllocates(t *testing.T) {
	logits := testLogits(1000, 1)
	s := mustNew(t, Params{}, len(logits))
	c, best := &rows{s, logits}, argmax(logits)
	guesses := slices.Repeat([]int32{best}, 4)
	if n := testing.AllocsPerRun(20, func() { s.Verify(c, guesses, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if right := s.Verify(c, guesses, nil); right != 4 {
		t.Errorf("%d were right", right)
	}
}
