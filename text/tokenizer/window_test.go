package tokenizer

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// everyFixture reads the small tokenizers that were recorded.
func everyFixture(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	files, err := filepath.Glob("testdata/fixtures/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures")
	}
	out := map[string]*Tokenizer{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := FromJSON(b, nil)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".json")] = tok
	}
	return out
}

// longTexts are hard on merging and on memory, each of about n bytes.
func longTexts(n int) map[string]string {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(alphabet string) string {
		letters := []rune(alphabet)
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	fill := func(s string) string { return strings.Repeat(s, n/len(s)+1) }
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = byte(r.IntN(256))
	}
	return map[string]string{
		"a": fill("a"), "spaces": fill(" "), "lines": fill("\n"), "ab": random("ab"), "letters": random("etaoinshrdlu"), "zeros": fill("0"), "marks": fill("!="),
		"words": fill("the quick brown fox "), "hangul": fill("가나"), "han": random("的一是不了人我在有他这中大来上"), "emoji": fill("😀"), "unknown": random("\U0001F0A1\uE000a"),
		"bytes": strings.ToValidUTF8(string(bytes), "\uFFFD"), "mixed": random("ab \n가😀.1"), "accents": fill("e\u0301"), "A1": fill("A1 "),
	}
}

// Merging in windows gives what merging at once gives.
func TestWindows(t *testing.T) {
	for name, tok := range everyFixture(t) {
		m, ok := tok.model.(merger)
		if !ok {
			continue
		}
		for kind, text := range longTexts(3000) {
			sc, whole := &scratch{}, &scratch{}
			var syms []span
			syms, _ = m.symbols(whole, nil, text, 0, len(text), len(text))
			want := slices.Clone(whole.merge(m, text, syms))
			for _, size := range []int{64, 100, 1000} {
				var got []span
				if !sc.mergeWindows(m, text, size, func(out []span) { got = append(got, out...) }) {
					if size == 1000 {
						t.Errorf("%s, %s: no border was found", name, kind)
					}
					continue
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s, windows of %d: other tokens", name, kind, size)
				}
			}
		}
	}
}

// Encode takes at most ten bytes for each byte of the text, the ids that it
// returns included, and what does not grow with the text.
func TestMemoryOfLongTexts(t *testing.T) {
	const size, fixed = 1 << 18, 1 << 21
	for name, tok := range everyFixture(t) {
		if slices.Contains([]string{"words", "xlmr-bytes", "odd-regex"}, name) {
			continue // patterns that only regexp2 runs, which has memory of its own
		}
		texts := longTexts(size)
		for _, kind := range []string{"a", "spaces", "words", "han", "mixed", "bytes"} {
			text := texts[kind]
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ids := tok.Encode(nil, text, EncodeOptions{})
			runtime.ReadMemStats(&after)
			took := int64(after.TotalAlloc - before.TotalAlloc)
			if per := float64(took-fixed) / float64(len(text)); per > 10 {
				t.Errorf("%s, %s: %.1f bytes for each of the text, %d tokens", name, kind, per, len(ids))
			}
		}
	}
}

// No text becomes less tokens than is said beforehand, and of vocabularies that
// drop nothing something is said.
func TestLeastTokens(t *testing.T) {
	says := 0
	for name, tok := range everyFixture(t) {
		said := false
		for kind, text := range longTexts(5000) {
			for _, o := range []EncodeOptions{{}, {ParseSpecial: true}} {
				n := len(tok.Encode(nil, text, o))
				if least := tok.LeastTokens(text); least > n {
					t.Errorf("%s, %s: at least %d tokens, got %d", name, kind, least, n)
				} else if least > 0 {
					said = true
				}
			}
		}
		if said {
			says++
		}
	}
	if says < 6 {
		t.Errorf("only %d vocabularies say something", says)
	}
}

// A vocabulary of bytes that lacks some, as SmolLM's, drops these only: of the
// rest of a text it is known how many tokens it becomes at least.
func TestLeastTokensWithoutSomeBytes(t *testing.T) {
	for _, norm := range []string{`null`, `{"type": "NFC"}`} {
		tok, err := FromJSON([]byte(`{"version": "1.0", "added_tokens": [], "normalizer": `+norm+`, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
			"decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "e": 2, "ab": 3, "abab": 4, "Ì": 5, "ģ": 6}, "merges": ["a b", "ab ab"]}}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		says := 0
		for _, part := range []string{"a", "ab", "abx", "xab", "axb", "aéb", "x", "é", "e\u0301", "\xff", "abab\xff"} {
			text := strings.Repeat(part, 5000)
			n, least := len(tok.Encode(nil, text, EncodeOptions{})), tok.LeastTokens(text)
			if least > n {
				t.Errorf("%s, %q: at least %d tokens, got %d", norm, part, least, n)
			}
			if least > 0 {
				says++
			}
		}
		if want := map[string]int{`null`: 8}[norm]; says < want {
			t.Errorf("%s: of %d texts something is said, want %d", norm, says, want)
		}
	}
}
