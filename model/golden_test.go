package model

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// golden is what Hugging Face transformers computed for a tiny model of random
// weights: see internal/tinymodel.
type golden struct {
	dir     string
	Context int     `json:"context"`
	Every   int     `json:"every"` // one row in so many has its logits here; 0 for all
	Vocab   int     `json:"vocab"`
	Prompt  []int32 `json:"prompt"`
	logits  []float32
	greedy  []int32
}

const tinyModels = "../internal/tinymodel/testdata"

// logitTolerance is the largest difference from transformers' float32 logits.
const logitTolerance = 1e-3

func readGolden(t *testing.T, dir string) *golden {
	t.Helper()
	g := &golden{dir: dir}
	for name, v := range map[string]any{"golden.json": g, "greedy.json": &g.greedy} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "logits.f32"))
	if err != nil {
		t.Fatal(err)
	}
	g.Every = max(g.Every, 1)
	if rows := len(g.Prompt) / g.Every; len(b) != 4*g.Vocab*rows {
		t.Fatalf("logits.f32: %d bytes, want %d rows of %d", len(b), rows, g.Vocab)
	}
	for ; len(b) > 0; b = b[4:] {
		g.logits = append(g.logits, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return g
}

func tinyCases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(tinyModels + "/*/golden.json")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no tiny models in %s: %v", tinyModels, err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

// files returns the forms in which a tiny model is stored.
func (g *golden) files() map[string]string {
	f := map[string]string{}
	for _, name := range []string{"model.safetensors", "model.safetensors.index.json"} {
		if exists(filepath.Join(g.dir, name)) {
			f["safetensors"] = g.dir
		}
	}
	for _, end := range []string{".gguf", "-00001-of-00002.gguf"} {
		if path := filepath.Join(g.dir, filepath.Base(g.dir)+end); exists(path) {
			f["gguf"] = path
		}
	}
	return f
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func openTiny(t testing.TB, path string, context int, o Options) *Model {
	t.Helper()
	o.Context = context
	m, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// compute runs tokens in chunks and returns the logits of all of them.
func compute(t testing.TB, m *Model, tokens []int32, chunk int) []float32 {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	var out []float32
	length := m.RopeLength(len(tokens), len(tokens))
	for i := 0; i < len(tokens); i += chunk {
		part := tokens[i:min(i+chunk, len(tokens))]
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: part, Outputs: len(part), Length: length}}}); err != nil {
			t.Fatal(err)
		}
		for j := range part {
			out = append(out, m.Logits(j)...)
		}
	}
	return out
}

// diff returns the largest difference of the logits of all rows of the prompt
// from those that are kept, and their place among the kept ones.
func (g *golden) diff(t testing.TB, got []float32) (diff float64, at int) {
	t.Helper()
	if len(got) != len(g.Prompt)*g.Vocab {
		t.Fatalf("%s: %d logits, want %d", g.dir, len(got), len(g.Prompt)*g.Vocab)
	}
	var kept []float32
	for row := g.Every - 1; row < len(g.Prompt); row += g.Every {
		kept = append(kept, got[row*g.Vocab:][:g.Vocab]...)
	}
	return maxDiff(kept, g.logits)
}

// row returns the row of the prompt that a place among the kept logits is of.
func (g *golden) row(at int) int { return (at/g.Vocab+1)*g.Every - 1 }

func maxDiff(a, b []float32) (diff float64, at int) {
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return math.NaN(), i
		}
		if d > diff {
			diff, at = d, i
		}
	}
	return diff, at
}

func equalBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// Every architecture against Hugging Face transformers: logits of the whole
// prompt, the same bits from either kind of file, and cached decoding.
func TestAgainstTransformers(t *testing.T) {
	for _, dir := range tinyCases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			g := readGolden(t, dir)
			if len(g.files()) == 0 {
				t.Fatal("no model file")
			}
			var first []float32 // logits of the file that was computed first
			for kind, path := range g.files() {
				m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 2})
				got := compute(t, m, g.Prompt, len(g.Prompt))
				d, at := g.diff(t, got)
				t.Logf("%s: %d rows, logits differ by at most %.1e", kind, len(g.Prompt), d)
				if !(d <= logitTolerance) {
					t.Errorf("%s: row %d token %d: logits differ by %v from %v", kind, g.row(at), at%g.Vocab, d, g.logits[at])
				}
				if first != nil {
					if !equalBits(first, got) {
						d, at := maxDiff(first, got)
						t.Errorf("GGUF and safetensors differ: row %d by %v", at/g.Vocab, d)
					}
					continue // the same bits: what follows would be the same, too
				}
				first = got
				if one := compute(t, m, g.Prompt, 1); !equalBits(one, got) {
					d, at := maxDiff(one, got)
					t.Errorf("%s: token by token differs from the whole prompt: row %d by %v", kind, at/g.Vocab, d)
				}
				checkGreedy(t, m, g, kind)
			}
		})
	}
}

// checkGreedy continues the prompt with the most probable tokens, which must
// be those that transformers chose with its cache.
func checkGreedy(t *testing.T, m *Model, g *golden, kind string) {
	t.Helper()
	seq := m.Pool().NewSeq()
	defer m.Pool().Free(seq)
	next, known := g.Prompt, slices.Clone(g.Prompt)
	length := m.RopeLength(len(known), len(known))
	for i, want := range g.greedy {
		if now := m.RopeLength(len(g.Prompt), len(known)); now != length {
			m.Pool().Free(seq)
			next, length = known, now
		}
		if seq.Len()+len(next) > m.Context() {
			return // some cases leave less room than tokens
		}
		if err := m.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: next, Outputs: 1, Length: length}}}); err != nil {
			t.Fatal(err)
		}
		best := 0
		logits := m.Logits(0)
		for j, v := range logits {
			if v > logits[best] {
				best = j
			}
		}
		if int32(best) != want {
			if math.Abs(float64(logits[best]-logits[want])) < logitTolerance {
				return // a tie, which rounding may break either way
			}
			t.Errorf("%s: greedy token %d: got %d, want %d", kind, i, best, want)
			return
		}
		next, known = []int32{want}, append(known, want)
	}
}

// The reference tier computes the same as the kernels do.
func TestReferenceTier(t *testing.T) {
	for _, name := range []string{"llama", "gemma3", "gpt2", "deepseek3"} {
		dir := filepath.Join(tinyModels, name)
		if !exists(dir) {
			t.Fatalf("no tiny model %s", name)
		}
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, dir)
			defer cpu.Set(cpu.Ref)()
			m := openTiny(t, dir, g.Context, Options{KV: tensor.F32, Workers: 1})
			if d, at := g.diff(t, compute(t, m, g.Prompt, len(g.Prompt))); !(d <= logitTolerance) {
				t.Errorf("row %d: logits differ by %v", g.row(at), d)
			}
		})
	}
}
