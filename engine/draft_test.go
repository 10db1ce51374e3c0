package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/spec"
	"ridge/spec/lookahead"
	"ridge/spec/many"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// prophet is a drafter that knows the texts, and errs now and then.
type prophet struct {
	texts [][]int32
	r     *rand.Rand
	errs  int // one of so many guesses is wrong
}

func (p *prophet) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	tokens = slices.Clone(tokens)
	for _, g := range dst {
		tokens = append(tokens, g.Token)
	}
	for _, text := range p.texts {
		if len(text) <= len(tokens) || !slices.Equal(text[:len(tokens)], tokens) {
			continue
		}
		for _, id := range text[len(tokens):min(len(tokens)+n, len(text))] {
			if p.r.IntN(p.errs) == 0 {
				id = p.r.Int32N(100)
			}
			dst = append(dst, spec.Guess{Token: id, Class: uint8(p.r.IntN(spec.Classes))})
		}
		break
	}
	return dst
}

func (p *prophet) Bytes() int64        { return 8 }
func (p *prophet) Cost() time.Duration { return time.Microsecond }
func (p *prophet) Lag([]int32) int     { return 1 }
func (p *prophet) Close()              {}

// prophets returns how to make drafters that know what requests should get.
func prophets(reqs []Request, want []reply, errs int) func(int) spec.Drafter {
	next := costly(reqs, want, errs)
	return func(int) spec.Drafter { return next() }
}

// costly returns how to make the same as slow drafters.
func costly(reqs []Request, want []reply, errs int) func() spec.Costly {
	var texts [][]int32
	for i, q := range reqs {
		for _, c := range want[i].choices {
			texts = append(texts, slices.Concat(q.Tokens, c.tokens))
		}
	}
	made := uint64(0)
	return func() spec.Costly {
		made++
		return &prophet{texts, rand.New(rand.NewPCG(made, 11)), errs}
	}
}

// guessing plays a workload on an engine with a drafter, as serve does, and reports
// how many guesses were right.
func guessing(t *testing.T, name string, s setting, d *spec.Drafting, reqs []Request, want []reply, r *rand.Rand) int64 {
	t.Helper()
	s.o.Draft = d
	e := start(t, openTiny(t, name, s.pages), s.o)
	play(t, e, reqs, want, r, time.Millisecond/4)
	play(t, e, reqs, want, r, 0)
	var st Stats // what a busy machine says may be of a moment before
	until(t, "drafters hold nothing", func() bool { st = e.Stats(); return st.Requests == 0 && st.DraftBytes == 0 })
	if st.Right > st.Guessed {
		t.Errorf("%d guesses, %d of them right", st.Guessed, st.Right)
	}
	return st.Right
}

// One answer, whatever is guessed: tokens, log-probabilities and ends are those of a
// loop that guesses nothing, whatever else is served, however steps are filled,
// whatever the caches hold, and whoever is preempted.
func TestOneAnswerWithDrafts(t *testing.T) {
	for i, name := range []string{"llama", "gemma3", "gemma3n", "deepseek3", "phi3-longrope-long", "llama-rope-dynamic-long"} {
		r := rand.New(rand.NewPCG(uint64(i), 13))
		ref := openTiny(t, name, 64)
		reqs := workload(r, 32>>min(i, 1), ref.Config().Vocab, 70, 30)
		want := replies(t, ref, reqs)
		for k, s := range settings(t, r) {
			if i > 0 && (k+i)%6 != 0 { // all of them with one model
				continue
			}
			t.Run(name+" "+s.name, func(t *testing.T) {
				d := &spec.Drafting{New: prophets(reqs, want, 5), Most: 1 + r.IntN(12), Always: k%3 > 0}
				if k%2 == 0 {
					d.Slow = costly(reqs, want, 3)
				} else {
					forests := foresters(reqs, want, 4)
					d.New, d.Slow, d.Width = func(int) spec.Drafter { return forests() }, forests, 1+r.IntN(4)
				}
				right := guessing(t, name, s, d, s.share(reqs), want, r)
				if d.Always && s.o.Sched.MaxTokens > 40 && right == 0 {
					t.Error("no guess was right")
				}
			})
		}
		for which, shape := range map[string]lookahead.Shape{"lookahead": lookahead.Usual, "Jacobi": lookahead.Jacobi} {
			t.Run(name+" "+which, func(t *testing.T) {
				by := func(string) spec.Drafter { return lookahead.New(shape) }
				d := &spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Texts: by, Most: 2 + r.IntN(8), Always: true}
				cfg := sched.Config{Split: true}
				guessing(t, name, setting{pages: 49, o: Options{Sched: &cfg}}, d, reqs, want, r)
			})
		}
		t.Run(name+" n-grams and suffixes", func(t *testing.T) {
			d := &spec.Drafting{New: func(n int) spec.Drafter { return spec.NewNGram(n) }, Texts: spec.NewSuffixes().Drafter, Always: true}
			cfg := sched.Config{Split: true}
			guessing(t, name, setting{pages: 49, o: Options{Sched: &cfg}}, d, reqs, want, r)
		})
	}
}

