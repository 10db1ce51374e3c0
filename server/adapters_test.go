package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"ridge/engine"
	"ridge/server/adapters"
)

const tinyAdapters = "../internal/tinymodel/adapters/"

// adapted starts a server of tiny llama with adapters: sql and rs, and those that
// clients load.
func adapted(t *testing.T, change ...func(*Options)) (set *adapters.Set, url string) {
	t.Helper()
	set = adapters.New()
	set.Dir = tinyAdapters
	if err := set.Configure([]adapters.Config{
		{Name: "sql", Path: tinyAdapters + "llama", Base: "tiny", Scale: 1},
		{Name: "rs", Path: tinyAdapters + "llama-rs", Base: "tiny", Scale: 0.5},
	}); err != nil {
		t.Fatal(err)
	}
	srv := tiny(t, append([]func(*Options){func(o *Options) { o.Adapters = set }}, change...)...)
	return set, srv.URL
}

// textOf asks for a greedy answer, in one of the APIs.
func textOf(t *testing.T, url, path, model, more string) (text any, cached any) {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	switch path {
	case "/completion":
		o := post(t, url+path, fmt.Sprintf(`{"model":%q,"prompt":"abc","n_predict":12,"temperature":0,"ignore_eos":true%s}`, model, more), 200)
		return o["content"], o["tokens_cached"]
	case "/api/generate":
		o := post(t, url+path, fmt.Sprintf(`{"model":%q,"prompt":"abc","raw":true,"stream":false,"options":{"num_predict":12,"temperature":0}%s}`, model, more), 200)
		return o["response"], nil
	case "/v1/messages":
		o := post(t, url+path, fmt.Sprintf(`{"model":%q,"max_tokens":12,"temperature":0,"messages":[{"role":"user","content":"abc"}]%s}`, model, more), 200)
		return o.at("content", 0, "text"), nil
	}
	o := post(t, url+path, fmt.Sprintf(`{"model":%q,"max_tokens":12,"temperature":0,"messages":[{"role":"user","content":"abc"}]%s}`, model, more), 200)
	return o.at("choices", 0, "message", "content"), o.at("usage", "prompt_tokens_details", "cached_tokens")
}

// array gets a list.
func array(t *testing.T, url string) (out []object) {
	t.Helper()
	_, _, b := send(t, http.MethodGet, url, "")
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatalf("%s: %v: %s", url, err, b)
	}
	return out
}

