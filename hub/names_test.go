package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names as other programs write them mean the same places.
func TestForeignNames(t *testing.T) {
	sandbox(t)
	t.Chdir(t.TempDir())
	for in, want := range map[string]string{
		"hf.co/org/repo:Q4_1": "hf:org/repo:Q4_1", "HF.co/org/repo:q4_1": "hf:org/repo:Q4_1", "huggingface.co/org/repo:Q4_1": "hf:org/repo:Q4_1",
		"www.huggingface.co/org/repo": "hf:org/repo", "hf.co/org/repo:latest": "hf:org/repo", "hf.co/org/repo@v1:Q4_1": "hf:org/repo@v1:Q4_1",
		"huggingface.co/org/repo/blob/main/m-Q4_1.gguf": "hf:org/repo:m-Q4_1.gguf", "huggingface.co/org/repo/resolve/v1/sub/m.gguf": "hf:org/repo@v1:sub/m.gguf",
		"https://huggingface.co/org/repo/resolve/main/m.gguf?download=true": "hf:org/repo:m.gguf", "https://hf.co/org/repo:Q4_1": "hf:org/repo:Q4_1",
		"library/x:1b": "ollama:x:1b", "registry.ollama.ai/library/x:1b": "ollama:x:1b", "registry.ollama.ai/ns/x": "ollama:ns/x:latest", "ollama.com/library/x": "ollama:x:latest",
		"ollama:library/x:1b": "ollama:x:1b", "ollama:x:1b": "ollama:x:1b", "org/repo:Q4_1": "hf:org/repo:Q4_1",
	} {
		if r, err := parseRef(in); err != nil || r.text != want {
			t.Errorf("parseRef(%q) = %q, %v, want %q", in, r.text, err, want)
		}
	}
	for _, in := range []string{"hf.co/", "hf.co/org", "hf.co/org/..:Q4_1", "library/a/b/c/d", "registry.ollama.ai/x/../y"} {
		if r, err := parseRef(in); err == nil {
			t.Errorf("parseRef(%q) = %q, want an error", in, r.text)
		}
	}
}

