package machine

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ridge/internal/pool"
)

func TestTuneThreads(t *testing.T) {
	start := time.Now()
	var r *Threads
	for budget := time.Second; ; budget *= 4 {
		var err error
		if r, err = TuneThreads(t.Context(), TuneOptions{Budget: budget, Bytes: 8 << 20}); err != nil {
			t.Fatal(err)
		}
		if len(r.Points) > 0 || budget > time.Minute {
			break // else there was no time for each number of threads
		}
	}
	most := pool.DefaultWorkers()
	if r.Decode < 1 || r.Decode > most || r.Batch < 1 || r.Batch > most || len(r.Points) == 0 || r.Points[len(r.Points)-1].Threads != most {
		t.Errorf("of 1 to %d threads: %+v", most, r)
	}
	for _, p := range r.Points {
		if p.Read < 1e7 || p.Ops < 1e7 {
			t.Errorf("%d threads read %g bytes and do %g operations a second", p.Threads, p.Read, p.Ops)
		}
	}
	if r.Seconds <= 0 || r.Taken.After(time.Now()) || r.Taken.Before(start.Add(-time.Minute)) {
		t.Errorf("taken at %v, took %v s", r.Taken, r.Seconds)
	}
	if r, err := TuneThreads(t.Context(), TuneOptions{Budget: 1, Bytes: 1}); err != nil || most > 1 && r.Odd == "" || r.Decode != most {
		t.Errorf("in no time: %+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := TuneThreads(ctx, TuneOptions{}); err == nil {
		t.Error("measured after it was to stop")
	}
}

// The fewest threads within 2% of the best are taken, by the fast quarter of
// the rounds; few rounds, and rounds that differ much, are odd.
func TestChooseThreads(t *testing.T) {
	flat := func(seconds ...float64) [][]float64 { // by count
		var out [][]float64
		for _, s := range seconds {
			out = append(out, []float64{s, s, s, s, 1.1 * s, s, s, s})
		}
		return out
	}
	noisy := flat(4, 2)
	noisy[1] = []float64{2, 2, 2, 3, 3, 3, 3, 3}
	few := [][]float64{{4, 4}, {2, 2}}
	for _, c := range []struct {
		name          string
		counts        []int
		decode, batch [][]float64
		want          pool.Counts
		odd           string
	}{
		{"scales", []int{1, 2}, flat(4, 2), flat(4, 2.1), pool.Counts{Decode: 2, Batch: 2}, ""},
		{"memory is the limit", []int{1, 2, 4, 8}, flat(4, 2.03, 2, 2), flat(8, 4, 2, 1), pool.Counts{Decode: 2, Batch: 8}, ""},
		{"more are worse", []int{1, 2, 3, 4}, flat(4, 2.5, 2, 2.4), flat(4, 2, 1.5, 1.2), pool.Counts{Decode: 3, Batch: 4}, ""},
		{"not near enough", []int{1, 2}, flat(2.06, 2), flat(2.02, 2), pool.Counts{Decode: 2, Batch: 1}, ""},
		{"a short disturbance of the best", []int{1, 2}, [][]float64{{4, 4, 4, 4, 4}, {2, 9, 2, 2, 2}}, flat(4, 2), pool.Counts{Decode: 2, Batch: 2}, ""},
		{"noise", []int{1, 2}, flat(4, 2), noisy, pool.Counts{Decode: 2, Batch: 2}, "a batch with 2 threads"},
		{"too slow", []int{1, 2}, few, few, pool.Counts{Decode: 2, Batch: 2}, "time for 2 of 5 rounds"},
	} {
		var r Threads
		r.choose(c.counts, c.decode, c.batch)
		if r.Counts != c.want || !strings.Contains(r.Odd, c.odd) || (r.Odd == "") != (c.odd == "") {
			t.Errorf("%s: %+v odd %q, want %+v odd %q", c.name, r.Counts, r.Odd, c.want, c.odd)
		}
	}
}

func TestTuneCounts(t *testing.T) {
	for most, want := range map[int][]int{
		1: {1}, 2: {1, 2}, 3: {1, 2, 3}, 8: {1, 2, 3, 4, 5, 6, 7, 8},
		16: {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}, 64: {1, 2, 3, 4, 8, 16, 24, 32, 40, 48, 56, 64},
	} {
		if got := tuneCounts(most); !reflect.DeepEqual(got, want) {
			t.Errorf("of %d: %v, want %v", most, got, want)
		}
	}
}

func TestThreadsCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	path := ThreadsPath()
	if path == "" {
		t.Skip("no folder for caches")
	}
	if got := Known(); got != (pool.Counts{}) {
		t.Errorf("nothing was measured: %+v", got)
	}
	good := &Threads{Counts: pool.Counts{Decode: 1, Batch: pool.DefaultWorkers()}, Taken: time.Now().UTC().Truncate(time.Second), Points: []ThreadPoint{{1, 2e9, 3e9}}}
	odd := &Threads{Counts: pool.Counts{Decode: 1, Batch: 1}, Taken: good.Taken, Odd: "others ran"}
	save := func(x *Threads) {
		t.Helper()
		if err := x.Save(path); err != nil {
			t.Fatal(err)
		}
	}
	save(odd)
	if got := Known(); got != (pool.Counts{}) {
		t.Errorf("odd numbers are used: %+v", got)
	}
	if got := AtStart(t.Context()); got != (pool.Counts{}) {
		t.Errorf("a measurement that failed a moment ago was repeated: %+v", got)
	}
	save(good)
	save(odd)
	if got, err := LoadThreads(path); err != nil || !reflect.DeepEqual(got, good) {
		t.Errorf("%+v, %v, want %+v", got, err, good)
	}
	if Known() != good.Counts || AtStart(t.Context()) != good.Counts {
		t.Errorf("%+v, %+v, want %+v", Known(), AtStart(t.Context()), good.Counts)
	}
	for _, text := range []string{"", "{", `{"decode":0,"batch":1}`, `{"decode":1,"batch":100000}`, `{"decode":-1,"batch":-1}`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadThreads(path); err == nil || Known() != (pool.Counts{}) {
			t.Errorf("%q: error %v, used as %+v", text, err, Known())
		}
	}
	save(good) // over a broken file
	if Known() != good.Counts {
		t.Error("a broken file was not replaced")
	}
	if files, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(files) != 1 {
		t.Errorf("files %v", files)
	}
}

