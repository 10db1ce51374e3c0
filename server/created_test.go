package server

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// statuses are the lines of a streamed answer of Ollama's routes.
func statuses(t testing.TB, url, body string) []string {
	t.Helper()
	code, header, b := send(t, http.MethodPost, url, body)
	if code != 200 || header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%s: status %d, %s: %s", body, code, header.Get("Content-Type"), b)
	}
	var out []string
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var x struct{ Status string }
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x.Status)
	}
	return out
}

// A created model speaks with its own words and numbers, in all dialects, also
// after a restart, until it is deleted.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	data := func(o *Options, _ *script) { o.DataDir, o.AllowTemplates = dir, true }
	srv, b := scripted(t, "It's me!", data)
	got := statuses(t, srv.URL+"/api/create", `{"model":"org/Mario:latest","from":"fake","system":"You are Mario.","license":"MIT",
		"messages":[{"role":"user","content":"Who?"},{"role":"assistant","content":"Mario."}],"parameters":{"temperature":0.25,"top_k":7,"stop":["me"],"num_predict":33,"num_ctx":4096}}`)
	if len(got) != 7 || !strings.HasPrefix(got[0], "using existing layer sha256:") || !strings.HasPrefix(got[1], "creating new layer sha256:") || got[5] != "writing manifest" || got[6] != "success" {
		t.Errorf("got %q", got)
	}
	check := func(url string, b *script) {
		t.Helper()
		for path, body := range map[string]string{
			"/api/chat":            `{"model":"org/mario","stream":false,` + hello + `}`,
			"/api/generate":        `{"model":"org/mario:latest","stream":false,"prompt":"Hi"}`,
			"/v1/chat/completions": `{"model":"org/Mario",` + hello + `}`,
			"/v1/messages":         `{"model":"org/mario","max_tokens":33,` + hello + `}`,
			"/v1/responses":        `{"model":"org/mario","input":"Hi"}`,
		} {
			post(t, url+path, body, 200)
			r := b.last()
			prompt := b.tok.DecodeSpecial(r.Tokens)
			want := "<|im_start|>system\nYou are Mario.<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\nMario.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
			equal(t, path+": prompt", prompt, want)
			equal(t, path+": numbers", []any{r.Sampling.Temperature, r.Sampling.TopK, r.MaxTokens}, []any{0.25, 7, 33})
		}
	}
	check(srv.URL, b)
	o := post(t, srv.URL+"/api/chat", `{"model":"org/mario","stream":false,`+hello+`}`, 200)
	equal(t, "stopped", o.at("message", "content"), "It's ")
	// What a request says counts before what the model says.
	post(t, srv.URL+"/api/chat", `{"model":"org/mario","stream":false,"messages":[{"role":"system","content":"Be Luigi."},{"role":"user","content":"Hi"}],"options":{"temperature":0.5,"num_predict":5,"stop":["x"]}}`, 200)
	if r := b.last(); r.Sampling.Temperature != 0.5 || r.Sampling.TopK != 7 || r.MaxTokens != 5 || strings.Contains(b.tok.Decode(r.Tokens), "Mario.\nuser\nWho") {
		t.Errorf("got %+v", r)
	}
	o = post(t, srv.URL+"/api/show", `{"model":"org/mario"}`, 200)
	equal(t, "show", []any{o["system"], o["license"], o.at("details", "parent_model"), o["parameters"]}, []any{"You are Mario.", "MIT", "fake", "num_ctx 4096\nnum_predict 33\nstop \"me\"\ntemperature 0.25\ntop_k 7\n"})
	if f := o["modelfile"].(string); !strings.Contains(f, "FROM fake\n") || !strings.Contains(f, "PARAMETER temperature 0.25\n") || !strings.Contains(f, `SYSTEM """You are Mario."""`) {
		t.Errorf("modelfile %s", f)
	}
	equal(t, "tags", get(t, srv.URL+"/api/tags", 200).at("models", 1, "name"), "org/Mario")
	equal(t, "models", get(t, srv.URL+"/v1/models/org/Mario", 200).at("parent"), "fake")

	next, b2 := scripted(t, "It's me!", data)
	check(next.URL, b2)
	// One made of another has what that says and it does not.
	equal(t, "status", post(t, next.URL+"/api/create", `{"name":"luigi","from":"org/mario","system":"You are Luigi.","stream":false,"parameters":{"top_k":9},"template":"{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}"}`, 200)["status"], "success")
	post(t, next.URL+"/api/chat", `{"model":"luigi","stream":false,`+hello+`}`, 200)
	if r := b2.last(); r.Sampling.TopK != 9 || r.Sampling.Temperature != 0.25 || b2.tok.Decode(r.Tokens) != "[system: You are Luigi.][user: Who?][assistant: Mario.][user: Hi]" {
		t.Errorf("top_k %d, temperature %v, prompt %q", r.Sampling.TopK, r.Sampling.Temperature, b2.tok.Decode(r.Tokens))
	}
	if code, _, _ := send(t, http.MethodDelete, next.URL+"/api/delete", `{"model":"org/mario"}`); code != 200 {
		t.Errorf("delete: status %d", code)
	}
	post(t, next.URL+"/api/chat", `{"model":"org/mario",`+hello+`}`, 404)
	last, _ := scripted(t, "", data)
	post(t, last.URL+"/api/show", `{"model":"org/mario"}`, 404)
	post(t, last.URL+"/api/show", `{"model":"luigi"}`, 200)
}

