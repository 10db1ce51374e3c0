//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A configuration in YAML names flags and models; what it does not know is an
// error with the line.
func TestReadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ridge.yaml")
	read := func(text string) (map[string][]string, []servedModel, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readConfig(serveCommand().Flags(), file)
	}
	flags, models, err := read(`# a comment
max-queue: 100
api-key: [a, b]
chat-template-kwargs: {style: short, n: 2}
models:
  - smollm2
  - model: ./x.gguf
    name: fast
    aliases: [gpt-4o-mini, small]
    temp: 0.5
    think: off
    system: Be brief.
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(flags); got != `map[api-key:[a b] chat-template-kwargs:[{"n":2,"style":"short"}] max-queue:[100]]` {
		t.Errorf("flags: %s", got)
	}
	if len(models) != 2 || models[0].model != "smollm2" || models[1].name != "fast" || len(models[1].aliases) != 2 ||
		*models[1].defaults.sampling.Temperature != 0.5 || models[1].defaults.args["enable_thinking"] != false || models[1].defaults.system != "Be brief." {
		t.Errorf("models: %+v", models)
	}
	for text, says := range map[string]string{
		"max-queue: 1\nmax-quee: 2\n":                        "line 2: max-quee",
		"config: x\n":                                        "line 1: config",
		"max-queue: 1\nmax-queue: 2\n":                       "line 2: max-queue: found twice",
		"max-queue: [1, 2]\n":                                "line 1: max-queue",
		"models: x\n":                                        "line 1: models",
		"models:\n  - model: a\n    tmp: 1\n":                "line 3: tmp",
		"models:\n  - model: a\n    temp: hot\n":             `line 3: temp: expected 0 to 100, found "hot"`,
		"models:\n  - name: a\n":                             "line 2: model: expected a name or a file",
		"models:\n  - model: a\n    model: b\n":              "line 3: model: found twice",
		"- a\n":                                              "line 1: expected names and values",
		"a: [\n":                                             "line 1",
		"models:\n  - model: a\n    aliases: {x: 1}\n":       "line 3: aliases",
		"models:\n  - model: a\n    chat-template-kwargs: 5": "line 3: chat-template-kwargs",
	} {
		if _, _, err := read(text); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: got %v, want %s", text, err, says)
		}
	}
	if _, models, err := read("# nothing\n"); err != nil || models != nil {
		t.Errorf("an empty file: %v, %v", models, err)
	}
}

// Requests that say nothing get what the server was started with, models of a
// configuration what it says of them, and SIGHUP reads it again without cutting
// anything.
func TestServeConfiguration(t *testing.T) {
	dir := t.TempDir()
	model, err := filepath.Abs(tinyLlama)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "ridge.yaml")
	write := func(second, level string) {
		t.Helper()
		text := fmt.Sprintf("any-model-name: true\nmax-tokens: 5\ntemp: 0\nlog-level: %s\nmodels:\n  - model: %s\n    name: first\n%s", level, model, second)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("", "info")
	p := launch(t, "--config", file, "--seed", "7", "--offline")
	tokens := func(body string) any {
		t.Helper()
		status, o, b := p.ask(t, "POST", "/v1/completions", "application/json", body)
		if status != 200 {
			t.Fatalf("%s: status %d: %s", body, status, b)
		}
		return o["usage"].(map[string]any)["completion_tokens"]
	}
	ask := `{"model":"gpt-4o","prompt":"the","ignore_eos":true`
	if got := tokens(ask + `}`); got != 5.0 {
		t.Errorf("the default of max_tokens: got %v", got)
	}
	if got := tokens(ask + `,"max_tokens":3}`); got != 3.0 {
		t.Errorf("what a request says: got %v", got)
	}
	answer := func(more string) string {
		t.Helper()
		_, o, b := p.ask(t, "POST", "/v1/completions", "application/json", ask+more+`}`)
		choices, ok := o["choices"].([]any)
		if !ok {
			t.Fatalf("%s", b)
		}
		return choices[0].(map[string]any)["text"].(string)
	}
	if a, b := answer(`,"temperature":5`), answer(`,"temperature":5`); a != b {
		t.Errorf("the default of the seed: got %q and %q", a, b)
	}
	if a, b := answer(""), answer(`,"temperature":0`); a != b {
		t.Errorf("the default of the temperature: got %q and %q", a, b)
	}
	// A configuration that is wrong changes nothing.
	write("nonsense: 1\n", "info")
	hup := func(says string) {
		t.Helper()
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); !strings.Contains(p.out.String(), says); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no %q:\n%s", says, p.out)
			}
		}
	}
	hup("line 8: nonsense")
	if got := tokens(ask + `}`); got != 5.0 {
		t.Errorf("after a configuration that is wrong: got %v", got)
	}
	copied := filepath.Join(dir, "second.gguf")
	b, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	adapter, err := filepath.Abs("../../internal/tinymodel/adapters/llama")
	if err != nil {
		t.Fatal(err)
	}
	write("  - model: "+copied+"\n    name: second\n    max-tokens: 2\n    lora: [tuned="+adapter+", half="+adapter+":0.5]\nmax-queue: 9\n", "warn")
	hup(`"flags":["max-queue"]`)
	if got := tokens(`{"model":"second","prompt":"the","ignore_eos":true}`); got != 2.0 {
		t.Errorf("a model that came with the reload: got %v", got)
	}
	if got := tokens(`{"model":"tuned","prompt":"the","ignore_eos":true}`); got != 2.0 {
		t.Errorf("an adapter that came with the reload: got %v", got)
	}
	if got := tokens(ask + `}`); got != 5.0 {
		t.Errorf("the first model after the reload: got %v", got)
	}
	if status, _, b := p.ask(t, "GET", "/health", "", ""); status != 200 {
		t.Errorf("health: status %d: %s", status, b)
	}
}
