package pool

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// fakeSys makes a /sys with the given lists of processors by node, threads of
// one core by list, and unused memory by node in MiB.
func fakeSys(nodes, siblings []string, freeMiB []int) fstest.MapFS {
	sys := fstest.MapFS{}
	add := func(name, text string) { sys[name] = &fstest.MapFile{Data: []byte(text)} }
	for i, list := range nodes {
		dir := fmt.Sprintf("devices/system/node/node%d/", i)
		add(dir+"cpulist", list+"\n")
		if i < len(freeMiB) {
			add(dir+"meminfo", fmt.Sprintf("Node %d MemTotal:  %d kB\nNode %d MemFree:  %d kB\n", i, 1<<30, i, freeMiB[i]<<10))
		}
	}
	for _, list := range siblings {
		for _, id := range parseList(list) {
			add(fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", id), list+"\n")
		}
	}
	return sys
}

func upTo(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// each is one processor for each worker.
func each(ids ...int) [][]int {
	var out [][]int
	for _, id := range ids {
		out = append(out, []int{id})
	}
	return out
}

func TestPlace(t *testing.T) {
	// Four cores of two threads each, numbered as most machines do.
	smt := fakeSys([]string{"0-7"}, []string{"0,4", "1,5", "2,6", "3,7"}, []int{1000})
	// Two nodes of four cores with two threads each; half the memory is taken on
	// the first.
	two := fakeSys([]string{"0-3,8-11", "4-7,12-15"},
		[]string{"0,8", "1,9", "2,10", "3,11", "4,12", "5,13", "6,14", "7,15"}, []int{500, 1000})
	first, second := []int{0, 1, 2, 3, 8, 9, 10, 11}, []int{4, 5, 6, 7, 12, 13, 14, 15}
	for _, c := range []struct {
		name           string
		sys            fstest.MapFS
		allowed        []int
		workers, limit int
		mib            int64
		pin            bool
		want           Placement
	}{
		{"nothing known", fstest.MapFS{}, nil, 0, 3, 0, false, Placement{3, nil, 1}},
		{"no topology", fstest.MapFS{}, upTo(4), 0, 8, 0, false, Placement{4, nil, 1}},
		{"threads of a core count once", smt, upTo(8), 0, 8, 0, false, Placement{4, nil, 1}},
		{"quota", smt, upTo(8), 0, 2, 0, false, Placement{2, nil, 1}},
		{"mask of two threads of a core", smt, []int{1, 5}, 0, 8, 0, false, Placement{1, nil, 1}},
		{"as many as asked for", smt, upTo(8), 11, 8, 0, false, Placement{11, nil, 1}},
		{"pinned to cores", smt, upTo(8), 0, 8, 0, true, Placement{4, each(0, 1, 2, 3), 1}},
		{"pinned to second threads when cores run out", smt, upTo(8), 6, 8, 0, true, Placement{6, each(0, 1, 2, 3, 4, 5), 1}},
		{"pinned within the mask", smt, []int{2, 5, 6, 7}, 4, 8, 0, true, Placement{4, each(2, 5, 7, 6), 1}},

		{"one node has room: the one with more", two, upTo(16), 0, 16, 100, false, Placement{4, slices.Repeat([][]int{second}, 4), 1}},
		{"only one node has room", two, upTo(16), 0, 16, 700, false, Placement{4, slices.Repeat([][]int{second}, 4), 1}},
		{"no node has room and something to spare", two, upTo(16), 0, 16, 800, false,
			Placement{8, append(slices.Repeat([][]int{first}, 4), slices.Repeat([][]int{second}, 4)...), 2}},
		{"more workers than a node has threads", two, upTo(16), 9, 16, 100, false,
			Placement{9, append(slices.Repeat([][]int{first}, 5), slices.Repeat([][]int{second}, 4)...), 2}},
		{"pinned on one node", two, upTo(16), 5, 16, 100, true, Placement{5, each(4, 5, 6, 7, 12), 1}},
		{"pinned and spread", two, upTo(16), 4, 16, 5000, true, Placement{4, each(0, 1, 4, 5), 2}},
		{"one worker is on one node", two, upTo(16), 1, 16, 5000, true, Placement{1, each(0), 1}},
		{"quota over two nodes", two, upTo(16), 0, 3, 100, false, Placement{3, slices.Repeat([][]int{second}, 3), 1}},
		{"mask of one node", two, []int{0, 1, 8, 9}, 0, 16, 5000, false, Placement{2, nil, 1}},
		{"the node with more cores", two, append(upTo(4), 4), 0, 16, 100, false, Placement{4, slices.Repeat([][]int{{0, 1, 2, 3}}, 4), 1}},
	} {
		top := readTopology(c.sys, c.allowed)
		got, err := top.place(c.workers, c.limit, c.mib<<20, c.pin)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
}

func TestPlaceErrors(t *testing.T) {
	for want, c := range map[string]struct {
		allowed []int
		workers int
	}{
		"cannot be pinned on":          {nil, 2},
		"at most 2 pinned workers":     {[]int{0, 1}, 3},
		"at most 256 workers, found 2": {[]int{0, 1}, 257},
	} {
		top := readTopology(fstest.MapFS{}, c.allowed)
		if p, err := top.place(c.workers, 4, 0, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d workers on %v: %+v, %v, want an error with %q", c.workers, c.allowed, p, err, want)
		}
	}
}

// Workers that are spread go to the node with the most processors left, those
// of a node follow each other, and no two are pinned to one processor.
func TestSpreadIsEven(t *testing.T) {
	top := readTopology(fakeSys([]string{"0-5", "6-9", "10-11"}, nil, nil), upTo(12))
	nodeOf := []int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2}
	for workers := 1; workers <= 20; workers++ {
		pin := workers <= len(nodeOf)
		p, err := top.place(workers, 64, 1<<40, pin)
		if err != nil || len(p.CPUs) != workers {
			t.Fatalf("%d workers: %+v, %v", workers, p, err)
		}
		var nodes []int // of the workers
		idle := []int{6, 4, 2}
		used := map[int]bool{}
		for i, ids := range p.CPUs {
			n := nodeOf[ids[0]]
			nodes = append(nodes, n)
			idle[n]--
			for _, id := range ids {
				if nodeOf[id] != n {
					t.Errorf("%d workers: worker %d may run on nodes %d and %d", workers, i, n, nodeOf[id])
				}
				if pin && (used[id] || len(ids) > 1) {
					t.Errorf("%d pinned workers: worker %d may run on %v", workers, i, ids)
				}
				used[id] = true
			}
		}
		if !slices.IsSorted(nodes) {
			t.Errorf("%d workers are on nodes %v", workers, nodes)
		}
		for _, n := range nodes {
			if idle[n]+1 < slices.Max(idle) {
				t.Errorf("%d workers leave %v processors idle", workers, idle)
			}
		}
	}
}

func TestParseList(t *testing.T) {
	for list, want := range map[string][]int{
		"": nil, "0": {0}, "0-3,8,10-11": {0, 1, 2, 3, 8, 10, 11}, " 2 , 5-4,x,-1,7": {2, 7}, "0-99999999": nil, "3-": nil,
	} {
		if got := parseList(list); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", list, got, want)
		}
	}
}

// Nonsense in /sys is no reason to fail.
func TestTopologyNonsense(t *testing.T) {
	sys := fakeSys([]string{"zero", "1-0,,"}, []string{"0"}, nil)
	sys["devices/system/node/nodeX/cpulist"] = &fstest.MapFile{Data: []byte("0-1")}
	sys["devices/system/node/node0/meminfo"] = &fstest.MapFile{Data: []byte("Node 0 MemFree: -5 kB\nNode 0 MemFree:\n")}
	top := readTopology(sys, []int{1, 0})
	if p, err := top.place(0, 8, 1<<50, false); err != nil || p.Workers != 2 || p.CPUs != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// One goroutine more may run, but no more workers compute.
func TestSpare(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before, workers := Procs(), DefaultWorkers()
	defer runtime.GOMAXPROCS(before)
	for range 2 {
		Spare()
		if got := runtime.GOMAXPROCS(0); got != before+1 {
			t.Errorf("GOMAXPROCS %d, want %d", got, before+1)
		}
		if Procs() != before || DefaultWorkers() != workers {
			t.Errorf("%d processors for %d workers, before %d for %d", Procs(), DefaultWorkers(), before, workers)
		}
	}
	runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "1") // the user's word
	if Spare(); runtime.GOMAXPROCS(0) != before {
		t.Errorf("GOMAXPROCS %d, want %d as before", runtime.GOMAXPROCS(0), before)
	}
}
