package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/weights/tensor"
)

// riddle is a Jumper without a grammar: what it forbids, what it forces and
// where the answer ends follow from the tokens so far.
type riddle struct {
	vocab  int
	state  uint64
	length int
	forced []int32 // that must come next, whether they are taken or drawn
}

func newRiddle(vocab int, seed uint64) *riddle {
	m := &riddle{vocab: vocab, state: seed}
	m.turn()
	return m
}

func (m *riddle) random(i int) int { return int(ChoiceSeed(m.state, 1+i) >> 33) }

// turn decides what must follow: often nothing, sometimes a long piece.
func (m *riddle) turn() {
	m.forced = m.forced[:0]
	if n := m.random(0) % 12; n < 6 {
		if n == 0 {
			n = 40
		}
		for i := range n {
			m.forced = append(m.forced, int32(m.random(1+i)%m.vocab))
		}
	}
}

func (m *riddle) Mask(logits []float32) {
	for i := range logits {
		if len(m.forced) > 0 && int32(i) != m.forced[0] || len(m.forced) == 0 && (i+int(m.state>>40))%5 == 0 {
			logits[i] = negInf
		}
	}
}

func (m *riddle) Jump(dst []int32) []int32 { return append(dst, m.forced...) }

func (m *riddle) Accept(token int32) error {
	m.length++
	if len(m.forced) > 0 {
		if m.forced = m.forced[1:]; len(m.forced) > 0 {
			return nil
		}
		m.forced = nil
	}
	m.state = ChoiceSeed(m.state, 7+int(token))
	m.turn()
	return nil
}

func (m *riddle) Done() bool { return m.length > 3 && len(m.forced) == 0 && m.state%11 == 0 }

// jumpAlone computes an answer with jump-ahead, if it is asked for, token by token, with
// nothing but the model, a sampler and the masker.
func jumpAlone(t testing.TB, m *model.Model, r Request) (a answer, forced []bool) {
	t.Helper()
	s, err := sample.New(r.Sampling, m.Config().Vocab)
	if err != nil {
		t.Fatal(err)
	}
	scorer, _ := sample.New(sample.Params{}, m.Config().Vocab)
	mask := r.NewMasker().(Jumper)
	s.SetMasker(mask)
	for _, id := range r.Tokens {
		s.Accept(id)
	}
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	compute := func(ids ...int32) []float32 {
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: ids, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		return m.Logits(0)
	}
	logits := compute(r.Tokens...)
	most := min(r.MaxTokens, m.Context()-len(r.Tokens)+1)
	take := func(res sample.Result, jumped bool) {
		s.Accept(res.Token)
		if err := mask.Accept(res.Token); err != nil {
			t.Fatal(err)
		}
		ev := Event{Token: res.Token, StopToken: -1, LogProb: res.LogProb, Top: res.Top}
		if mask.(*riddle).Done() {
			ev.Finish = FinishStop
		} else if len(a.tokens)+1 == most {
			ev.Finish = FinishLength
		}
		forced = append(forced, jumped)
		if a.add(&ev); !a.ended {
			logits = compute(res.Token)
		}
	}
	for !a.ended {
		for _, id := range mask.Jump(nil) {
			if !r.JumpAhead || a.ended || slices.Contains(r.StopTokens, id) {
				break
			}
			take(scoreOf(scorer, logits, id, r.Sampling.LogProbs), true)
		}
		if a.ended {
			break
		}
		res := s.Sample(logits)
		if slices.Contains(r.StopTokens, res.Token) {
			a.add(&Event{Token: -1, StopToken: res.Token, Finish: FinishStop})
			break
		}
		take(res, false)
	}
	return a, forced
}

func scoreOf(s *sample.Sampler, logits []float32, id int32, n int) sample.Result {
	if n == 0 {
		return sample.Result{Token: id}
	}
	return s.Score(logits, id, n)
}

// riddles makes a workload of random requests with jump-ahead, and what they
// should get.
func riddles(t testing.TB, m *model.Model, r *rand.Rand, n, prompt, answer int) ([]Request, []reply) {
	t.Helper()
	vocab := m.Config().Vocab
	reqs := workload(r, n, vocab, prompt, answer)
	want := make([]reply, n)
	for i := range reqs {
		q, seed := &reqs[i], r.Uint64()
		q.JumpAhead, q.NewMasker = true, func() Masker { return newRiddle(vocab, seed) }
		if q.PromptLogProbs > 0 {
			want[i].prompt = scores(t, m, q.Tokens, q.PromptLogProbs)
		}
		for c := range q.N {
			one := *q
			one.Sampling.Seed = ChoiceSeed(q.Sampling.Seed, c)
			a, _ := jumpAlone(t, m, one)
			want[i].choices = append(want[i].choices, a)
		}
	}
	return reqs, want
}

