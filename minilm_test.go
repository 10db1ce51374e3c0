package ridge

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ridge/internal/testdata"
	"ridge/model"
)

// miniLM is what Hugging Face transformers made of 1,000 texts with the real model:
// see internal/tinymodel/gen/minilm.py.
type miniLM struct {
	Extra   []string
	Tokens  []int
	Parts   string
	Nearest [][]int
}

// numbers returns the parts of embedding i, and where they stand in it.
func (g *miniLM) numbers(t *testing.T) func(i int) (at []int, v []float64) {
	b, err := base64.StdEncoding.DecodeString(g.Parts)
	if err != nil {
		t.Fatal(err)
	}
	parts := len(b) / 2 / len(g.Tokens)
	return func(i int) (at []int, v []float64) {
		for k := range parts {
			at = append(at, (7*i+24*k)%384)
			v = append(v, float64(int16(binary.LittleEndian.Uint16(b[2*(parts*i+k):])))/32767)
		}
		return at, v
	}
}

// miniLMTexts are the texts, as the script makes them.
func miniLMTexts(t *testing.T, g *miniLM) []string {
	t.Helper()
	read := func(name string) string {
		b, err := os.ReadFile(testdata.File(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cut := func(s string) string {
		for s = s[:min(len(s), 160)]; !utf8.ValidString(s); s = s[:len(s)-1] {
		}
		return s
	}
	out := slices.Clone(g.Extra)
	for line := range strings.Lines(read("spec_bench.jsonl")) {
		var q struct{ Turns []string }
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		out = append(out, cut(q.Turns[0]))
	}
	for _, f := range []struct{ name, border string }{{"wikitext2_test.txt", "\n"}, {"tinyshakespeare.txt", "\n\n"}} {
		n := len(g.Tokens) - len(out)
		if f.border == "\n" {
			n = (n + 1) / 2
		}
		for _, p := range strings.Split(read(f.name), f.border) {
			if utf8.RuneCountInString(p) > 40 && n > 0 {
				out = append(out, cut(p))
				n--
			}
		}
	}
	return out
}

// The real all-MiniLM-L6-v2 against Hugging Face transformers: tokens, embeddings
// within 1e-4 and the nearest texts.
func TestMiniLM(t *testing.T) {
	path := testdata.Model(t, "minilm")
	var g miniLM
	b, err := os.ReadFile("testdata/minilm.json")
	if err == nil {
		err = json.Unmarshal(b, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	texts := miniLMTexts(t, &g)
	if len(texts) != len(g.Tokens) {
		t.Fatalf("%d texts, want %d", len(texts), len(g.Tokens))
	}
	if !testing.Short() {
		testMiniLM(t, &g, path, texts, model.ActInt8)
	}
	for _, act := range []model.Act{model.ActInt8, model.ActBF16x2} {
		testMiniLM(t, &g, path, texts[:80], act)
	}
}

func testMiniLM(t *testing.T, g *miniLM, path string, texts []string, act model.Act) {
	m, err := OpenFile(path, Options{Act: act})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for i, text := range texts {
		if n := min(len(m.Tokenize(text)), 512); n != g.Tokens[i] {
			t.Errorf("text %d, %q: %d tokens, want %d", i, text[:min(len(text), 80)], n, g.Tokens[i])
		}
	}
	var all [][]float32
	for v, err := range m.Embeddings(t.Context(), slices.Values(texts), Embedding{Pooling: PoolOwn, Long: LongTruncated}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	numbers, worst := g.numbers(t), 0.0
	for i, v := range all {
		at, want := numbers(i)
		for k, x := range want {
			d := math.Abs(float64(v[at[k]]) - x)
			if worst = max(worst, d); d > 1e-4+0.5/32767 {
				t.Fatalf("text %d: number %d: %v, want %v", i, at[k], v[at[k]], x)
			}
		}
	}
	t.Logf("%v, %d texts: numbers differ by at most %.1e, of which 1.5e-05 are rounding of the golden", act, len(all), worst)
	if len(all) < len(g.Tokens) {
		return
	}
	for q, want := range g.Nearest {
		if got := nearestTo(all, q, len(want)); !slices.Equal(got, want) {
			t.Errorf("nearest to text %d: %v, want %v", q, got, want)
		}
	}
}

// nearestTo returns the k embeddings nearest to embedding q, the nearest first.
func nearestTo(all [][]float32, q, k int) []int {
	scores := make([]float64, len(all))
	order := make([]int, 0, len(all))
	for i, v := range all {
		for j, x := range v {
			scores[i] += float64(x) * float64(all[q][j])
		}
		if i != q {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	return order[:k]
}

// The real model as a GGUF file, with its WordPiece vocabulary, gives the same tokens
// and the same embeddings.
func TestMiniLMConverted(t *testing.T) {
	path := testdata.Model(t, "minilm")
	to := filepath.Join(t.TempDir(), "minilm.gguf")
	if _, err := model.Convert(path, to, "keep", 0, nil); err != nil {
		t.Fatal(err)
	}
	var all [2][][]float32
	var ids [2][]int32
	texts := []string{"Naïve café, RÉSUMÉ 123!", "An English word: antidisestablishmentarianism.", "你好 мир", "x"}
	for i, p := range []string{path, to} {
		m, err := OpenFile(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if all[i], err = m.EmbedAll(t.Context(), texts, PoolOwn); err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			ids[i] = append(ids[i], m.Tokenize(text)...)
		}
	}
	if !slices.Equal(ids[0], ids[1]) {
		t.Errorf("tokens %v, want %v", ids[1], ids[0])
	}
	for i, v := range all[0] {
		if !slices.Equal(v, all[1][i]) {
			t.Errorf("text %d: another embedding", i)
		}
	}
}