// Answers are guessed beside prompts of a worse class, which wait for what steps leave, and
// everybody gets the tokens of a lone run.
func TestDraftsBesideGuests(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 1))
	reqs := []Request{{Tokens: []int32{9, 8, 7}, MaxTokens: 100, N: 1}}
	for range 8 {
		reqs = append(reqs, Request{Tokens: randomTokens(r, 110, 128), MaxTokens: 3, N: 1, Priority: 1})
	}
	want := replies(t, openTiny(t, "llama", 64), reqs)
	cfg := sched.Config{Split: true, MaxTokens: 64, MaxSeqs: 16, ClassSlowdown: 1.01}
	for range 5 { // on a busy machine guesses may seem not to be worth their time
		if draftsBeside(t, cfg, reqs, want) > 0 {
			return
		}
	}
	t.Error("there were no guesses beside prompts of guests")
}

// draftsBeside returns how many guesses of hosts there were in steps while prompts of
// guests had more to come than a step has.
func draftsBeside(t *testing.T, cfg sched.Config, reqs []Request, want []reply) int {
	if err := cfg.UsePolicy("priority"); err != nil {
		t.Fatal(err)
	}
	e := start(t, openTiny(t, "llama", 128), Options{Sched: &cfg, Calibrate: true, Draft: &spec.Drafting{New: prophets(reqs, want, 1<<30), Most: 3}})
	release := hold(t, e)
	beside, guesses := 0, 0
	e.inject = func() {
		prompts := 0
		for _, s := range e.sched.RunningSeqs() {
			if s.Priority > 0 && s.Wanted == s.Prompt {
				prompts += s.Wanted - s.Computed
			}
		}
		for i := range e.runs {
			if q := e.runs[i].q; q.Priority == 0 && q.Wanted > q.Prompt && prompts > 64 {
				beside++
				guesses += q.Draft
			}
		}
	}
	var streams []*Stream
	for _, q := range reqs {
		streams = append(streams, submit(t, e, q))
	}
	release()
	for i, s := range streams {
		if got, _ := read(t, s, 1); !same(&got[0], &want[i].choices[0]) {
			t.Errorf("request %d: got %v, want %v", i, got[0].tokens, want[i].choices[0].tokens)
		}
	}
	if beside == 0 {
		t.Error("there were no steps beside prompts of guests")
	}
	return guesses
}

// The same with jump-ahead and a masker.
func TestJumpAheadWithDrafts(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	ref := openTiny(t, "llama", 64)
	reqs, want := riddles(t, ref, r, 32, 60, 60)
	for k, s := range settings(t, r) {
		if k%3 == 0 {
			t.Run(s.name, func(t *testing.T) {
				forests := foresters(reqs, want, 6)
				guessing(t, "llama", s, &spec.Drafting{New: func(int) spec.Drafter { return forests() }, Always: true}, s.share(reqs), want, r)
			})
		}
	}
}

