package roofline

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/weights/tensor"
)

// never is an effort whose measurements get less processor time than they ask
// for.
func never() *effort {
	e := *hurry
	e.share = 1e9
	return &e
}

func TestCollect(t *testing.T) {
	for _, c := range []struct {
		e    *effort
		n    int
		calm bool
	}{{hurry, batches, true}, {never(), mostTries, false}} {
		calls := 0
		x, calm := c.e.collect(1, func(n int) []float64 {
			calls++
			return make([]float64, n)
		})
		if calls != c.n || len(x) != c.n || calm != c.calm {
			t.Errorf("share %v: %d batches taken, %d kept, calm %v; want %d, %d, %v", c.e.share, calls, len(x), calm, c.n, c.n, c.calm)
		}
	}
}

func TestDisturbedIsNotKept(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "machine.json")
	var notes []string
	o := MeasureOptions{Threads: []int{1}, Types: []tensor.DType{tensor.Q8_0}, effort: never()}
	m, err := Here(context.Background(), o, cache, false, func(s string) { notes = append(notes, s) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cache); err == nil || !m.Disturbed || !strings.Contains(strings.Join(notes, "\n"), "not kept") {
		t.Errorf("disturbed %v, notes %q, file: %v", m.Disturbed, notes, err)
	}
	var b strings.Builder
	if err := NewReport(shapeOf(t, 2, tensor.Q8_0), m, Use{}, 1, 0).Write(&b); err != nil || !strings.Contains(b.String(), "other programs ran") {
		t.Errorf("%v in\n%s", err, b.String())
	}
}

func TestNow(t *testing.T) {
	ctx, s := context.Background(), shapeOf(t, 2, tensor.Q8_0)
	m := sample()
	if got := never().now(ctx, m, s, 2); got != m {
		t.Error("a look that was disturbed changes the machine")
	}
	// What is said to be a thousand times as fast is seen to be what it is.
	fast := sample()
	for i := range fast.Threads {
		r := &fast.Threads[i]
		r.IntOps, r.FloatOps = 1000*r.IntOps, 1000*r.FloatOps
		for j := range r.Read {
			r.Read[j].Rate *= 1000
		}
	}
	for i := range fast.Kernels {
		fast.Kernels[i].OpRate *= 1000
	}
	now := hurry.now(ctx, fast, s, 2)
	all, was := now.rates(2), fast.rates(2)
	for name, part := range map[string]float64{
		"reads": all.read(s.WeightBytes) / was.read(s.WeightBytes), "int8": all.IntOps / was.IntOps, "f32": all.FloatOps / was.FloatOps,
		"kernels": now.Kernels[0].OpRate / fast.Kernels[0].OpRate,
	} {
		if !(part > 0 && part < 0.5) {
			t.Errorf("%s: %v of what was said", name, part)
		}
	}
	if first, last := now.Kernels[0].OpRate/fast.Kernels[0].OpRate, now.Kernels[2].OpRate/fast.Kernels[2].OpRate; abs(last/first-1) > 1e-9 {
		t.Errorf("kernels by different parts: %+v", now.Kernels)
	}
	if err := now.validate(); err != nil {
		t.Error(err)
	}
}

func TestCached(t *testing.T) {
	r := ThreadRates{Threads: 2, Read: []ReadPoint{{1 << 20, 300e9}, {16 << 20, 60e9}, {128 << 20, 40e9}, {1 << 30, 30e9}}}
	for _, c := range []struct {
		bytes, l2 int64
		want      float64
	}{
		{1 << 20, 1 << 20, 1}, {16 << 20, 1 << 20, 1}, {128 << 20, 1 << 20, 0.5}, {1 << 30, 1 << 20, 0}, {1 << 40, 1 << 20, 0},
		{16 << 20, 0, 0},         // nothing is known of the caches
		{16 << 20, 512 << 20, 0}, // nothing is known outside the cores' own
	} {
		if got := r.cached(c.bytes, c.l2); abs(got-c.want) > 1e-9 {
			t.Errorf("%d bytes, %d of a core: %v, want %v", c.bytes, c.l2, got, c.want)
		}
	}
	flat := ThreadRates{Threads: 1, Read: []ReadPoint{{1 << 20, 30e9}, {1 << 30, 30e9}}}
	if got := flat.cached(1<<21, 1<<10); got != 0 {
		t.Errorf("no cache is seen: %v", got)
	}
}

// Products hide behind reads from the shared cache, not behind reads from
// memory, and keys and values count among what has to fit.
func TestOverlap(t *testing.T) {
	m := sample()
	small, large := shapeOf(t, 1, tensor.Q8_0), shapeOf(t, 400, tensor.Q8_0)
	hides := func(s *Shape, w Work) float64 {
		none, much := neutral, neutral
		none.Overlap, much.Overlap = 1, 50
		return m.predict(s, w, 4, &none).Seconds/m.predict(s, w, 4, &much).Seconds - 1
	}
	if got := hides(small, Work{Gen: 4}); got < 0.05 {
		t.Errorf("from the cache: %v", got)
	}
	if got := hides(large, Work{Gen: 4}); got != 0 {
		t.Errorf("from memory: %v", got)
	}
	if small.working(Work{Gen: 2}) >= small.working(Work{Gen: 2, Depth: 1000}) || small.working(Work{Gen: 2, Depth: 1000})-small.WeightBytes != small.KVBytes*1002 {
		t.Errorf("a step reads %d bytes at first, %d behind 1000 tokens", small.working(Work{Gen: 2}), small.working(Work{Gen: 2, Depth: 1000}))
	}
}
