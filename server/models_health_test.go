package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/engine"
	"ridge/kvcache"
	"ridge/model"
	"ridge/server/run"
)

// The server says that it is not healthy when no model can answer: none is loaded,
// and those that could be are not there, or could not be loaded.
func TestHealthOfModels(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	fail := errors.New("disk /dev/x is broken")
	load := func(_ context.Context, name string, pages *kvcache.Budget) (*model.Model, engine.Options, error) {
		if fail != nil {
			return nil, engine.Options{}, fail
		}
		mm, err := model.Open(tinyPath, model.Options{Workers: 1, PageTokens: 16, KVBudget: pages})
		return mm, engine.Options{}, err
	}
	reg, err := engine.NewRegistry(load, engine.RegistryOptions{PageBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := run.ModelConfig{Name: "m", Path: path}
	all := func() []run.ModelConfig {
		if c.Name == "" {
			return nil
		}
		return []run.ModelConfig{c}
	}
	s, srv := listen(t, Options{Source: &Source{Registry: reg, Find: func(name string) (run.ModelConfig, bool) { return c, name == c.Name }, List: all}})
	health := func(status int, says string) {
		t.Helper()
		for _, path := range []string{"/health", "/v1/health", "/ready"} {
			got, _, b := send(t, "GET", srv.URL+path, "")
			if got != status || !strings.Contains(string(b), says) || strings.Contains(string(b), "/dev") || strings.Contains(string(b), filepath.Dir(c.Path)) {
				t.Errorf("%s: status %d, want %d with %q: %s", path, got, status, says, b)
			}
		}
	}
	health(503, "no model can answer: m: stat m.gguf")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	health(200, "ok") // as far as is known
	ask := `{"model":"m","prompt":"the","max_tokens":1}`
	post(t, srv.URL+"/v1/completions", ask, 503)
	health(503, "broken")
	fail = nil
	post(t, srv.URL+"/v1/completions", ask, 200)
	health(200, "ok")
	// What is loaded stays so when the configuration is read again.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	c.Aliases = []string{"other"}
	s.Reload()
	health(200, "ok")
	if m := s.lib.Loaded(); len(m) != 1 {
		t.Fatalf("%d models are loaded", len(m))
	}
	post(t, srv.URL+"/v1/completions", ask, 200)
	if m := s.lib.Loaded(); len(m) != 1 || !m[0].Named("other") {
		t.Errorf("what the source says anew is not taken over: %d models", len(m))
	}
	c.Name = ""
	s.Reload()
	if m := s.lib.Loaded(); len(m) != 1 || len(s.lib.List()) != 0 {
		t.Errorf("of a model that was taken out %d are loaded, %d listed", len(m), len(s.lib.List()))
	}
}

// Routes of llama-server without /v1.
func TestRoutesWithoutV1(t *testing.T) {
	srv, _ := scripted(t, "abc")
	equal(t, "responses", post(t, srv.URL+"/responses", `{"input":"Hi"}`, 200).at("status"), "completed")
	n := post(t, srv.URL+"/responses/input_tokens", `{"input":"Hi"}`, 200)["input_tokens"]
	for _, path := range []string{"/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"} {
		equal(t, path, post(t, srv.URL+path, `{`+hello+`}`, 200)["input_tokens"], n)
	}
}
