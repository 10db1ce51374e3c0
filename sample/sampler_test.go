package sample

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func mustNew(t testing.TB, p Params, vocab int) *Sampler {
	t.Helper()
	s, err := New(p, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// TestGoldens: what transformers' logits processors leave.
func TestGoldens(t *testing.T) {
	b, err := os.ReadFile("testdata/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Params  Params
		History []int32
		Logits  []float32
		Probs   map[string]float64
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("only %d cases", len(cases))
	}
	for i, c := range cases {
		s := mustNew(t, c.Params, len(c.Logits))
		for _, tok := range c.History {
			s.Accept(tok)
		}
		got := s.distribution(c.Logits)
		if len(got) != len(c.Probs) {
			t.Errorf("case %d %+v: %d tokens left, want %d", i, c.Params, len(got), len(c.Probs))
		}
		for key, want := range c.Probs {
			id, _ := strconv.Atoi(key)
			if p, ok := got[int32(id)]; !ok || math.Abs(p-want) > 1e-6+1e-5*want {
				t.Errorf("case %d %+v: token %d has probability %v, want %v", i, c.Params, id, p, want)
			}
		}
	}
}

// testLogits are like a language model's: a few likely tokens, a long tail.
func testLogits(vocab int, seed uint64) []float32 {
	out := make([]float32, vocab)
	for i := range out {
		u := uniform(seed, uint64(i))
		out[i] = float32(math.Sqrt2*math.Erfinv(2*u-1+1e-12)) * 3
	}
	for i := range 8 {
		out[int(mix(seed+uint64(i))%uint64(vocab))] += float32(12 - i)
	}
	return out
}

// TestDistribution draws many tokens and compares their frequencies with
// the probabilities by a chi-squared test. Seeds are fixed: it cannot fail by
// chance, only after a change.
func TestDistribution(t *testing.T) {
	const draws, vocab = 40_000, 50
	for i, p := range []Params{
		{Temperature: 1},
		{Temperature: 0.7},
		{Temperature: 1.5, TopK: 12},
		{Temperature: 1, TopP: 0.9},
		{Temperature: 2, MinP: 0.05},
		{Temperature: 1, TypicalP: 0.8},
	} {
		logits := make([]float32, vocab)
		for j := range logits {
			logits[j] = float32(3 * uniform(99, uint64(j)))
		}
		n := &naive{p: p}
		want := n.run(logits)
		// Over seeds at one step, and over steps of one seed.
		for mode := range 2 {
			counts := map[int32]float64{}
			s := mustNew(t, p, vocab)
			for d := range draws {
				if mode == 0 {
					s.p.Seed = uint64(d)
				} else {
					s.Accept(0)
				}
				counts[s.Sample(logits).Token]++
			}
			chi, dof := 0.0, -1.0
			for id, w := range want {
				e := w * draws
				chi += (counts[id] - e) * (counts[id] - e) / e
				dof++
			}
			for id := range counts {
				if want[id] == 0 {
					t.Errorf("case %d: token %d was drawn", i, id)
				}
			}
			// The 99.9th percentile, by Wilson and Hilferty's approximation.
			limit := dof * math.Pow(1-2/(9*dof)+3.09*math.Sqrt(2/(9*dof)), 3)
			if chi > limit {
				t.Errorf("case %d, mode %d: chi-squared %.1f with %v degrees of freedom, limit %.1f", i, mode, chi, dof, limit)
			}
		}
	}
}

// TestUniform: the random numbers fill [0, 1) evenly, and seeds and steps
// next to each other are not alike.
func TestUniform(t *testing.T) {
	const n, bins = 1 << 16, 64
	for seed := range uint64(4) {
		var hist, pairs [bins]float64
		prev := uniform(seed, 1<<40)
		for i := range uint64(n) {
			u := uniform(seed, i)
			if u < 0 || u >= 1 {
				t.Fatalf("uniform(%d, %d) is %v", seed, i, u)
			}
			hist[int(u*bins)]++
			d := math.Mod(u-prev+1, 1)
			pairs[int(d*bins)]++
			prev = u
			if u == uniform(seed+1, i) {
				t.Fatalf("seeds %d and %d agree at step %d", seed, seed+1, i)
			}
		}
		for _, h := range [][bins]float64{hist, pairs} {
			chi := 0.0
			for _, c := range h {
				chi += (c - n/bins) * (c - n/bins) / (n / bins)
			}
			if chi > 110 { // 63 degrees of freedom, 99.98%
				t.Errorf("seed %d: chi-squared %.1f", seed, chi)
			}
		}
	}
}

// TestReplay: the same parameters, history and logits give the same tokens,
// whatever happened in between; Reset starts over.
func TestReplay(t *testing.T) {
	const vocab = 2000
	p := Params{Temperature: 0.9, TopP: 0.95, RepetitionPenalty: 1.2, FrequencyPenalty: 0.1, Seed: 5}
	run := func(s *Sampler, distract bool) []int32 {
		var out []int32
		for step := range 40 {
			logits := testLogits(vocab, uint64(step/4))
			if distract {
				s.Sample(testLogits(vocab, 77)) // picked but not accepted
			}
			tok := s.Sample(logits).Token
			s.Accept(tok)
			out = append(out, tok)
		}
		return out
	}
	s := mustNew(t, p, vocab)
	first := run(s, false)
	s.Reset()
	if again := run(s, true); !reflect.DeepEqual(first, again) {
		t.Errorf("first %v\nagain %v", first, again)
	}
	p.Seed++
	if other := run(mustNew(t, p, vocab), false); reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same tokens")
	}
	golden := []int32{1856, 0, 805, 789, 789, 1985, 1059, 789, 1132, 1252}
	if !reflect.DeepEqual(first[:len(golden)], golden) {
		t.Errorf("tokens of seed 5 have changed: %v", first[:len(golden)])
	}
}

func TestGreedy(t *testing.T) {
	s := mustNew(t, Params{}, 5)
	for _, c := range []struct {
		logits []float32
		want   int32
	}{
		{[]float32{1, 3, 2, 3, 0}, 1},
		{[]float32{-5, -4, -3, -9, -3}, 2},
		{[]float32{nan, 1, nan, 2, nan}, 3},
		{[]float32{-inf, -inf, -1e38, -inf, nan}, 2},
		{[]float32{1, inf, 2, inf, 0}, 1},
		{[]float32{nan, nan, nan, nan, nan}, -1},
		{[]float32{-inf, -inf, -inf, -inf, -inf}, -1},
		{[]float32{1, 2}, -1},
		{nil, -1},
	} {
		if got := s.Sample(c.logits).Token; got != c.want {
			t.Errorf("%v: picked %d, want %d", c.logits, got, c.want)
		}
	}
}

// TestStrangeLogits: NaN, infinities and nothing at all, through every path.
func TestStrangeLogits(t *testing.T) {
	all := []Params{
		{}, {Temperature: 1}, {Temperature: 1, TopK: 2}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopP: 0.5}, {Temperature: 1, MinP: 0.5},
		{Temperature: 1, TypicalP: 0.5}, {Temperature: 1e-30, TopP: 0.9}, {Temperature: 100},
		{Temperature: 1, RepetitionPenalty: 1.5, PresencePenalty: 1, LogitBias: map[int32]float32{0: 1, 2: -inf}},
	}
	for _, p := range all {
		p.LogProbs = 3
		s := mustNew(t, p, 4)
		s.Accept(3)
		for _, c := range []struct {
			logits []float32
			want   []int32
		}{
			{[]float32{nan, nan, nan, nan}, []int32{-1}},
			{[]float32{-inf, -inf, -inf, -inf}, []int32{-1}},
			{[]float32{nan, -inf, -inf, 1}, []int32{3}},
			{[]float32{0, inf, -inf, inf}, []int32{1}},
			{[]float32{3e38, -3e38, -3e38, -3e38}, []int32{0}},
			{[]float32{-3e38, -3.4e38, -3.4e38, nan}, []int32{0}},
			{[]float32{1, nan, -inf, 1}, []int32{0, 3}},
		} {
			r := s.Sample(c.logits)
			ok := false
			for _, w := range c.want {
				ok = ok || r.Token == w
			}
			if !ok {
				t.Errorf("%+v, %v: picked %d, want one of %v", p, c.logits, r.Token, c.want)
			}
			if r.LogProb != r.LogProb || r.LogProb > 0 {
				t.Errorf("%+v, %v: log-probability %v", p, c.logits, r.LogProb)
			}
		}
	}
}

