package engine

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sample"
	"ridge/sched"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// mallocsOf returns the number of objects allocated before each step that a
// workload takes.
func mallocsOf(t *testing.T, e *Engine, reqs []Request) []uint64 {
	t.Helper()
	var st runtime.MemStats
	mallocs := make([]uint64, 0, 200)
	count := func() {
		if runtime.ReadMemStats(&st); len(mallocs) < cap(mallocs) {
			mallocs = append(mallocs, st.Mallocs)
		}
	}
	var wg sync.WaitGroup
	release := hold(t, e)
	e.inject = count
	var streams []*Stream
	for _, q := range reqs {
		streams = append(streams, submit(t, e, q))
	}
	release()
	for _, s := range streams {
		wg.Go(func() {
			for ok := true; ok; {
				_, ok = s.Next(t.Context())
			}
		})
	}
	wg.Wait()
	return mallocs
}

// Decoding allocates nothing, neither in the loop nor by those who read: only
// steps in which sequences get pages may, for their page tables and the tree's
// lists of tokens, which grow by doubling.
func TestAllocations(t *testing.T) {
	const seqs, from, to, page = 8, 20, 100, 16
	m := openTiny(t, "llama", 100)
	e := start(t, m, Options{})
	var reqs []Request
	for i := range seqs {
		q := long(115)
		if q.Tokens = append(q.Tokens, int32(10+i)); i%2 == 0 {
			q.Sampling = sample.Params{Temperature: 1, TopP: 0.9, FrequencyPenalty: 0.1, Seed: uint64(i)}
		}
		q.EndLoops = i%3 == 0
		reqs = append(reqs, q)
	}
	mallocs := mallocsOf(t, e, reqs)
	if len(mallocs) < to {
		t.Fatalf("%d steps", len(mallocs))
	}
	total, some := mallocs[to-1]-mallocs[from-1], 0
	for i := from; i < to; i++ {
		if mallocs[i] != mallocs[i-1] {
			some++
		}
	}
	t.Logf("%d allocations for %d tokens, in %d of %d steps", total, seqs*(to-from), some, to-from)
	// The sequences began in at most a few steps, and get pages in as many.
	if most := (to - from) / page * 4; some > most || total > uint64(some*3*seqs) {
		t.Errorf("%d allocations in %d of %d steps, want them in at most %d", total, some, to-from, most)
	}
}

// Before the first request step times can be predicted, for all numbers of rows
// that a step may have.
func TestCalibrate(t *testing.T) {
	cfg := sched.Config{Split: true, MaxTokens: 100, MaxSeqs: 8, ITLTarget: time.Second}
	e := start(t, openTiny(t, "llama", 20), Options{Sched: &cfg})
	if got, _ := ask(t, e, long(5)); len(got[0].tokens) != 5 {
		t.Errorf("%d tokens", len(got[0].tokens))
	}
	if err := e.call(t.Context(), func() {
		if c := e.sched.Cost(); !c.Ready() || c.Reach() < cfg.MaxTokens {
			t.Errorf("ready: %v, reach: %d", c.Ready(), c.Reach())
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// What the engine adds to the time of the model, at 32 sequences.
func BenchmarkOverhead(b *testing.B) {
	path := testdata.Model(b, "smollm2")
	m, err := model.Open(path, model.Options{KV: tensor.F16, Context: 2048, KVBytes: 512 << 20})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { m.Close() })
	for _, c := range []struct {
		name string
		p    sample.Params
	}{
		{"greedy", sample.Params{}},
		{"top-k and top-p", sample.Params{Temperature: 0.8, TopP: 0.95, TopK: 40}},
		{"top-p", sample.Params{Temperature: 0.8, TopP: 0.95}},
		{"temperature", sample.Params{Temperature: 1}},
	} {
		b.Run(c.name, func(b *testing.B) { overhead(b, m, c.p) })
	}
}

func overhead(b *testing.B, m *model.Model, p sample.Params) {
	const seqs = 32
	e := start(b, m, Options{})
	prompt := m.Tokenizer().Encode(nil, "The history of the city begins in the year", tokenizer.EncodeOptions{})
	var wg sync.WaitGroup
	for i := range seqs {
		p.Seed = uint64(i)
		s := submit(b, e, Request{Tokens: append(slices.Clone(prompt), int32(1000+i)), MaxTokens: max(b.N, 10), Sampling: p})
		wg.Go(func() {
			for ok := true; ok; {
				_, ok = s.Next(b.Context())
			}
		})
	}
	wg.Wait()
	st := e.Stats()
	step := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(st.Steps) }
	b.ReportMetric(step(st.Busy), "µs/step")
	b.ReportMetric(step(st.Sampling), "µs-sampling/step")
	b.ReportMetric(step(st.Busy-st.Kernels-st.Sampling), "µs-engine/step")
	b.ReportMetric(100*float64(st.Busy-st.Kernels)/float64(st.Busy), "%-outside-model")
}
