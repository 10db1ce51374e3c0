package pool

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSharesCoverOnce lets workers ask in random order: whatever that is, each
// unit is given out exactly once, a worker's own run from front to back, and
// nothing is left.
func TestSharesCoverOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		workers, n, least := 1+r.IntN(6), r.IntN(200), r.IntN(12)
		fixed := r.IntN(3) == 0
		s := Shares{Anywhere: r.IntN(3) == 0}
		s.reset(r.IntN(50), 1, 1+r.IntN(8), false) // what was there before must not matter
		s.reset(n, least, workers, fixed)
		owner := make([]int, n)
		for i := range owner {
			owner[i] = -1
		}
		last := make([]int, workers) // how far a worker's own run is
		for i := range last {
			last[i], _ = Split(n, i, workers)
		}
		for idle := map[int]bool{}; len(idle) < workers; {
			w := r.IntN(workers)
			lo, hi, ok := s.Next(w)
			if !ok {
				idle[w] = true
				continue
			}
			if lo >= hi || lo < 0 || hi > n {
				t.Fatalf("%d workers, %d units: worker %d got [%d, %d)", workers, n, w, lo, hi)
			}
			first, end := Split(n, w, workers)
			own := lo >= first && hi <= end
			if fixed && !s.Anywhere && !own {
				t.Fatalf("fixed: worker %d of %d got [%d, %d), his run is [%d, %d)", w, workers, lo, hi, first, end)
			}
			if own && lo != last[w] {
				t.Fatalf("worker %d went on at %d of his run, want %d", w, lo, last[w])
			}
			if own {
				last[w] = hi
			}
			for u := lo; u < hi; u++ {
				if owner[u] >= 0 {
					t.Fatalf("unit %d was given to %d and %d", u, owner[u], w)
				}
				owner[u] = w
			}
		}
		if fixed && s.Anywhere && workers > 1 && n > 0 {
			s.reset(n, least, workers, fixed)
			got := 0
			for lo, hi, ok := s.Next(0); ok; lo, hi, ok = s.Next(0) {
				got += hi - lo
			}
			if got != n {
				t.Fatalf("anywhere: one worker of %d got %d of %d units", workers, got, n)
			}
		}
		if i := slices.Index(owner, -1); i >= 0 {
			t.Fatalf("%d workers, %d units of at least %d, fixed %v: unit %d was never given out", workers, n, least, fixed, i)
		}
	}
}

// TestSharesPieces checks that pieces are long at first, never shorter than
// asked but for the last, and that one is always left for whoever is done.
func TestSharesPieces(t *testing.T) {
	var s Shares
	s.reset(100, 4, 2, false)
	var got []int
	for lo, hi, ok := s.Next(0); ok; lo, hi, ok = s.Next(0) {
		got = append(got, hi-lo)
	}
	want := []int{25, 13, 6, 4, 2, 25, 13, 6, 4, 2} // its own, then the other's
	if !slices.Equal(got, want) {
		t.Errorf("pieces of %v units, want %v", got, want)
	}
}

// sharing counts who did the units of a region.
type sharing struct {
	s     Shares
	units []int32   // times done; each by one worker only, so the race detector sees a second one
	by    []int     // per worker
	done  chan bool // if not nil, the others begin when worker 0 is done
}

func (s *sharing) Do(worker, _ int) {
	if s.done != nil && worker != 0 {
		<-s.done
	}
	for lo, hi, ok := s.s.Next(worker); ok; lo, hi, ok = s.s.Next(worker) {
		for u := lo; u < hi; u++ {
			s.units[u]++
		}
		s.by[worker] += hi - lo
	}
	if s.done != nil && worker == 0 {
		s.done <- true
	}
}

func TestRunShared(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		p := allPart(New(workers))
		s := &sharing{units: make([]int32, 97), by: make([]int, workers)}
		for i := range 1000 {
			p.RunShared(s, &s.s, len(s.units), 3)
			for u, n := range s.units {
				if n != int32(i+1) {
					t.Fatalf("%d workers: after %d regions unit %d was done %d times", workers, i+1, u, n)
				}
			}
		}
		p.Close()
		p.RunShared(s, &s.s, len(s.units), 3)
		if s.units[0] != 1001 || s.units[96] != 1001 {
			t.Errorf("%d workers, closed: units were done %v times", workers, s.units)
		}
	}
}

// TestLateWorkerIsRelieved: what a late worker has not begun, others do.
func TestLateWorkerIsRelieved(t *testing.T) {
	p := allPart(New(2))
	defer p.Close()
	s := &sharing{units: make([]int32, 64), by: make([]int, 2), done: make(chan bool, 1)}
	for range 5 {
		p.RunShared(s, &s.s, len(s.units), 4)
	}
	if s.by[1] != 0 {
		t.Errorf("a worker who came when all was done did %d of %d units", s.by[1], 5*64)
	}
}

func TestRunSharedDoesNotAllocate(t *testing.T) {
	p := allPart(New(2))
	defer p.Close()
	s := &sharing{units: make([]int32, 64), by: make([]int, 2)}
	if n := testing.AllocsPerRun(200, func() { p.RunShared(s, &s.s, 64, 4) }); n != 0 {
		t.Errorf("a region allocates %v times", n)
	}
}
