package model

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/tensor"
)

// maxPause is how long a collection may stop the process while a model computes:
// as long as a call of assembly, which cannot be stopped, and the wait for it.
const maxPause = 5 * time.Millisecond

// TestCollectionStalls collects garbage all the time beside steps that decode
// and steps that read a prompt. Kernels that ran on for longer than maxPause
// would hold the collector, and all other threads with it, up for as long. The
// quarter of the collections that was stopped least is looked at: on a machine
// with other work the system takes the processor from a thread for longer.
func TestCollectionStalls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	m := openTiny(t, testdata.Model(t, "smollm2"), 1024, Options{KV: tensor.F16})
	tokens := randomPrompt(512)
	for i := range tokens {
		tokens[i] %= int32(m.Config().Vocab)
	}
	for _, c := range []struct {
		name string
		rows int
		time time.Duration
	}{{"decode", 1, 2 * time.Second}, {"prompts of 512", 512, 2 * time.Second}} {
		seq := m.Pool().NewSeq()
		step := func() {
			if seq.Len()+c.rows > m.Context() {
				m.Pool().Truncate(seq, 0)
			}
			if err := m.Forward([]Segment{{Seq: seq, Tokens: tokens[:c.rows], Outputs: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		step()
		var steps []float64
		pauses := collectBeside(func() {
			for begin := time.Now(); time.Since(begin) < c.time; {
				at := time.Now()
				step()
				steps = append(steps, 1e3*time.Since(at).Seconds())
			}
		})
		m.Pool().Free(seq)
		slices.Sort(steps)
		slices.Sort(pauses)
		at := func(x []float64, q float64) float64 { return x[int(q*float64(len(x)-1))] }
		t.Logf("%s: %d collections stopped it for %.3f ms (a quarter), %.3f (half), %.3f (99%%), %.3f (all); %d steps took %.2f ms (median), %.2f (99%%)",
			c.name, len(pauses), at(pauses, 0.25), at(pauses, 0.5), at(pauses, 0.99), at(pauses, 1), len(steps), at(steps, 0.5), at(steps, 0.99))
		if got := at(pauses, 0.25); got > 1e3*maxPause.Seconds() {
			t.Errorf("%s: three quarters of the collections stopped the process for %.2f ms and more, want at most %v", c.name, got, maxPause)
		}
	}
}

// collectBeside collects garbage every some milliseconds while f runs, and
// returns the milliseconds for which each collection stopped the process.
func collectBeside(f func()) []float64 {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var before, after debug.GCStats
	debug.ReadGCStats(&before)
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
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
