package engine

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/kvcache"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/weights/tensor"
)

// share starts an engine on a model that takes its pages from a budget.
func share(t *testing.T, path string, b *kvcache.Budget, context int, o Options) *Engine {
	t.Helper()
	m, err := model.Open(path, model.Options{KV: tensor.F16, Workers: 1, PageTokens: 16, KVBudget: b, Context: context})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return start(t, m, o)
}

// Several engines under one budget: one has a load that takes more than its
// share while the others idle, then they get loads of their own, and in the end
// all of them have requests that come and go. Every request gets the answer that
// it gets alone, memory moves, and the budget is never exceeded.
func TestEnginesShareBudget(t *testing.T) {
	names := []string{"llama", "gemma3", "qwen2"}
	const requests = 24
	b, err := kvcache.NewBudget(600<<10, len(names), false)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 4))
	var engines []*Engine
	var reqs [][]Request
	var want [][]answer
	for i, name := range names {
		cfg := sched.Config{Split: true, MaxTokens: 64, MaxSeqs: 16, Preemptive: i == 1, Recovery: sched.Recovery(i % 2)}
		m := openTiny(t, name, 64)
		var rs []Request
		var ws []answer
		for range requests {
			q := Request{Tokens: randomTokens(r, 1+r.IntN(60), m.Config().Vocab), MaxTokens: 1 + r.IntN(60), Sampling: sample.Params{Temperature: 1, Seed: r.Uint64()}}
			rs, ws = append(rs, q), append(ws, alone(t, m, q))
		}
		reqs, want = append(reqs, rs), append(want, ws)
		engines = append(engines, share(t, filepath.Join(tinyModels, name), b, 128, Options{Sched: &cfg, Swap: &sched.RAM{Limit: 1 << 20}}))
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		for {
			if st := b.Stats(); st.Used > st.Bytes {
				t.Errorf("%d of %d bytes are used", st.Used, st.Bytes)
			}
			select {
			case <-done:
				return
			case <-time.After(200 * time.Microsecond):
			}
		}
	})
	check := func(i, k int, s *Stream) {
		if got, _ := read(t, s, 1); !same(&got[0], &want[i][k]) {
			t.Errorf("%s: request %d: got %v, want %v", names[i], k, got[0].tokens, want[i][k].tokens)
		}
	}
	atOnce := func(i int) {
		release := hold(t, engines[i])
		for k, q := range reqs[i] {
			s := submit(t, engines[i], q)
			wg.Go(func() { check(i, k, s) })
		}
		release()
	}
	atOnce(0)
	first := engines[0]
	st := waitFor(t, first, "an engine takes more than its share", func(s Stats) bool { return s.Pool.Held > s.Pool.Sure })
	atOnce(1)
	atOnce(2)
	wg.Wait()
	if now := first.Stats(); now.Pool.Given == 0 || now.Pool.Held >= st.Pool.Held+first.chunk {
		t.Errorf("the first has given nothing: %+v, then %+v", st.Pool, now.Pool)
	}
	for i := range engines {
		for k, q := range reqs[i] {
			pause := time.Duration(i)*15*time.Millisecond + time.Duration(r.IntN(3))*10*time.Millisecond
			wg.Go(func() {
				time.Sleep(pause)
				check(i, k, submit(t, engines[i], q))
			})
		}
	}
	wg.Wait()
	close(done)
	over.Wait()
	for i, e := range engines {
		st := e.Stats()
		t.Logf("%s: %+v", names[i], st.Pool)
		if err := e.Check(t.Context()); err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
	}
	t.Logf("%+v", b.Stats())
}

