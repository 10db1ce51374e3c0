package run

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	root := t.TempDir()
	zone := filepath.Join(root, "class/powercap/intel-rapl:0")
	part := filepath.Join(root, "class/powercap/intel-rapl:0:0")
	for _, dir := range []string{zone, part} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	set := func(dir, file string, n uint64) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatUint(n, 10)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set(zone, "max_energy_range_uj", 10_000_000)
	set(zone, "energy_uj", 9_000_000)
	set(part, "energy_uj", 5)
	m := NewMeter(root, 50)
	if m == nil || m.Source() != "rapl" {
		t.Fatalf("got %+v", m)
	}
	a := m.read()
	m.add(30) // of others
	m.add(10)
	set(zone, "energy_uj", 3_000_000) // over the end: 4 J
	if j := m.share(a, 10); j != 1 {
		t.Errorf("got %v J, want 1", j)
	}
	set(zone, "energy_uj", 3_500_000)
	if j := m.joules(); j != 4.5 {
		t.Errorf("got %v J in all, want 4.5", j)
	}

	if NewMeter(t.TempDir(), 0) != nil {
		t.Error("a meter without anything to measure")
	}
	begin := time.Now()
	m = NewMeter(t.TempDir(), 20)
	a = m.read()
	m.add(1)
	time.Sleep(10 * time.Millisecond)
	if j := m.share(a, 1); j < 0.2 || j > 20*time.Since(begin).Seconds() || m.Source() != "declared 20 W" {
		t.Errorf("got %v J from %s", j, m.Source())
	}
	var none *Meter
	none.add(5)
	if none.share(none.read(), 5) != 0 {
		t.Error("energy without a meter")
	}
}
