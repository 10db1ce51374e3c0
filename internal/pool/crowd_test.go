package pool

import (
	"sync/atomic"
	"testing"
	"time"
)

// without runs n regions of which late says, from the number of workers left
// out, whether a worker comes late, and returns how many regions did without
// how many workers.
func without(c *crowd, n int, late func(i, out int) bool) map[int]int {
	count := map[int]int{}
	for i := range n {
		count[c.out]++
		c.region(late(i, c.out))
	}
	return count
}

// A late region now and then changes nothing. Where a number of workers is late
// all the time, the pool mostly does without as many, and when they are free
// again, it has all of them again within one stretch.
func TestCrowd(t *testing.T) {
	const n = 100000
	c := crowd{most: 7}
	if got := without(&c, n, func(i, _ int) bool { return i%100 == 0 }); got[0] != n {
		t.Errorf("one late region in a hundred: workers left out in regions %v", got)
	}
	for want, enough := range map[int]int{1: 1, 3: 4, 7: 7} { // doubled, up to the most
		c := crowd{most: 7}
		if got := without(&c, n, func(_, out int) bool { return out < want }); got[enough] < n*9/10 {
			t.Errorf("%d workers always late: workers left out in regions %v, want mostly %d", want, got, enough)
		}
		if got := without(&c, n, func(_, _ int) bool { return false }); got[0] < n-mostRegions {
			t.Errorf("none late any more: workers left out in regions %v", got)
		}
		// After a calm time a stretch is short again.
		for range 3 {
			c.region(true)
		}
		if got := without(&c, 10*firstRegions, func(_, _ int) bool { return false }); got[1] != firstRegions {
			t.Errorf("three late regions after a calm time: workers left out in regions %v, want 1 in %d", got, firstRegions)
		}
	}
}

// A pool whose workers cannot be left out makes waits short, whatever comes late
// then, and long again.
func TestCrowdOfSpreadPool(t *testing.T) {
	var c crowd
	for range 3 {
		c.region(true)
	}
	for i := range firstRegions {
		if c.left.Load() == 0 || c.out != 0 {
			t.Fatalf("region %d: %d to go, %d workers left out", i, c.left.Load(), c.out)
		}
		c.region(true)
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
	for range 200 {
		p.Run(s)
		if s.parts.Load() == 1 {
			alone++
		}
	}
	if alone < 100 {
		t.Errorf("%d of 200 regions without the late worker, want most", alone)
	}
	if p.Width() != 2 {
		t.Errorf("width %d, want what was set", p.Width())
	}
}
