package tokenizer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
)

// The mixed text: the same generator as in testdata/gen_goldens.py.

const (
	mixedChunks = 512
	mixedBytes  = 4096
)

// rand64 is splitmix64.
type rand64 uint64

func (r *rand64) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (r *rand64) n(n int) int { return int(r.next() % uint64(n)) }

func (r *rand64) rune() rune {
	for {
		var c int
		switch r.n(4) {
		case 0:
			c = r.n(0x110000)
		case 1:
			c = r.n(0x3000)
		case 2:
			c = r.n(0x10000)
		default:
			c = 0x1F000 + r.n(0x1000)
		}
		if c < 0xD800 || c >= 0xE000 {
			return rune(c)
		}
	}
}

func mixedWords(t testing.TB) map[string][]string {
	t.Helper()
	b, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	name := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if head, ok := strings.CutPrefix(line, "# "); ok && isAlpha(head) {
			name = head
		} else {
			out[name] = strings.Split(line, " ")
		}
	}
	return out
}

func isAlpha(s string) bool {
	for _, c := range s {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}

var mixedSpaces = []string{" ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t", "\r\n", "\r", " \n", "\n ", "\u00a0", "\u2003",
	"\u3000", "\u200b", "\u2028", "\u0085", "\u000b", "\u000c", "\u1680", "        ", " \t ", "\ufeff", "\u202f"}

func mixedChunk(w map[string][]string, seed int) string {
	r := rand64(seed)
	var out strings.Builder
	put := func(s string) { out.WriteString(s) }
	pick := func(ws []string) string { return ws[r.n(len(ws))] }
	for out.Len() < mixedBytes {
		kind := r.n(20)
		count := 1 + r.n(12)
		switch {
		case kind < 6:
			for range count {
				s := pick(w["english"])
				switch r.n(10) {
				case 0:
					s = strings.ToUpper(s[:1]) + s[1:]
				case 1:
					s = strings.ToUpper(s)
				}
				put(s)
				if r.n(8) != 0 {
					put(" ")
				} else {
					put(pick(w["symbols"]))
				}
			}
			if r.n(3) == 0 {
				put(".\n")
			} else {
				put(" ")
			}
		case kind < 9:
			put(strings.Repeat(" ", 4*r.n(4)))
			for range count {
				put(pick(w["code"]))
				if r.n(2) != 0 {
					put(" ")
				}
			}
			put("\n")
		case kind < 15:
			name := []string{"cjk", "arabic", "scripts", "emoji", "symbols", "numbers"}[kind-9]
			sep := []string{"", " ", ", "}[r.n(3)]
			for range count {
				put(pick(w[name]))
				put(sep)
			}
		case kind == 15:
			for range count {
				put(pick(mixedSpaces))
			}
		case kind == 16:
			for range count {
				c := r.n(66)
				switch {
				case c >= 65:
					c = 0
				case c >= 32:
					c += 0x7F - 32
				}
				put(string(rune(c)))
			}
		case kind == 17:
			for range count {
				put(string(r.rune()))
			}
		case kind == 18:
			for range count {
				put("aeiounsAE"[r.n(9):][:1])
				for range r.n(4) {
					put(string(rune(0x300 + r.n(0x50))))
				}
			}
		default:
			for range 4 * count {
				put("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/_-"[r.n(66):][:1])
			}
			put(" ")
		}
	}
	return out.String()
}

// mixedText returns the chunks of the mixed text, 2 MiB in all.
func mixedText(t testing.TB) []string {
	w := mixedWords(t)
	out := make([]string, mixedChunks)
	for i := range out {
		out[i] = mixedChunk(w, i)
	}
	return out
}

// digest is FNV-1a over the ids as 32 bits each, little-endian, and their
// number.
func digest(ids []int32) string {
	h := uint64(0xCBF29CE484222325)
	for _, id := range ids {
		for k := range 4 {
			h = (h ^ uint64(byte(id>>(8*k)))) * 0x100000001B3
		}
	}
	return fmt.Sprintf("%d:%016x", len(ids), h)
}

// golden is what gen_goldens.py records for a real model.
type golden struct {
	Text   string
	Chunks []string
	Whole  string
	Data   map[string][]string
}

func readGolden(t testing.TB, name string) (g golden) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// realModels have goldens. The embedded one has SmolLM2's tokenizer, and so its
// goldens.
var realModels = []string{"tiny", "smollm2", "gemma3", "qwen"}

func goldenOf(model string) string {
	if model == "tiny" {
		return "smollm2"
	}
	return model
}

// TestMixedText compares with Hugging Face tokenizers over 2 MiB of English,
// code, many scripts, emoji, odd white space, controls and random characters.
func TestMixedText(t *testing.T) {
	texts := mixedText(t)
	all := strings.Join(texts, "")
	sum := sha256.Sum256([]byte(all))
	for _, name := range realModels {
		t.Run(name, func(t *testing.T) {
			tok := openGGUF(t, testdata.Model(t, name))
			g := readGolden(t, goldenOf(name))
			if hex.EncodeToString(sum[:]) != g.Text {
				t.Fatal("the generator makes another text than gen_goldens.py")
			}
			o := tokenizer.EncodeOptions{ParseSpecial: true}
			bad := 0
			for i, s := range texts {
				ids := tok.Encode(nil, s, o)
				if got := digest(ids); got != g.Chunks[i] {
					if bad++; bad <= 5 {
						t.Errorf("chunk %d: got %s, want %s", i, got, g.Chunks[i])
					}
				}
			}
			if bad > 5 {
				t.Errorf("%d chunks of %d differ", bad, len(texts))
			}
			if got := digest(tok.Encode(nil, all, o)); got != g.Whole {
				t.Errorf("the whole: got %s, want %s", got, g.Whole)
			}
		})
	}
}

// TestRealText is TestMixedText for real texts. The goldens are those of the whole
// texts, ours are cut at the border of a piece.
func TestRealText(t *testing.T) {
	for _, name := range realModels {
		t.Run(name, func(t *testing.T) {
			tok := openGGUF(t, testdata.Model(t, name))
			for file, want := range readGolden(t, goldenOf(name)).Data {
				b, err := os.ReadFile(testdata.File(t, file))
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range runePieces(string(b), 16384) {
					got := digest(tok.Encode(nil, s, tokenizer.EncodeOptions{ParseSpecial: true}))
					if i >= len(want) || got != want[i] {
						t.Errorf("%s, piece %d: got %s, want %s", file, i, got, want[i])
					}
				}
			}
		})
	}
}

// runePieces cuts s into pieces of n characters.
func runePieces(s string, n int) []string {
	var out []string
	for s != "" {
		end := 0
		for k := 0; k < n && end < len(s); k++ {
			_, w := utf8.DecodeRuneInString(s[end:])
			end += w
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}
