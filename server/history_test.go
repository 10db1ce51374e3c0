package server

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ridge/text/chat"
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

// Old answers make room, on the disk too, and what is not an answer is left
// alone.
func TestMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"resp_000000000000000000000001.json": "nonsense", "resp_000000000000000000000002.json": `{"id":"resp_000000000000000000000003"}`, "other.json": "{}"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	var m memory
	if err := m.open(dir, log); err != nil {
		t.Fatal(err)
	}
	var ids []string
	big := strings.Repeat("x", maxRememberedBytes/4)
	for range 6 {
		r := &remembered{ID: newID("resp_"), Owner: "a", Messages: []chat.Message{{Role: "user", Content: big}}}
		ids = append(ids, r.ID)
		if err := m.put(r, map[string]string{"id": r.ID}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(m *memory) {
		t.Helper()
		if n := m.order.Len(); n != 3 || m.bytes > maxRememberedBytes {
			t.Errorf("%d answers of %d bytes", n, m.bytes)
		}
		for i, id := range ids {
			if _, err := m.get(id, "a"); (err == nil) != (i >= 3) {
				t.Errorf("answer %d: %v", i, err)
			}
			if _, err := m.get(id, "b"); err == nil {
				t.Errorf("answer %d is another's", i)
			}
		}
	}
	check(&m)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 6 {
		t.Errorf("%d files, %v", len(files), err)
	}
	var again memory
	if err := again.open(dir, log); err != nil {
		t.Fatal(err)
	}
	check(&again)
}

// What cannot be written, or is too large to be kept, is not said to be stored;
// what cannot be removed is not said to be deleted.
func TestMemorySaysWhatIsStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "responses")
	var m memory
	if err := m.open(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	put := func(text string) (string, error) {
		r := &remembered{ID: newID("resp_"), Messages: []chat.Message{{Role: "user", Content: text}}}
		return r.ID, m.put(r, map[string]string{"id": r.ID})
	}
	kept, err := put("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(strings.Repeat("x", maxRememberedBytes)); asAPIError(err).Status != http.StatusBadRequest {
		t.Errorf("too large: %v", err)
	}
	if err := os.Rename(dir, dir+".moved"); err != nil {
		t.Fatal(err)
	}
	lost, err := put("x")
	if e := asAPIError(err); err == nil || e.Code != "not_stored" || e.Status != http.StatusInternalServerError {
		t.Errorf("without a folder: %v", err)
	}
	if _, err := m.get(lost, ""); err == nil {
		t.Error("what was not stored is there")
	}
	if err := os.MkdirAll(filepath.Join(m.path(kept), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := m.drop(kept, ""); err == nil {
		t.Error("deleted, but not on the disk")
	}
	if _, err := m.get(kept, ""); err != nil {
		t.Errorf("not deleted, and gone: %v", err)
	}
	if err := os.RemoveAll(m.path(kept)); err != nil {
		t.Fatal(err)
	}
	if err := m.drop(kept, ""); err != nil {
		t.Error(err)
	}
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
