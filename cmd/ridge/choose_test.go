//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ridge/hub"
)

func TestIsPrompt(t *testing.T) {
	t.Chdir("testdata")
	for arg, want := range map[string]bool{
		"Why is the sky blue?": true, "Hello!": true, "two words": true, "a\nb": true, `say "x"`: true,
		"smollm2": false, "qwen2.5-coder:0.5b": false, "org/model": false, "./x.gguf": false, "hello": false, "script": false,
		"hf:org/model:a file.gguf": false, "https://host/x.gguf?a=b": false, "builtin:tiny": false,
	} {
		if got := isPrompt(arg); got != want {
			t.Errorf("isPrompt(%q) = %v", arg, got)
		}
	}
}

// On a terminal, with a network and without any model, run offers what can be
// downloaded, with sizes and quality, and takes no for an answer.
func TestOffer(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead && r.Method != http.MethodConnect { // what looks for a network
			asked.Add(1)
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	p := startTerminalWith(t, networkOf(s.URL), "run", "-n", "8", "Tell me a story.")
	p.expect("1  qwen2.5-coder:0.5b   468.6 MiB  answers")
	p.expect("smollm2:135m")
	p.expect("93.8 MiB")
	p.expect("Enter for qwen2.5-coder:0.5b, n for none:")
	p.send("what?\n")
	p.expect("n for none:")
	p.send("n\n")
	p.expect("using tiny")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests after a no", n)
	}
}

// networkOf is an environment in which the hub and the package index are at url.
func networkOf(url string) []string {
	return []string{"HF_ENDPOINT=" + url, "PIP_INDEX_URL=" + url, "PIP_FIND_LINKS=", "RIDGE_OFFLINE=", "HTTPS_PROXY=" + url, "CI="}
}

// A download that fails leaves the small model, then tiny, each said in a line.
func TestDownloadFails(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	p := startTerminalWith(t, networkOf(s.URL), "run", "-n", "8", "Tell me a story.")
	p.expect("n for none:")
	p.send("\n")
	p.expect("qwen2.5-coder:0.5b cannot be had")
	p.expect("trying smollm2")
	p.expect("smollm2:135m cannot be had")
	p.expect("using tiny")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Nobody is asked with --yes, in CI, and where the input is no terminal.
func TestNotAsked(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for _, tc := range []struct {
		env  []string
		args []string
	}{
		{networkOf(s.URL), []string{"run", "-n", "4", "--yes", "Tell me a story."}},
		{append(networkOf(s.URL), "CI=true"), []string{"run", "-n", "4", "Tell me a story."}},
	} {
		p := startTerminalWith(t, tc.env, tc.args...)
		p.expect("using tiny")
		if err := p.cmd.Wait(); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		if text := p.out.String(); strings.Contains(text, "Which one") {
			t.Errorf("%v: asked:\n%s", tc.args, text)
		}
		p.mu.Unlock()
	}
}

// dripping serves a hub whose files come at so many bytes each 20 ms.
func dripping(each int) http.Handler {
	files := map[string]hub.CatalogSource{}
	for _, e := range hub.Catalog() {
		for _, src := range e.Sources {
			if repo, file, ok := strings.Cut(strings.TrimPrefix(src.Ref, "hf:"), ":"); ok && src.SHA256 != "" && strings.HasPrefix(src.Ref, "hf:") {
				src.File = file
				files[repo] = src
			}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/models"), "/")
		if len(parts) < 4 {
			http.NotFound(w, r)
			return
		}
		src, ok := files[parts[1]+"/"+parts[2]]
		switch {
		case !ok:
			http.NotFound(w, r)
		case parts[3] == "revision":
			fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":%q,"size":%d,"lfs":{"sha256":%q,"size":%d}}]}`,
				strings.Repeat("a", 40), src.File, src.Size, src.SHA256, src.Size)
		default:
			w.Header().Set("Content-Length", fmt.Sprint(src.Size))
			for r.Context().Err() == nil {
				w.Write(make([]byte, each))
				w.(http.Flusher).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
}

// A network that is too slow for the default model, and for the small one, leaves
// tiny; the measured rate and the time are told.
func TestSlowNetwork(t *testing.T) {
	s := httptest.NewServer(dripping(64))
	defer s.Close()
	home := t.TempDir()
	c := exec.Command("ridge", "run", "-n", "4", "Tell me a story.")
	c.Env = append(append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "RIDGE_MODELS="+filepath.Join(home, "models"), "RIDGE_TEST_MEASURE=300ms"), networkOf(s.URL)...)
	out, err := c.CombinedOutput()
	want := regexp.MustCompile(`(?s)ridge: qwen2.5-coder:0.5b is left: at [0-9.]+ KiB/s its 468.6 MiB would take \S[^\n]*: trying smollm2:135m\n.*` +
		`ridge: smollm2:135m is left: at [0-9.]+ KiB/s its 93.8 MiB would take \S[^\n]*: using tiny`)
	if err != nil || !want.Match(out) {
		t.Errorf("%v, output:\n%s", err, out)
	}
	if strings.Contains(string(out), "Which one") {
		t.Error("asked, though the input is no terminal")
	}
}
