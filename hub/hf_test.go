package hub

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const testCommit = "0123456789abcdef0123456789abcdef01234567"

// hfServer is a Hugging Face hub with one repository.
type hfServer struct {
	*server
	url   string
	files map[string][]byte
}

// newHF serves files of org/repo. Files of 1 kB and more are "LFS" files, with
// a sha256 and a redirect to another host; smaller ones have a git id.
// Without inline, sizes are only in the paged tree listing.
func newHF(t *testing.T, inline bool, files map[string][]byte) *hfServer {
	t.Helper()
	h := &hfServer{server: &server{content: map[string][]byte{}, redirect: map[string]string{}}, files: files}
	cdn := &server{content: map[string][]byte{}}
	cdnURL := start(t, cdn, nil)
	ts := httptest.NewServer(h.server)
	t.Cleanup(ts.Close)
	h.url = ts.URL
	t.Setenv("HF_ENDPOINT", ts.URL+"/")
	var siblings, tree []map[string]any
	for name, b := range files {
		s := map[string]any{"rfilename": name}
		e := map[string]any{"type": "file", "path": name, "size": len(b), "oid": gitSum(b)}
		if inline {
			s["size"], s["blobId"] = len(b), gitSum(b)
		}
		at := "/org/repo/resolve/" + testCommit + "/" + name
		if len(b) >= 1000 {
			lfs := map[string]any{"sha256": sumOf(b), "oid": sumOf(b), "size": len(b), "pointerSize": 134}
			e["lfs"], e["oid"] = lfs, strings.Repeat("a", 40)
			if inline {
				s["lfs"], s["blobId"] = lfs, strings.Repeat("a", 40)
			}
			cdn.content["/"+sumOf(b)] = b
			h.redirect[at] = cdnURL + "/" + sumOf(b) + "?X-Signature=s3cret"
		} else {
			h.content[at] = b
		}
		siblings, tree = append(siblings, s), append(tree, e)
	}
	info := map[string]any{"sha": testCommit, "cardData": map[string]any{"license": "mit"}, "siblings": siblings}
	h.content["/api/models/org/repo/revision/main"] = mustJSON(info)
	h.content["/api/models/org/repo/revision/v1.0"] = mustJSON(info)
	h.content["/api/models/org/repo/tree/"+testCommit] = mustJSON(append(tree, map[string]any{"type": "directory", "path": "sub"}))
	return h
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func gitSum(b []byte) string {
	s := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
	return hex.EncodeToString(s[:])
}

func ggufRepo() map[string][]byte {
	files := map[string][]byte{"README.md": []byte("hello"), "mmproj-model-f16.gguf": fakeGGUF(2000, 9), "big/m-Q8_0-00001-of-00002.gguf": fakeGGUF(3000, 1), "big/m-Q8_0-00002-of-00002.gguf": fakeGGUF(2500, 2)}
	for i, q := range []string{"Q2_K", "Q4_K_M", "Q4_K_S", "f16", "UD-Q4_K_XL"} {
		files["m-"+q+".gguf"] = fakeGGUF(200_000+i, uint64(40+i))
	}
	return files
}

func TestHFGGUF(t *testing.T) {
	files := ggufRepo()
	for _, tc := range []struct {
		ref, file, quant string
	}{
		{"hf:org/repo", "m-Q4_K_M.gguf", "Q4_K_M"},
		{"org/repo", "m-Q4_K_M.gguf", "Q4_K_M"},
		{"hf:org/repo:q2_k", "m-Q2_K.gguf", "Q2_K"},
		{"hf.co/org/repo:F16", "m-f16.gguf", "F16"},
		{"huggingface.co/org/repo:UD-Q4_K_XL", "m-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
		{"hf:org/repo:m-Q4_K_S.gguf", "m-Q4_K_S.gguf", "Q4_K_S"},
		{"hf:org/repo/m-Q4_K_S.gguf", "m-Q4_K_S.gguf", "Q4_K_S"},
		{"hf:org/repo@v1.0:Q2_K", "m-Q2_K.gguf", "Q2_K"},
		{"https://huggingface.co/org/repo/resolve/main/m-Q2_K.gguf?download=true", "m-Q2_K.gguf", "Q2_K"},
		{"https://huggingface.co/org/repo/blob/v1.0/m-Q2_K.gguf", "m-Q2_K.gguf", "Q2_K"},
	} {
		for _, inline := range []bool{true, false} {
			t.Run(fmt.Sprint(tc.ref, inline), func(t *testing.T) {
				sandbox(t)
				newHF(t, inline, files)
				m, err := Resolve(t.Context(), tc.ref, Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkModel(t, m, files[tc.file])
				if filepath.Base(m.Path()) != tc.file || m.Quant != tc.quant || m.License != "mit" || m.Revision != testCommit {
					t.Errorf("model %+v", m)
				}
				if again, err := Find(m.Name, Options{}); err != nil || again.Path() != m.Path() {
					t.Errorf("Find(%q) = %v, %v", m.Name, again, err)
				}
			})
		}
	}
}

func TestHFShards(t *testing.T) {
	sandbox(t)
	files := ggufRepo()
	newHF(t, true, files)
	m, err := Resolve(t.Context(), "hf:org/repo:Q8_0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != 2 || filepath.Base(m.Files[0]) != "m-Q8_0-00001-of-00002.gguf" || m.Size != 5500 {
		t.Errorf("model %+v", m)
	}
}

func TestHFSafetensors(t *testing.T) {
	files := map[string][]byte{
		"config.json": []byte(`{"model_type":"llama"}`), "tokenizer.json": fakeGGUF(5000, 1), "tokenizer_config.json": []byte("{}"),
		"model-00001-of-00002.safetensors": fakeGGUF(50_000, 2), "model-00002-of-00002.safetensors": fakeGGUF(60_000, 3),
		"model.safetensors.index.json": []byte(`{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`),
		"pytorch_model.bin":            fakeGGUF(2000, 4), "onnx/model.onnx": fakeGGUF(2000, 5), "README.md": []byte("x"),
	}
	for _, ref := range []string{"hf:org/repo", "hf:org/repo:safetensors"} {
		sandbox(t)
		newHF(t, true, files)
		m, err := Resolve(t.Context(), ref, Options{})
		if err != nil {
			t.Fatal(err)
		}
		fi, err := os.Stat(m.Path())
		if err != nil || !fi.IsDir() {
			t.Fatalf("Path %s is no folder: %v", m.Path(), err)
		}
		var names []string
		for _, f := range m.Files[1:] {
			names = append(names, filepath.Base(f))
			got, _ := os.ReadFile(f)
			if string(got) != string(files[filepath.Base(f)]) {
				t.Errorf("%s differs", f)
			}
		}
		slices.Sort(names)
		want := []string{"config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json"}
		if !slices.Equal(names, want) {
			t.Errorf("files %v", names)
		}
		local, err := Find(m.Path(), Options{})
		if err != nil || local.Size < m.Size {
			t.Errorf("opened as a folder: %+v, %v", local, err)
		}
	}
}

// TestHFInterrupted stops a pull of several files and checks that the finished
// ones are not fetched again.
func TestHFInterrupted(t *testing.T) {
	files := map[string][]byte{"config.json": []byte("{}")}
	for i := range 4 {
		files[fmt.Sprintf("model-0000%d-of-00004.safetensors", i+1)] = fakeGGUF(100_000, uint64(i))
	}
	dir := sandbox(t)
	h := newHF(t, true, files)
	last := "/org/repo/resolve/" + testCommit + "/model-00004-of-00004.safetensors"
	target := h.redirect[last]
	h.redirect[last] = ""
	if _, err := Resolve(t.Context(), "hf:org/repo", Options{}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Fatalf("error %v", err)
	}
	if ms, _ := listOnDisk(Options{}); len(ms) != 0 {
		t.Errorf("List = %v", ms)
	}
	h.redirect[last] = target
	before := len(h.requests)
	m, err := Resolve(t.Context(), "hf:org/repo", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range h.requests[before:] {
		if strings.Contains(r, "resolve") && !strings.Contains(r, "model-00004") {
			t.Errorf("fetched again: %s", r)
		}
	}
	if m.Size != 400_002 || len(leftovers(dir)) != 6 {
		t.Errorf("model %+v, store %v", m, leftovers(dir))
	}
}

func TestHFErrors(t *testing.T) {
	files := ggufRepo()
	for _, tc := range []struct {
		name, ref string
		prepare   func(t *testing.T, h *hfServer)
		want      string
	}{
		{"no such quant", "hf:org/repo:IQ1_S", nil, `no file matches "IQ1_S": found m-f16.gguf, m-Q2_K.gguf`},
		{"no such file", "hf:org/repo:x.gguf", nil, `no file matches "x.gguf"`},
		{"no such repo", "hf:org/none", nil, "not found"},
		{"gated", "hf:org/repo", func(t *testing.T, h *hfServer) { h.fail = repeat(403, 9) }, "access must be granted"},
		{"private", "hf:org/repo", func(t *testing.T, h *hfServer) { h.fail = repeat(401, 9) }, "set HF_TOKEN"},
		{"down", "hf:org/repo", func(t *testing.T, h *hfServer) { h.fail = repeat(503, 9) }, "HTTP 503"},
		{"offline", "hf:org/repo", func(t *testing.T, h *hfServer) { t.Setenv("HF_HUB_OFFLINE", "1") }, "HF_HUB_OFFLINE"},
		{"bad commit", "hf:org/repo", func(t *testing.T, h *hfServer) {
			h.content["/api/models/org/repo/revision/main"] = []byte(`{"sha":"../../x"}`)
		}, "expected a commit id"},
		{"not json", "hf:org/repo", func(t *testing.T, h *hfServer) {
			h.content["/api/models/org/repo/revision/main"] = []byte(`<html>`)
		}, "not the expected JSON"},
		{"traversal", "hf:org/repo:Q4_K_M", func(t *testing.T, h *hfServer) {
			h.content["/api/models/org/repo/revision/main"] = []byte(`{"sha":"` + testCommit + `","siblings":[{"rfilename":"../../../m-Q4_K_M.gguf","size":5}]}`)
		}, "unsafe file name"},
		{"traversal in safetensors", "hf:org/repo", func(t *testing.T, h *hfServer) {
			h.content["/api/models/org/repo/revision/main"] = []byte(`{"sha":"` + testCommit + `","siblings":[{"rfilename":"config.json","size":5},{"rfilename":"..\\x.safetensors","size":5}]}`)
		}, "unsafe file name"},
		{"short blob", "hf:org/repo:Q4_K_M", func(t *testing.T, h *hfServer) {
			h.redirect = nil
			h.content["/org/repo/resolve/"+testCommit+"/m-Q4_K_M.gguf"] = files["m-Q4_K_M.gguf"][:1000]
		}, "changed"},
		{"wrong blob", "hf:org/repo:Q4_K_M", func(t *testing.T, h *hfServer) {
			h.redirect = nil
			h.content["/org/repo/resolve/"+testCommit+"/m-Q4_K_M.gguf"] = fakeGGUF(len(files["m-Q4_K_M.gguf"]), 99)
		}, "checksum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := sandbox(t)
			h := newHF(t, true, files)
			if tc.prepare != nil {
				tc.prepare(t, h)
			}
			_, err := Resolve(t.Context(), tc.ref, Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if left := leftovers(dir); len(left) != 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}

// TestHFToken checks that the token goes to the hub and nowhere else, and is
// found in all the places where the hub's own tools look.
func TestHFToken(t *testing.T) {
	files := ggufRepo()
	for _, where := range []string{"HF_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "home"} {
		sandbox(t)
		file := filepath.Join(t.TempDir(), "token")
		switch where {
		case "HF_TOKEN":
			t.Setenv("HF_TOKEN", "hf_secret")
		case "HF_TOKEN_PATH":
			t.Setenv("HF_TOKEN_PATH", file)
		case "HF_HOME":
			t.Setenv("HF_HOME", filepath.Dir(file))
		case "home":
			file = filepath.Join(os.Getenv("HOME"), ".cache", "huggingface", "token")
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("hf_secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHF(t, true, files)
		if _, err := Resolve(t.Context(), "hf:org/repo:Q2_K", Options{}); err != nil {
			t.Fatal(err)
		}
		for i, a := range h.auth {
			if a != "Bearer hf_secret" {
				t.Errorf("%s: request %s has authorization %q", where, h.requests[i], a)
			}
		}
	}
}

// TestHFTokenStaysHome redirects to another host, which must not see the token.
func TestHFTokenStaysHome(t *testing.T) {
	sandbox(t)
	t.Setenv("HF_TOKEN", "hf_secret")
	content := fakeGGUF(5000, 1)
	cdn := &server{content: map[string][]byte{"/blob": content}}
	cdnURL := start(t, cdn, nil)
	h := newHF(t, true, map[string][]byte{"m-Q4_0.gguf": content})
	// A subdomain is another host too: net/http alone would pass the token on.
	h.redirect["/org/repo/resolve/"+testCommit+"/m-Q4_0.gguf"] = strings.Replace(cdnURL, "127.0.0.1", "localhost", 1) + "/blob"
	if _, err := Resolve(t.Context(), "hf:org/repo", Options{}); err != nil {
		t.Fatal(err)
	}
	for _, a := range cdn.auth {
		if a != "" {
			t.Errorf("the other host got %q", a)
		}
	}
}

// TestHFPages follows the Link header of the tree listing, on its host only.
func TestHFPages(t *testing.T) {
	content := fakeGGUF(5000, 1)
	run := func(next string) error {
		sandbox(t)
		h := newHF(t, false, map[string][]byte{"m-Q4_0.gguf": content})
		full := h.content["/api/models/org/repo/tree/"+testCommit]
		h.content["/api/models/org/repo/tree/"+testCommit] = []byte("[]")
		h.content["/page2"] = full
		h.header = map[string][]string{"Link": {"<" + strings.ReplaceAll(next, "HOST", h.url) + `>; rel="next"`}}
		_, err := Resolve(t.Context(), "hf:org/repo:m-Q4_0.gguf", Options{})
		return err
	}
	if err := run("http://127.0.0.1:9/page2"); err == nil || !strings.Contains(err.Error(), "another host") {
		t.Errorf("other host: error %v", err)
	}
	if err := run("HOST/page2"); err == nil || !strings.Contains(err.Error(), "more than 50 pages") { // the header is on every page
		t.Errorf("endless pages: error %v", err)
	}
}
