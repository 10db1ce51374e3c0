package drafts

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pairsOf returns three pairs of one answer each, the last of which differs.
func pairsOf() (out []*pair) {
	for i, took := range []time.Duration{time.Second, 2 * time.Second, 6 * time.Second} {
		out = append(out, &pair{
			Plain:   Side{Took: took, CPU: 2 * took, Gaps: []time.Duration{took, took, 2 * took}},
			Drafted: Side{Took: took / 2, CPU: took, Saved: took / 2, Drafting: took / 20},
			Answers: []outcome{{Tokens: 5, Guessed: 4, Right: 2, Verified: 2, Places: 3, Different: i == 2}},
		})
	}
	return out
}

// Rows are sums over pairs, and what follows from them.
func TestRow(t *testing.T) {
	all := newTable(&Config{Setting: "a|b", Batch: 1, Rounds: 1})
	for _, p := range pairsOf() {
		all.add([]Prompt{{Category: "lists"}}, p)
	}
	rows := all.finish()
	if len(rows) != 2 || rows[0].Category != "lists" || rows[1].Category != "all" {
		t.Fatalf("got %+v", rows)
	}
	r := rows[0]
	for name, x := range map[string][2]float64{"share": {r.Share, 0.5}, "of places": {r.Alpha, 2. / 3}, "of steps that guess": {r.Length, 2}, "per step": {r.PerStep, 2}, "plain": {r.Plain, 12. / 9}, "drafted": {r.Drafted, 24. / 9},
		"speed": {r.Speed, 2}, "median": {r.Median, 2}, "low": {r.Low, 2}, "processor": {r.CPU, 2}, "of pairs": {r.CPUMedian, 2}, "estimated": {r.Estimated, 2}, "drafting": {r.Drafting, .1}} {
		if math.Abs(x[0]-x[1]) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, x[0], x[1])
		}
	}
	if r.Prompts != 3 || r.Tokens != 15 || r.Guessed != 12 || r.Accepted != 6 || r.Different != 1 {
		t.Errorf("got %+v", r)
	}
	var text strings.Builder
	if err := WriteMarkdown(&text, rows); err != nil || !strings.Contains(text.String(), "| a\\|b | 1 | lists | 3 | 15 | 12 | 50% | 67% | 2.00 | 2.00 |  | 1.3 | 2.7 | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 | 2.00 | 6000.0 ms |  | 10.0% |  | 1 |\n") {
		t.Errorf("%v: %s", err, &text)
	}
	empty := Row{}
	empty.finish()
	if empty.Speed != 0 || empty.PerStep != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

// Of batches of all kinds, each kind has its counts, and all have times.
func TestMixedRows(t *testing.T) {
	c := Config{Batch: 2, Rounds: 1, Mixed: true}
	mixed := newTable(&c)
	p := pairsOf()[0]
	p.Answers = append(p.Answers, outcome{Tokens: 9})
	mixed.add([]Prompt{{Category: "a"}, {Category: "b"}}, p)
	rows := mixed.finish()
	if len(rows) != 3 || rows[0].Tokens != 5 || rows[1].Tokens != 9 || rows[0].Speed != 0 || rows[1].Speed != 0 || rows[2].Tokens != 14 || rows[2].Speed != 2 {
		t.Errorf("got %+v", rows)
	}
}

// The page has each row, and plots over what rows differ in.
func TestPage(t *testing.T) {
	var rows []Row
	for _, batch := range []int{1, 4} {
		one := newTable(&Config{Setting: "<ngram>", Batch: batch, Rounds: 1})
		for _, p := range pairsOf() {
			one.add([]Prompt{{Category: "lists"}}, p)
		}
		rows = append(rows, one.finish()...)
	}
	var page strings.Builder
	if err := WriteHTML(&page, "Guesses", "note", rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<td>&lt;ngram&gt;</td><td>4</td><td>lists</td>", "Speed of each pair", "Speed over answers at a time", "Tokens a step"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("expected %q in the page", want)
		}
	}
	if strings.Contains(page.String(), "Speed over guesses") || strings.Contains(page.String(), "<ngram>") {
		t.Error("a plot of one point, or a name as a tag")
	}
}

// What is kept is there when the file is opened again, but for a line that was not
// written to its end.
func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept")
	k, err := OpenKeep(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.putAnswer("a", []int32{1, 2}); err != nil {
		t.Fatal(err)
	}
	if err := k.putPair("p", pairsOf()[0]); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"plain":"b","tok`)
	if f.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was begun is gone from the file, too
		if k, err = OpenKeep(path); err != nil {
			t.Fatal(err)
		}
		tokens, known := k.answer("a")
		if _, other := k.answer("b"); other || !known || len(tokens) != 2 || k.pair("p") == nil || k.pair("p").Drafted.Took != time.Second/2 || k.pair("q") != nil {
			t.Errorf("got %v %+v", tokens, k.pair("p"))
		}
		if err := k.putAnswer("c", nil); err != nil {
			t.Fatal(err)
		}
		k.Close()
	}
	if err := os.WriteFile(path, []byte("{\"plain\":\"a\"}\n{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeep(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
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
