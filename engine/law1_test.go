package engine

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/weights/tensor"
)

// workload makes random requests, many of them with common prefixes.
func workload(r *rand.Rand, n, vocab, prompt, answer int) []Request {
	prefixes := make([][]int32, 4)
	for i := range prefixes {
		prefixes[i] = randomTokens(r, 1+r.IntN(prompt*2/3), vocab)
	}
	reqs := make([]Request, n)
	for i := range reqs {
		q := &reqs[i]
		*q = Request{ID: fmt.Sprint(i), MaxTokens: 1 + r.IntN(answer), N: 1, Tenant: []string{"", "a", "b"}[r.IntN(3)], Priority: r.IntN(3)}
		if r.IntN(3) > 0 {
			q.Tokens = slices.Clone(prefixes[r.IntN(len(prefixes))])
		}
		q.Tokens = append(q.Tokens, randomTokens(r, 1+r.IntN(prompt-len(q.Tokens)), vocab)...)
		switch r.IntN(4) {
		case 0: // greedy
		case 1:
			q.Sampling = sample.Params{Temperature: 1, Seed: r.Uint64(), LogProbs: r.IntN(3)}
		case 2:
			q.Sampling = sample.Params{Temperature: 0.7, TopK: 20, TopP: 0.9, FrequencyPenalty: 0.5, Seed: r.Uint64()}
		case 3:
			q.Sampling = sample.Params{Temperature: 1.5, MinP: 0.05, Seed: r.Uint64(), LogitBias: map[int32]float32{3: 2, 4: -1}}
		}
		if i%5 == 4 {
			oddSampling(rand.New(rand.NewPCG(uint64(i), 1)), &q.Sampling)
		}
		if r.IntN(3) == 0 {
			q.StopTokens = randomTokens(r, 8, vocab)
		}
		if r.IntN(4) == 0 {
			q.N = 4
		}
		if r.IntN(8) == 0 {
			q.PromptLogProbs = 2
		}
		if r.IntN(6) == 0 {
			q.Deadline = time.Now().Add(time.Duration(r.IntN(1000)) * time.Millisecond)
		}
	}
	return reqs
}

// oddSampling adds samplers that look at what was drawn before, at all tokens, or at
// random numbers of their own.
func oddSampling(r *rand.Rand, p *sample.Params) {
	switch r.IntN(5) {
	case 0:
		p.DRY = sample.DRY{Multiplier: 1, AllowedLength: 1, LastN: -1 + r.IntN(2)}
	case 1:
		p.Temperature, p.XTCProbability, p.XTCThreshold = 1, 0.5, 0.02
	case 2:
		p.Temperature, p.Mirostat, p.MirostatTau = 1, 1+r.IntN(2), 3
	case 3:
		p.Temperature, p.TopNSigma, p.TemperatureRange = 1, 1.5, 0.5
	case 4:
		p.Temperature, p.TopP, p.RepetitionPenalty = 1.3, 0.8, 1.2
		p.Order = []sample.Step{sample.StepTemperature, sample.StepTopP, sample.StepPenalties}
	}
}

// reply is what a request should get.
type reply struct {
	choices []answer
	prompt  []sample.Result
}

// replies computes a workload request by request, with nothing but the model.
func replies(t testing.TB, m *model.Model, reqs []Request) []reply {
	t.Helper()
	out := make([]reply, len(reqs))
	for i, q := range reqs {
		if q.PromptLogProbs > 0 {
			out[i].prompt = scores(t, m, q.Tokens, q.PromptLogProbs)
		}
		seed := q.Sampling.Seed
		for c := range q.N {
			q.Sampling.Seed = ChoiceSeed(seed, c)
			out[i].choices = append(out[i].choices, alone(t, m, q))
		}
	}
	return out
}

// scores returns the log-probabilities of a prompt.
func scores(t testing.TB, m *model.Model, tokens []int32, n int) []sample.Result {
	t.Helper()
	s, err := sample.New(sample.Params{}, m.Config().Vocab)
	if err != nil {
		t.Fatal(err)
	}
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: tokens, Outputs: len(tokens)}}}); err != nil {
		t.Fatal(err)
	}
	out := []sample.Result{{Token: tokens[0]}}
	for i := range len(tokens) - 1 {
		out = append(out, s.Score(m.Logits(i), tokens[i+1], n))
	}
	return out
}

