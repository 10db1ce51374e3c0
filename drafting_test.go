package ridge

import (
	"slices"
	"testing"

	"ridge/internal/testdata"
	"ridge/spec"
)

// A model with another vocabulary guesses some of what Qwen writes, and changes
// nothing of it.
func TestForeignDrafts(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	path := testdata.Model(t, "qwen")
	var plain []int32
	for _, s := range []spec.Setting{{}, {Kind: spec.Draft, Model: "tiny"}} {
		s.Always = true
		m, err := OpenFile(path, Options{Context: 256, Speculative: s})
		if err != nil {
			t.Fatal(err)
		}
		var got []int32
		before := m.Engine().Stats().Right
		for tok, err := range m.Generate(t.Context(), "The capital of France is Paris. The capital of Italy is", Generation{MaxTokens: 16}) {
			if err != nil {
				t.Fatal(err)
			}
			if tok.ID >= 0 {
				got = append(got, tok.ID)
			}
		}
		right := m.Engine().Stats().Right - before
		m.Close()
		if plain == nil {
			plain = got
		} else if !slices.Equal(got, plain) || right == 0 {
			t.Errorf("%+v: %v, %d guessed, want %v", s, got, right, plain)
		}
	}
}
