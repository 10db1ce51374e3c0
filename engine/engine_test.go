package engine

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/model"
	"ridge/sample"
	"ridge/weights/tensor"
)

const tinyModels = "../internal/tinymodel/testdata"

// openTiny opens a tiny model of random weights with room for the given number
// of pages of 16 tokens of all layers, and two threads if that is odd.
func openTiny(t testing.TB, name string, pages int) *model.Model {
	t.Helper()
	return openTinyKV(t, name, pages, tensor.F16)
}

func openTinyKV(t testing.TB, name string, pages int, kv tensor.DType) *model.Model {
	t.Helper()
	o := model.Options{KV: kv, Workers: 1 + pages%2, PageTokens: 16, KVBytes: 1}
	if name == "llama-rope-dynamic-long" {
		o.Context = 128 // four times what its description says
	}
	path := filepath.Join(tinyModels, name)
	m, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	o.KVBytes = int64(pages) * 16 * int64(m.Pool().TokenBytes())
	if largeStates[name] {
		o.KVBytes += 4 * int64(m.Pool().PagesFor(nil, 1)) * m.Pool().PageBytes()
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err = model.Open(path, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// start runs an engine until the end of the test, when it must be idle and
// whole.
func start(t testing.TB, m *model.Model, o Options) *Engine {
	t.Helper()
	before := runtime.NumGoroutine()
	e, err := New(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, e, before) })
	return e
}

func stop(t testing.TB, e *Engine, goroutines int) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	goroutinesEnd(t, goroutines)
}

// patience is how long tests wait for what has to happen: longer than it takes
// on any machine, since it is not what they test.
const patience = 3 * time.Minute

// until polls for something that has to happen.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// goroutinesEnd waits until there are no more goroutines than before.
func goroutinesEnd(t testing.TB, before int) {
	t.Helper()
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// hold stops the loop between two steps until release is called: what is
// submitted meanwhile begins together.
func hold(t testing.TB, e *Engine) (release func()) {
	t.Helper()
	held, over, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- e.call(context.Background(), func() { close(held); <-over }) }()
	select {
	case <-held:
	case err := <-ended:
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		close(over)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(release) // for a test that fails meanwhile
	return release
}

// answer is all that a stream delivered for one choice.
type answer struct {
	tokens []int32
	probs  []float32
	tops   [][]sample.TokenProb
	last   Event
	ended  bool
}

func (a *answer) add(ev *Event) {
	if ev.Token >= 0 {
		a.tokens = append(a.tokens, ev.Token)
		a.probs = append(a.probs, ev.LogProb)
		a.tops = append(a.tops, ev.Top)
	}
	if ev.Finish != "" {
		a.last, a.ended = *ev, true
	}
}

// read takes all events of a stream.
func read(t testing.TB, s *Stream, choices int) ([]answer, *PromptInfo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out := make([]answer, choices)
	var info *PromptInfo
	for first := true; ; first = false {
		ev, ok := s.Next(ctx)
		if !ok {
			break
		}
		if (ev.Prompt != nil) != first {
			t.Errorf("event %+v: prompt information expected: %v", ev, first)
		}
		if first {
			info = ev.Prompt
		}
		if ev.Choice < 0 || ev.Choice >= choices || out[ev.Choice].ended {
			t.Errorf("event of choice %d that has ended or does not exist", ev.Choice)
			continue
		}
		out[ev.Choice].add(&ev)
	}
	for i := range out {
		if !out[i].ended {
			t.Errorf("choice %d did not end: %d tokens", i, len(out[i].tokens))
		}
	}
	return out, info
}

func submit(t testing.TB, e *Engine, r Request) *Stream {
	t.Helper()
	s, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t testing.TB, e *Engine, r Request) ([]answer, *PromptInfo) {
	t.Helper()
	return read(t, submit(t, e, r), max(r.N, 1))
}

// alone computes an answer with the model and a sampler, and nothing else.
func alone(t testing.TB, m *model.Model, r Request) answer {
	t.Helper()
	s, err := sample.New(r.Sampling, m.Config().Vocab)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range r.Tokens {
		s.Accept(id)
	}
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	var a answer
	next, known := r.Tokens, slices.Clone(r.Tokens)
	length := m.RopeLength(len(known), len(known))
	for {
		if now := m.RopeLength(len(r.Tokens), len(known)); now != length {
			m.Pool().Free(seq)
			next, length = known, now
		}
		if err := m.Forward(&model.Step{Runs: []model.Run{{Seq: seq, Tokens: next, Outputs: 1, Length: length}}}); err != nil {
			t.Fatal(err)
		}
		res := s.Sample(m.Logits(0))
		if slices.Contains(r.StopTokens, res.Token) {
			a.add(&Event{Token: -1, StopToken: res.Token, Finish: FinishStop})
			return a
		}
		s.Accept(res.Token)
		ev := Event{Token: res.Token, StopToken: -1, LogProb: res.LogProb, Top: res.Top}
		if len(a.tokens)+1 == r.MaxTokens || seq.Len() == m.Context() {
			ev.Finish = FinishLength
		}
		a.add(&ev)
		if a.ended {
			return a
		}
		next, known = []int32{res.Token}, append(known, res.Token)
	}
}

func same(a, b *answer) bool {
	return slices.Equal(a.tokens, b.tokens) && slices.Equal(a.probs, b.probs) && a.last.Finish == b.last.Finish && a.last.StopToken == b.last.StopToken &&
		slices.EqualFunc(a.tops, b.tops, func(x, y []sample.TokenProb) bool { return slices.Equal(x, y) })
}

// randomTokens returns a prompt.
func randomTokens(r *rand.Rand, n, vocab int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = 3 + r.Int32N(int32(vocab-3))
	}
	return p
}