// The same with trained models, where n-grams are right now and then.
func TestOneAnswerWithDraftsOfTrainedModel(t *testing.T) { draftsOf(t, testdata.Tiny, 1<<20) }

func TestOneAnswerWithDraftsOfRealModel(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	draftsOf(t, testdata.Model(t, "smollm2"), 16<<20)
}

func draftsOf(t *testing.T, path string, memory int64) {
	m, err := model.Open(path, model.Options{KV: tensor.F16, Context: 512, KVBytes: memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	r := rand.New(rand.NewPCG(1, 17))
	reqs := workload(r, 10, 40000, 120, 10)
	for i := range reqs[:4] {
		reqs[i].Sampling, reqs[i].MaxTokens, reqs[i].StopTokens = sample.Params{LogProbs: i % 2}, 30, nil
	}
	want := replies(t, m, reqs)
	t.Run("model", func(t *testing.T) { smallOf(t, m, reqs, want) })
	for _, always := range []bool{false, true} {
		for name, by := range map[string]func(int) spec.Drafter{
			"n-grams": func(n int) spec.Drafter { return spec.NewNGram(n) },
			"prophet": prophets(reqs, want, 8),
		} {
			t.Run(fmt.Sprint(name, " always ", always), func(t *testing.T) {
				e := start(t, m, Options{Draft: &spec.Drafting{New: by, Texts: spec.NewSuffixes().Drafter, Always: always}})
				play(t, e, reqs, want, r, 0)
				play(t, e, reqs, want, r, 0)
				if st := e.Stats(); always && st.Right == 0 {
					t.Errorf("%d guesses, none was right", st.Guessed)
				}
			})
		}
	}
}

// smallOf has the model that is always there guess, which is right whenever it is the
// same model.
func smallOf(t *testing.T, m *model.Model, reqs []Request, want []reply) {
	small, err := model.Open(testdata.Tiny, model.Options{KV: tensor.F16, Context: 512, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := spec.NewSmall(small, m.Tokenizer().VocabSize(), func(int32) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	tok := small.Tokenizer()
	spell := spec.Speller{Tokens: tok, Encode: func(dst []int32, text string) []int32 { return tok.Encode(dst, text, tokenizer.EncodeOptions{}) }}
	sure := m.Parameters() == small.Parameters()
	for name, slow := range map[string]func() spec.Costly{"alone": s.Drafter, "cascade": s.Cascade} {
		t.Run(name, func(t *testing.T) { slowOf(t, m, slow, sure, reqs, want) })
	}
	for _, by := range []bool{false, true} { // as if it had another vocabulary
		f, err := spec.NewForeign(small, spell, spell, by)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(fmt.Sprint("by tokens ", by), func(t *testing.T) { slowOf(t, m, f, sure && by, reqs, want) })
		t.Run(fmt.Sprint("two, one by tokens ", by), func(t *testing.T) { slowOf(t, m, many.Of(f, s.Drafter), false, reqs, want) })
	}
}

// slowOf has a slow drafter guess, which is right whenever it is sure to be.
func slowOf(t *testing.T, m *model.Model, slow func() spec.Costly, sure bool, reqs []Request, want []reply) {
	by := func(n int) spec.Drafter { return spec.NewNGram(n) }
	e := start(t, m, Options{Draft: &spec.Drafting{New: by, Slow: slow, Width: 2, Always: true}})
	play(t, e, reqs, want, rand.New(rand.NewPCG(1, 2)), 0)
	st := e.Stats()
	if st.Right == 0 || sure && st.Right*10 < st.Guessed*3 {
		t.Errorf("%d of %d guesses were right", st.Right, st.Guessed)
	}
}

// An answer that was given before is guessed from then on, for its tenant and for no
// other.
func TestSuffixesOfRequests(t *testing.T) {
	by := func(n int) spec.Drafter { return spec.NewNGram(n) }
	e := start(t, openTiny(t, "llama", 64), Options{Draft: &spec.Drafting{New: by, Texts: spec.NewSuffixes().Drafter, Always: true}, NoPrefixCache: true})
	right := func(tenant string) int {
		q := long(40)
		q.Tenant, q.Sampling = tenant, sample.Params{Temperature: 2, Seed: 5}
		s, right := submit(t, e, q), 0
		for ev, ok := s.Next(t.Context()); ok; ev, ok = s.Next(t.Context()) {
			right = ev.Right
		}
		return right
	}
	first, again, other := right("a"), right("a"), right("b")
	if again < 25 || first > 10 || other > 10 {
		t.Errorf("%d guesses were right at first, %d when the tenant asked again, %d of another tenant", first, again, other)
	}
}

// Guesses save steps: one that knows the text takes a step for nine tokens, and
// events and counters say so.
func TestDraftsSaveSteps(t *testing.T) {
	ref := openTiny(t, "llama", 64)
	q := long(60)
	q.Sampling.LogProbs = 1
	want := []reply{{choices: []answer{alone(t, ref, q)}}}
	d := &spec.Drafting{New: prophets([]Request{q}, want, math.MaxInt), Always: true}
	e := start(t, openTiny(t, "llama", 64), Options{Draft: d, NoPrefixCache: true})
	for _, c := range []struct{ most, steps, guesses, hits int }{{0, 1 + 7, 7*8 - 4, 52}, {2, 1 + 20, 39, 39}, {-1, 60, 0, 0}} {
		q.MaxDraft = c.most
		before := e.Stats()
		s, hits := submit(t, e, q), 0
		var last Event
		for ev, ok := s.Next(t.Context()); ok; ev, ok = s.Next(t.Context()) {
			if last = ev; ev.Drafted {
				hits++
			}
		}
		st := e.Stats()
		if n := int(st.Steps - before.Steps); n != c.steps || hits != c.hits || last.Right != hits || last.Guessed != c.guesses ||
			int(st.Guessed-before.Guessed) != c.guesses || int(st.Right-before.Right) != hits {
			t.Errorf("at most %d: %d steps, %d of %d guesses right, by events %d, want %+v", c.most, n, last.Right, last.Guessed, hits, c)
		}
	}
}

// hostile is a drafter that does what none should.
type hostile struct {
	data []byte
	kept []spec.Guess
}

func (h *hostile) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	if len(h.data) == 0 {
		return nil
	}
	what := h.data[0]
	h.data = h.data[1:]
	for i := range h.kept { // after it was returned
		h.kept[i].Token = -5
	}
	switch {
	case what < 10:
		panic("hostile")
	case what < 30:
		return make([]spec.Guess, 10000)
	case what < 40:
		return dst[:cap(dst)]
	}
	for i := range int(what) % 20 {
		id := int32(1) << (what % 31)
		if what%2 == 0 {
			id = tokens[(i*int(what))%len(tokens)]
		}
		dst = append(dst, spec.Guess{Token: id - int32(what%3), Class: what, Up: (what + uint8(i)) % 4})
	}
	h.kept = dst
	return dst
}

func (h *hostile) Bytes() int64 { return 0 }
func (h *hostile) Close()       { h.data = nil }

// slowlyHostile is a drafter of all kinds that does what none should.
type slowlyHostile struct{ hostile }

func (h *slowlyHostile) Cost() time.Duration { return time.Duration(len(h.data)) }
func (h *slowlyHostile) Lag([]int32) int     { return len(h.data) - 3 }
func (h *slowlyHostile) Trail(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	return h.Draft(dst, tokens, n)
}
func (h *slowlyHostile) Stride(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	return h.Draft(dst, tokens, n)
}
func (h *slowlyHostile) Observe(row, parent int, token int32, logits []float32) {
	if len(h.data) > 0 && row > int(h.data[0])%8 {
		panic("hostile")
	}
	clear(h.kept)
}

// branchingHostile is one that makes trees, too.
type branchingHostile struct{ slowlyHostile }

func (h *branchingHostile) Branch(dst []spec.Guess, tokens []int32, width int) []spec.Guess {
	return h.Draft(dst, tokens, width)
}

// A drafter cannot change an answer, whatever it does.
func FuzzDrafter(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 31))
	ref := openTiny(f, "llama", 64)
	reqs := workload(r, 6, ref.Config().Vocab, 20, 12)
	want := replies(f, ref, reqs)
	m := openTiny(f, "llama", 24)
	f.Add([]byte{50, 61, 72, 83, 94, 5, 105})
	f.Add([]byte{25, 35, 100, 200, 255, 44, 46, 48})
	f.Add([]byte{50, 61, 72, 83, 94, 105, 117, 128, 139, 150, 161, 172, 183})
	f.Add([]byte{33, 71, 92, 101, 205, 251, 66, 68, 47, 101, 15})
	f.Add([]byte{201, 203, 205, 61, 63, 65})
	f.Fuzz(func(t *testing.T, data []byte) {
		one := func() hostile { return hostile{data: slices.Clone(data)} }
		d := &spec.Drafting{New: func(int) spec.Drafter { h := one(); return &h }, Always: len(data)%2 == 0}
		if len(data)%3 > 0 {
			d.Texts = func(string) spec.Drafter { return &slowlyHostile{one()} }
			d.Slow = func() spec.Costly { return &slowlyHostile{one()} }
		}
		if len(data)%3 > 1 {
			d.Slow, d.Width = func() spec.Costly { return &branchingHostile{slowlyHostile{one()}} }, 3
		}
		e := start(t, m, Options{Draft: d})
		play(t, e, reqs, want, r, 0)
	})
}

// Guesses cost no memory: a step in which no sequence gets a page allocates nothing.
func TestDraftAllocations(t *testing.T) {
	const seqs, from, to, page = 2, 10, 38, 16
	m := openTiny(t, "llama", 100)
	d := &spec.Drafting{New: func(n int) spec.Drafter { return spec.NewNGram(n) }, Always: true, Most: 3}
	e := start(t, m, Options{Draft: d})
	var reqs []Request
	for i := range seqs {
		q := long(115)
		q.Tokens = append(q.Tokens, int32(10+i), 5, 6, 7, int32(10+i), 5, 6, 7)
		if i%2 == 0 {
			q.Sampling = sample.Params{Temperature: 1, TopP: 0.9, Seed: uint64(i)}
		}
		reqs = append(reqs, q)
	}
	mallocs := mallocsOf(t, e, reqs)
	if st := e.Stats(); len(mallocs) < to || st.Guessed < 50 {
		t.Fatalf("%d steps, %d guesses", len(mallocs), st.Guessed)
	}
	some := 0
	for i := from; i < to; i++ {
		if mallocs[i] != mallocs[i-1] {
			some++
		}
	}
	// Sequences that guess right get pages at times of their own.
	if most := seqs * (to - from) * 4 / page; some > most {
		t.Errorf("allocations in %d of %d steps, want them in at most %d", some, to-from, most)
	}
}

// Drafting is refused where it cannot be.
func TestDraftingRefused(t *testing.T) {
	by := func(n int) spec.Drafter { return spec.NewNGram(n) }
	for name, c := range map[string]struct {
		model string
		d     spec.Drafting
		want  string
	}{
		"nobody":   {"llama", spec.Drafting{}, "spec: drafting: expected a drafter, found none"},
		"too many": {"llama", spec.Drafting{New: by, Most: 100}, "spec: drafting: expected 0 to 64 guesses behind a token, found 100"},
	} {
		closed := 0
		c.d.Close = func() error { closed++; return nil }
		if _, err := New(openTiny(t, c.model, 64), Options{Draft: &c.d}); err == nil || err.Error() != c.want || closed != 1 {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
