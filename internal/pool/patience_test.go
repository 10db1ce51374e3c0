package pool

import "testing"

// short returns how many of n regions have short waits, when late says which of
// the others are late.
func short(w *patience, n int, late func(i int) bool) int {
	count := 0
	for i := range n {
		long := w.long()
		if !long {
			count++
		}
		w.region(long && late(i))
	}
	return count
}

// A late region now and then does not make waits short; many do, for longer and
// longer; and when they end, waits are long again within one stretch.
func TestPatience(t *testing.T) {
	var w patience
	if n := short(&w, 100000, func(i int) bool { return i%100 == 0 }); n != 0 {
		t.Errorf("one late region in a hundred: %d of 100000 have short waits", n)
	}
	if n := short(&w, 100000, func(i int) bool { return i%2 == 0 }); n < 98000 {
		t.Errorf("every second region late: %d of 100000 have short waits", n)
	}
	if n := short(&w, 100000, func(int) bool { return false }); n > mostRegions {
		t.Errorf("none late any more: still %d of 100000 have short waits", n)
	}
	// After a calm stretch the penalty starts small.
	for range 3 {
		w.region(true)
	}
	if n := short(&w, 10000, func(int) bool { return false }); n != shortRegions {
		t.Errorf("three late regions after a calm time: %d short waits, want %d", n, shortRegions)
	}
}
