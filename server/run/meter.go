package run

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Meter tells how much energy the processor has used: as the processor itself
// counts it (RAPL), or as a declared power makes it.
type Meter struct {
	watts float64 // declared; 0 if the processor counts
	zones []zone
	start time.Time

	mu    sync.Mutex
	total float64 // joules

	// work counts tokens computed, of prompts and answers: the share of a
	// request in the energy of its time is its share in them.
	work atomic.Int64
}

// zone is a processor package in sysfs.
type zone struct {
	path string
	size uint64 // where its counter begins again
	last uint64
}

// NewMeter returns a meter; nil if there is nothing to measure with. root is
// where sysfs is.
func NewMeter(root string, watts float64) *Meter {
	m := &Meter{start: time.Now()}
	dirs, _ := filepath.Glob(filepath.Join(root, "class/powercap/intel-rapl:*")) // the pattern is right
	for _, dir := range dirs {
		if strings.Count(filepath.Base(dir), ":") != 1 {
			continue // a part of a package
		}
		z := zone{path: filepath.Join(dir, "energy_uj")}
		var ok bool
		if z.last, ok = readNumber(z.path); !ok {
			continue // only for root, on many systems
		}
		z.size, _ = readNumber(filepath.Join(dir, "max_energy_range_uj"))
		m.zones = append(m.zones, z)
	}
	if len(m.zones) == 0 {
		if watts <= 0 {
			return nil
		}
		m.watts = watts
	}
	return m
}

func readNumber(path string) (uint64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// joules are those used since the start.
func (m *Meter) joules() float64 {
	if m.watts > 0 {
		return m.watts * time.Since(m.start).Seconds()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.zones {
		z := &m.zones[i]
		now, ok := readNumber(z.path)
		if !ok {
			continue
		}
		used := now - z.last
		if now < z.last { // it began again
			used = now + z.size - z.last
		}
		m.total += float64(used) / 1e6
		z.last = now
	}
	return m.total
}

// Source says where the numbers come from.
func (m *Meter) Source() string {
	if m.watts > 0 {
		return "declared " + strconv.FormatFloat(m.watts, 'g', -1, 64) + " W"
	}
	return "rapl"
}

// reading is the state of a meter when a generation began.
type reading struct {
	joules float64
	work   int64
}

func (m *Meter) read() reading {
	if m == nil {
		return reading{}
	}
	return reading{m.joules(), m.work.Load()}
}

// add counts tokens.
func (m *Meter) add(tokens int) {
	if m != nil {
		m.work.Add(int64(tokens))
	}
}

// share is the energy of a generation that computed own tokens since r.
func (m *Meter) share(r reading, own int) float64 {
	if m == nil || own <= 0 {
		return 0
	}
	all := max(m.work.Load()-r.work, int64(own))
	return (m.joules() - r.joules) * float64(own) / float64(all)
}
