package machine

import (
	"runtime/metrics"
	"slices"
	"time"
)

// Pauses are the times for which the garbage collector stopped this process
// since its start, from the moment when it asked the threads to stop: a thread
// that could not stop at once made that longer.
type Pauses struct {
	counts  []uint64  // by length
	lengths []float64 // borders of the lengths in seconds, one more than counts
}

// ReadPauses returns the pauses so far.
func ReadPauses() Pauses {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindFloat64Histogram {
		return Pauses{}
	}
	h := s[0].Value.Float64Histogram()
	return Pauses{slices.Clone(h.Counts), h.Buckets}
}

// Since returns how many pauses there were after those of old, and a bound of
// the longest, at most a quarter above it.
func (p Pauses) Since(old Pauses) (n int, longest time.Duration) {
	for i, c := range p.counts {
		if i < len(old.counts) {
			c -= old.counts[i]
		}
		if c == 0 {
			continue
		}
		n += int(c)
		// The last border is infinite.
		longest = time.Duration(1e9 * p.lengths[min(i+1, len(p.lengths)-2)])
	}
	return n, longest
}
