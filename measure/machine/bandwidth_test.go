package machine

import (
	"math"
	"testing"
	"time"
)

// best is the best of some measurements, of which one is enough that reaches
// want: a machine with other work lets some of them wait.
func best(want float64, measure func() float64) float64 {
	got := math.Inf(-1)
	for try := 0; try < 50 && got < want; try++ {
		got = max(got, measure())
	}
	return got
}

func TestReadBandwidth(t *testing.T) {
	for _, threads := range []int{1, 2} {
		if got := best(1e8, func() float64 { return ReadBandwidth(threads, 8<<20, 10*time.Millisecond) }); got < 1e8 {
			t.Errorf("%d threads read %.0f bytes per second", threads, got)
		}
	}
	if got := ReadBandwidth(1, 1<<60, time.Millisecond); got != 0 {
		t.Errorf("a buffer that does not fit: %.0f bytes per second", got)
	}
}

func TestProber(t *testing.T) {
	for _, threads := range []int{0, -1} {
		if _, err := NewProber(threads, 1<<20); err == nil {
			t.Errorf("a prober with %d threads", threads)
		}
	}
	for _, threads := range []int{1, 2, 3} {
		p, err := NewProber(threads, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		const d = 2 * time.Millisecond
		for _, size := range []int{0, 1, 64 << 10, 300 << 10, 1 << 20, 1 << 40} {
			if got := best(1e7, func() float64 { return p.Read(size, d) }); got < 1e7 {
				t.Errorf("%d threads read %.0f bytes per second of %d", threads, got, size)
			}
		}
		ints := best(1e7, func() float64 { return p.Ops(true, d) })
		floats := best(1e7, func() float64 { return p.Ops(false, d) })
		if ints < 1e7 || floats < 1e7 {
			t.Errorf("%d threads: %.0f integer and %.0f float operations per second", threads, ints, floats)
		}
		if r := -best(-1, func() float64 { return -p.Region(d).Seconds() }); r <= 0 || r > 1 {
			t.Errorf("%d threads: a region takes %v s", threads, r)
		}
		if p.Threads() != threads {
			t.Errorf("%d threads, want %d", p.Threads(), threads)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if p.Close() == nil {
			t.Error("a second close without an error")
		}
	}
}
