package pool

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// cores counts the cores of which this process may use a thread.
func cores() int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return runtime.NumCPU()
	}
	seen := map[string]bool{}
	for cpu := range 8 * len(set) * 8 {
		if !set.IsSet(cpu) {
			continue
		}
		siblings := firstLine(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if siblings == "" {
			siblings = fmt.Sprint(cpu)
		}
		seen[siblings] = true
	}
	if len(seen) == 0 {
		return runtime.NumCPU()
	}
	return len(seen)
}
