package model

import (
	"path/filepath"
	"strings"
	"testing"

	"ridge/kvcache"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// Keys and values that several layers read are kept once.
func TestSharedKeysAreKeptOnce(t *testing.T) {
	for name, own := range map[string]int{"gemma3n": 2, "gemma4": 4} {
		m := openTiny(t, filepath.Join(tinyModels, name), 64, Options{KV: tensor.F32, Workers: 1})
		bytes, layers := 0, 0
		for _, l := range m.Pool().Layers() {
			bytes += l.Heads * (kvcache.TileBytes(l.KDim, tensor.F32) + kvcache.TileBytes(l.VDim, tensor.F32)) / kvcache.TileTokens
			if l.Heads > 0 {
				layers++
			}
		}
		if layers != own || m.Pool().TokenBytes() != bytes {
			t.Errorf("%s: %d layers keep keys and values, %d bytes of a token, expected %d layers and %d bytes", name, layers, m.Pool().TokenBytes(), own, bytes)
		}
		for i, j := range m.Config().KeysFrom {
			if l := m.Pool().Layers()[i]; (i == j) != (l.Heads > 0) {
				t.Errorf("%s: layer %d reads the keys of layer %d and keeps %+v", name, i, j, l)
			}
		}
	}
}

// Of an unknown architecture the nearest known one is named, and what of the file
// it does not have.
func TestUnknownArchitecture(t *testing.T) {
	for _, c := range []struct{ model, arch, want string }{
		{"exaone4", "exaone9", `found "exaone9": the nearest known is "exaone", as which it cannot be built: model: `},
		{"arcee", "arcade", `found "arcade": the nearest known is "arcee", whose tensors it has`},
		{"llama", "mistral9", `found "mistral9": the nearest known is "mistral3", whose tensors it has`},
	} {
		f, err := gguf.Open(filepath.Join(tinyModels, c.model, c.model+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		path := rewrite(t, t.TempDir(), c.model, func(b *gguf.Builder) {
			for _, key := range b.Keys() {
				if rest, ok := strings.CutPrefix(key, c.model+"."); ok {
					v, _ := f.Lookup(key)
					if err := b.Set(c.arch+"."+rest, v); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := b.Set("general.architecture", c.arch); err != nil {
				t.Fatal(err)
			}
		})
		f.Close()
		checkOpen(t, c.arch, path, c.want)
	}
	dir := copyCheckpoint(t, "gptj", map[string]any{"model_type": "gptj2"}, func(*checkpoint) {})
	checkOpen(t, "gptj2", dir, `found "gptj2": the nearest known is "gptj", whose tensors it has`)
	for name, want := range map[string]string{"llama9": "llama", "gemma3": "gemma3", "olmo22": "olmo2"} {
		if got := nearestName(name, architectureNames()); got != want {
			t.Errorf("nearest to %s: %s, expected %s", name, got, want)
		}
	}
}
