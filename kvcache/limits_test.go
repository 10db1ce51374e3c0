package kvcache

import (
	"strings"
	"testing"
	"testing/fstest"
)

func files(m map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, data := range m {
		fs[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return fs
}

const meminfo = "MemTotal:       24683656 kB\nMemFree:        1000 kB\nMemAvailable:   8000000 kB\n"

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  Limits
	}{
		"nothing known": {nil, Limits{0, -1}},
		"no groups":     {map[string]string{"proc/meminfo": meminfo}, Limits{8000000 << 10, -1}},
		"version 2": {map[string]string{
			"proc/meminfo":                   meminfo,
			"proc/self/cgroup":               "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":     "5000\n",
			"sys/fs/cgroup/a/memory.current": "2000\n",
			"sys/fs/cgroup/a/memory.stat":    "anon 1\ninactive_file 500\nactive_file 700\n",
			"sys/fs/cgroup/a/b/memory.max":   "max\n",
		}, Limits{8000000 << 10, 3500}},
		"inner is tighter": {map[string]string{
			"proc/self/cgroup":                 "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max":       "5000",
			"sys/fs/cgroup/a/b/memory.max":     "4000",
			"sys/fs/cgroup/a/b/memory.current": "100",
		}, Limits{0, 3900}},
		"container": {map[string]string{
			"proc/self/cgroup":          "0::/../../known/outside\n",
			"sys/fs/cgroup/memory.max":  "7000",
			"sys/fs/cgroup/memory.stat": "inactive_file garbage\n",
		}, Limits{0, 7000}},
		"version 1": {map[string]string{
			"proc/meminfo":     meminfo,
			"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9000",
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "10000",
			"sys/fs/cgroup/memory/x/memory.stat":           "total_inactive_file 3000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712",
		}, Limits{8000000 << 10, 2000}},
		"used up": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "9000",
			"sys/fs/cgroup/memory.current": "10000",
		}, Limits{0, 0}},
	} {
		if got := limits(files(c.files)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if l := ReadLimits(); l.Left() < 0 {
		t.Errorf("this machine: %+v", l)
	}
}

func TestLimitsBudget(t *testing.T) {
	for name, c := range map[string]struct {
		l          Limits
		want, keep int64
		budget     int64
		err        string
	}{
		"part of what is free":  {Limits{1000, -1}, 0, 0, 500, ""},
		"group is smaller":      {Limits{1000, 400}, 0, 0, 200, ""},
		"group is larger":       {Limits{1000, 4000}, 0, 0, 500, ""},
		"weights come first":    {Limits{1000, -1}, 0, 600, 200, ""},
		"weights take all":      {Limits{1000, -1}, 0, 6000, 0, ""},
		"asked for":             {Limits{1000, -1}, 1000, 0, 1000, ""},
		"asked for more":        {Limits{1000, 900}, 901, 0, 0, "expected at most 900 bytes"},
		"asked beyond weights":  {Limits{1000, -1}, 500, 600, 0, "expected at most 400 bytes"},
		"unknown":               {Limits{0, -1}, 0, 0, 1 << 30, ""},
		"unknown and asked for": {Limits{0, -1}, 7, 0, 7, ""},
		"nothing left":          {Limits{0, 0}, 7, 0, 0, "expected at most 0 bytes"},
	} {
		got, err := c.l.Budget(c.want, c.keep, 50)
		if got != c.budget || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d, %v, want %d, %q", name, got, err, c.budget, c.err)
		}
	}
}
