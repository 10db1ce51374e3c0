package main

import (
	"math"
	"testing"

	"ridge/kvcache"
)

// Go's memory and that of bodies follow the control group, or the machine.
func TestMemoryOfServer(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		l             kvcache.Limits
		has, promised int64
		limit, bodies int64
	}{
		{kvcache.Limits{Free: 8000 * mb, Group: 500 * mb}, 50 * mb, 100 * mb, 410 * mb, 50 * mb},
		{kvcache.Limits{Free: 1000 * mb, Group: -1}, 100 * mb, 0, 1000 * mb, 125 * mb},
		{kvcache.Limits{Free: 1000 * mb, Group: 0}, 10 * mb, 0, heapLeast, mb},
		{kvcache.Limits{Free: 1000 * mb, Group: 100 * mb}, 10 * mb, 500 * mb, heapLeast, mb},
		{kvcache.Limits{Group: -1}, 10 * mb, 0, math.MaxInt64, 0},
	} {
		if got := heapLimit(c.l, c.has, c.promised); got != c.limit {
			t.Errorf("%+v: a limit of %d, want %d", c.l, got, c.limit)
		}
		if got := bodyMemory(c.l, c.promised); got != c.bodies {
			t.Errorf("%+v: %d for bodies, want %d", c.l, got, c.bodies)
		}
	}
	if n := heapBytes(); n < 1<<16 || n > 1<<40 {
		t.Errorf("Go has %d bytes", n)
	}
}