// A copy is another name for a model that outlives the server, and says what the
// model says that it was made of.
func TestCopySurvives(t *testing.T) {
	dir := t.TempDir()
	data := func(o *Options, _ *script) { o.DataDir, o.AllowTemplates = dir, true }
	srv, _ := scripted(t, "x", data)
	post(t, srv.URL+"/api/create", `{"model":"mario","from":"fake","system":"You are Mario.","stream":false}`, 200)
	for from, to := range map[string]string{"fake": "gpt-4", "mario": "org/luigi:latest"} {
		if code, _, b := send(t, http.MethodPost, srv.URL+"/api/copy", `{"source":"`+from+`","destination":"`+to+`"}`); code != 200 {
			t.Errorf("copy of %s: status %d: %s", from, code, b)
		}
	}
	for _, body := range []string{`{"source":"mario","destination":"fake"}`, `{"source":"mario","destination":"a b"}`} {
		post(t, srv.URL+"/api/copy", body, 400)
	}
	next, b := scripted(t, "x", data)
	equal(t, "model", get(t, next.URL+"/v1/models/gpt-4", 200).at("parent"), "fake")
	post(t, next.URL+"/api/chat", `{"model":"gpt-4","stream":false,`+hello+`}`, 200)
	post(t, next.URL+"/api/chat", `{"model":"org/luigi","stream":false,`+hello+`}`, 200)
	if prompt := b.tok.Decode(b.last().Tokens); !strings.Contains(prompt, "You are Mario.") {
		t.Errorf("the copy's prompt is %q", prompt)
	}
	if code, _, _ := send(t, http.MethodDelete, next.URL+"/api/delete", `{"model":"mario"}`); code != 200 {
		t.Errorf("delete: status %d", code)
	}
	post(t, next.URL+"/api/show", `{"model":"org/luigi"}`, 200)
}

func TestCreateRefuses(t *testing.T) {
	srv, _ := scripted(t, "x", func(o *Options, _ *script) { o.DataDir, o.AllowTemplates = t.TempDir(), true })
	for body, says := range map[string]string{
		`{}`:                             "model",
		`{"model":"a b"}`:                "model",
		`{"model":"x"}`:                  "from",
		`{"model":"fake","from":"fake"}`: "already",
		`{"model":"x","from":"fake","quantize":"q4_K_M"}`:                         "quantize",
		`{"model":"x","files":{"a.gguf":"sha256:1"}}`:                             "files",
		`{"model":"x","from":"fake","adapters":{"a":"sha256:1"}}`:                 "adapters",
		`{"model":"x","modelfile":"FROM fake"}`:                                   "modelfile",
		`{"model":"x","from":"fake","template":"{{ if .System }}x{{ end }}"}`:     "template",
		`{"model":"x","from":"fake","parameters":{"tfs_z":1}}`:                    "tfs_z",
		`{"model":"x","from":"fake","parameters":{"temperature":"hot"}}`:          "temperature",
		`{"model":"x","from":"fake","messages":[{"role":"robot","content":"x"}]}`: "robot",
	} {
		o := post(t, srv.URL+"/api/create", body, 400)
		if m, _ := o["error"].(string); !strings.Contains(m, says) {
			t.Errorf("%s: got %v, want %s", body, o, says)
		}
	}
	post(t, srv.URL+"/api/create", `{"model":"x","from":"none"}`, 404)
	equal(t, "push", strings.Contains(post(t, srv.URL+"/api/push", `{"model":"fake"}`, 501)["error"].(string), "registry"), true)
	if code, _, _ := send(t, http.MethodHead, srv.URL+"/api/blobs/sha256:1", ""); code != 404 {
		t.Errorf("blob: status %d", code)
	}
	post(t, srv.URL+"/api/blobs/sha256:1", `x`, 501)
}
