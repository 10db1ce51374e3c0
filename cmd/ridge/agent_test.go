package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
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

// A server's address is taken as people write it, and its key where it wants one.
func TestAgentReachesServer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"data":[{"id":"m","max_model_len":4096}]}`)
	}))
	defer srv.Close()
	printed := func(args ...string) (string, error) {
		var out strings.Builder
		c := agentCommand()
		c.SetContext(t.Context())
		c.SetArgs(append([]string{"--print"}, args...))
		c.SetOut(&out)
		c.SetErr(io.Discard)
		err := c.Execute()
		return out.String(), err
	}
	t.Setenv("RIDGE_API_KEY", "")
	if got, err := printed("codex", "--url", srv.URL); err == nil || !strings.Contains(err.Error(), "RIDGE_API_KEY") {
		t.Errorf("without a key: got %s, %v", got, err)
	}
	if got, err := printed("codex", "--ctx", "-1"); err == nil || !strings.Contains(err.Error(), "--ctx") {
		t.Errorf("a negative context: got %s, %v", got, err)
	}
	t.Setenv("RIDGE_API_KEY", "sesame")
	for program, want := range map[string]string{
		"codex":    `RIDGE_API_KEY=sesame codex .*base_url="` + srv.URL + `/v1",wire_api="responses",env_key="RIDGE_API_KEY"}`,
		"claude":   `ANTHROPIC_BASE_URL=` + srv.URL + ` ANTHROPIC_AUTH_TOKEN=sesame `,
		"opencode": `"apiKey":"sesame","baseURL":"` + srv.URL + `/v1"`,
	} {
		for _, url := range []string{srv.URL, srv.URL + "/", srv.URL + "/v1", srv.URL + "/v1/", strings.TrimPrefix(srv.URL, "http://")} {
			if got, err := printed(program, "--url", url); err != nil || !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("%s at %s: got %s, %v, want %s", program, url, got, err, want)
			}
		}
	}
}

// Claude Code sums up before a context is full: at a percentage of the least that it can be
// told of, less what it keeps for an answer, or where it fits in, of the context.
func TestClaudeWindow(t *testing.T) {
	for context, want := range map[int]string{
		0:       "",
		4096:    "CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000 CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=4.48", // 3,584 of 80,000
		32768:   "CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000 CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=35.84",
		131_072: "CLAUDE_CODE_AUTO_COMPACT_WINDOW=131072",
	} {
		if got := strings.Join(claudeWindow(context), " "); got != want {
			t.Errorf("context of %d: got %q, want %q", context, got, want)
		}
	}
}
