package hub

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// newOllama serves a registry with the model library/m:tag. It returns the
// reference's prefix ("ollama:host/") and the options to reach it with.
func newOllama(t *testing.T, content []byte, manifest string) (*server, string, Options) {
	t.Helper()
	license := []byte("\n  Apache License \nVersion 2.0\n")
	config := []byte(`{"model_format":"gguf","file_type":"Q4_K_M"}`)
	if manifest == "" {
		manifest = fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
"config":{"mediaType":"application/vnd.docker.container.image.v1+json","digest":"sha256:%s","size":%d},
"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d},
{"mediaType":"application/vnd.ollama.image.template","digest":"sha256:%s","size":3},
{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:%s","size":%d}]}`,
			sumOf(config), len(config), sumOf(content), len(content), sumOf([]byte("tpl")), sumOf(license), len(license))
	}
	s := &server{content: map[string][]byte{
		"/v2/library/m/manifests/1b":                   []byte(manifest),
		"/v2/library/m/blobs/sha256:" + sumOf(license): license,
		"/v2/library/m/blobs/sha256:" + sumOf(config):  config,
	}, redirect: map[string]string{}}
	cdn := &server{content: map[string][]byte{"/data": content}}
	front := httptest.NewTLSServer(s)
	back := httptest.NewTLSServer(cdn)
	t.Cleanup(front.Close)
	t.Cleanup(back.Close)
	s.redirect["/v2/library/m/blobs/sha256:"+sumOf(content)] = back.URL + "/data"
	return s, "ollama:" + strings.TrimPrefix(front.URL, "https://") + "/library/", Options{HTTP: front.Client()}
}

func TestOllama(t *testing.T) {
	sandbox(t)
	content := fakeGGUF(400_000, 50)
	_, prefix, o := newOllama(t, content, "")
	bars := &counter{}
	o.Progress = bars
	m, err := Resolve(t.Context(), prefix+"m:1b", o)
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, content)
	bars.check(t)
	if filepath.Base(m.Path()) != "m-1b.gguf" || m.Quant != "Q4_K_M" || m.License != "Apache License" {
		t.Errorf("model %+v", m)
	}
}

func TestOllamaErrors(t *testing.T) {
	content := fakeGGUF(4000, 51)
	layer := func(digest string, size int) string {
		return fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"%s","size":%d}]}`, digest, size)
	}
	for name, tc := range map[string]struct{ manifest, tag, want string }{
		"no such tag":      {"", "2b", "has no model"},
		"traversal":        {layer("sha256:../../../etc/passwd", 5), "1b", "digest: expected sha256"},
		"digest with path": {layer("sha256:"+sumOf(content)+"/../x", 5), "1b", "digest: expected sha256"},
		"upper case":       {layer("sha256:"+strings.ToUpper(sumOf(content)), 5), "1b", "digest: expected sha256"},
		"other hash":       {layer("md5:00", 5), "1b", "digest: expected sha256"},
		"negative size":    {layer("sha256:"+sumOf(content), -1), "1b", "size: expected at least 0"},
		"wrong size":       {layer("sha256:"+sumOf(content), 17), "1b", "changed"},
		"no model":         {`{"schemaVersion":2,"layers":[]}`, "1b", "expected one layer"},
		"tensors":          {`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.tensor","digest":"sha256:` + sumOf(content) + `","size":1}]}`, "1b", "1 separate tensors"},
		"version 1":        {`{"schemaVersion":1}`, "1b", "schemaVersion: expected 2, found 1"},
		"html":             {`<html>`, "1b", "manifest:"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sandbox(t)
			_, prefix, o := newOllama(t, content, tc.manifest)
			_, err := Resolve(t.Context(), prefix+"m:"+tc.tag, o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
			if left := leftovers(dir); len(left) != 0 {
				t.Errorf("left in the store: %v", left)
			}
		})
	}
}
