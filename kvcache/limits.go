package kvcache

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Limits says how much memory this process may take, in bytes.
type Limits struct {
	Free  int64 // of the machine, without swapping; 0 if unknown
	Group int64 // what its control groups leave, -1 if they set no limit
}

// ReadLimits asks the system. It knows Linux, and both versions of control
// groups; elsewhere nothing is known.
func ReadLimits() Limits { return limits(os.DirFS("/")) }

// Left returns the bytes that can still be taken, 0 if unknown.
func (l Limits) Left() int64 {
	if l.Group >= 0 && (l.Free == 0 || l.Group < l.Free) {
		return l.Group
	}
	return l.Free
}

// fallback is the memory for pages where the system does not tell.
const fallback = 1 << 30

// Budget returns the bytes to use for pages and states. keep is what other
// parts will still need, such as weights that are mapped from a file and not
// read yet: the system counts them as free. With want 0 the budget is the
// given part of what is left, in percent; a larger want than is left is an
// error, never a promise that ends with the process killed.
func (l Limits) Budget(want, keep int64, percent int) (int64, error) {
	left := l.Left()
	if left == 0 && l.Group != 0 { // unknown
		if want > 0 {
			return want, nil
		}
		return fallback, nil
	}
	left = max(left-keep, 0)
	if want > left {
		return 0, fmt.Errorf("kvcache: memory: expected at most %d bytes, what is free and not needed otherwise, found %d", left, want)
	}
	if want > 0 {
		return want, nil
	}
	return left / 100 * int64(min(max(percent, 0), 100)), nil
}

func limits(sys fs.FS) Limits {
	l := Limits{Group: -1}
	for _, line := range lines(sys, "proc/meminfo") {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			l.Free = max(n, 0) << 10
		}
	}
	for _, line := range lines(sys, "proc/self/cgroup") {
		_, rest, _ := strings.Cut(line, ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		if controllers == "" {
			l.groups(sys, "sys/fs/cgroup", group, "memory.max", "memory.current", "inactive_file ")
		} else if strings.Contains(","+controllers+",", ",memory,") {
			l.groups(sys, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
		}
	}
	return l
}

// groups lowers l.Group to what a group and those around it leave. In a
// container the group's name may be one that only the host knows; then the
// outermost visible one holds the limit.
func (l *Limits) groups(sys fs.FS, root, group, limit, usage, inactive string) {
	for dir := path.Join(root, path.Join("/", group)); ; dir = path.Dir(dir) {
		if most, ok := number(sys, path.Join(dir, limit)); ok && most < 1<<60 {
			used, _ := number(sys, path.Join(dir, usage))
			for _, line := range lines(sys, path.Join(dir, "memory.stat")) {
				// Cached files that nobody reads are given up first.
				if n, ok := strings.CutPrefix(line, inactive); ok {
					cached, _ := strconv.ParseInt(n, 10, 64)
					used -= min(max(cached, 0), used)
				}
			}
			if left := max(most-used, 0); l.Group < 0 || left < l.Group {
				l.Group = left
			}
		}
		if len(dir) <= len(root) {
			return
		}
	}
}

// number reads a file that holds one number, not negative.
func number(sys fs.FS, name string) (int64, bool) {
	if ls := lines(sys, name); len(ls) > 0 {
		n, err := strconv.ParseInt(strings.TrimSpace(ls[0]), 10, 64)
		return n, err == nil && n >= 0
	}
	return 0, false
}

func lines(sys fs.FS, name string) []string {
	b, err := fs.ReadFile(sys, name)
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\n")
}