// An adapter's name is a model in every API; it is listed with its parent, and its
// answers are not the base model's.
func TestAdapterAsModel(t *testing.T) {
	_, url := adapted(t)
	for _, path := range []string{"/v1/chat/completions", "/api/generate", "/v1/messages", "/completion"} {
		texts := map[any]bool{}
		for _, name := range []string{"tiny", "sql", "rs"} {
			text, _ := textOf(t, url, path, name, "")
			texts[text] = true
		}
		if len(texts) != 3 {
			t.Errorf("%s: three models give %d texts", path, len(texts))
		}
	}
	o := get(t, url+"/v1/models", 200)
	equal(t, "list", []any{o.at("data", 0, "id"), o.at("data", 1, "id"), o.at("data", 1, "parent"), o.at("data", 2, "id"), o.at("data", 2, "parent")}, []any{"tiny", "sql", "tiny", "rs", "tiny"})
	equal(t, "card", get(t, url+"/v1/models/sql", 200)["parent"], "tiny")
	o = get(t, url+"/api/tags", 200)
	equal(t, "tags", []any{o.at("models", 1, "name"), o.at("models", 1, "details", "parent_model")}, []any{"sql", "tiny"})
	equal(t, "show", post(t, url+"/api/show", `{"model":"rs"}`, 200).at("details", "parent_model"), "tiny")
	chat := func(name string) object {
		return post(t, url+"/v1/chat/completions", fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":"x"}]}`, name), 200)
	}
	if a, b := chat("tiny"), chat("sql"); a["system_fingerprint"] == b["system_fingerprint"] || b["model"] != "sql" {
		t.Errorf("fingerprints %v and %v of model %v", a["system_fingerprint"], b["system_fingerprint"], b["model"])
	}
	post(t, url+"/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`, 404)
}

// llama-server's forms: numbers and scales in a request, and those that requests have
// which say nothing.
func TestAdapterScales(t *testing.T) {
	_, url := adapted(t)
	const path = "/completion"
	plain, _ := textOf(t, url, path, "tiny", "")
	sql, _ := textOf(t, url, path, "sql", "")
	rs, _ := textOf(t, url, path, "rs", "")
	for lora, want := range map[string]any{
		`[]`: plain, `[{"id":0,"scale":0}]`: plain, `[{"id":0,"scale":1}]`: sql, `[{"id":1,"scale":0.5},{"id":0,"scale":0.0}]`: rs,
	} {
		text, _ := textOf(t, url, path, "tiny", `"lora":`+lora)
		equal(t, lora, text, want)
	}
	both, _ := textOf(t, url, path, "tiny", `"lora":[{"id":0,"scale":1},{"id":1,"scale":0.5}]`)
	if both == sql || both == rs || both == plain {
		t.Errorf("the sum of two adapters gives %v", both)
	}
	for lora, want := range map[string]string{`[{"id":7,"scale":1}]`: "id of an adapter of tiny, found 7", `[{"scale":1}]`: "found -1", `[{"id":0}]`: "a number as scale", `[{"id":0,"scale":1e300}]`: "a number as scale",
		`[{"id":0,"scale":1},{"id":0,"scale":1}]`: "found 0 twice"} {
		o := post(t, url+path, `{"prompt":"abc","lora":`+lora+`}`, 400)
		if m, _ := o.at("error", "message").(string); o.at("error", "param") != "lora" || !strings.Contains(m, want) {
			t.Errorf("%s: %v", lora, o)
		}
	}
	o := post(t, url+path, `{"model":"sql","prompt":"abc","lora":[{"id":1,"scale":1}]}`, 400)
	equal(t, "with a name", o.at("error", "param"), "lora")

	list := func() []object {
		t.Helper()
		return array(t, url+"/lora-adapters")
	}
	l := list()
	equal(t, "list", []any{len(l), l[0]["id"], l[0]["path"], l[0]["scale"], l[1]["name"], l[1]["base_model"]}, []any{2, 0, "llama", 0, "rs", "tiny"})
	equal(t, "set", post(t, url+"/lora-adapters", `[{"id":0,"scale":1}]`, 200)["success"], true)
	text, _ := textOf(t, url, path, "tiny", "")
	equal(t, "those that say nothing", text, sql)
	text, _ = textOf(t, url, path, "tiny", `"lora":[]`)
	equal(t, "those that say none", text, plain)
	text, _ = textOf(t, url, path, "rs", "")
	equal(t, "those that name an adapter", text, rs)
	post(t, url+"/lora-adapters", `[{"id":9,"scale":1}]`, 400)
	post(t, url+"/lora-adapters", `[{"id":0,`, 400)
	post(t, url+"/lora-adapters", `{"id":0}`, 400)
	equal(t, "kept", list()[0]["scale"], 1)
	post(t, url+"/lora-adapters", `[]`, 200)
	text, _ = textOf(t, url, path, "tiny", "")
	equal(t, "reset", text, plain)
}

// vLLM's routes: an adapter is loaded from the folder for them and nowhere else, a bad
// one is refused by name, and what runs is not disturbed.
func TestLoadAndUnloadAdapters(t *testing.T) {
	_, url := adapted(t)
	plain, _ := textOf(t, url, "/completion", "tiny", "")
	call := func(route, body string) (int, string) {
		t.Helper()
		status, _, b := send(t, http.MethodPost, url+route, body)
		return status, string(b)
	}
	status, text := call("/v1/load_lora_adapter", `{"lora_name":"mine","lora_path":"llama-patterns"}`)
	equal(t, "loaded", []any{status, text}, []any{200, "Success: LoRA adapter 'mine' added successfully."})
	mine, _ := textOf(t, url, "/completion", "mine", "")
	if mine == plain {
		t.Error("a loaded adapter changes nothing")
	}
	absolute, err := filepath.Abs(tinyAdapters + "llama-patterns")
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"lora_name":"mine","lora_path":"llama-rs"}`:                         `has the name`,
		`{"lora_name":"tiny","lora_path":"llama-rs"}`:                         `has the name`,
		`{"lora_name":"a b","lora_path":"llama-rs"}`:                          `without spaces`,
		`{"lora_name":"x"}`:                                                   `lora_path`,
		`{"lora_path":"llama-rs"}`:                                            `lora_name`,
		`{"lora_name":"x","lora_path":"../testdata/llama"}`:                   `no adapter is at`,
		`{"lora_name":"x","lora_path":"/etc/passwd"}`:                         `no adapter is at`,
		`{"lora_name":"x","lora_path":"."}`:                                   `no adapter is at`,
		`{"lora_name":"x","lora_path":"none"}`:                                `no adapter is at`,
		`{"lora_name":"x","lora_path":"gemma2"}`:                              `blk.0.attn_q has`,
		`{"lora_name":"x","lora_path":"neox/neox.gguf"}`:                      `general.architecture: expected`,
		`{"lora_name":"x","lora_path":"llama-rs","base_model_name":"nobody"}`: `nobody`,
		`{"lora_name":"x","lora_path":"llama/golden.json"}`:                   `expected a GGUF file, or a folder`,
	} {
		if status, text := call("/v1/load_lora_adapter", body); status < 400 || status >= 500 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	status, _ = call("/v1/load_lora_adapter", fmt.Sprintf(`{"lora_name":"abs","lora_path":%q}`, absolute))
	equal(t, "by its whole path", status, 200)
	if again, _ := textOf(t, url, "/completion", "mine", ""); again != mine {
		t.Error("another answer after bad adapters")
	}
	status, text = call("/v1/unload_lora_adapter", `{"lora_name":"mine"}`)
	equal(t, "unloaded", []any{status, text}, []any{200, "Success: LoRA adapter 'mine' removed successfully."})
	status, _ = call("/v1/unload_lora_adapter", `{"lora_name":"mine"}`)
	equal(t, "again", status, 404)
	post(t, url+"/completion", `{"model":"mine","prompt":"x"}`, 404)
	closed := tiny(t)
	status, _, _ = send(t, http.MethodPost, closed.URL+"/v1/load_lora_adapter", `{"lora_name":"x","lora_path":"y"}`)
	equal(t, "without a folder", status, 501)
}

// An adapter that is unloaded in mid-answer lets that answer finish, as it would have.
func TestUnloadInMidAnswer(t *testing.T) {
	set, url := adapted(t)
	const body = `{"model":"sql","prompt":"abc","max_tokens":40,"temperature":0,"ignore_eos":true,"stream":true}`
	whole := func(unload bool) (text string) {
		t.Helper()
		r, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		in := bufio.NewScanner(r.Body)
		for in.Scan() {
			var o object
			if data, ok := strings.CutPrefix(in.Text(), "data: {"); !ok || json.Unmarshal([]byte("{"+data), &o) != nil {
				continue
			}
			if unload {
				unload = false
				if err := set.Unload("sql", "", true); err != nil {
					t.Error(err)
				}
				runtime.GC()
			}
			piece, _ := o.at("choices", 0, "text").(string)
			text += piece
		}
		return text
	}
	want := whole(false)
	equal(t, "the answer", whole(true), want)
	if n := len(want); n < 20 {
		t.Errorf("an answer of %d bytes", n)
	}
	post(t, url+"/v1/completions", strings.Replace(body, `"stream":true`, `"stream":false`, 1), 404)
}

// No prefix crosses adapters, in memory or in a session's file, and none is lost to
// its own.
func TestPrefixesOfAdapters(t *testing.T) {
	dir := t.TempDir()
	_, url := adapted(t, func(o *Options) { o.DataDir = dir })
	const ids = "[[5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40]]"
	ask := func(model string) (text, cached any) {
		o := post(t, url+"/v1/completions", `{"model":"`+model+`","prompt":`+ids+`,"max_tokens":6,"temperature":0}`, 200)
		return o.at("choices", 0, "text"), o.at("usage", "prompt_tokens_details", "cached_tokens")
	}
	want := map[string]any{}
	for round, cached := range []int{0, 35} {
		for _, name := range []string{"tiny", "sql", "rs"} {
			text, n := ask(name)
			if round == 0 {
				want[name] = text
			}
			equal(t, name, []any{text, n}, []any{want[name], cached})
		}
	}
	post(t, url+"/slots/0?action=save", `{"model":"sql","filename":"a","prompt":`+ids+`}`, 200)
	send(t, http.MethodPost, url+"/reset_prefix_cache", "")
	for _, other := range []string{"tiny", "rs"} {
		o := post(t, url+"/slots/0?action=restore", `{"model":"`+other+`","filename":"a"}`, 400)
		if m, _ := o.at("error", "message").(string); !strings.Contains(m, "session: adapter: expected one saved with") {
			t.Errorf("%s restores it: %v", other, o)
		}
	}
	post(t, url+"/slots/0?action=restore", `{"model":"sql","filename":"a"}`, 200)
	if _, n := ask("rs"); n != 0.0 {
		t.Errorf("rs found %v tokens of sql", n)
	}
	if text, n := ask("sql"); text != want["sql"] || n == 0.0 {
		t.Errorf("sql found %v tokens of its own and says %v", n, text)
	}
}

// Adapters that are not used make room for others; those of requests stay, and who
// finds no room waits for it. Answers are the same as without a bound.
func TestAdapterRoom(t *testing.T) {
	free, url := adapted(t)
	var want []any
	for _, name := range []string{"sql", "rs", "sql", "rs"} {
		text, _ := textOf(t, url, "/completion", name, "")
		want = append(want, text)
	}
	if loads, evicted := free.Counts(); loads != 2 || evicted != 0 {
		t.Errorf("%d loads, %d evictions without a bound", loads, evicted)
	}
	set, url := adapted(t, func(o *Options) { o.Adapters.MaxLoaded = 1 })
	for i, name := range []string{"sql", "rs", "sql", "rs"} {
		text, _ := textOf(t, url, "/completion", name, "")
		equal(t, name, text, want[i])
	}
	if loads, evicted := set.Counts(); loads != 4 || evicted != 3 {
		t.Errorf("%d loads, %d evictions with room for one", loads, evicted)
	}
	o := post(t, url+"/completion", `{"prompt":"abc","lora":[{"id":0,"scale":1},{"id":1,"scale":1}]}`, 400)
	equal(t, "two at once", o.at("error", "param"), "lora")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := []string{"sql", "rs"}[i%2]
			if text, _ := textOf(t, url, "/completion", name, ""); text != want[i%2] {
				t.Errorf("%s says %v, want %v", name, text, want[i%2])
			}
		})
	}
	wg.Wait()
	_, url = adapted(t, func(o *Options) { o.Adapters.MaxBytes = 1000 })
	o = post(t, url+"/completion", `{"model":"sql","prompt":"abc"}`, 400)
	if m, _ := o.at("error", "message").(string); !strings.Contains(m, "adapter sql: expected at most 1000 bytes") {
		t.Errorf("too large: %v", o)
	}
	_, _, b := send(t, http.MethodGet, url+"/metrics", "")
	for _, line := range []string{`ridge_adapter_requests{adapter="sql",model="tiny"} 0`, `vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1`, `ridge_adapter_loads_total `} {
		if !strings.Contains(string(b), line) {
			t.Errorf("metrics lack %s", line)
		}
	}
}

// A waiting request ends with its client, and leaves nothing held.
func TestWaitForRoom(t *testing.T) {
	set, _ := adapted(t, func(o *Options) { o.Adapters.MaxLoaded = 1 })
	e, err := engine.New(openTiny(t, tinyPath, 1), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	use := func(name string) []adapters.Use { return []adapters.Use{{Adapter: set.Find(name), Scale: 1}} }
	_, release, err := set.Acquire(t.Context(), e, use("sql"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := set.Acquire(ctx, e, use("rs"))
		done <- err
	}()
	for set.Infos()[1].Waiting == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("it found room")
	}
	go func() {
		_, again, err := set.Acquire(t.Context(), e, use("rs"))
		if err == nil {
			again()
		}
		done <- err
	}()
	for set.Infos()[1].Waiting == 0 {
		runtime.Gosched()
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if x := set.Infos(); x[0].Running+x[1].Running+x[0].Waiting+x[1].Waiting != 0 || x[0].Loaded || !x[1].Loaded {
		t.Errorf("%+v", x)
	}
}

// A configuration that is read again takes names away and brings others; those that
// stay keep their numbers.
func TestConfigureAdapters(t *testing.T) {
	set, url := adapted(t)
	plain, _ := textOf(t, url, "/completion", "tiny", "")
	if err := set.Configure([]adapters.Config{{Name: "rs", Path: tinyAdapters + "llama-rs", Base: "tiny", Scale: 0.5}, {Name: "sql", Path: tinyAdapters + "llama", Base: "tiny", Scale: 0}}); err != nil {
		t.Fatal(err)
	}
	l := array(t, url+"/lora-adapters")
	equal(t, "numbers", []any{len(l), l[0]["name"], l[0]["id"], l[1]["name"], l[1]["id"]}, []any{2, "rs", 1, "sql", 2})
	text, _ := textOf(t, url, "/completion", "sql", "")
	equal(t, "of scale 0", text, plain)
	if err := set.Configure([]adapters.Config{{Name: "a"}, {Name: "A"}}); err == nil || len(set.Infos()) != 2 {
		t.Errorf("two of one name: %v", err)
	}
}