func TestLogProbs(t *testing.T) {
	logits := []float32{1, 2, 3, 0, nan, -inf}
	z := math.Log(math.Exp(1) + math.Exp(2) + math.Exp(3) + 1)
	// Bias, mask, penalties and temperature do not show.
	s := mustNew(t, Params{LogProbs: 5, LogitBias: map[int32]float32{0: 50}, RepetitionPenalty: 2, Temperature: 0.01}, 6)
	s.SetMasker(maskTokens{2})
	s.Accept(1)
	r := s.Sample(logits)
	if r.Token != 0 || math.Abs(float64(r.LogProb)-(1-z)) > 1e-6 {
		t.Errorf("got %+v", r)
	}
	want := []int32{2, 1, 0, 3}
	if len(r.Top) != len(want) {
		t.Fatalf("got %+v", r.Top)
	}
	for i, tp := range r.Top {
		if tp.Token != want[i] || math.Abs(float64(tp.LogProb)-(float64(logits[want[i]])-z)) > 1e-6 {
			t.Errorf("place %d: %+v", i, tp)
		}
	}
	if logits[0] != 1 || logits[2] != 3 {
		t.Error("the logits were changed")
	}
	if r := mustNew(t, Params{}, 6).Sample(logits); r.Top != nil || r.LogProb != 0 {
		t.Errorf("without logprobs: %+v", r)
	}
	sum := 0.0
	s = mustNew(t, Params{LogProbs: 500}, 500)
	for _, tp := range s.Sample(testLogits(500, 1)).Top {
		sum += math.Exp(float64(tp.LogProb))
	}
	if math.Abs(sum-1) > 1e-5 {
		t.Errorf("probabilities add up to %v", sum)
	}
}

