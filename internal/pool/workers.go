package pool

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// DefaultWorkers returns the number of workers that this process can keep
// busy: one for each core that its affinity mask has (threads of one core
// count once, they share the vector units), at most GOMAXPROCS and what the
// cgroup's processor quota pays for, and on a machine with several memory nodes
// those of one node.
func DefaultWorkers() int {
	p, err := Place(0, 0, false)
	if err != nil {
		return 1
	}
	return p.Workers
}

// Given returns the processors that this process may use, nil if the system
// does not tell, and how many of them its cgroup pays for, 0 for all.
func Given() (cpus []int, quotaOf float64) { return allowedCPUs(), quota(os.DirFS("/")) }

// Counts are numbers of workers.
type Counts struct {
	Decode int `json:"decode"` // for regions that read more than they compute
	Batch  int `json:"batch"`  // for regions that compute more
}

// quota returns the processors that the cgroup of this process, or one around
// it, may use, 0 for no limit. root is the root of the file system.
func quota(root fs.FS) float64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := 0.0
	note := func(limit, period string) {
		l, err1 := strconv.ParseFloat(limit, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && l > 0 && p > 0 && (least == 0 || l/p < least) {
			least = l / p
		}
	}
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path, with 0 and no controllers for version 2
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[1] != "" && !strings.Contains(","+f[1]+",", ",cpu,") {
			continue
		}
		for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
			if f[1] == "" {
				if w := strings.Fields(readLine(root, path.Join("sys/fs/cgroup", dir, "cpu.max"))); len(w) == 2 {
					note(w[0], w[1])
				}
			} else {
				base := path.Join("sys/fs/cgroup/cpu", dir)
				note(readLine(root, base+"/cpu.cfs_quota_us"), readLine(root, base+"/cpu.cfs_period_us"))
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}
