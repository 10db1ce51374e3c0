package pool

import (
	"sync/atomic"
	"testing"
	"time"
)

const part = 20 * time.Microsecond // what the caller's part takes in these tests

// without runs n regions of 8 workers, of which late says, from the number of
// workers left out, how long the caller waits, and returns how many regions did
// without how many workers.
func without(c *crowd, n int, late func(i, out int) time.Duration) map[int]int {
	count := map[int]int{}
	for i := range n {
		count[c.out]++
		c.region(8-c.out, part, late(i, c.out))
	}
	return count
}

// A late region now and then, or short waits all the time, change nothing. Where
// a number of workers is late all the time, the pool mostly does without as
// many, and when they are free again, it has all of them again within one
// stretch.
func TestCrowd(t *testing.T) {
	const n = 100000
	c := crowd{most: 7}
	for name, late := range map[string]func(i, _ int) time.Duration{
		"a long wait in two thousand": func(i, _ int) time.Duration { return time.Duration(i%2000/1999) * time.Hour },
		"short waits":                 func(int, int) time.Duration { return part / 8 },
	} {
		if got := without(&c, n, late); got[0] < n*98/100 {
			t.Errorf("%s: workers left out in regions %v", name, got)
		}
	}
	for want, enough := range map[int]int{1: 1, 3: 4, 7: 7} { // doubled, up to the most
		c := crowd{most: 7}
		got := without(&c, n, func(_, out int) time.Duration {
			if out < want {
				return 10 * part
			}
			return 0
		})
		if got[enough] < n*9/10 {
			t.Errorf("%d workers always late: workers left out in regions %v, want mostly %d", want, got, enough)
		}
		if got := without(&c, n, func(_, _ int) time.Duration { return 0 }); got[0] < n-mostRegions {
			t.Errorf("none late any more: workers left out in regions %v", got)
		}
		// After a calm time a stretch is short again.
		for c.out == 0 {
			c.region(8, part, 10*part)
		}
		if got := without(&c, 10*firstRegions, func(_, _ int) time.Duration { return 0 }); got[1] != firstRegions {
			t.Errorf("late after a calm time: workers left out in regions %v, want 1 in %d", got, firstRegions)
		}
	}
}

// Where two halves would do the work of one in twice the time, a wait as long as
// a part is worth it.
func TestCrowdOfTwo(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		out  int
	}{{part * 8 / 10, 0}, {part * 12 / 10, 1}} {
		w := crowd{most: 1}
		for range evidence + firstRegions/2 {
			w.region(2-w.out, part, c.wait*time.Duration(1-w.out))
		}
		if w.out != c.out {
			t.Errorf("waits of %v after parts of %v: %d workers left out, want %d", c.wait, part, w.out, c.out)
		}
	}
}

// A pool whose workers cannot be left out makes waits short, whatever comes late
// then, and long again.
func TestCrowdOfSpreadPool(t *testing.T) {
	var c crowd
	for range evidence {
		c.region(2, part, 2*part)
	}
	for i := range firstRegions {
		if c.left.Load() == 0 || c.out != 0 {
			t.Fatalf("region %d: %d to go, %d workers left out", i, c.left.Load(), c.out)
		}
		c.region(2, part, 2*part)
	}
	if c.left.Load() != 0 {
		t.Errorf("%d regions with short waits to go, want none", c.left.Load())
	}
}

// allPart makes p count on every worker, however late: tests that look at parts
// also run on busy machines.
func allPart(p *Pool) *Pool {
	p.crowd.most = 0
	return p
}

// tardy keeps worker 1 from ending its part for a while.
type tardy struct{ parts atomic.Int32 }

func (s *tardy) Do(worker, workers int) {
	if worker == 1 {
		time.Sleep(2 * time.Millisecond)
	}
	s.parts.Store(int32(workers))
}

// A pool one of whose workers is always late gets on without it.
func TestPoolDoesWithoutLateWorkers(t *testing.T) {
	p := New(2)
	defer p.Close()
	s, alone := &tardy{}, 0
	for range 400 {
		p.Run(s)
		if s.parts.Load() == 1 {
			alone++
		}
	}
	if alone < 100 {
		t.Errorf("%d of 400 regions without the late worker, want most", alone)
	}
	if p.Width() != 2 {
		t.Errorf("width %d, want what was set", p.Width())
	}
}