// A quantization of a repository is picked by name from the hub as well.
func TestForeignNameFromHub(t *testing.T) {
	sandbox(t)
	b := fakeGGUF(5000, 91)
	newHF(t, true, map[string][]byte{"m-Q4_K_M.gguf": fakeGGUF(5000, 92), "m-Q4_1.gguf": b})
	m, err := Resolve(t.Context(), "hf.co/org/repo:Q4_1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, b)
	if m.Quant != "Q4_1" || m.Ref != "hf:org/repo:Q4_1" {
		t.Errorf("model %+v", m)
	}
}

// What another program has under a name of its own is found under the names that
// a person may write, without a network.
func TestFoundElsewhere(t *testing.T) {
	defer func(old func() []Entry) { loadCatalog = old }(loadCatalog)
	b, other := fakeGGUF(5000, 93), fakeGGUF(6000, 94)
	loadCatalog = func() []Entry {
		return []Entry{{Name: "test:1m", Aliases: []string{"test"}, License: "mit", Note: "a note", Base: true, Sources: []CatalogSource{
			{Ref: "hf:org/repo:m-Q4_0.gguf", Quant: "Q4_0", Size: 5000, SHA256: sumOf(b)}, {Ref: "ollama:test:1m-q4_0", Quant: "Q4_0"},
		}}}
	}
	ollama := func(name string, b []byte) func(*testing.T, string) {
		return func(t *testing.T, home string) { putOllama(t, filepath.Join(home, ".ollama/models"), name, b) }
	}
	for _, tc := range []struct {
		name  string
		place func(t *testing.T, home string)
		refs  []string
		want  []byte
		owner Owner
		base  bool
	}{
		{"Ollama, the catalogue's name", ollama("registry.ollama.ai/library/test/1m", other), []string{"test:1m", "test", "TEST:1M", "ollama:test:1m", "library/test:1m"}, other, OwnerOllama, false},
		{"Ollama, a source's tag", ollama("registry.ollama.ai/library/test/1m-Q4_0", other), []string{"test:1m", "ollama:test:1m-q4_0"}, other, OwnerOllama, true},
		{"Ollama, the same bytes", ollama("registry.ollama.ai/me/mine/v2", b), []string{"test:1m", "me/mine:v2", "ollama:me/mine:v2", "registry.ollama.ai/me/mine:v2"}, b, OwnerOllama, true},
		{"Ollama, from the hub", ollama("hf.co/Org2/Repo2-GGUF/Q4_K_M", other), []string{"hf.co/Org2/Repo2-GGUF:Q4_K_M", "hf.co/Org2/Repo2-GGUF:q4_k_m", "hf:Org2/Repo2-GGUF:Q4_K_M", "ollama:hf.co/Org2/Repo2-GGUF:Q4_K_M"}, other, OwnerOllama, false},
		{"Ollama, from the hub, any quantization", ollama("hf.co/Org2/Repo2-GGUF/latest", other), []string{"hf.co/Org2/Repo2-GGUF", "hf.co/Org2/Repo2-GGUF:latest"}, other, OwnerOllama, false},
		{"Hugging Face, another repository", func(t *testing.T, home string) {
			putHF(t, filepath.Join(home, ".cache/huggingface/hub"), "else/where", testCommit, "m-Q4_0.gguf", b)
		}, []string{"test:1m"}, b, OwnerHF, true},
		{"LM Studio, another repository", func(t *testing.T, home string) {
			put(t, filepath.Join(home, ".lmstudio/models/else/where/M-Q4_0.gguf"), b)
		}, []string{"test:1m"}, b, OwnerLMStudio, true},
		{"llama.cpp, another repository", func(t *testing.T, home string) {
			put(t, filepath.Join(home, ".cache/llama.cpp/m-Q4_0.gguf"), b)
		}, []string{"test:1m"}, b, OwnerLlamaCpp, true},
		{"Hugging Face, a short commit", func(t *testing.T, home string) {
			putHF(t, filepath.Join(home, ".cache/huggingface/hub"), "org/repo", testCommit, "m-Q4_0.gguf", b)
		}, []string{"hf:org/repo@" + testCommit[:7], "hf:org/repo@" + testCommit[:12] + ":Q4_0", "hf:org/repo@main"}, b, OwnerHF, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := filepath.Dir(sandbox(t))
			t.Chdir(t.TempDir())
			tc.place(t, home)
			for _, ref := range tc.refs {
				m, err := Resolve(t.Context(), ref, Options{Offline: true})
				if err != nil {
					t.Error(err)
					continue
				}
				checkModel(t, m, tc.want)
				if entry := strings.HasPrefix(strings.ToLower(ref), "test"); m.Owner != tc.owner || m.Base != (tc.base && entry) || entry && m.Name != "test:1m" {
					t.Errorf("%s: model %+v", ref, m)
				}
			}
		})
	}
}

// The same name is not enough for a file that is another: LM Studio's size
// differs, Hugging Face's sum.
func TestNotTheCatalogues(t *testing.T) {
	defer func(old func() []Entry) { loadCatalog = old }(loadCatalog)
	b := fakeGGUF(5000, 95)
	loadCatalog = func() []Entry {
		return []Entry{{Name: "test:1m", Sources: []CatalogSource{{Ref: "hf:org/repo:m-Q4_0.gguf", Quant: "Q4_0", Size: 5000, SHA256: sumOf(b)}}}}
	}
	home := filepath.Dir(sandbox(t))
	put(t, filepath.Join(home, ".lmstudio/models/else/where/m-Q4_0.gguf"), fakeGGUF(5001, 95))
	put(t, filepath.Join(home, ".lmstudio/models/else/where/n-Q4_0.gguf"), b)
	putHF(t, filepath.Join(home, ".cache/huggingface/hub"), "else/where", testCommit, "m-Q4_0.gguf", fakeGGUF(5000, 96))
	if m, err := Find("test:1m", Options{}); err == nil {
		t.Errorf("found %+v", m)
	}
}

