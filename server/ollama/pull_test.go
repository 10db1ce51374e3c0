package ollama

import "testing"

func TestPullNames(t *testing.T) {
	for name, want := range map[string]string{
		"smollm2": "smollm2:135m", "Tiny:latest": "tiny", "mixtral:8x7b": "ollama:mixtral:8x7b", "mixtral:latest": "ollama:mixtral", "mistral:latest": "mistral:7b", "hf.co/org/repo:Q4_0": "hf:org/repo:Q4_0", "org/repo": "hf:org/repo",
		"hf:org/repo": "hf:org/repo", "ollama:a:b": "ollama:a:b",
		"": "", "/etc/passwd": "", "../x": "", "~/x": "", "http://h/x": "", "https://h/x.gguf": "", "file:///x": "", "ollama:host/ns/model": "", "a/b/c": "", "x y": "", "a//b": "", "HTTP://h/x": "",
	} {
		got, err := RemoteRef(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", name, got, err, want)
		}
	}
}
