package pool

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
)

// MaxWorkers bounds the workers of a pool.
const MaxWorkers = 1 << widthBits

// Placement says how many workers a pool has and where they run.
type Placement struct {
	Workers int
	// CPUs has the processors that a worker may run on, by worker. It is nil
	// where the system may choose among those of the process.
	CPUs [][]int
	// Nodes is the number of memory nodes that the workers lie on.
	Nodes int
}

// Place chooses where workers run that read bytes of weights. With workers 0
// there are as many as this process can keep busy: see DefaultWorkers.
//
// On a machine with several memory nodes all workers stay on one that has room
// for the weights and enough cores; with workers 0, on the one with the most
// cores of those with room. If there is none, they are spread evenly over the
// nodes, neighbours on the same node, and each keeps to its node.
//
// With pin every worker has a processor of its own: a core of its own as long
// as there are cores, and then the second threads of cores.
func Place(workers int, bytes int64, pin bool) (Placement, error) {
	t := readTopology(os.DirFS("/sys"), allowedCPUs())
	return t.place(workers, most(os.DirFS("/")), bytes, pin)
}

// MemoryNodes returns the number of memory nodes next to the processors of this
// process.
func MemoryNodes() int {
	t := readTopology(os.DirFS("/sys"), allowedCPUs())
	return max(len(t.nodes), 1)
}

// Procs returns GOMAXPROCS as it was before Spare: how many threads may compute.
var Procs = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// Spare lets one goroutine more run at a time than GOMAXPROCS says: where all
// processors compute, who answers a request for anything else would wait until Go's
// scheduler takes a worker off its processor, 10 ms and more each time that it must.
// So the system's scheduler decides, which prefers threads that slept. It changes
// nothing about how many workers there are, and nothing at all if the environment sets
// GOMAXPROCS.
func Spare() {
	if n := Procs(); os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(n + 1)
	}
}

// most returns how many workers GOMAXPROCS and the quota of the cgroup pay for.
func most(root fs.FS) int {
	n := Procs()
	if q := quota(root); q > 0 {
		n = min(n, int(q)) // a fraction of a processor is not worth a thread that waits for it
	}
	return min(max(n, 1), MaxWorkers)
}

// place is Place on a machine of which only limit processors may be kept busy.
func (t *topology) place(workers, limit int, bytes int64, pin bool) (Placement, error) {
	if workers > MaxWorkers {
		return Placement{}, fmt.Errorf("pool: place: expected at most %d workers, found %d", MaxWorkers, workers)
	}
	switch {
	case len(t.cpus) == 0 && pin:
		return Placement{}, fmt.Errorf("pool: place: threads cannot be pinned on %s", runtime.GOOS)
	case len(t.cpus) == 0:
		if workers <= 0 {
			workers = limit
		}
		return Placement{Workers: workers, Nodes: 1}, nil
	}
	node := t.roomiest(workers, limit, bytes)
	if workers <= 0 {
		workers = min(limit, len(t.cores(node)))
	}
	if pin && workers > len(t.cpus) {
		return Placement{}, fmt.Errorf("pool: place: expected at most %d pinned workers, as many as there are processors, found %d", len(t.cpus), workers)
	}
	p := Placement{Workers: workers, Nodes: 1}
	switch {
	case node < 0:
		p.CPUs, p.Nodes = t.spread(workers, pin)
	case pin:
		first, others := t.threads(node)
		for _, id := range append(first, others...)[:workers] {
			p.CPUs = append(p.CPUs, []int{id})
		}
	case len(t.nodes) > 1:
		first, others := t.threads(node)
		all := append(first, others...)
		slices.Sort(all)
		p.CPUs = slices.Repeat([][]int{all}, workers)
	}
	return p, nil
}

// spare is the memory that a node must have beyond the weights, in parts of
// them: keys and values, activations and what others take meanwhile.
const spare = 4

// roomiest returns the node that all workers can run on, or -1 if they must be
// spread. Among several it is the one with the most cores, and then the most
// memory.
func (t *topology) roomiest(workers, limit int, bytes int64) int {
	if len(t.nodes) == 1 {
		return t.nodes[0]
	}
	best, bestCores := -1, 0
	for _, node := range t.nodes {
		first, others := t.threads(node)
		cores := min(len(first), limit)
		if free, known := t.free[node]; !known || free-free/spare < bytes || workers > len(first)+len(others) {
			continue
		}
		if cores > bestCores || cores == bestCores && t.free[node] > t.free[best] {
			best, bestCores = node, cores
		}
	}
	return best
}

// spread gives the workers out to the nodes, each to the node with the most
// processors that have none yet, so that all nodes read at once. Workers of one
// node follow each other: they read neighbouring weights.
func (t *topology) spread(workers int, pin bool) (cpus [][]int, nodes int) {
	ids := make([][]int, len(t.nodes)) // of each node, cores first
	given := make([]int, len(t.nodes))
	for i, node := range t.nodes {
		first, others := t.threads(node)
		ids[i] = append(first, others...)
	}
	for range workers {
		at := 0
		for i := range ids {
			if len(ids[i])-given[i] > len(ids[at])-given[at] {
				at = i
			}
		}
		given[at]++
	}
	for i, n := range given {
		if n > 0 {
			nodes++
		}
		all := slices.Sorted(slices.Values(ids[i]))
		for k := range n {
			if pin {
				cpus = append(cpus, ids[i][k:k+1])
			} else {
				cpus = append(cpus, all)
			}
		}
	}
	return cpus, nodes
}
