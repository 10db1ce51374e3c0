package engine

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"ridge/sample"
	"ridge/sched"
	"ridge/weights/tensor"
)

// beamCase is a search of Hugging Face transformers: see testdata/beam.py.
type beamCase struct {
	Model   string
	Width   int
	Prompt  []int32
	New     int
	Min     int
	Stops   []int32
	Penalty float32
	Early   bool
	Answers []struct {
		Tokens []int32
		Stop   int32
		Score  float64
	}
}

func (c *beamCase) request() Request {
	return Request{
		Tokens: c.Prompt, MaxTokens: c.New, MinTokens: c.Min, StopTokens: c.Stops, N: c.Width,
		Sampling: sample.Params{LogProbs: 1},
		Beam:     &Beam{Width: c.Width, LengthPenalty: c.Penalty, EarlyStop: c.Early},
	}
}

// check compares the answers of a search with those of transformers. Answers
// whose scores are as close as rounding may change places.
func (c *beamCase) check(t *testing.T, i int, got []answer) {
	t.Helper()
	const tolerance = 2e-4
	for k, want := range c.Answers {
		a := got[k]
		length := len(a.tokens)
		total := 0.0
		for _, p := range a.probs {
			total += float64(p)
		}
		if a.last.Finish == FinishStop {
			total += float64(a.last.LogProb)
			length++
		}
		score := total / math.Pow(float64(length), float64(c.Penalty))
		if math.Abs(score-want.Score) > tolerance {
			t.Errorf("%s case %d, answer %d: score %v, want %v", c.Model, i, k, score, want.Score)
		}
		if !slices.Equal(a.tokens, want.Tokens) || a.last.StopToken != want.Stop {
			near := func(d int) bool {
				return k+d >= 0 && k+d < len(c.Answers) && math.Abs(c.Answers[k+d].Score-want.Score) < tolerance
			}
			if !near(-1) && !near(1) {
				t.Errorf("%s case %d, answer %d: got %v %d, want %v %d", c.Model, i, k, a.tokens, a.last.StopToken, want.Tokens, want.Stop)
			}
		}
	}
}

func readBeams(t *testing.T) []beamCase {
	t.Helper()
	b, err := os.ReadFile("testdata/beam.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []beamCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func TestBeamsAgainstTransformers(t *testing.T) {
	cases := readBeams(t)
	for _, name := range []string{"llama", "gemma3"} {
		e := start(t, openTinyKV(t, name, 64, tensor.F32), Options{})
		for i, c := range cases {
			if c.Model == name {
				got, _ := ask(t, e, c.request())
				c.check(t, i, got)
			}
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The same searches all at once, beside other requests, in a memory that is too
// small, where beams are preempted while they wait for others.
func TestBeamsInACrowd(t *testing.T) {
	cases := readBeams(t)
	for _, o := range []Options{
		{Sched: &sched.Config{Split: true, MaxTokens: 16, MaxSeqs: 5, Recovery: sched.Swap}, Swap: &sched.RAM{Limit: 1 << 20}},
		{Sched: &sched.Config{Split: true, MaxTokens: 16, MaxSeqs: 5}, NoPrefixCache: true},
		{Sched: &sched.Config{Static: true, Apart: true, Split: true, MaxTokens: 16, MaxSeqs: 3}, Contiguous: true},
	} {
		e := start(t, openTinyKV(t, "llama", 9, tensor.F32), o)
		r := rand.New(rand.NewPCG(1, 5))
		var streams []*Stream
		for _, c := range cases {
			if c.Model == "llama" {
				streams = append(streams, submit(t, e, c.request()))
				submit(t, e, Request{Tokens: randomTokens(r, 10, 128), MaxTokens: 20})
			}
		}
		for i, s := range streams {
			got, _ := read(t, s, cases[i].Width)
			cases[i].check(t, i, got)
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestBestOf(t *testing.T) {
	m := openTiny(t, "llama", 64)
	q := long(20)
	q.Sampling = sample.Params{Temperature: 1, Seed: 11, LogProbs: 2}
	q.StopTokens = []int32{5, 20, 40, 60, 80, 100, 120}
	type scored struct {
		a     answer
		score float64
	}
	var all []scored
	for i := range 6 {
		w := q
		w.Sampling.Seed = ChoiceSeed(11, i)
		s := scored{a: alone(t, m, w)}
		n := len(s.a.tokens)
		for _, p := range s.a.probs {
			s.score += float64(p)
		}
		if s.a.last.Finish == FinishStop {
			// alone does not tell the log-probability of the end.
			w.MaxTokens, w.StopTokens = n+1, nil
			b := alone(t, m, w)
			s.score += float64(b.probs[n])
			n++
		}
		s.score /= float64(n)
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(x, y scored) int {
		if x.score > y.score {
			return -1
		}
		return 1
	})
	q.N, q.BestOf = 2, 6
	e := start(t, m, Options{})
	got, info := ask(t, e, q)
	for i := range got {
		if !same(&got[i], &all[i].a) {
			t.Errorf("answer %d: got %v %v, want %v", i, got[i].tokens, got[i].last.Finish, all[i].a.tokens)
		}
	}
	if info == nil || info.Tokens != 3 {
		t.Errorf("prompt: %+v", info)
	}
}
