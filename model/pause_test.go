package model

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/weights/tensor"
)

// Collections that run all the time beside steps do not show in what is computed.
func TestCollectionsBesideSteps(t *testing.T) {
	m := openTiny(t, testdata.Tiny, 0, Options{KV: tensor.F16})
	tokens := randomPrompt(70)
	answers := func() (out []float32) {
		seq := m.Pool().NewSeq()
		defer m.Pool().Free(seq)
		for _, n := range []int{60, 1, 1, 1, 7} {
			if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: tokens[seq.Len() : seq.Len()+n], Outputs: 1}}}); err != nil {
				t.Fatal(err)
			}
			out = append(out, m.Logits(0)...)
		}
		return out
	}
	want := answers()
	pauses := collectBeside(0, func() {
		for range 20 {
			if !slices.Equal(answers(), want) {
				t.Error("other logits beside a collection")
			}
		}
	})
	t.Logf("%d collections", len(pauses))
}

// BenchmarkCollectionStalls collects garbage all the time beside steps that decode
// and steps that read a prompt, and tells for how many milliseconds a quarter, a
// half and all but a hundredth of the collections stopped the process at most, and
// how long a step took. Kernels that ran on for long would hold the collector, and
// all other threads with it, up for as long: a call of assembly cannot be stopped.
// On a machine with other work the system takes the processor from a thread for
// longer.
func BenchmarkCollectionStalls(b *testing.B) {
	m, err := Open(testdata.Model(b, "smollm2"), Options{KV: tensor.F16, Context: 1024})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	tokens := randomPrompt(512)
	for i := range tokens {
		tokens[i] %= int32(m.Config().Vocab)
	}
	for _, c := range []struct {
		name string
		rows int
	}{{"decode", 1}, {"prompts of 512", 512}} {
		b.Run(c.name, func(b *testing.B) {
			seq := m.Pool().NewSeq()
			defer m.Pool().Free(seq)
			pauses := collectBeside(10*time.Millisecond, func() {
				for b.Loop() {
					if seq.Len()+c.rows > m.Context() {
						m.Pool().Truncate(seq, 0)
					}
					if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: tokens[:c.rows], Outputs: 1}}}); err != nil {
						b.Fatal(err)
					}
				}
			})
			if len(pauses) == 0 {
				return // it was over before the first
			}
			slices.Sort(pauses)
			for name, q := range map[string]float64{"ms-stopped-p25": 0.25, "ms-stopped-p50": 0.5, "ms-stopped-p99": 0.99} {
				b.ReportMetric(pauses[int(q*float64(len(pauses)-1))], name)
			}
		})
	}
}

// collectBeside collects garbage again and again, after pauses, while f runs, and
// returns the milliseconds for which each collection stopped the process.
func collectBeside(pause time.Duration, f func()) []float64 {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var before, after debug.GCStats
	debug.ReadGCStats(&before)
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(pause):
				runtime.GC()
			}
		}
	})
	f()
	close(stop)
	wg.Wait()
	debug.ReadGCStats(&after)
	n := min(int(after.NumGC-before.NumGC), len(after.Pause))
	var ms []float64
	for _, p := range after.Pause[:n] { // the latest come first
		ms = append(ms, 1e3*p.Seconds())
	}
	return ms
}
