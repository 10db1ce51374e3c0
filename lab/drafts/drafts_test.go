package drafts

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Rows are sums over pairs, and what follows from them.
func TestRow(t *testing.T) {
	var r Row
	for i, took := range []time.Duration{time.Second, 2 * time.Second, 6 * time.Second} {
		plain := side{answers: [][]int32{{1, 2, 3, 4, 5}}, took: took, cpu: 2 * took, gaps: []time.Duration{took, took, 2 * took}}
		drafted := side{answers: [][]int32{{1, 2, 3, 4, 5 + int32(i/2)}}, took: took / 2, cpu: took, guessed: 4, right: 2, saved: took / 2}
		r.add(&plain, &drafted)
	}
	r.finish()
	want := Row{Prompts: 3, Tokens: 15, Guessed: 12, Accepted: 6, Share: 0.5, PerStep: 2, Plain: 12. / 9, Drafted: 24. / 9, Speed: 2, Median: 2, Low: 2, CPU: 2, Estimated: 2, Different: 1}
	for name, x := range map[string][2]float64{"share": {r.Share, want.Share}, "per step": {r.PerStep, want.PerStep}, "plain": {r.Plain, want.Plain}, "drafted": {r.Drafted, want.Drafted},
		"speed": {r.Speed, want.Speed}, "median": {r.Median, want.Median}, "low": {r.Low, want.Low}, "processor": {r.CPU, want.CPU}, "estimated": {r.Estimated, want.Estimated}} {
		if math.Abs(x[0]-x[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	if r.Prompts != want.Prompts || r.Tokens != want.Tokens || r.Guessed != want.Guessed || r.Accepted != want.Accepted || r.Different != want.Different {
		t.Errorf("got %+v, want %+v", r, want)
	}
	var text strings.Builder
	if err := WriteMarkdown(&text, []Row{r}); err != nil || !strings.Contains(text.String(), "| 3 | 15 | 12 | 50% | 2.00 | 1.3 | 2.7 | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 | 6000.0 ms | 0.0 ms | 1 |\n") {
		t.Errorf("%v: %s", err, &text)
	}
	empty := Row{}
	empty.finish()
	if empty.Speed != 0 || empty.PerStep != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

// Batches are of one category, in order, or of all in turns.
func TestBatches(t *testing.T) {
	var prompts []Prompt
	for _, c := range "aaabb" {
		prompts = append(prompts, Prompt{Category: string(c)})
	}
	for mixed, want := range map[bool]string{false: "aa a bb", true: "ab ab a"} {
		var got []string
		for _, b := range batchesOf(prompts, 2, mixed) {
			text := ""
			for _, p := range b {
				text += p.Category
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}