// play submits a workload at random times, or with no pause all at once, and
// compares the replies. It returns the number of prompt tokens that were not
// computed.
func play(t testing.TB, e *Engine, reqs []Request, want []reply, r *rand.Rand, pause time.Duration) (cached int) {
	t.Helper()
	order := r.Perm(len(reqs))
	streams := make([]*Stream, len(reqs))
	release := func() {}
	if pause == 0 { // a fast machine would be done with some before others come
		release = hold(t, e)
	}
	for _, i := range order {
		streams[i] = submit(t, e, reqs[i])
		if pause > 0 && r.IntN(4) == 0 {
			time.Sleep(time.Duration(r.Int64N(int64(pause))))
		}
	}
	release()
	for i, s := range streams {
		got, info := read(t, s, reqs[i].N)
		for c := range got {
			if !same(&got[c], &want[i].choices[c]) {
				t.Errorf("request %d of %d tokens, choice %d: got %v %v %v, want %v %v", i, len(reqs[i].Tokens), c,
					got[c].tokens, got[c].last.Finish, got[c].last.Err, want[i].choices[c].tokens, want[i].choices[c].last.Finish)
			}
		}
		if info == nil {
			continue
		}
		cached += info.Cached
		if !slices.EqualFunc(info.LogProbs, want[i].prompt, func(a, b sample.Result) bool {
			return a.Token == b.Token && a.LogProb == b.LogProb && slices.Equal(a.Top, b.Top)
		}) {
			t.Errorf("request %d: log-probabilities of the prompt differ: %v, want %v", i, info.LogProbs, want[i].prompt)
		}
	}
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
	return cached
}

// setting is a way to serve a workload that must not show in the replies.
type setting struct {
	name    string
	pages   int
	o       Options
	preempt bool // there must have been preemptions
}

// settings returns the presets, random step sizes, and memories too small for
// all.
func settings(t testing.TB, r *rand.Rand) []setting {
	t.Helper()
	var out []setting
	for _, name := range sched.Presets() {
		cfg, err := sched.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		cfg.BatchWait = min(cfg.BatchWait, time.Millisecond)
		contiguous := name == "static" || name == "orca"
		out = append(out, setting{name: name, pages: 49, o: Options{Sched: &cfg, Contiguous: contiguous, NoPrefixCache: name == "vllm"}})
	}
	for _, budget := range []int{1, 2, 7, 32, 33, 100, 2048} {
		cfg := sched.Config{Split: true, MaxTokens: budget, MaxSeqs: min(budget, 32)}
		out = append(out, setting{name: fmt.Sprint("budget ", budget), pages: 64, o: Options{Sched: &cfg}})
	}
	policies := map[string]sched.Policy{
		"priority": sched.Priority(0), "mlfq": sched.MLFQ(time.Millisecond, 0, nil, 64), "vtc": sched.VTC(0, 0),
		"deadline": sched.Deadline(0, nil, 64), "shortest": sched.ShortestFirst(func(q *sched.Seq) int { return q.MaxNew }, 0, 0),
	}
	for i, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range policies {
			if !yield(k) {
				return
			}
		}
	}) {
		cfg := sched.Config{Policy: policies[name], Split: true, MaxTokens: 64, MaxSeqs: 16, Preemptive: true, Recovery: sched.Recovery(i % 3)}
		out = append(out, setting{name: name, pages: 20 + i%2, o: Options{Sched: &cfg, Swap: &sched.RAM{Limit: 1 << 20}}})
	}
	for i, recovery := range []sched.Recovery{sched.Recompute, sched.Swap} {
		cfg := sched.Config{Split: true, MaxTokens: 64, MaxSeqs: 32, Recovery: recovery}
		o := Options{Sched: &cfg, Swap: &sched.RAM{Limit: 1 << 20}, NoPrefixCache: r.IntN(2) == 0}
		out = append(out, setting{name: []string{"recompute", "swap"}[i], pages: 10 + i, o: o, preempt: true})
	}
	cfg := sched.Config{Split: true, MaxTokens: 64, MaxSeqs: 32, Recovery: sched.Swap}
	return append(out, setting{name: "swap to disk", pages: 10, o: Options{Sched: &cfg, Swap: &sched.Disk{Dir: t.TempDir(), Limit: 1 << 24}}, preempt: true})
}

// share is as much of a workload as a test has time for.
func (s *setting) share(reqs []Request) []Request {
	if s.o.Sched.MaxTokens < 4 {
		return reqs[:len(reqs)/4] // they take many steps
	}
	return reqs
}

