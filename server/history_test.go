package server

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An answer of one server can be asked for, gone on from and deleted at the next
// one with the same folder.
func TestResponsesSurvive(t *testing.T) {
	dir := t.TempDir()
	data := func(o *Options, _ *script) { o.DataDir = dir }
	call := `<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>`
	first, _ := scripted(t, call, data)
	tools := `"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`
	a := post(t, first.URL+"/v1/responses", `{"input":"What is it?","instructions":"Be brief","metadata":{"k":"v"},`+tools+`}`, 200)
	id := a.at("id").(string)
	gone := post(t, first.URL+"/v1/responses", `{"input":"x"}`, 200).at("id").(string)
	post(t, first.URL+"/v1/responses", `{"input":"x","store":false}`, 200)

	second, b := scripted(t, "Four.", data)
	got, _ := json.Marshal(get(t, second.URL+"/v1/responses/"+id, 200))
	want, _ := json.Marshal(a)
	equal(t, "response", string(got), string(want))
	o := post(t, second.URL+"/v1/responses", `{"previous_response_id":"`+id+`","input":[{"type":"function_call_output","call_id":"`+a.at("output", 0, "call_id").(string)+`","output":"4"}],`+tools+`}`, 200)
	equal(t, "previous", o.at("previous_response_id"), id)
	prompt := b.tok.Decode(b.last().Tokens)
	for _, part := range []string{"What is it?", `"name": "f"`, "tool\n4\n"} {
		if !strings.Contains(prompt, part) {
			t.Errorf("%q is not in the prompt %q", part, prompt)
		}
	}
	if strings.Contains(prompt, "Be brief") {
		t.Error("instructions hold for more than one request")
	}
	if code, _, _ := send(t, http.MethodDelete, second.URL+"/v1/responses/"+gone, ""); code != 200 {
		t.Errorf("delete: status %d", code)
	}
	third, _ := scripted(t, "", data)
	get(t, third.URL+"/v1/responses/"+gone, 404)
	get(t, third.URL+"/v1/responses/"+o.at("id").(string), 200)
	post(t, third.URL+"/v1/responses", `{"previous_response_id":"../x","input":"x"}`, 404)
}

// What a server that was killed has left half-written is gone after the next
// start; what is whole, and what is not the server's, stays.
func TestHalfWrittenIsSwept(t *testing.T) {
	dir := t.TempDir()
	id := "file-" + strings.Repeat("a", 24)
	for name, stays := range map[string]bool{
		id + ".data": true, id + ".json": true, "file-" + strings.Repeat("b", 24) + ".data": false, id + ".json.1x.incomplete": false, "notes.data": true,
		"responses/x.json.1x.incomplete": false, "created/x.json.1x.incomplete": false, "sessions/s.1x.incomplete": false, "sessions/alice/s.1x.incomplete": false,
		"sessions/alice/s": true, "models/m.gguf.incomplete": true,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(path); (err == nil) != stays {
				t.Errorf("%s: %v", name, err)
			}
		}()
	}
	scripted(t, "x", func(o *Options, _ *script) { o.DataDir = dir })
}