// maskTokens forbids tokens.
type maskTokens []int

func (m maskTokens) Mask(logits []float32) {
	for _, i := range m {
		logits[i] = float32(math.Inf(-1))
	}
}

func TestMasker(t *testing.T) {
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 1, TopP: 0.9}, {Temperature: 1, TopK: 3}} {
		s := mustNew(t, p, 4)
		s.SetMasker(maskTokens{0, 2, 3})
		for range 20 {
			if r := s.Sample([]float32{9, 1, 9, 9}); r.Token != 1 {
				t.Errorf("%+v: picked %d", p, r.Token)
			}
			s.Accept(1)
		}
		s.SetMasker(maskTokens{0, 1, 2, 3})
		if r := s.Sample([]float32{9, 1, 9, 9}); r.Token != -1 {
			t.Errorf("%+v: picked %d", p, r.Token)
		}
		s.SetMasker(nil)
		if r := s.Sample([]float32{99, 1, 9, 9}); r.Token != 0 {
			t.Errorf("%+v: picked %d", p, r.Token)
		}
	}
}

func TestPenaltyWindow(t *testing.T) {
	s := mustNew(t, Params{PresencePenalty: 1, PenaltyLastN: 2}, 4)
	for _, tok := range []int32{0, 1, 1, 99, -1} { // unknown ids are not counted
		s.Accept(tok)
	}
	// In the window: 1, 1.
	if got := s.adjust([]float32{0, 0, 0, 0}); !reflect.DeepEqual(got, []float32{0, -1, 0, 0}) {
		t.Errorf("got %v", got)
	}
	s.Accept(3)
	s.Accept(2)
	if got := s.adjust([]float32{0, 0, 0, 0}); !reflect.DeepEqual(got, []float32{0, 0, -1, -1}) {
		t.Errorf("got %v", got)
	}
	s.Reset()
	if got := s.adjust([]float32{0, 0, 0, 0}); !reflect.DeepEqual(got, []float32{0, 0, 0, 0}) {
		t.Errorf("after Reset: %v", got)
	}
	s = mustNew(t, Params{FrequencyPenalty: 0.5, PresencePenalty: 0.25, RepetitionPenalty: 2, PenaltyLastN: -1}, 3)
	for range 3 {
		s.Accept(0)
	}
	s.Accept(1)
	if got := s.adjust([]float32{4, -4, 1}); !reflect.DeepEqual(got, []float32{2 - 1.75, -8 - 0.75, 1}) {
		t.Errorf("got %v", got)
	}
}