// The first start on a quiet machine measures once, and keeps the result even
// if that says nothing, so that the second does not do it again.
func TestAtStart(t *testing.T) {
	if !tuneTier() || pool.DefaultWorkers() < 2 || Read().MemoryFree < 16*startBytes {
		t.Skip("nothing is measured at the start on such a machine")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("RIDGE_TUNE", "off")
	path := ThreadsPath()
	measured := func() *Threads {
		m, err := LoadThreads(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return m
	}
	if got := atStart(t.Context(), 0); got != (pool.Counts{}) || measured() != nil {
		t.Errorf("RIDGE_TUNE=off: %+v, kept %+v", got, measured())
	}
	t.Setenv("RIDGE_TUNE", "")
	if got := atStart(t.Context(), float64(Read().Cores)); got != (pool.Counts{}) || measured() != nil {
		t.Errorf("a machine with other work: %+v, kept %+v", got, measured())
	}
	got, kept := atStart(t.Context(), 0), measured()
	if kept == nil {
		t.Fatal("nothing was kept")
	}
	t.Logf("took %.0f ms, %d and %d threads, odd: %q", 1e3*kept.Seconds, kept.Decode, kept.Batch, kept.Odd)
	if want := Known(); got != want || (kept.Odd == "") != (got == kept.Counts) {
		t.Errorf("%+v, kept %+v", got, kept)
	}
	if again := atStart(t.Context(), 0); again != got || !measured().Taken.Equal(kept.Taken) || measured().Seconds != kept.Seconds {
		t.Errorf("the second start measured again: %+v, %+v", again, measured())
	}
}
