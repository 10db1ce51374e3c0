package model

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ridge/weights/gguf"
)

// copyTo copies a tiny encoder into a folder of a name of its own, without files that
// begin as one of without.
func copyTo(t *testing.T, from, name string, without ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(tinyEncoders, from))); err != nil {
		t.Fatal(err)
	}
	for _, w := range without {
		if err := os.RemoveAll(filepath.Join(dir, w)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A reranker that only its name tells gives the logits of yes and no that the model
// itself has, and a GGUF file that was written of it, or that is named so, is the same.
func TestRerankerByName(t *testing.T) {
	text := []int32{5, 6, 7, 8, 90, 100, 30, 31}
	for _, from := range []string{"qwen3-judge", "qwen3-judge-own"} {
		parts := []string{"modules.json", "1_LogitScore", from + ".gguf"}
		words := func(dir string) string {
			name := filepath.Join(dir, "tokenizer.json")
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for char, word := range map[string]string{`"~":`: `"yes":`, `"}":`: `"no":`} {
				b = bytes.ReplaceAll(b, []byte(char), []byte(word))
			}
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}
		plain := openTiny(t, words(copyTo(t, from, "plain", parts...)), 0, Options{Workers: 1})
		seq := plain.Pool().NewSeq()
		defer plain.Pool().Free(seq)
		if err := plain.Forward(&Step{Runs: []Run{{Seq: seq, Tokens: text, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		logits := plain.Logits(0)
		want := []float32{logits[97], logits[96]}

		named := words(copyTo(t, from, "Qwen3-Reranker-tiny", parts...))
		converted := filepath.Join(t.TempDir(), "x.gguf")
		if _, err := Convert(named, converted, "keep", 0, nil); err != nil {
			t.Fatal(err)
		}
		only := filepath.Join(t.TempDir(), "y.gguf")
		if _, err := Convert(plain.path, only, "keep", 0, nil); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(only)
		if err != nil {
			t.Fatal(err)
		}
		b := f.Builder()
		if err = b.Set("general.name", "Qwen3 Reranker tiny"); err == nil {
			err = b.Save(only + ".named")
		}
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{named, converted, only + ".named"} {
			m := openTiny(t, path, 0, Options{Workers: 1})
			d := m.Defaults()
			if m.Net().Classes == nil || d.Pooling != PoolingRank || !slices.Equal(d.Labels, []string{"yes", "no"}) || d.Rerank != rerankPrompt {
				t.Fatalf("%s: no reranker: %+v", path, d)
			}
			if got := m.Classify(pooled(states(t, m, Run{Tokens: text})[0], m.Net().Classes.Pool)); !equalBits(got, want) {
				t.Errorf("%s: scores %v, want the logits %v", path, got, want)
			}
		}
	}
	for score, want := range map[string]string{
		`{"true_token_id": 128, "false_token_id": 1}`: "expected less than the 128 of the output matrix, found 128",
		`{"true_token_id": null}`:                     "expected true_token_id",
	} {
		dir := copyTo(t, "qwen3-judge", "x")
		if err := os.WriteFile(filepath.Join(dir, "1_LogitScore", "config.json"), []byte(score), 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := Open(dir, Options{Workers: 1}); err == nil || !strings.Contains(err.Error(), want) {
			m.Close()
			t.Errorf("%s: %v, want %s", score, err, want)
		}
	}
}
