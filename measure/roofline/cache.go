package roofline

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ridge/internal/cpu"
	"ridge/internal/pool"
	"ridge/measure/machine"
	"ridge/weights/tensor"
)

// MaxAge is how long a measured machine is believed.
const MaxAge = 7 * 24 * time.Hour

// CachePath returns the file in which the numbers of this machine are kept for
// the tier of kernels in use, "" if the user has no folder for such files.
func CachePath() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	in := machine.Read()
	h := fnv.New64a()
	fmt.Fprint(h, in.CPU, in.Cores, in.CoresGiven, in.MemoryTotal, pool.DefaultWorkers())
	return filepath.Join(dir, "ridge", fmt.Sprintf("machine-%s-%016x.json", cpu.Current(), h.Sum64()))
}

// Here returns this machine: from the file at cache if that is not older than
// MaxAge, has the thread counts that o asks for and renew is not set, else
// measured and kept there, unless other programs disturb that. Kernels that the file lacks are measured and added.
// With an empty cache nothing is kept. note, when not nil, is told what is
// measured, and why what was measured could not be kept.
func Here(ctx context.Context, o MeasureOptions, cache string, renew bool, note func(string)) (*Machine, error) {
	if note == nil {
		note = func(string) {}
	}
	var m *Machine
	if cache != "" && !renew {
		if old, err := LoadMachine(cache); err == nil && old.current(o.Threads) {
			m = old
		}
	}
	changed := m == nil
	var err error
	if m == nil {
		note("measuring this machine")
		m, err = Measure(ctx, o)
	} else if slices.ContainsFunc(o.Types, func(t tensor.DType) bool { return !m.hasKernel(t) }) {
		changed = true
		note("measuring more kernels")
		e := o.effort
		if e == nil {
			e = &usualEffort
		}
		err = e.kernels(ctx, m, o.Types)
	}
	if err != nil {
		return nil, err
	}
	if m.Disturbed {
		note("other programs run: this machine's rates are too low and not kept")
	} else if changed && cache != "" {
		err := os.MkdirAll(filepath.Dir(cache), 0o755)
		if err == nil {
			err = m.Save(cache)
		}
		if err != nil {
			note(err.Error())
		}
	}
	return m, nil
}

// current says whether a measured machine can be used instead of measuring.
func (m *Machine) current(threads []int) bool {
	age := time.Since(m.Taken)
	if m.Source != Measured || m.Tier != cpu.Current().String() || age < 0 || age > MaxAge {
		return false
	}
	for _, n := range threads {
		if !slices.ContainsFunc(m.Threads, func(t ThreadRates) bool { return t.Threads == n }) {
			return false
		}
	}
	return true
}
