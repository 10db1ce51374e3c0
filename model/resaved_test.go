package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// lostBySaving are settings that llama.cpp does not read, and so does not save:
// the window of families for which it has none or one of its own, YaRN's own numbers,
// that logits are not capped.
var lostBySaving = map[string]bool{
	"exaone4-pattern": true, "gemma4-keys": true, "llama-rope-yarn-custom": true, "llama4": true, "ministral3-swa": true, "mistral-swa": true, "mixtral-swa": true, "phi3-swa": true, "qwen2-swa": true,
}

// A model whose metadata are written as llama.cpp's library writes them, which
// has a number for all that the model does not have, computes what it did.
func TestResavedByLlamaCpp(t *testing.T) {
	saved := readResaved(t)
	if len(saved) < 40 {
		t.Fatalf("%d models are recorded", len(saved))
	}
	for name, set := range saved {
		t.Run(name, func(t *testing.T) {
			g := readGolden(t, filepath.Join(tinyModels, name))
			path := filepath.Join(t.TempDir(), "model.gguf")
			resave(t, g.files()["gguf"], path, set)
			m := openTiny(t, path, g.Context, Options{KV: tensor.F32, Workers: 1})
			got := compute(t, m, g.Prompt, len(g.Prompt))
			d, at := g.diff(t, got)
			if math.IsNaN(d) || d > logitTolerance && !lostBySaving[name] {
				t.Errorf("row %d: logits differ by %v", g.row(at), d)
			}
		})
	}
}

// resave writes the file at from with other metadata, except for the tokens.
func resave(t *testing.T, from, to string, set map[string]any) {
	t.Helper()
	f, err := gguf.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := f.Builder()
	for _, key := range b.Keys() {
		switch key {
		case "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges":
		default:
			b.Remove(key)
		}
	}
	arch, _ := set["general.architecture"].(string)
	for key, v := range set {
		key = strings.Replace(key, "%s", arch, 1)
		if err := b.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	tokens, _ := f.Lookup("tokenizer.ggml.tokens")
	list, _ := tokens.([]string)
	if err := b.Set("tokenizer.ggml.scores", make([]float32, len(list))); err != nil {
		t.Fatal(err)
	}
	if err := b.Save(to); err != nil {
		t.Fatal(err)
	}
}

// readResaved reads what internal/tinymodel/gen/resave.py has recorded.
func readResaved(t *testing.T) map[string]map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "resaved.txt"))
	if err != nil {
		t.Fatal(err)
	}
	usual, models := map[string]any{}, map[string]map[string]any{}
	at := usual
	for line := range strings.Lines(string(text)) {
		key, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		kind, text, _ := strings.Cut(rest, " ")
		switch {
		case key == "=" && kind == "*":
		case key == "=":
			at = map[string]any{}
			for k, v := range usual {
				at[k] = v
			}
			models[kind] = at
		case kind == "none":
			delete(at, key)
		default:
			at[key] = savedValue(t, kind, text)
		}
	}
	return models
}

// savedValue returns a value of resaved.txt as package gguf has it.
func savedValue(t *testing.T, kind, text string) any {
	t.Helper()
	read := func(v any) {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Fatalf("%s %s: %v", kind, text, err)
		}
	}
	elem, many := strings.CutSuffix(strings.TrimSuffix(kind, "*"), "[]")
	if !many {
		text = "[" + strings.Replace(text, "-Infinity", "-3e38", 1) + "]"
	}
	var out any
	switch elem {
	case "uint32":
		out = listOf[uint32](read, kind)
	case "int32":
		out = listOf[int32](read, kind)
	case "float32":
		text = strings.ReplaceAll(text, "-3e38", "-3e38")
		out = listOf[float32](read, kind)
	case "bool":
		out = listOf[bool](read, kind)
	case "string":
		out = listOf[string](read, kind)
	default:
		t.Fatalf("type %q", kind)
	}
	if many {
		return out
	}
	switch x := out.(type) {
	case []uint32:
		return x[0]
	case []int32:
		return x[0]
	case []float32:
		return x[0]
	case []bool:
		return x[0]
	}
	return out.([]string)[0]
}

// listOf reads a list, which may be given as one value and how often it stands
// there.
func listOf[T any](read func(v any), kind string) []T {
	var list []T
	if !strings.HasSuffix(kind, "*") {
		read(&list)
		return list
	}
	var pair [2]json.RawMessage
	read(&pair)
	var one T
	n := 0
	if json.Unmarshal(pair[0], &one) != nil || json.Unmarshal(pair[1], &n) != nil {
		panic(fmt.Sprintf("%s: %s", pair[0], pair[1]))
	}
	for range n {
		list = append(list, one)
	}
	return list
}