// A file that is here under any name is not downloaded.
func TestSameBytesHere(t *testing.T) {
	home := filepath.Dir(sandbox(t))
	b := fakeGGUF(300_000, 97)
	s := newHF(t, true, map[string][]byte{"m-Q4_0.gguf": b})
	putOllama(t, filepath.Join(home, ".ollama/models"), "registry.ollama.ai/me/mine/v2", b)
	var remarks []string
	m, err := Resolve(t.Context(), "hf:org/repo:Q4_0", Options{Notify: func(s string) { remarks = append(remarks, s) }})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, b)
	if m.Owner != OwnerOllama || m.Name != "hf:org/repo:Q4_0" || s.requested("/resolve/") != 0 || len(remarks) != 1 || !strings.Contains(remarks[0], "here already (Ollama)") {
		t.Errorf("model %+v, remarks %q", m, remarks)
	}
}

// What is there in part is told with what is missing.
func TestUnusable(t *testing.T) {
	dir := sandbox(t)
	home := filepath.Dir(dir)
	b := fakeGGUF(5000, 98)
	ref := start(t, &server{}, b) + "/m.gguf"
	m, err := Resolve(t.Context(), ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Unusable(Options{}); len(got) != 0 {
		t.Errorf("of a whole model: %+v", got)
	}
	os.Remove(m.Path())
	put(t, filepath.Join(dir, slug("smollm2:135m"), "x.gguf"+incompleteSuffix), b)
	lm := filepath.Join(home, ".lmstudio/models/org/repo")
	put(t, filepath.Join(lm, "m-Q4_0-00001-of-00003.gguf"), b)
	put(t, filepath.Join(lm, "m-Q4_0-00003-of-00003.gguf"), b)
	put(t, filepath.Join(lm, "whole-Q8_0.gguf"), b)
	hf := filepath.Join(home, ".cache/huggingface/hub")
	putHF(t, hf, "org/gone", testCommit, "m-Q4_0.gguf", b)
	os.Remove(filepath.Join(hfRepoDir(hf, "org/gone"), "blobs", sumOf(b)))
	putHF(t, hf, "org/half", testCommit, "config.json", []byte("{}"))
	putHF(t, hf, "org/half", testCommit, "model.safetensors.index.json", []byte(`{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`))
	putHF(t, hf, "org/half", testCommit, "m-1.safetensors", []byte("x"))
	om := filepath.Join(home, ".ollama/models")
	putOllama(t, om, "registry.ollama.ai/library/x/1b", b)
	os.Truncate(filepath.Join(om, "blobs", "sha256-"+sumOf(b)), 17)
	put(t, filepath.Join(om, "manifests/registry.ollama.ai/library/y/1b"), fmt.Appendf(nil, `{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.tensor","digest":"sha256:%s","size":1}]}`, sumOf(b)))

	got := map[string]string{}
	for _, m := range Unusable(Options{}) {
		got[m.Name] = m.Problem
	}
	for name, want := range map[string]string{
		ref: "m.gguf is missing", "smollm2:135m": "not complete", "hf:org/repo:m-Q4_0-00001-of-00003.gguf": "m-Q4_0-00002-of-00003.gguf is missing",
		"hf:org/gone:m-Q4_0.gguf": "a link to a file that is missing", "hf:org/half": "model.safetensors.index.json names is missing",
		"ollama:x:1b": "expected 5000 bytes, found 17", "ollama:y:1b": "1 separate tensors",
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q, want %q in it", name, got[name], want)
		}
		delete(got, name)
	}
	if len(got) != 0 {
		t.Errorf("beside what is broken: %v", got)
	}
	if ms, err := listOnDisk(Options{}); err != nil || len(ms) != 1 || ms[0].Name != "hf:org/repo:whole-Q8_0.gguf" {
		t.Errorf("List = %+v, %v", ms, err)
	}
}
