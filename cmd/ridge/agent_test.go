package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A program is told of a model that the server has, and of the context.
func TestAgentAsksServer(t *testing.T) {
	list := `{"data":[{"id":"first","max_model_len":4096},{"id":"second","max_model_len":8192}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, list) }))
	defer srv.Close()
	printed := func(args ...string) (string, error) {
		var out strings.Builder
		c := agentCommand()
		c.SetContext(t.Context())
		c.SetArgs(append([]string{"codex", "--print", "--url", srv.URL + "/"}, args...))
		c.SetOut(&out)
		c.SetErr(io.Discard)
		err := c.Execute()
		return out.String(), err
	}
	for args, want := range map[string][2]string{
		"":                  {"first", "4096"},
		"-m second":         {"second", "8192"},
		"-m other":          {"other", "4096"}, // an alias
		"--ctx 512":         {"first", "512"},
		"-m second --ctx 9": {"second", "9"},
	} {
		got, err := printed(strings.Fields(args)...)
		if err != nil || !strings.Contains(got, `'model="`+want[0]+`"'`) || !strings.Contains(got, "model_context_window="+want[1]) || !strings.Contains(got, srv.URL+"/v1") {
			t.Errorf("%q: got %s, %v, want %q", args, got, err, want)
		}
	}
	list = `{"data":[]}`
	if got, err := printed(); err == nil || !strings.Contains(err.Error(), "models of the server") {
		t.Errorf("a server without models: got %s, %v", got, err)
	}
	if got, err := printed("-m", "m"); err != nil || !strings.Contains(got, `model="m"`) {
		t.Errorf("a server without models, and one named: got %s, %v", got, err)
	}
}