// An engine that had no request for a while keeps its floor and what it has
// cached; a part of the memory that is fixed stays.
func TestIdleEngineTrims(t *testing.T) {
	for name, o := range map[string]Options{"nothing cached": {NoPrefixCache: true}, "cached": {}, "fixed": {Contiguous: true}} {
		t.Run(name, func(t *testing.T) {
			b, err := kvcache.NewBudget(1<<20, 1, o.Contiguous)
			if err != nil {
				t.Fatal(err)
			}
			e := share(t, filepath.Join(tinyModels, "llama"), b, 128, o)
			first := e.Stats().Pool
			var all []*Stream
			release := hold(t, e) // they run together, and have more than what is cached of them
			for i := range int32(20) {
				all = append(all, submit(t, e, Request{Tokens: []int32{5 + i, 6, 7}, MaxTokens: 100}))
			}
			release()
			for _, s := range all {
				read(t, s, 1)
			}
			if st := e.Stats().Pool; (st.Taken > first.Taken) == o.Contiguous {
				t.Errorf("%d chunks taken at first, then %d", first.Taken, st.Taken)
			}
			st := waitFor(t, e, "memory that holds nothing is given back", func(s Stats) bool {
				return s.Pool.Held <= max(first.Held, (s.Pool.Cached+e.chunk-1)/e.chunk*e.chunk)
			})
			if !o.Contiguous && st.Pool.Given == 0 || o.Contiguous && st.Pool.Held != st.Pool.Pages || (st.Tree.Evicted > 0) || (st.Pool.Cached > 0) != (name == "cached") {
				t.Errorf("%+v, %+v", st.Pool, st.Tree)
			}
			if err := e.Check(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An engine whose prefix cache has filled the memory gives it to another that
// has requests, and both answer as they do alone. The models are the trained
// one of the program and, if there is one, a real one.
func TestIdleEngineGivesMemory(t *testing.T) {
	t.Run("tiny", func(t *testing.T) { idleGives(t, testdata.Tiny, 4<<20) })
	t.Run("smollm2", func(t *testing.T) { idleGives(t, testdata.Model(t, "smollm2"), 48<<20) })
}

func idleGives(t *testing.T, path string, bytes int64) {
	load := func(_ context.Context, name string, pages *kvcache.Budget) (*model.Model, Options, error) {
		m, err := model.Open(map[string]string{"a": testdata.Tiny, "b": path}[name], model.Options{KV: tensor.F16, PageTokens: 16, KVBudget: pages, MaxContext: 1024})
		return m, Options{}, err
	}
	r := newRegistry(t, load, RegistryOptions{PageBytes: bytes, MaxModels: 2})
	a, b := acquire(t, r, "a"), acquire(t, r, "b")
	defer a.Release()
	defer b.Release()
	rng := rand.New(rand.NewPCG(5, 5))

	// Prompts of which no two begin alike, until nothing is left to take.
	fill := func() Stats {
		for i := 0; ; i++ {
			st := a.Engine.Stats()
			if st.Pool.Held == st.Pool.Pages && st.Tree.Evicted > 0 {
				return st
			}
			if i == 300 {
				t.Fatalf("the memory is not filled: %+v", st.Pool)
			}
			ask(t, a.Engine, Request{Tokens: randomTokens(rng, 900, 300), MaxTokens: 1})
		}
	}
	full := fill()
	if full.Pool.Held <= full.Pool.Sure {
		t.Fatalf("the first has no more than its share: %+v", full.Pool)
	}
	before := b.Engine.Stats().Pool
	// So much at a time as the second can have only when the first gives.
	tokens := before.Sure * 16 * 3 / 4
	n := max(1, tokens/600)
	var wg sync.WaitGroup
	prompts := make([][]int32, n)
	for i := range n {
		prompts[i] = randomTokens(rng, min(500, tokens-20), 300)
	}
	answers := make([]answer, n)
	for i := range n {
		wg.Go(func() {
			got, _ := ask(t, b.Engine, Request{Tokens: prompts[i], MaxTokens: 10})
			answers[i] = got[0]
		})
	}
	wg.Wait()
	st, left := b.Engine.Stats(), a.Engine.Stats()
	t.Logf("first: %d pages held, then %d, %d chunks given; second: %d of %d, then %d", full.Pool.Held, left.Pool.Held, left.Pool.Given, before.Held, before.Sure, st.Pool.Held)
	if st.Pool.Taken <= before.Taken || left.Pool.Given == 0 || left.Pool.Held >= full.Pool.Held {
		t.Errorf("nothing has moved: %+v, %+v", left.Pool, st.Pool)
	}
	if st.Sched.Recomputes+st.Sched.SwapOuts > 0 {
		t.Errorf("%d sequences were preempted for memory that nobody used", st.Sched.Recomputes)
	}
	for _, l := range []*Lease{a, b} {
		if err := l.Engine.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if sum := r.Pages().Stats(); sum.Used > sum.Bytes {
		t.Errorf("budget: %+v", sum)
	}
	m, err := model.Open(path, model.Options{KV: tensor.F16, MaxContext: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i := range min(n, 3) {
		if want := alone(t, m, Request{Tokens: prompts[i], MaxTokens: 10}); !same(&answers[i], &want) {
			t.Errorf("prompt %d: got %v, want %v", i, answers[i].tokens, want.tokens)
		}
	}
	if got, _ := ask(t, a.Engine, long(5)); len(got[0].tokens) != 5 {
		t.Errorf("the first: %+v", got[0])
	}
}
