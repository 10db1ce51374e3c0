package engine

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"ridge/sample"
	"ridge/sched"
)

// client sends random requests and treats their streams badly.
func client(t *testing.T, e *Engine, r *rand.Rand, until time.Time) {
	for time.Now().Before(until) {
		ctx, cancel := context.WithCancel(context.Background())
		q := Request{
			Tokens: randomTokens(r, 1+r.IntN(60), 128), MaxTokens: 1 + r.IntN(60), N: 1 + r.IntN(3), Tenant: string(rune('a' + r.IntN(3))),
			Sampling: sample.Params{Temperature: r.Float32(), Seed: r.Uint64(), LogProbs: r.IntN(2)}, MinTokens: r.IntN(5), StopTokens: randomTokens(r, 3, 128),
		}
		switch r.IntN(8) {
		case 0:
			q.Beam, q.BestOf, q.Sampling = &Beam{Width: q.N + 1, LengthPenalty: 1}, 0, sample.Params{}
		case 1:
			q.Embed, q.N = PoolingMean, 1
		case 2:
			q.PromptLogProbs = 2
		case 3:
			q.BestOf = q.N + 2
		case 4:
			q.NewMasker = func() Masker { return &panicMask{r.IntN(20)} }
		}
		if r.IntN(3) == 0 {
			q.Tokens = append([]int32{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, q.Tokens...)
		}
		s, err := e.Submit(ctx, q)
		if err != nil {
			t.Error(err)
			cancel()
			return
		}
		abuse(ctx, cancel, s, r)
		cancel()
		s.Close()
	}
}

// abuse reads a stream, slowly or not to its end.
func abuse(ctx context.Context, cancel context.CancelFunc, s *Stream, r *rand.Rand) {
	how, after := r.IntN(6), r.IntN(40)
	for i := 0; ; i++ {
		ev, ok := s.Next(ctx)
		if !ok {
			return
		}
		if i < after {
			continue
		}
		switch how {
		case 0:
			cancel()
		case 1:
			return
		case 2:
			s.Stop(ev.Choice)
		case 3:
			time.Sleep(time.Millisecond)
		}
	}
}

// Mixed load leaves nothing behind: a second by default, as long as RIDGE_SOAK
// says.
func TestSoak(t *testing.T) {
	length := time.Second
	if s := os.Getenv("RIDGE_SOAK"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	cfg := sched.Config{Split: true, MaxTokens: 48, MaxSeqs: 12, Recovery: sched.Swap, Preemptive: true, Policy: sched.VTC(0, 0)}
	e := start(t, openTiny(t, "llama", 25), Options{Sched: &cfg, Swap: &sched.RAM{Limit: 1 << 20}, Events: 8, DropAfter: time.Second})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	first := uint64(0)
	for part := range uint64(4) {
		var wg sync.WaitGroup
		for i := range uint64(8) {
			wg.Go(func() { client(t, e, rand.New(rand.NewPCG(part, i)), time.Now().Add(length/4)) })
		}
		for end := time.Now().Add(length / 4); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if err := e.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		waitFor(t, e, "all requests end", func(st Stats) bool { return st.Requests == 0 })
		if err := e.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if part == 0 {
			first = heap()
		}
	}
	if last := heap(); last > first+first/2+1<<20 {
		t.Errorf("%d bytes of heap, %d after the first quarter", last, first)
	}
	st := e.Stats()
	t.Logf("%d requests, %d steps, %+v", st.Submitted, st.Steps, st.Finished)
}
