package pool

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// whereabouts notes the mask of each worker's thread.
type whereabouts struct{ masks [4]affinity }

func (w *whereabouts) Do(worker, _ int) { w.masks[worker].read() }

func TestPinnedWorkers(t *testing.T) {
	cpus := allowedCPUs()
	if len(cpus) < 2 {
		t.Skip("needs two processors")
	}
	before := threadMasks(t)
	p, err := NewPlaced(Placement{Workers: 3, CPUs: each(cpus[0], cpus[1], cpus[0])})
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("the system lets nobody choose processors: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	allPart(p)
	runtime.LockOSThread() // so that the thread after Leave is the one of before
	defer runtime.UnlockOSThread()
	var own, after affinity
	own.read()
	w := &whereabouts{}
	for range 3 {
		p.Enter()
		p.Run(w)
		for i, cpu := range []int{cpus[0], cpus[1], cpus[0]} {
			if w.masks[i] != affinityOf([]int{cpu}) {
				t.Errorf("worker %d may run on %v, want %d", i, w.masks[i].set, cpu)
			}
		}
		p.Leave()
		if after.read(); after != own {
			t.Fatalf("after Leave the caller may run on %v, before on %v", after.set, own.set)
		}
	}
	p.Run(w)
	if w.masks[0] != own {
		t.Errorf("outside of Enter the caller may run on %v, before on %v", w.masks[0].set, own.set)
	}
	p.Close()
	for mask, n := range threadMasks(t) {
		if before[mask] == 0 {
			t.Errorf("after Close %d threads are bound to %v", n, mask.set)
		}
	}
}

// threadMasks counts the threads of this process by their masks.
func threadMasks(t *testing.T) map[affinity]int {
	t.Helper()
	masks := map[affinity]int{}
	for range 8 { // goroutines on several threads
		done := make(chan affinity)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var a affinity
			a.read()
			time.Sleep(time.Millisecond)
			done <- a
		}()
		masks[<-done]++
	}
	return masks
}

// A processor that is not there is an error, and no thread stays behind.
func TestPinnedToNothing(t *testing.T) {
	ok := allowedCPUs()
	if len(ok) == 0 || slices.Contains(ok, 1023) {
		t.Skip("needs a processor that is not there")
	}
	// The last that a mask has: one next to those of this process may be there, and
	// be kept from it only by what it may change itself.
	none := []int{1023}
	for _, pl := range []Placement{
		{Workers: 2, CPUs: [][]int{ok, none}},
		{Workers: 2, CPUs: [][]int{none, ok}},
		{Workers: 2, CPUs: [][]int{ok}},
		{Workers: 1, CPUs: [][]int{{}}},
	} {
		var before, after affinity
		runtime.LockOSThread()
		before.read()
		p, err := NewPlaced(pl)
		if err == nil {
			t.Errorf("%+v: no error", pl)
			p.Close()
		}
		if after.read(); after != before {
			t.Errorf("%+v: the caller is bound to %v", pl, after.set)
		}
		runtime.UnlockOSThread()
	}
}

// Without pinning nothing is bound.
func TestPlacementWithoutProcessors(t *testing.T) {
	pl, err := Place(3, 0, false)
	if err != nil || pl.CPUs != nil && pl.Nodes == 1 && len(pl.CPUs[0]) == 1 {
		t.Fatalf("%+v, %v", pl, err)
	}
	p, err := NewPlaced(Placement{Workers: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Enter()
	defer p.Leave()
	var own affinity
	own.read()
	w := &whereabouts{}
	p.Run(w)
	for i := range 3 {
		if !reflect.DeepEqual(w.masks[i].set, affinityOf(allowedCPUs()).set) {
			t.Errorf("worker %d may run on %v", i, w.masks[i].set)
		}
	}
}

// BenchmarkEnter is what a step of a pinned pool costs more.
func BenchmarkEnter(b *testing.B) {
	cpus := allowedCPUs()
	p, err := NewPlaced(Placement{Workers: 1, CPUs: [][]int{cpus}})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		p.Enter()
		p.Leave()
	}
}
