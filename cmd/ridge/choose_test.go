//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
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

// On a terminal, with a network and without any model, run offers to download
// one, and takes no for an answer.
func TestOffer(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			asked.Add(1)
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	env := []string{"HF_ENDPOINT=" + s.URL, "PIP_INDEX_URL=" + s.URL, "PIP_FIND_LINKS=", "RIDGE_OFFLINE="}
	p := startTerminalWith(t, env, "run", "-n", "8", "Tell me a story.")
	p.expect("Download smollm2, 93.8 MiB? [Y/n]")
	p.send("n\n")
	p.expect("using tiny")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests after a no", n)
	}
}

// A download that fails leaves tiny, and says why.
func TestDownloadFails(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	env := []string{"HF_ENDPOINT=" + s.URL, "PIP_INDEX_URL=" + s.URL, "PIP_FIND_LINKS=", "RIDGE_OFFLINE=", "HTTPS_PROXY=" + s.URL}
	p := startTerminalWith(t, env, "run", "-n", "8", "Tell me a story.")
	p.expect("[Y/n]")
	p.send("\n")
	p.expect("smollm2 cannot be had")
	p.expect("using tiny")
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
