package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ridge/measure/roofline"
)

func TestParseInts(t *testing.T) {
	for text, want := range map[string][]int{
		"512": {512}, "0": {0}, "1,2, 4": {1, 2, 4}, "1-4": {1, 2, 3, 4}, "128-512+128": {128, 256, 384, 512}, "1-32*2": {1, 2, 4, 8, 16, 32},
		"0,1-3*2,7": {0, 1, 2, 7}, "3-3": {3},
	} {
		if got, err := ParseInts(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1,,2", "-1", "4-1", "1-", "1-4+0", "1-4*1", "0-4*2", "1-4+x", "1-4/2", "99999999999", "1.5"} {
		if got, err := ParseInts(text); err == nil || !strings.Contains(err.Error(), "expected a number") {
			t.Errorf("%q: %v, error %v", text, got, err)
		}
	}
	for _, text := range []string{"1-100000", strings.Repeat("1,", 2000) + "1"} {
		if _, err := ParseInts(text); err == nil || !strings.Contains(err.Error(), "at most 1000 numbers") {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
}

func TestGrid(t *testing.T) {
	g := Grid{Prompts: []int{512, 0}, Gens: []int{128}, Pairs: [][2]int{{64, 32}}, Depths: []int{0, 1024}, Seqs: []int{1, 4}}
	var names []string
	for _, w := range g.Works() {
		names = append(names, w.String())
	}
	want := []string{
		"pp512", "tg128", "pp64+tg32", "pp512 @ d1024", "tg128 @ d1024", "pp64+tg32 @ d1024",
		"pp512 x4", "tg128 x4", "pp64+tg32 x4", "pp512 @ d1024 x4", "tg128 @ d1024 x4", "pp64+tg32 @ d1024 x4",
	}
	if !cmp.Equal(names, want) {
		t.Error(cmp.Diff(names, want))
	}
	if w := (Grid{Gens: []int{1}, Chunks: []int{32}}).Works(); !cmp.Equal(w, []roofline.Work{{Gen: 1, Seqs: 1, Chunk: 32}}) {
		t.Errorf("%+v", w)
	}
	for text, ok := range map[string]bool{"512,128": true, "512": false, "1,2,3": false, "a,b": false} {
		if _, err := ParsePair(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string][2]int{"2048x5632": {2048, 5632}, "1x1": {1, 1}, "x": {}, "0x4": {}, "4": {}, "99999999x1": {}, "4x": {}} {
		if got, err := ParseShape(text); got != want || (err == nil) != (want != [2]int{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// The name of every work is read as that work, and nothing else has a name.
func TestParseWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 9_999_999)
		w := roofline.Work{Prompt: n.Draw(t, "prompt"), Gen: n.Draw(t, "gen"), Depth: n.Draw(t, "depth"), Seqs: rapid.IntRange(1, 9999).Draw(t, "seqs")}
		if w.Prompt+w.Gen == 0 {
			w.Gen = 1
		}
		if got, err := ParseWork(w.String()); err != nil || got != w {
			t.Errorf("%s: %+v, %v, want %+v", w, got, err, w)
		}
	})
}

func FuzzParseWork(f *testing.F) {
	for _, s := range []string{"pp512", "tg64 @ d4096 x8", "pp1+tg2 @ d3", "", "pp0", "pp", "tg1 x0", "tg1 @ d0", "tg1+pp1", "PP1", "pp99999999", "pp512 ", "pp1 @ d1 @ d1", "pp01"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := ParseWork(s)
		switch {
		case err != nil && !strings.Contains(err.Error(), "expected a test such as"):
			t.Errorf("%q: error %v", s, err)
		case err == nil && w.String() != s && w.String()+" x1" != s:
			t.Errorf("%q was read as %q", s, w)
		}
	})
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want Spread
	}{
		{nil, Spread{}},
		{[]float64{3}, Spread{Median: 3, Mean: 3, Min: 3, Max: 3}},
		{[]float64{4, 1, 2, 5}, Spread{Median: 3, Mean: 3, StdDev: 1.8257418583505538, Min: 1, Max: 5}},
	} {
		if got := SpreadOf(c.x); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.x, got, c.want)
		}
	}
	x := []float64{5, 1, 3}
	for q, want := range map[float64]float64{0: 1, 0.25: 2, 0.5: 3, 0.75: 4, 1: 5} {
		if got := quantile(x, q); got != want {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
	if x[0] != 5 {
		t.Error("the measurements were sorted in place")
	}
}