func TestValidation(t *testing.T) {
	for _, c := range []struct {
		p    Params
		want string
	}{
		{Params{Temperature: -1}, "sample: temperature: expected 0 or a positive number, found -1"},
		{Params{Temperature: nan}, "sample: temperature: expected 0 or a positive number, found NaN"},
		{Params{Temperature: inf}, "sample: temperature: expected 0 or a positive number, found +Inf"},
		{Params{TopP: 1.1}, "sample: top_p: expected a number in [0, 1], found 1.1"},
		{Params{TopP: -0.1}, "sample: top_p: expected a number in [0, 1], found -0.1"},
		{Params{MinP: 2}, "sample: min_p: expected a number in [0, 1], found 2"},
		{Params{TypicalP: nan}, "sample: typical_p: expected a number in [0, 1], found NaN"},
		{Params{TopK: -1}, "sample: top_k: expected 0 (off) or a positive number, found -1"},
		{Params{RepetitionPenalty: -1}, "sample: repetition_penalty: expected 0 (off) or a positive number, found -1"},
		{Params{PresencePenalty: nan}, "sample: presence_penalty: expected a number, found NaN"},
		{Params{FrequencyPenalty: -inf}, "sample: frequency_penalty: expected a number, found -Inf"},
		{Params{PenaltyLastN: -2}, "sample: penalty_last_n: expected -1 (all) to 16777216, found -2"},
		{Params{LogProbs: -1}, "sample: logprobs: expected 0 to 10, found -1"},
		{Params{LogProbs: 11}, "sample: logprobs: expected 0 to 10, found 11"},
		{Params{LogitBias: map[int32]float32{10: 1}}, "sample: logit_bias: expected token ids 0 to 9, found 10"},
		{Params{LogitBias: map[int32]float32{-1: 1}}, "sample: logit_bias: expected token ids 0 to 9, found -1"},
		{Params{LogitBias: map[int32]float32{3: inf}}, "sample: logit_bias of token 3: expected a number or -Inf, found +Inf"},
	} {
		if _, err := New(c.p, 10); err == nil || err.Error() != c.want {
			t.Errorf("%+v: got %v, want %s", c.p, err, c.want)
		}
	}
	if _, err := New(Params{}, 0); err == nil || !strings.HasPrefix(err.Error(), "sample: vocabulary size:") {
		t.Errorf("got %v", err)
	}
	if _, err := New(Params{Temperature: 1, TopP: 1, MinP: 1, TypicalP: 1, TopK: 1 << 40, PenaltyLastN: -1, LogitBias: map[int32]float32{3: -inf}}, 10); err != nil {
		t.Error(err)
	}
}

var manyParams = map[string]Params{
	"greedy":      {},
	"temperature": {Temperature: 0.8},
	"top_k":       {Temperature: 0.8, TopK: 40},
	"top_k_1000":  {Temperature: 0.8, TopK: 1000},
	"top_p":       {Temperature: 0.8, TopP: 0.95},
	"min_p":       {Temperature: 0.8, MinP: 0.05},
	"typical":     {Temperature: 0.8, TypicalP: 0.9},
	"default":     {Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05, RepetitionPenalty: 1.1},
	"penalties":   {RepetitionPenalty: 1.1, FrequencyPenalty: 0.1},
	"bias":        {Temperature: 1, LogitBias: map[int32]float32{1: 2}},
}

