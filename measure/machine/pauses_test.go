package machine

import (
	"math"
	"runtime"
	"testing"
	"time"
)

func TestPauses(t *testing.T) {
	before := ReadPauses()
	for range 3 {
		runtime.GC()
	}
	n, longest := ReadPauses().Since(before)
	if n < 6 || longest <= 0 || longest > time.Minute {
		t.Errorf("3 collections: %d pauses of up to %v, want two each", n, longest)
	}
	now := ReadPauses()
	if n, longest := now.Since(now); n != 0 || longest != 0 {
		t.Errorf("nothing happened: %d pauses of up to %v", n, longest)
	}
	p := Pauses{[]uint64{5, 2, 1}, []float64{0, 1e-3, 2e-3, math.Inf(1)}}
	for _, c := range []struct {
		old     []uint64
		n       int
		longest time.Duration
	}{
		{nil, 8, 2 * time.Millisecond}, {[]uint64{5, 1, 1}, 1, 2 * time.Millisecond}, {[]uint64{4, 2, 1}, 1, time.Millisecond},
	} {
		if n, longest := p.Since(Pauses{counts: c.old}); n != c.n || longest != c.longest {
			t.Errorf("after %v: %d, %v, want %d, %v", c.old, n, longest, c.n, c.longest)
		}
	}
}
