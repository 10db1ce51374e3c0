package machine

import (
	"testing"
	"time"
)

func TestReadBandwidth(t *testing.T) {
	for _, threads := range []int{1, 2} {
		if got := ReadBandwidth(threads, 8<<20, 10*time.Millisecond); got < 1e8 {
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
			if got := p.Read(size, d); got < 1e7 {
				t.Errorf("%d threads read %.0f bytes per second of %d", threads, got, size)
			}
		}
		ints, floats := p.Ops(true, d), p.Ops(false, d)
		if ints < 1e7 || floats < 1e7 {
			t.Errorf("%d threads: %.0f integer and %.0f float operations per second", threads, ints, floats)
		}
		if r := p.Region(d); r <= 0 || r > time.Second {
			t.Errorf("%d threads: a region takes %v", threads, r)
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