// TestShare: samplers with one working memory pick the same tokens in turns as
// each does with its own.
func TestShare(t *testing.T) {
	const vocab = 3000
	var own, shared []*Sampler
	for _, name := range []string{"top_p", "default", "typical", "temperature", "top_k_1000"} {
		p := manyParams[name]
		p.LogProbs = 2
		own, shared = append(own, mustNew(t, p, vocab)), append(shared, mustNew(t, p, vocab))
		shared[len(shared)-1].Share(shared[0])
	}
	for step := range 20 {
		for i := range own {
			logits := testLogits(vocab, uint64(step*len(own)+i))
			want, got := own[i].Sample(logits), shared[i].Sample(logits)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("step %d, sampler %d: %+v, want %+v", step, i, got, want)
			}
			own[i].Accept(want.Token)
			shared[i].Accept(got.Token)
		}
	}
	if shared[1].scratch != shared[0].scratch || own[1].scratch == own[0].scratch {
		t.Error("memory is not shared, or always")
	}
}

// TestAllocs: a warm sampler allocates nothing.
func TestAllocs(t *testing.T) {
	const vocab = 5000
	logits := testLogits(vocab, 3)
	for name, p := range manyParams {
		s := mustNew(t, p, vocab)
		s.SetMasker(maskTokens{7})
		step := func() {
			tok := s.Sample(logits).Token
			s.Accept(tok)
			s.Accept(int32(mix(s.step) % vocab))
		}
		for range 200 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzSample(f *testing.F) {
	f.Add(float32(0.8), float32(0.9), float32(0.1), float32(0.9), float32(1.1), float32(0.2), 3, 4, uint64(1), []byte("\x00\x00\x80\x3f\x00\x00\xc0\x7f\x00\x00\x80\x7f\x00\x00\x80\xff"))
	f.Add(float32(0), float32(0), float32(0), float32(0), float32(0), float32(0), 0, 0, uint64(0), []byte("abcdefghijkl"))
	f.Fuzz(func(t *testing.T, temp, topP, minP, typ, rep, freq float32, k, lastN int, seed uint64, raw []byte) {
		vocab := len(raw) / 4
		if vocab == 0 || vocab > 4096 {
			return
		}
		logits := make([]float32, vocab)
		for i := range logits {
			logits[i] = math.Float32frombits(uint32(raw[4*i]) | uint32(raw[4*i+1])<<8 | uint32(raw[4*i+2])<<16 | uint32(raw[4*i+3])<<24)
		}
		s, err := New(Params{
			Temperature: temp, TopP: topP, MinP: minP, TypicalP: typ, RepetitionPenalty: rep, FrequencyPenalty: freq,
			TopK: k, PenaltyLastN: lastN, Seed: seed, LogProbs: min(3, vocab), LogitBias: map[int32]float32{0: freq},
		}, vocab)
		if err != nil {
			return
		}
		for range 4 {
			r := s.Sample(logits)
			if r.Token < -1 || int(r.Token) >= vocab {
				t.Fatalf("picked %d of %d", r.Token, vocab)
			}
			if again := s.Sample(logits); again.Token != r.Token {
				t.Fatalf("picked %d, then %d", r.Token, again.Token)
			}
			if r.LogProb != r.LogProb || r.LogProb > 1e-6 {
				t.Fatalf("log-probability %v", r.LogProb)
			}
			s.Accept(r.Token)
		}
	})
}

func BenchmarkSample(b *testing.B) {
	const vocab = 262_144
	logits := testLogits(vocab, 3)
	for name, p := range manyParams {
		b.Run(name, func(b *testing.B) {
			s := mustNew(b, p, vocab)
			b.ReportAllocs()
			for range b.N {
				s.Accept(s.Sample(logits).Token)
			}
		})
	}
}
