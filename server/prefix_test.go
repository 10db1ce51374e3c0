package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/server/run"
	"ridge/weights/tensor"
)

// agentTools are 25 tools whose schemas have their keys in no order, in the form
// that wrap gives them.
func agentTools(t *testing.T, wrap string) string {
	t.Helper()
	var out []string
	for i := range 25 {
		schema := fmt.Sprintf(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"file %d"},"limit":{"type":"integer"},"about":{"type":"string"}},"additionalProperties":false}`, i)
		out = append(out, fmt.Sprintf(wrap, i, schema))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// agents are conversations as coding agents begin them; a conversation has a
// number of its own wherever they put one.
var agents = map[string]struct {
	path, cached, prompt, known string
	body                        func(t *testing.T, n int) string
}{
	"Claude Code": {"/v1/messages", "cache_read_input_tokens", "", "cache_known_input_tokens", func(t *testing.T, n int) string {
		return fmt.Sprintf(`{"max_tokens":1,"temperature":0,"system":[
			{"type":"text","text":"x-anthropic-billing-header: cc_version=2.1.%d; cc_entrypoint=cli; cch=%05d;"},
			{"type":"text","text":"You are an agent.","cache_control":{"type":"ephemeral"}},
			{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}],
			"tools":%s,"metadata":{"user_id":"session_%d"},
			"messages":[{"role":"user","content":[{"type":"text","text":"<reminder>date %d</reminder>"},{"type":"text","text":"task %d","cache_control":{"type":"ephemeral"}}]},{"role":"system","content":%q}]}`,
			n, n*7919, strings.Repeat("Read before you write. ", 60), agentTools(t, `{"name":"tool_%d","description":"It does things.","input_schema":%s}`), n, n, n, strings.Repeat("There are agents and skills. ", 60))
	}},
	"Codex": {"/v1/responses", "cached_tokens", "input_tokens", "known_tokens", func(t *testing.T, n int) string {
		return fmt.Sprintf(`{"max_output_tokens":1,"temperature":0,"store":false,"instructions":%q,"tools":%s,"prompt_cache_key":"session-%d",
			"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context><cwd>/home/%d</cwd><current_date>2026-11-%02d</current_date></environment_context>"}]},
			{"type":"message","role":"user","content":[{"type":"input_text","text":"task %d"}]}]}`,
			strings.Repeat("Read before you write. ", 60), agentTools(t, `{"type":"function","name":"tool_%d","description":"It does things.","strict":false,"parameters":%s}`), n, n, n, n)
	}},
	"opencode": {"/v1/chat/completions", "cached_tokens", "prompt_tokens", "known_tokens", func(t *testing.T, n int) string {
		return fmt.Sprintf(`{"max_tokens":1,"temperature":0,"messages":[{"role":"system","content":%q},{"role":"user","content":"task %d"}],"tools":%s}`,
			strings.Repeat("Read before you write. ", 60), n, agentTools(t, `{"type":"function","function":{"name":"tool_%d","description":"It does things.","parameters":%s}}`))
	}},
}

// agentServer serves a tiny model with room for the prompts of agents.
func agentServer(t *testing.T, file string, omit []string, eo engine.Options, change ...func(*Options)) string {
	t.Helper()
	mm, err := model.Open(file, model.Options{Workers: 2, PageTokens: 16, Context: 32768, KVBytes: 64 << 20, KV: tensor.F16})
	if err != nil {
		t.Fatal(err)
	}
	_, srv := serveAs(t, mm, run.ModelConfig{Path: file, Omit: omit}, eo, change...)
	return srv.URL
}

// usageOf sends the n-th conversation of an agent and returns the tokens of its
// prompt, and of these, those found and known.
func usageOf(t *testing.T, url, agent string, n int) (prompt, cached, known int) {
	t.Helper()
	a := agents[agent]
	u := post(t, url+a.path, a.body(t, n), 200).at("usage")
	flat := map[string]float64{}
	var fill func(v any)
	fill = func(v any) {
		for k, x := range v.(map[string]any) {
			switch x := x.(type) {
			case float64:
				flat[k] += x
			case map[string]any:
				fill(x)
			}
		}
	}
	fill(u)
	prompt = int(flat[a.prompt])
	if a.prompt == "" {
		prompt = int(flat["input_tokens"] + flat["cache_read_input_tokens"])
	}
	return prompt, int(flat[a.cached]), int(flat[a.known])
}

// A second conversation of an agent finds what it shares with the first, and is
// told where it leaves it.
func TestSecondConversation(t *testing.T) {
	for name := range agents {
		var log syncBuffer
		url := agentServer(t, testdata.Tiny, nil, engine.Options{}, func(o *Options) {
			o.Log, o.LogPrompts = slog.New(slog.NewJSONHandler(&log, nil)), true
		})
		if _, cached, known := usageOf(t, url, name, 1); cached != 0 || known != 0 {
			t.Errorf("%s: the first conversation found %d tokens and knew %d", name, cached, known)
		}
		prompt, cached, known := usageOf(t, url, name, 2)
		if prompt < 2000 || cached*100 < prompt*95 || known != cached {
			t.Errorf("%s: of %d tokens %d were found, %d known", name, prompt, cached, known)
		}
		want := fmt.Sprintf(`"known_tokens":%d`, known)
		for end := time.Now().Add(10 * time.Second); !strings.Contains(log.String(), want); time.Sleep(time.Millisecond) { // the answer comes first
			if time.Now().After(end) {
				t.Fatalf("%s: no %s in the log", name, want)
			}
		}
		var left struct {
			Token   int
			GoesOn  string `json:"goes_on"`
			Known   string
			Message string `json:"msg"`
		}
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "leaves what is known") {
				if err := json.Unmarshal([]byte(line), &left); err != nil {
					t.Fatal(err)
				}
			}
		}
		if left.Token != known || !strings.HasPrefix(left.GoesOn, "2") || !strings.HasPrefix(left.Known, "1") {
			t.Errorf("%s: the log says %+v, expected token %d", name, left, known)
		}
		if n := strings.Count(log.String(), "left out of prompts"); (n == 1) != (name == "Claude Code") {
			t.Errorf("%s: the log names %d times what is left out", name, n)
		}
	}
	// Without the omission the header is rendered, and nothing behind it is found.
	url := agentServer(t, testdata.Tiny, []string{"none"}, engine.Options{})
	usageOf(t, url, "Claude Code", 1)
	if prompt, cached, _ := usageOf(t, url, "Claude Code", 2); cached*10 > prompt {
		t.Errorf("with the header %d of %d tokens were found", cached, prompt)
	}
}

// After a restart the first conversation of an agent reads what instructions and
// tools are from the disk, and its answer is the same. What Claude Code marks is
// written at once, of others what has come twice.
func TestConversationAfterRestart(t *testing.T) {
	for name := range agents {
		dir := t.TempDir()
		open := func() (string, func()) {
			d := &engine.PrefixDisk{Bytes: 1 << 30, Dir: dir, Warn: func(file string, why error) { t.Errorf("%s: %v", file, why) }}
			store, err := d.Store("tiny")
			if err != nil {
				t.Fatal(err)
			}
			mm, err := model.Open(testdata.Tiny, model.Options{Workers: 2, PageTokens: 16, Context: 32768, KVBytes: 64 << 20, KV: tensor.F16})
			if err != nil {
				t.Fatal(err)
			}
			_, srv := serveAs(t, mm, run.ModelConfig{Path: testdata.Tiny}, engine.Options{Prefixes: store, PinShare: .5})
			return srv.URL, func() {
				until(t, "the prefix is written", func() bool { return store.PrefixStats().Files == 1 })
			}
		}
		url, written := open()
		usageOf(t, url, name, 1)
		if name != "Claude Code" {
			usageOf(t, url, name, 2)
		}
		written()
		url, _ = open()
		prompt, cached, _ := usageOf(t, url, name, 3)
		if cached*100 < prompt*95 {
			t.Errorf("%s: of %d tokens %d were found after the restart", name, prompt, cached)
		}
		st := get(t, url+"/ridge/status", 200)
		if n, ok := st.at("models", 0, "prefixes", "disk_tokens").(float64); !ok || int(n) > cached || n == 0 {
			t.Errorf("%s: the status says that %v tokens were read", name, n)
		}
		_, _, m := send(t, "GET", url+"/metrics", "")
		if !strings.Contains(string(m), `ridge_prefix_disk_hits_total{model="tiny"} 1`) {
			t.Errorf("%s: no hit in the metrics", name)
		}
	}
}