// One answer, with jump-ahead: tokens and log-probabilities are those of a loop
// that computes token by token, whatever else is served, however steps are
// filled, whatever the caches hold, and whoever is preempted.
func TestJumpAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	ref := openTiny(t, "llama", 64)
	reqs, want := riddles(t, ref, r, 32, 60, 60)
	for _, s := range settings(t, r) {
		n := len(reqs)
		if s.o.Sched.MaxTokens < 4 {
			n /= 4
		}
		t.Run(s.name, func(t *testing.T) { serve(t, "llama", s, reqs[:n], want, r) })
	}
}

// Forced tokens whose log-probabilities are not known yet are computed even if
// others have computed the same: here all requests are the same, in a memory that
// is too small for them.
func TestJumpAheadAmongEquals(t *testing.T) {
	m := openTiny(t, "llama", 12)
	lost := int64(0)
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 6))
		q := Request{Tokens: randomTokens(r, 3+r.IntN(20), m.Config().Vocab), N: 1, MaxTokens: 90, JumpAhead: true, NewMasker: func() Masker { return newRiddle(m.Config().Vocab, 12*seed) }}
		q.Sampling.LogProbs = 1
		a, _ := jumpAlone(t, m, q)
		reqs, want := make([]Request, 8), make([]reply, 8)
		for i := range reqs {
			reqs[i], want[i] = q, reply{choices: []answer{a}}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			e := start(t, m, Options{Sched: &sched.Config{Split: true, MaxTokens: 8 + r.IntN(8), MaxSeqs: 8}})
			play(t, e, reqs, want, r, time.Duration(seed%2)*time.Millisecond) // half of them all at once
			lost += e.Stats().Sched.Recomputes
		})
	}
	t.Logf("%d were preempted", lost)
	if lost < 5 {
		t.Errorf("only %d were preempted", lost)
	}
}

// The same with a trained model and a real one.
func TestJumpAheadOfTrainedModel(t *testing.T) { jumpAheadOf(t, testdata.Tiny) }

func TestJumpAheadOfRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	jumpAheadOf(t, testdata.Model(t, "smollm2"))
}

func jumpAheadOf(t *testing.T, path string) {
	m, err := model.Open(path, model.Options{KV: tensor.F16, Context: 512, KVBytes: 8 << 20, PageTokens: 32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := rand.New(rand.NewPCG(5, 3))
	reqs, want := riddles(t, m, r, 6, 40, 20)
	for _, budget := range []int{7, 256} {
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			e := start(t, m, Options{Sched: &sched.Config{Split: true, MaxTokens: budget, MaxSeqs: min(budget, 32)}})
			play(t, e, reqs, want, r, 0)
			play(t, e, reqs, want, r, 0)
		})
	}
}

// Events say which tokens were not drawn, the counters how many: so many steps
// fewer are taken. Asking for log-probabilities changes no token.
func TestJumpAheadSavesSteps(t *testing.T) {
	m, ref := openTiny(t, "llama", 64), openTiny(t, "llama", 64)
	e := start(t, m, Options{NoPrefixCache: true})
	saved, all := int64(0), int64(0)
	for seed := range uint64(20) {
		q := Request{Tokens: []int32{5, 6, 7}, MaxTokens: 60, JumpAhead: true, NewMasker: func() Masker { return newRiddle(m.Config().Vocab, seed) }}
		want, forced := jumpAlone(t, ref, q)
		var got []int32
		for _, q.Sampling.LogProbs = range []int{0, 2} {
			before := e.Stats()
			a, _, jumped := watch(t, submit(t, e, q))
			st := e.Stats()
			if !slices.Equal(a.tokens, want.tokens) || !slices.Equal(jumped, forced) || a.last.Finish != want.last.Finish {
				t.Fatalf("seed %d: %v %v, want %v %v", seed, a.tokens, jumped, want.tokens, forced)
			}
			n := int64(0)
			for _, f := range forced {
				if f {
					n++
				}
			}
			if got := st.Forced - before.Forced; got != n || st.Tokens-before.Tokens != int64(len(want.tokens)) {
				t.Errorf("seed %d: %d tokens forced, want %d; %d in all", seed, got, n, st.Tokens-before.Tokens)
			}
			// One step per token drawn, and those that compute forced tokens: the
			// first of an answer are not drawn after another one, and the
			// log-probabilities of the last take a step more.
			steps, most := st.Steps-before.Steps, int64(len(forced))-n
			if forced[0] {
				most++
			}
			if q.Sampling.LogProbs > 0 && forced[len(forced)-1] {
				most++
			}
			if steps > most {
				t.Errorf("seed %d: %d steps for %d tokens, %d of them forced", seed, steps, len(forced), n)
			}
			saved, all = saved+int64(len(forced))-steps, all+int64(len(forced))
			got = a.tokens
		}
		// Without it nothing is taken that was not drawn.
		q.JumpAhead = false
		if _, _, jumped := watch(t, submit(t, e, q)); slices.Contains(jumped, true) {
			t.Errorf("seed %d: %v of %v", seed, jumped, got)
		}
	}
	if saved*3 < all {
		t.Errorf("%d of %d steps saved", saved, all)
	}
}

