package tokenizer_test

import (
	"slices"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

// Every token that has a text, or whose end begins it, is found with the tokens of
// the rest, and no other.
func TestOverlaps(t *testing.T) {
	texts := []string{"\n", "e", "he said", ": \"", "*"}
	for _, name := range fixtureNames(t) {
		tok := fixture(t, name)
		o, err := tok.Overlaps(texts)
		if err != nil {
			t.Fatal(err)
		}
		found := map[int32][]string{} // token and rest
		for _, x := range o.Tokens {
			found[x.Token] = append(found[x.Token], tok.DecodeSpecial(o.Tails[x.Tail]))
		}
		for id := range int32(tok.VocabSize()) {
			word, want := string(tok.Piece(id)), []string{}
			for _, s := range texts {
				for at := range len(word) {
					if rest, ok := strings.CutPrefix(s, word[at:]); ok {
						want = append(want, rest)
					} else if strings.HasPrefix(word[at:], s) {
						want = append(want, "")
					}
				}
			}
			if len(slices.Compact(slices.Sorted(slices.Values(want)))) != len(found[id]) {
				t.Errorf("%s: %q begins the texts with the rests %q, found %q", name, word, want, found[id])
			}
		}
		again, _ := tok.Overlaps([]string{"*", "e", "he said", ": \"", "\n", "e"})
		if again != o {
			t.Errorf("%s: the same texts in another order are looked for again", name)
		}
	}
}

func TestOverlapsBounds(t *testing.T) {
	tok := fixture(t, fixtureNames(t)[0])
	var many []string
	for i := range tokenizer.MaxOverlapTexts + 1 {
		many = append(many, string(rune('a'+i)))
	}
	for _, c := range []struct {
		texts []string
		want  string
	}{
		{many, "tokenizer: overlaps: expected at most 32 texts, found 33"},
		{[]string{strings.Repeat("x", 41)}, "tokenizer: overlaps: expected texts of 1 to 40 bytes, found one of 41"},
		{[]string{""}, "tokenizer: overlaps: expected texts of 1 to 40 bytes, found one of 0"},
	} {
		if _, err := tok.Overlaps(c.texts); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