func TestOneRequest(t *testing.T) {
	for _, name := range []string{"llama", "gemma3"} {
		m := openTiny(t, name, 64)
		r := rand.New(rand.NewPCG(1, 1))
		var reqs []Request
		var want []answer
		for i := range 12 {
			q := Request{Tokens: randomTokens(r, 1+r.IntN(60), m.Config().Vocab), MaxTokens: 1 + r.IntN(30)}
			switch i % 4 {
			case 1:
				q.Sampling = sample.Params{Temperature: 1, Seed: r.Uint64(), LogProbs: 3}
			case 2:
				q.Sampling = sample.Params{Temperature: 0.8, TopP: 0.9, RepetitionPenalty: 1.2, Seed: 7}
				q.StopTokens = []int32{5, 6, 7, 8, 9, 10}
			case 3:
				q.MaxTokens = 0
			}
			w := q
			if q.MaxTokens == 0 {
				w.MaxTokens = -1
			}
			reqs, want = append(reqs, q), append(want, alone(t, m, w))
		}
		e := start(t, m, Options{})
		for i, q := range reqs {
			got, info := ask(t, e, q)
			if !same(&got[0], &want[i]) {
				t.Errorf("%s: request %d: got %v %v, want %v %v", name, i, got[0].tokens, got[0].last, want[i].tokens, want[i].last)
			}
			if info.Tokens != len(q.Tokens) || info.Cached >= len(q.Tokens) {
				t.Errorf("%s: request %d: prompt %+v, want %d tokens", name, i, info, len(q.Tokens))
			}
		}
		if err := e.Check(context.Background()); err != nil {
			t.Error(err)
		}
		if st := e.Stats(); st.Submitted != 12 || st.Requests != 0 || st.Waiting != 0 || st.Tree.Pages == 0 {
			t.Errorf("stats: %+v", st)
		}
	}
}

func TestRefused(t *testing.T) {
	m := openTiny(t, "llama", 6) // 96 tokens, less than the context of 128
	e := start(t, m, Options{})
	ok := []int32{5, 6, 7}
	for name, c := range map[string]struct {
		r    Request
		want string
	}{
		"empty":       {Request{}, "engine: request: tokens: expected at least one, found none"},
		"token":       {Request{Tokens: []int32{1, 128}}, "engine: request: tokens: token 1: expected 0 to 127, found 128"},
		"too long":    {Request{Tokens: make([]int32, 96)}, "engine: prompt: expected at most 95 tokens, what the context and the page pool hold, found 96"},
		"n":           {Request{Tokens: ok, N: 1000}, "engine: request: n: expected 1 ≤ n ≤ best_of (or beams) ≤ 256, found 1000 and 1000"},
		"best of":     {Request{Tokens: ok, N: 3, BestOf: 2}, "found 3 and 2"},
		"temperature": {Request{Tokens: ok, Sampling: sample.Params{Temperature: -1}}, "engine: request: sampling: sample: temperature"},
		"beam":        {Request{Tokens: ok, Beam: &Beam{Width: 0}}, "beam width: expected 1 to 256, found 0"},
		"beam n":      {Request{Tokens: ok, N: 4, Beam: &Beam{Width: 2}}, "found 4 and 2"},
		"penalties":   {Request{Tokens: ok, Beam: &Beam{Width: 2}, Sampling: sample.Params{PresencePenalty: 1}}, "a search cannot be combined"},
		"min":         {Request{Tokens: ok, MinTokens: -1}, "min_tokens"},
	} {
		if s, err := e.Submit(context.Background(), c.r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, s, err, c.want)
		}
	}
	if st := e.Stats(); st.Submitted != 0 || st.Waiting != 0 {
		t.Errorf("stats: %+v", st)
	}
}
