package server

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/run"
)

// The real programs work unchanged with a model that calls the tool for commands once
// and says what it printed: they start, send all their tools, run the call, send its
// result, and go on in a second turn. RIDGE_AGENT_PROGRAMS is the folder in which npm
// put them.
func TestAgentPrograms(t *testing.T) {
	dir := os.Getenv("RIDGE_AGENT_PROGRAMS")
	if dir == "" {
		t.Skip("RIDGE_AGENT_PROGRAMS is not set: a folder with claude, codex and opencode of npm's @anthropic-ai/claude-code, @openai/codex and opencode-ai")
	}
	for _, c := range []struct {
		name, tool string
		args       [2][]string // of two turns
		file, text string      // configuration; @URL@ is the server's
		env        []string
	}{
		{"codex", "exec_command", [2][]string{{"exec", "--skip-git-repo-check", "run it"}, {"exec", "resume", "--last", "--skip-git-repo-check", "again"}}, ".codex/config.toml",
			"model = \"fake\"\nmodel_provider = \"ridge\"\n[model_providers.ridge]\nname = \"ridge\"\nbase_url = \"@URL@/v1\"\nwire_api = \"responses\"\n", nil},
		{"claude", "Bash", [2][]string{{"-p", "run it", "--allowedTools", "Bash"}, {"-c", "-p", "again"}}, "unused", "", []string{"ANTHROPIC_BASE_URL=@URL@", "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_MODEL=fake", "ANTHROPIC_DEFAULT_HAIKU_MODEL=fake"}},
		{"opencode", "bash", [2][]string{{"run", "-m", "ridge/fake", "run it"}, {"run", "-c", "-m", "ridge/fake", "again"}}, ".config/opencode/opencode.json",
			`{"provider":{"ridge":{"npm":"@ai-sdk/openai-compatible","name":"ridge","options":{"baseURL":"@URL@/v1"},"models":{"fake":{"name":"fake"}}}}}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := byteTokenizer(t)
			b := &script{tok: tok}
			b.reply = func(r *engine.Request, _ int) string {
				prompt := tok.DecodeSpecial(r.Tokens)
				switch {
				case strings.Contains(prompt, "ridge-42"):
					return "It printed ridge-42."
				case strings.Contains(prompt, `"name": "`+c.tool+`"`):
					field := "command"
					if c.name == "codex" {
						field = "cmd"
					}
					return `<tool_call>{"name":"` + c.tool + `","arguments":{"` + field + `":"echo ridge-$((40+2))","description":"prints"}}</tool_call>`
				}
				return "A title"
			}
			m, err := run.ModelOf(b, tok, run.Info{Name: "fake", Path: "fake", Context: 1 << 19, Created: time.Unix(1e9, 0), Arch: "fake", Hidden: 4, Digest: strings.Repeat("a", 64), Parameters: 1e6, PageTokens: 16, Pages: 1 << 15}, hermes)
			if err != nil {
				t.Fatal(err)
			}
			_, srv := listen(t, Options{Models: []*run.Model{m}})
			home := t.TempDir()
			work := filepath.Join(home, "work")
			file := filepath.Join(home, c.file)
			for _, d := range []string{work, filepath.Dir(file)} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(c.text, "@URL@", srv.URL)), 0o600); err != nil {
				t.Fatal(err)
			}
			for turn, args := range c.args {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				cmd := exec.CommandContext(ctx, filepath.Join(dir, c.name), args...)
				cmd.Dir, cmd.Env = work, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
				for _, e := range c.env {
					cmd.Env = append(cmd.Env, strings.ReplaceAll(e, "@URL@", srv.URL))
				}
				out, err := cmd.CombinedOutput()
				cancel()
				if err != nil || !strings.Contains(string(out), "It printed ridge-42.") {
					t.Fatalf("turn %d: %v: %s", turn+1, err, out)
				}
			}
		})
	}
}
