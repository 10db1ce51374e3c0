package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ridge/internal/testdata"
)

// program is a real program that works with servers. In what it is told @URL@ is the
// server's address, @MODEL@ a model's name, @TEXT@ what the user says and @HERE@ the
// folder of the files of programs.
type program struct {
	file, name string // of what is recorded, and as people know it
	from       string // its package, with which its version is pinned
	path       string // in the folder of programs
	turn       []string
	next       []string // another turn of the same conversation, nil if there is none
	both       bool     // next has the text of both turns, in one process
	files      map[string]string
	env        []string
	tool       string   // for commands, "" for none
	field      string   // its argument
	call       string   // what a model says in place of a call of tool
	final      string   // and when that has been done
	made       string   // a file that the call makes
	real       []string // a turn with a real model, in place of turn
	prompt     int      // tokens of its first prompt, as Qwen 2.5 counts them
	told       string   // what it says of a prompt that is too long, if not what the server says
}

const (
	didCall = "ridge-42"             // what the command prints
	said    = "It printed ridge-42." // what the model says then
	command = "echo ridge-$((40+2))" // what the model calls the tool with
)

const openaiEnv = "OPENAI_API_KEY=none"

// programs are those that docs/agents.md lists. Versions are in
// testdata/agents/programs.
var programs = []program{
	{file: "codex", name: "Codex", prompt: 8670, from: "@openai/codex", told: "ran out of room in the model's context window", path: "node_modules/.bin/codex", tool: "exec_command", field: "cmd",
		turn: []string{"exec", "--skip-git-repo-check", "@TEXT@"}, next: []string{"exec", "resume", "--last", "--skip-git-repo-check", "@TEXT@"},
		files: map[string]string{".codex/config.toml": "model = \"@MODEL@\"\nmodel_provider = \"ridge\"\n[model_providers.ridge]\nname = \"ridge\"\nbase_url = \"@URL@/v1\"\nwire_api = \"responses\"\n"}},
	{file: "claude-code", name: "Claude Code", prompt: 21200, from: "@anthropic-ai/claude-code", told: "Prompt is too long", real: []string{"-p", "@TEXT@", "--tools", "Bash,Read"}, path: "node_modules/.bin/claude", tool: "Bash", field: "command",
		turn: []string{"-p", "@TEXT@", "--allowedTools", "Bash"}, next: []string{"-c", "-p", "@TEXT@"},
		env: []string{"ANTHROPIC_BASE_URL=@URL@", "ANTHROPIC_AUTH_TOKEN=none", "ANTHROPIC_MODEL=@MODEL@", "ANTHROPIC_DEFAULT_HAIKU_MODEL=@MODEL@"}},
	{file: "opencode", name: "opencode", prompt: 7220, from: "opencode-ai", path: "node_modules/.bin/opencode", tool: "bash",
		call: `<tool_call>{"name":"bash","arguments":{"command":"` + command + `","description":"prints"}}</tool_call>`,
		turn: []string{"run", "-m", "ridge/@MODEL@", "@TEXT@"}, next: []string{"run", "-c", "-m", "ridge/@MODEL@", "@TEXT@"},
		files: map[string]string{".config/opencode/opencode.json": `{"provider":{"ridge":{"npm":"@ai-sdk/openai-compatible","name":"ridge","options":{"baseURL":"@URL@/v1"},"models":{"@MODEL@":{"name":"@MODEL@"}}}}}`}},
	{file: "agents-sdk-responses", name: "Agents SDK, responses", prompt: 190, from: "openai-agents", path: "clients/bin/python", tool: "run_command", field: "command",
		turn: []string{"@HERE@/agents_sdk.py", "responses", "@URL@", "@TEXT@"}, next: []string{"@HERE@/agents_sdk.py", "responses", "@URL@", "@TEXT@"}},
	{file: "agents-sdk-chat", name: "Agents SDK, chat", prompt: 190, from: "openai-agents", path: "clients/bin/python", tool: "run_command", field: "command",
		turn: []string{"@HERE@/agents_sdk.py", "chat", "@URL@", "@TEXT@"}, next: []string{"@HERE@/agents_sdk.py", "chat", "@URL@", "@TEXT@"}},
	{file: "mcp", name: "MCP (Agents SDK with a server of `mcp`)", prompt: 170, from: "mcp", path: "clients/bin/python", tool: "run_command", field: "command",
		turn: []string{"@HERE@/agents_sdk.py", "mcp", "@URL@", "@TEXT@"}, next: []string{"@HERE@/agents_sdk.py", "mcp", "@URL@", "@TEXT@"}},
	{file: "smolagents", name: "smolagents", prompt: 1080, from: "smolagents", path: "clients/bin/python", tool: "run_command", field: "command",
		turn: []string{"@HERE@/smol.py", "@URL@", "@MODEL@", "@TEXT@"}, next: []string{"@HERE@/smol.py", "@URL@", "@MODEL@", "run it", "@TEXT@"}, both: true,
		final: `<tool_call>{"name":"final_answer","arguments":{"answer":"` + said + `"}}</tool_call>`},
	{file: "mini-swe-agent", name: "mini-swe-agent", prompt: 850, from: "mini-swe-agent", path: "clients/bin/mini", tool: "bash", field: "command",
		turn:  []string{"-m", "openai/@MODEL@", "-y", "--exit-immediately", "-t", "@TEXT@", "-o", "trajectory.json", "-c", "mini.yaml", "-c", "model.model_kwargs.api_base=@URL@/v1"},
		env:   []string{openaiEnv, "MSWEA_CONFIGURED=true", "MSWEA_COST_TRACKING=ignore_errors", "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT=3", "LITELLM_LOCAL_MODEL_COST_MAP=True"},
		final: `<tool_call>{"name":"bash","arguments":{"command":"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo ` + said + `"}}</tool_call>`},
	{file: "aider", name: "aider", prompt: 2360, from: "aider-chat", path: "aider/bin/aider", made: "out.txt",
		turn: []string{"--model", "openai/@MODEL@", "--edit-format", "diff", "--no-git", "--yes-always", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable", "--no-gitignore", "--no-pretty", "--message", "@TEXT@"},
		next: []string{"--model", "openai/@MODEL@", "--edit-format", "diff", "--no-git", "--yes-always", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--analytics-disable", "--no-gitignore", "--no-pretty", "--restore-chat-history", "--message", "@TEXT@", "out.txt"},
		env:  []string{"OPENAI_API_BASE=@URL@/v1", openaiEnv, "LITELLM_LOCAL_MODEL_COST_MAP=True"},
		call: said + "\n\nout.txt\n```\n<<<<<<< SEARCH\n=======\nridge-42\n>>>>>>> REPLACE\n```\n"},
	{file: "llm", name: "llm", prompt: 170, from: "llm", path: "clients/bin/llm", tool: "run_command", field: "command",
		turn: []string{"-m", "@MODEL@", "--functions", llmFunction, "@TEXT@"}, next: []string{"-c", "--functions", llmFunction, "@TEXT@"},
		files: map[string]string{".config/io.datasette.llm/extra-openai-models.yaml": "- model_id: @MODEL@\n  model_name: @MODEL@\n  api_base: @URL@/v1\n  supports_tools: true\n"}, env: []string{openaiEnv}},
}

const llmFunction = `
import subprocess
def run_command(command: str) -> str:
    "Run a command."
    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout
`

// version is the pinned one.
func (p *program) version(t *testing.T) string {
	t.Helper()
	dir := "testdata/agents/programs/"
	var npm struct{ Dependencies map[string]string }
	b, err := os.ReadFile(dir + "package.json")
	if err == nil {
		err = json.Unmarshal(b, &npm)
	}
	if err != nil {
		t.Fatal(err)
	}
	if v := npm.Dependencies[p.from]; v != "" {
		return v
	}
	for _, file := range []string{"clients.txt", "aider.txt"} {
		b, err := os.ReadFile(dir + file)
		if err != nil {
			t.Fatal(err)
		}
		if m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(p.from) + `==(.*)$`).FindSubmatch(b); m != nil {
			return string(m[1])
		}
	}
	t.Fatalf("%s: no version in %s", p.from, dir)
	return ""
}

// programFolder is where the programs are, put there by
// testdata/agents/programs/install.sh.
func programFolder(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("real programs take minutes")
	}
	dir := os.Getenv("RIDGE_AGENT_PROGRAMS")
	if dir == "" {
		testdata.Skip(t, "RIDGE_AGENT_PROGRAMS is not set: the folder that server/testdata/agents/programs/install.sh fills")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// rows are the rows of programs in docs/agents.md.
func rows(page string) (before, table, after string) {
	const head = "| program | version |"
	at := strings.Index(page, head)
	if at < 0 {
		return page, "", ""
	}
	end := strings.Index(page[at:], "\n\n")
	return page[:at], page[at : at+end+1], page[at+end+1:]
}
