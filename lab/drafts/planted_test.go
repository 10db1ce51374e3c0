package drafts

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ridge/measure/bench"
	"ridge/model"
)

// With a drafter of planted agreement a step gives as many tokens as the formula says, and
// answers are those without guesses.
func TestPlanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "synthetic.gguf")
	if err := bench.Synthetic(path, "tiny:Q8_0", 1); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(path, model.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Plant(t.Context(), m, Planting{Agreements: []float64{.5, .7, .9, 1}, Guesses: 4, Batch: 4, Prompt: 8, Tokens: 200, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1.94, 2.77, 4.10, 5} {
		r := rows[i]
		if math.Abs(r.Formula-want) > .01 || math.Abs(r.PerStep/r.Formula-1) > .1 || r.Different > 0 || r.CPU <= 0 {
			t.Errorf("expected %.2f tokens a step, found %+v", want, r)
		}
	}
	var text strings.Builder
	if err := WritePlanted(&text, rows); err != nil || strings.Count(text.String(), "\n") != 6 {
		t.Errorf("%v: %s", err, &text)
	}
}
