package pool

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"
)

// count is a task whose parts add to plain memory, so that the race detector
// sees whether a region orders what it must.
type count struct {
	parts []int
	calls int // written by part 0 only
}

func (c *count) Do(worker, workers int) {
	if len(c.parts) != workers {
		panic("wrong number of workers")
	}
	c.parts[worker]++
	if worker == 0 {
		c.calls++
	}
}

func TestRun(t *testing.T) {
	for _, workers := range []int{-1, 1, 2, 3, 5} {
		p := allPart(New(workers))
		c := &count{parts: make([]int, p.Workers())}
		for i := range 2000 {
			if i%500 == 0 {
				time.Sleep(time.Millisecond) // the workers fall asleep
			}
			p.Run(c)
			for w, n := range c.parts {
				if n != i+1 {
					t.Fatalf("%d workers: after %d regions part %d ran %d times", workers, i+1, w, n)
				}
			}
		}
		p.Close()
		p.Close()
		p.Run(c)
		for w, n := range c.parts {
			if n != 2001 {
				t.Fatalf("%d workers, closed: part %d ran %d times", workers, w, n)
			}
		}
	}
}

func TestRunFromManyGoroutines(t *testing.T) {
	p := allPart(New(3))
	defer p.Close()
	c := &count{parts: make([]int, 3)}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				p.Run(c)
			}
		})
	}
	wg.Wait()
	if c.calls != 800 {
		t.Errorf("%d regions ran, want 800", c.calls)
	}
}

type slow struct{ n atomic.Int32 }

func (s *slow) Do(worker, _ int) {
	if worker != 0 {
		time.Sleep(3 * time.Millisecond) // the caller falls asleep
	}
	s.n.Add(1)
}

func TestSlowWorkers(t *testing.T) {
	p := allPart(New(3))
	defer p.Close()
	var s slow
	for i := range int32(5) {
		p.Run(&s)
		if n := s.n.Load(); n != 3*(i+1) {
			t.Fatalf("after region %d: %d parts done", i, n)
		}
	}
}

type faulty struct{ at int }

func (f faulty) Do(worker, _ int) {
	if worker == f.at {
		panic("broken part")
	}
}

func TestPanic(t *testing.T) {
	p := allPart(New(2))
	defer p.Close()
	c := &count{parts: make([]int, 2)}
	for at := range 2 {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "broken part") {
					t.Errorf("part %d: recovered %q", at, v)
				}
			}()
			p.Run(faulty{at})
		}()
		p.Run(c)
	}
	if c.parts[0] != 2 || c.parts[1] != 2 {
		t.Errorf("parts after panics: %v", c.parts)
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	p := allPart(New(2))
	defer p.Close()
	c := &count{parts: make([]int, 2)}
	if n := testing.AllocsPerRun(200, func() { p.Run(c) }); n != 0 {
		t.Errorf("%v allocations per region", n)
	}
}

// TestGarbageCollection runs collections beside regions: a waiting loop that
// could not be stopped would hang them.
func TestGarbageCollection(t *testing.T) {
	p := allPart(New(max(2, runtime.GOMAXPROCS(0))))
	defer p.Close()
	c := &count{parts: make([]int, p.Workers())}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			p.Run(c)
		}
	}()
	start := time.Now()
	for range 5 {
		runtime.GC()
	}
	took := time.Since(start)
	stop.Store(true)
	<-done
	if took > time.Minute { // some milliseconds, on a machine with nothing else to do
		t.Errorf("5 collections took %v", took)
	}
}

func TestSplit(t *testing.T) {
	for n := range 40 {
		for workers := 1; workers < 9; workers++ {
			next := 0
			for w := range workers {
				lo, hi := Split(n, w, workers)
				if lo != next || hi < lo || hi-lo > n/workers+1 {
					t.Fatalf("part %d of %d of %d values is [%d, %d), after %d", w, workers, n, lo, hi, next)
				}
				next = hi
			}
			if next != n {
				t.Fatalf("%d parts of %d values end at %d", workers, n, next)
			}
		}
	}
}

func TestQuota(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"none", nil, 0},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 0},
		{"limit", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5},
		{"limit around it", map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "sys/fs/cgroup/a/cpu.max": "400000 100000\n"}, 4},
		{"first version", map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, 2},
		{"no quota in the first version", map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0},
		{"nonsense", map[string]string{"proc/self/cgroup": "0::../..\n::\nx\n", "sys/fs/cgroup/cpu.max": "a b c\n"}, 0},
	} {
		root := fstest.MapFS{}
		for name, text := range c.files {
			root[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := quota(root); got != c.want {
			t.Errorf("%s: quota %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDefaultWorkers(t *testing.T) {
	if n := DefaultWorkers(); n < 1 || n > runtime.GOMAXPROCS(0) {
		t.Errorf("DefaultWorkers() = %d with GOMAXPROCS %d", n, runtime.GOMAXPROCS(0))
	}
}

type empty struct{}

func (*empty) Do(int, int) {}

// BenchmarkRun measures an empty region: the 10th percentile and the median of
// runs of ten, since other processes on the machine stretch the rest.
func BenchmarkRun(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			p := allPart(New(workers))
			defer p.Close()
			var took []float64
			for b.Loop() {
				start := time.Now()
				for range 10 {
					p.Run(&empty{})
				}
				took = append(took, float64(time.Since(start))/10)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/10], "p10-ns")
			b.ReportMetric(took[len(took)/2], "p50-ns")
		})
	}
}