// One answer: a request gets the same tokens whatever else is served, however
// steps are filled, whatever the caches hold, and whoever is preempted.
func TestOneAnswer(t *testing.T) {
	rounds := 1
	if os.Getenv("RIDGE_LONG") != "" {
		rounds = 20
	}
	for round := range rounds {
		for _, name := range []string{"llama", "gemma3", "gemma3n", "deepseek3", "phi3-longrope-long", "llama-rope-dynamic-long"} {
			r := rand.New(rand.NewPCG(uint64(round), 3))
			ref := openTiny(t, name, 64)
			reqs := workload(r, 32, ref.Config().Vocab, 70, 30)
			want := replies(t, ref, reqs)
			for _, s := range settings(t, r) {
				t.Run(name+" "+s.name, func(t *testing.T) { serve(t, name, s, s.share(reqs), want, r) })
			}
		}
	}
}

// serve plays a workload twice, so that the second time finds what the first
// has left.
func serve(t *testing.T, name string, s setting, reqs []Request, want []reply, r *rand.Rand) {
	m := openTiny(t, name, s.pages)
	e := start(t, m, s.o)
	play(t, e, reqs, want, r, time.Millisecond/4)
	warm := play(t, e, reqs, want, r, 0)
	st := e.Stats()
	if sc := st.Sched; s.preempt && (sc.Recomputes == 0 && s.o.Sched.Recovery == sched.Recompute || sc.SwapIns == 0 && s.o.Sched.Recovery == sched.Swap) {
		t.Errorf("nobody was preempted: %+v", sc)
	}
	// Of layers with windows little is left in a small memory that others went on
	// in, and only prompts of the same length share a base that follows it.
	small := (e.pool.Bounded() || name == "llama-rope-dynamic-long") && s.pages < 40
	if !s.preempt && !s.o.NoPrefixCache && !s.o.Contiguous && !small && warm == 0 {
		t.Error("no prefix was found")
	}
}

// The same with a real model, in a memory that is too small for all at once.
func TestOneAnswerOfRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	path := testdata.Model(t, "smollm2")
	oneAnswerOf(t, path, 16<<20)
	t.Run("crowd", func(t *testing.T) { crowdOf(t, path, 64<<20) })
}

// The same with the trained model that is always there.
func TestOneAnswerOfTrainedModel(t *testing.T) {
	oneAnswerOf(t, testdata.Tiny, 1<<20)
	t.Run("crowd", func(t *testing.T) { crowdOf(t, testdata.Tiny, 8<<20) })
}

// crowdOf has 32 requests served at the same time, with steps of 1 to 2048
// tokens, cold and warm, in a memory that has room for all.
func crowdOf(t *testing.T, path string, memory int64) {
	m, err := model.Open(path, model.Options{KV: tensor.F16, Context: 512, KVBytes: memory, PageTokens: 32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := rand.New(rand.NewPCG(2, 9))
	reqs := workload(r, 32, 40000, 40, 8)
	for i := range reqs {
		reqs[i].Deadline = time.Time{}
	}
	want := replies(t, m, reqs)
	budgets := []int{1, 16, 33, 256, 2048}
	if testing.Short() {
		budgets = []int{16, 2048}
	}
	for _, budget := range budgets {
		n := len(reqs)
		if budget < 16 {
			n /= 8 // they take many steps
		}
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			e := start(t, m, Options{Sched: &sched.Config{Split: true, MaxTokens: budget, MaxSeqs: min(budget, 64)}})
			play(t, e, reqs[:n], want, r, 0)
			if warm := play(t, e, reqs[:n], want, r, 0); warm == 0 {
				t.Error("no prefix was found")
			}
		})
	}
}

func oneAnswerOf(t *testing.T, path string, memory int64) {
	o := model.Options{KV: tensor.F16, Context: 512, KVBytes: memory}
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := rand.New(rand.NewPCG(1, 9))
	reqs := workload(r, 10, 40000, 120, 10)
	want := replies(t, m, reqs)
	for _, s := range []setting{
		{name: "ridge", preempt: true},
		{name: "small steps", o: Options{Sched: &sched.Config{Split: true, MaxTokens: 37, MaxSeqs: 32, Recovery: sched.Swap}, Swap: &sched.RAM{Limit: 1 << 30}}, preempt: true},
		{name: "prompts first", o: Options{Sched: &sched.Config{Order: sched.PrefillFirst, Apart: true, MaxTokens: 2048}, NoPrefixCache: true}},
	} {
		t.Run(s.name, func(t *testing.T) {
			e := start(t, m, s.o)
			play(t, e, reqs, want, r, 0)
			if !s.o.NoPrefixCache {
				play(t, e, reqs, want, r, 0)
			}
			if st := e.Stats().Sched; s.preempt && st.Recomputes+st.SwapIns == 0 {
				t.Errorf("nobody was preempted: %+v", st)
			}
		})
	}
}
