package pool

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"ridge/internal/cpu"
)

// parts counts which parts of how many a region had.
type parts struct {
	ran    [8]int
	widths [8]int
}

func (p *parts) Do(worker, workers int) {
	p.ran[worker]++
	p.widths[worker] = workers
}

// Regions of changing width run each of their parts once, whoever slept, was
// left out, or came back meanwhile.
func TestSetWidth(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, workers := range []int{1, 2, 3, 5} {
		p := allPart(New(workers))
		var want parts
		got := &parts{}
		for i := range 1200 {
			if rng.IntN(8) == 0 {
				n := rng.IntN(workers+4) - 1
				p.SetWidth(n)
				if w := min(max(n, 1), workers); p.Width() != w || p.Workers() != workers {
					t.Fatalf("after SetWidth(%d): width %d of %d, want %d of %d", n, p.Width(), p.Workers(), w, workers)
				}
			}
			if i%300 == 0 {
				time.Sleep(2 * time.Millisecond) // the workers fall asleep
			}
			for w := range p.Width() {
				want.ran[w]++
				want.widths[w] = p.Width()
			}
			p.Run(got)
			if *got != want {
				t.Fatalf("%d workers, region %d of width %d: %+v, want %+v", workers, i, p.Width(), *got, want)
			}
		}
		p.SetWidth(1)
		p.Close()
		p.Run(got)
	}
}

// The number of the region goes round: neither a worker that takes part nor
// one that is left out meanwhile is confused by it.
func TestEpochGoesRound(t *testing.T) {
	p := allPart(New(3))
	defer p.Close()
	got := &parts{}
	p.Run(got)
	p.SetWidth(2)
	p.Run(got)
	p.mu.Lock()
	p.epoch.Store(-2 * MaxWorkers & (1<<32 - 1)) // as if after 2^24 - 2 regions, the last of one worker
	wake(&p.epoch)
	p.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	for i := range 6 {
		p.SetWidth(2 + i%2)
		p.Run(got)
	}
	if want := [8]int{8, 8, 4}; got.ran != want {
		t.Errorf("parts ran %v times, want %v", got.ran, want)
	}
}

// idleTime is how long a pool may keep a processor busy in a second of idleness
// beyond what its threads watch before they sleep.
const idleTime = 10 * time.Millisecond

// An idle pool takes no processor time, whether its workers took part in the
// last region or not.
func TestIdlePoolSleeps(t *testing.T) {
	if cpu.Time() == 0 {
		t.Skip("the system does not tell the processor time of a process")
	}
	p := allPart(New(4))
	defer p.Close()
	for range 500 {
		p.Run(&parts{})
	}
	for _, width := range []int{4, 2} {
		p.SetWidth(width)
		for range 200 { // patience grows to its longest
			p.Run(&parts{})
		}
		// Where others have the processors the pool takes longer to fall asleep, and
		// the runtime has work of its own now and then: one quiet second of some is
		// enough, for a pool that watches has none.
		least := time.Duration(math.MaxInt64)
		for try := 0; try < 5 && least > idleTime; try++ {
			time.Sleep(20 * time.Millisecond)
			used := cpu.Time()
			time.Sleep(time.Second)
			least = min(least, cpu.Time()-used)
		}
		if least > idleTime {
			t.Errorf("a pool of width %d used %v of processor time in an idle second, want at most %v", width, least, idleTime)
		}
		t.Logf("width %d: %v in an idle second", width, least)
	}
}

// busy notes which workers took part, for workers that are left out.
type busy struct{ n atomic.Int64 }

func (b *busy) Do(worker, workers int) {
	if worker == 0 {
		for start := time.Now(); time.Since(start) < 100*time.Microsecond; {
		}
	}
	b.n.Add(1)
}

// Workers that are left out sleep while the others work.
func TestLeftOutWorkersSleep(t *testing.T) {
	if cpu.Time() == 0 {
		t.Skip("the system does not tell the processor time of a process")
	}
	p := allPart(New(4))
	defer p.Close()
	b := &busy{}
	p.Run(b)
	p.SetWidth(1)
	time.Sleep(5 * time.Millisecond)
	start, used := time.Now(), cpu.Time()
	for range 2000 {
		p.Run(b)
	}
	wall := time.Since(start)
	if used = cpu.Time() - used; used > wall+wall/4 {
		t.Errorf("regions of one worker used %v of processor time in %v", used, wall)
	}
	if n := b.n.Load(); n != 4+2000 {
		t.Errorf("%d parts ran, want %d", n, 4+2000)
	}
}
