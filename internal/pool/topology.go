package pool

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// processor is a logical processor that this process may use.
type processor struct {
	id   int
	core string // equal for the threads of one core
	node int    // of memory; 0 if the system does not tell
}

// topology is what the system tells about the processors of this process.
type topology struct {
	cpus  []processor   // by number
	nodes []int         // memory nodes with such processors, rising
	free  map[int]int64 // unused bytes of memory of a node, of those that tell
}

// readTopology finds out where the given processors lie. sys is /sys; what is
// not there, or is nonsense, is taken for a machine with one memory node whose
// processors are cores of their own.
func readTopology(sys fs.FS, allowed []int) topology {
	t := topology{free: map[int]int64{}}
	nodeOf := map[int]int{}
	dirs, _ := fs.Glob(sys, "devices/system/node/node*")
	for _, dir := range dirs {
		node, err := strconv.Atoi(strings.TrimPrefix(path.Base(dir), "node"))
		if err != nil {
			continue
		}
		for _, id := range parseList(readLine(sys, dir+"/cpulist")) {
			nodeOf[id] = node
		}
		if n, ok := nodeFree(sys, dir+"/meminfo"); ok {
			t.free[node] = n
		}
	}
	for _, id := range allowed {
		p := processor{id: id, node: nodeOf[id]}
		p.core = readLine(sys, fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", id))
		if p.core == "" {
			p.core = strconv.Itoa(id)
		}
		t.cpus = append(t.cpus, p)
		if !slices.Contains(t.nodes, p.node) {
			t.nodes = append(t.nodes, p.node)
		}
	}
	slices.SortFunc(t.cpus, func(a, b processor) int { return cmp.Compare(a.id, b.id) })
	slices.Sort(t.nodes)
	return t
}

// cores returns one processor of each core of the node, the first that this
// process may use, or of all nodes if node is below 0.
func (t *topology) cores(node int) []int {
	first, _ := t.threads(node)
	return first
}

// threads returns the processors of a node, or of all if node is below 0: the
// first of each core, and the others, which share its units with it.
func (t *topology) threads(node int) (first, others []int) {
	seen := map[string]bool{}
	for _, p := range t.cpus {
		switch {
		case node >= 0 && p.node != node:
		case seen[p.core]:
			others = append(others, p.id)
		default:
			seen[p.core] = true
			first = append(first, p.id)
		}
	}
	return first, others
}

// maxProcessors bounds what is believed of a list of processors.
const maxProcessors = 1 << 14

// parseList reads a list of the kernel's, such as 0-3,8,10-11. What is wrong in
// it is left out.
func parseList(s string) []int {
	var ids []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if err == nil && isRange {
			hi, err = strconv.Atoi(to)
		}
		if err != nil || lo < 0 || hi >= maxProcessors {
			continue
		}
		for id := lo; id <= hi; id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

// nodeFree returns the unused memory of a node in bytes. Pages of files do not
// count: where memory is short the system takes another node's before it drops
// them.
func nodeFree(sys fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		// Node 0 MemFree:       15370444 kB
		if f := strings.Fields(line); len(f) == 5 && f[2] == "MemFree:" && f[4] == "kB" {
			n, err := strconv.ParseInt(f[3], 10, 64)
			return n << 10, err == nil && n >= 0 && n < 1<<50
		}
	}
	return 0, false
}

// readLine returns the first line of a file, "" if there is none.
func readLine(sys fs.FS, name string) string {
	b, err := fs.ReadFile(sys, name)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}