// watch reads the stream of a request of one choice, and which of its tokens
// were forced.
func watch(t testing.TB, s *Stream) (a answer, info *PromptInfo, forced []bool) {
	t.Helper()
	for {
		ev, ok := s.Next(t.Context())
		if !ok {
			return a, info, forced
		}
		if ev.Prompt != nil {
			info = ev.Prompt
		}
		if a.add(&ev); ev.Token >= 0 {
			forced = append(forced, ev.Forced)
		}
	}
}

// The best of several answers is the one that is most probable with its forced
// tokens.
func TestJumpAheadBestOf(t *testing.T) {
	m, ref := openTiny(t, "llama", 64), openTiny(t, "llama", 64)
	e := start(t, m, Options{})
	for seed := range uint64(10) {
		q := Request{Tokens: []int32{9, 8, 7}, MaxTokens: 20, JumpAhead: true, NewMasker: func() Masker { return newRiddle(m.Config().Vocab, seed) }}
		q.Sampling = sample.Params{Temperature: 1, Seed: seed, LogProbs: 1}
		var best answer
		var which []bool
		high := float64(negInf)
		for c := range 4 {
			one := q
			one.Sampling.Seed = ChoiceSeed(seed, c)
			a, forced := jumpAlone(t, ref, one)
			sum := 0.0
			for _, p := range a.probs {
				sum += float64(p)
			}
			if sum /= float64(len(a.probs)); sum > high {
				best, which, high = a, forced, sum
			}
		}
		q.BestOf = 4
		if got, _, forced := watch(t, submit(t, e, q)); !same(&got, &best) || !slices.Equal(forced, which) {
			t.Errorf("seed %d: got %v %v, want %v %v", seed, got.tokens, forced, best.tokens, which)
		}
	}
}

// metronome forces a token after each one that is drawn.
type metronome struct{ beat int }

func (m *metronome) Mask([]float32) {}
func (m *metronome) Jump(dst []int32) []int32 {
	if m.beat%2 == 0 {
		return dst
	}
	return append(dst, 3)
}

func (m *metronome) Accept(int32) error {
	m.beat++
	return nil
}

// Forced tokens cost no memory: a step in which no sequence gets a page allocates
// nothing.
func TestJumpAheadAllocations(t *testing.T) {
	const seqs, from, to, page = 8, 10, 42, 16
	e := start(t, openTiny(t, "llama", 100), Options{})
	var reqs []Request
	for i := range seqs {
		q := long(100)
		q.Tokens = append(q.Tokens, int32(10+i))
		q.JumpAhead, q.NewMasker = true, func() Masker { return &metronome{} }
		reqs = append(reqs, q)
	}
	mallocs := mallocsOf(t, e, reqs)
	if st := e.Stats(); len(mallocs) < to || st.Steps > 60 || st.Forced*2 != st.Tokens {
		t.Fatalf("%d steps, %d of %d tokens forced", st.Steps, st.Forced, st.Tokens)
	}
	some := 0
	for i := from; i < to; i++ {
		if mallocs[i] != mallocs[i-1] {
			some++
		}
	}
	if most := (to - from) * 2 / page * 4; some > most {
		t.Errorf("allocations in %d of %d steps, want them in at most %d", some, to-from, most)
	}
}
