package pool

import (
	"sync"

	"golang.org/x/sys/unix"
)

// affinity is a set of processors that a thread may run on.
type affinity struct{ set unix.CPUSet }

// affinityOf returns the set of the given processors.
func affinityOf(cpus []int) affinity {
	var a affinity
	for _, id := range cpus {
		a.set.Set(id)
	}
	return a
}

// apply binds the calling thread.
func (a *affinity) apply() error { return unix.SchedSetaffinity(0, &a.set) }

// read makes a what the calling thread is bound to.
func (a *affinity) read() { _ = unix.SchedGetaffinity(0, &a.set) }

// allowedCPUs returns the processors that this process may use: those of its
// affinity mask, which the system keeps within its cpuset. It is nil if the
// system does not tell. What it was at first counts: later the calling thread
// may be bound.
var allowedCPUs = sync.OnceValue(func() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var ids []int
	for id := range 64 * len(set) {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return ids
})
