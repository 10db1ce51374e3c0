package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"ridge/internal/atomicfile"
	"ridge/internal/cpu"
	"ridge/internal/pool"
)

// Build names this build: the module's version, or the commit it was made from.
func Build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			v = "commit " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}

// ThreadsPath returns the file in which measured numbers of threads are kept,
// "" if the user has no folder for such files. Its name stands for the
// processor, the processors and the share of their time that this process is
// given, the kernels in use and the version of the program: with another of
// these other numbers can be best.
func ThreadsPath() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	cpus, quota := pool.Given()
	h := fnv.New64a()
	fmt.Fprint(h, Read().CPU, runtime.GOARCH, cpus, quota, pool.Procs(), Build())
	return filepath.Join(dir, "ridge", fmt.Sprintf("threads-%s-%016x.json", cpu.Current(), h.Sum64()))
}

// LoadThreads reads what SaveThreads wrote.
func LoadThreads(path string) (*Threads, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &Threads{}
	if err := json.Unmarshal(b, t); err != nil {
		return nil, fmt.Errorf("machine: %s: %w", path, err)
	}
	if most := pool.DefaultWorkers(); t.Decode < 1 || t.Decode > most || t.Batch < 1 || t.Batch > most {
		return nil, fmt.Errorf("machine: %s: threads: expected 1 to %d, found %d and %d", path, most, t.Decode, t.Batch)
	}
	return t, nil
}

// Save keeps t at path. Numbers that are odd do not replace others.
func (t *Threads) Save(path string) error {
	if old, err := LoadThreads(path); err == nil && t.Odd != "" && old.Odd == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(t) })
}

// Known returns the numbers of threads that were measured on this machine, or
// zeros if that was not done, or did not go well.
func Known() pool.Counts {
	if t, err := LoadThreads(ThreadsPath()); err == nil && t.Odd == "" {
		return t.Counts
	}
	return pool.Counts{}
}

const (
	// startBudget is what measuring may add to the first start, with something
	// to spare for one more round.
	startBudget = 200 * time.Millisecond
	startBytes  = 64 << 20
	// retryOdd is how long a measurement that did not go well is not repeated.
	retryOdd = 24 * time.Hour
	// quietLoad is the load average, of the cores, above which it is not tried.
	quietLoad = 0.25
)

// AtStart returns Known, after measuring where that was never done: in less
// than 300 ms, and only on a machine that has nothing else to do. With
// RIDGE_TUNE=off it never measures.
func AtStart(ctx context.Context) pool.Counts { return atStart(ctx, LoadAverage()) }

// atStart is AtStart on a machine with the given load average.
func atStart(ctx context.Context, load float64) pool.Counts {
	path, cores := ThreadsPath(), pool.DefaultWorkers()
	if path == "" || cores == 1 || !tuneTier() || os.Getenv("RIDGE_TUNE") == "off" {
		return Known()
	}
	if t, err := LoadThreads(path); err == nil && (t.Odd == "" || time.Since(t.Taken) < retryOdd) {
		return Known()
	}
	in := Read()
	if load > quietLoad*float64(in.Cores) || in.MemoryFree > 0 && in.MemoryFree < 16*startBytes {
		return pool.Counts{}
	}
	t, err := TuneThreads(ctx, TuneOptions{Budget: startBudget, Bytes: startBytes})
	if err != nil || t.Save(path) != nil || t.Odd != "" {
		return pool.Counts{}
	}
	return t.Counts
}
