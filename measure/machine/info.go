package machine

import (
	"bufio"
	"os"
	"runtime"
	"strconv"
	"strings"

	"ridge/internal/pool"
	"ridge/kvcache"
)

// Info describes the machine. Numbers that could not be found are 0.
type Info struct {
	CPU         string `json:"cpu"`
	Arch        string `json:"arch"`
	Cores       int    `json:"cores"`        // of the machine
	CoresGiven  int    `json:"cores_given"`  // to this process, by affinity and cgroup
	MemoryTotal int64  `json:"memory_total"` // bytes
	MemoryFree  int64  `json:"memory_free"`  // bytes available without swapping
	MemoryLimit int64  `json:"memory_limit"` // bytes that the cgroup allows, 0 for no limit
	HugePages   string `json:"huge_pages"`   // mode of transparent huge pages
	L2, L3      int64  // bytes of a cache
}

// Read gathers what the system tells.
func Read() Info {
	in := Info{Arch: runtime.GOARCH, Cores: runtime.NumCPU(), CoresGiven: pool.Procs()}
	in.CPU = field("/proc/cpuinfo", "model name")
	in.MemoryTotal = kilobytes(field("/proc/meminfo", "MemTotal"))
	in.MemoryFree = kvcache.ReadLimits().Left()
	if n, err := strconv.ParseInt(firstLine("/sys/fs/cgroup/memory.max"), 10, 64); err == nil {
		in.MemoryLimit = n
	}
	if _, mode, ok := strings.Cut(firstLine("/sys/kernel/mm/transparent_hugepage/enabled"), "["); ok {
		in.HugePages, _, _ = strings.Cut(mode, "]")
	}
	in.L2, in.L3 = cacheSize(2), cacheSize(3)
	return in
}

func cacheSize(level int) int64 {
	const dir = "/sys/devices/system/cpu/cpu0/cache/index"
	for i := range 5 {
		base := dir + strconv.Itoa(i)
		if firstLine(base+"/level") == strconv.Itoa(level) {
			return kilobytes(strings.TrimSuffix(firstLine(base+"/size"), "K") + " kB")
		}
	}
	return 0
}

func kilobytes(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	return n << 10
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// field returns the value of the first line "name : value" of a file.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
