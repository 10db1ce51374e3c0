package server

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"ridge/engine"
)

// A stream begins when its prompt's computation does, is told how far that is, and ends
// as it would have without: nothing is said twice.
func TestStreamsBeginEarly(t *testing.T) {
	for _, c := range []struct{ path, body, first, alive, last string }{
		{"/v1/chat/completions", `{` + hello + `,"stream":true}`, `"role":"assistant"`, ": ping", "[DONE]"},
		{"/v1/responses", `{"input":"Hi","stream":true}`, "event: response.created", `"computed_tokens":`, "response.completed"},
		{"/v1/messages", `{"max_tokens":5,"stream":true,` + hello + `}`, "event: message_start", `"computed_tokens":`, "message_stop"},
	} {
		goOn := make(chan struct{})
		srv, _ := scripted(t, "abc", func(o *Options, b *script) {
			o.Ping, b.hold = 5*time.Millisecond, func(*engine.Request, int) <-chan struct{} { return goOn }
		})
		resp, err := http.Post(srv.URL+c.path, "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		before := ""
		for !strings.Contains(before, c.alive) { // the first token cannot come
			line, err := body.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			before += line
		}
		if strings.Count(before, c.first) != 1 || strings.Index(before, c.first) > strings.Index(before, c.alive) {
			t.Errorf("%s: before the first token: %s", c.path, before)
		}
		close(goOn)
		rest, err := io.ReadAll(body)
		_ = resp.Body.Close()
		if err != nil || strings.Contains(string(rest), c.first) || strings.Count(string(rest), c.last) < 1 {
			t.Errorf("%s: after it: %v: %s", c.path, err, rest)
		}
	}
}

// A response that is being made can be cancelled by its id, by who asked for it.
func TestCancelResponse(t *testing.T) {
	srv, _ := scripted(t, "abc", func(_ *Options, b *script) {
		b.hold = func(*engine.Request, int) <-chan struct{} { return never }
	})
	resp, err := http.Post(srv.URL+"/v1/responses", "application/json", strings.NewReader(`{"input":"Hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	id := ""
	for id == "" {
		line, err := body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := strings.Cut(line, `"id":"resp_`); ok {
			id = "resp_" + rest[:strings.IndexByte(rest, '"')]
		}
	}
	o := post(t, srv.URL+"/v1/responses/"+id+"/cancel", ``, 200)
	equal(t, "answer", fmt.Sprintln(o["id"], o["status"]), id+" cancelled\n")
	rest, err := io.ReadAll(body)
	if err != nil || !strings.Contains(string(rest), "event: response.incomplete") || !strings.Contains(string(rest), `"status":"cancelled"`) {
		t.Errorf("the stream ends with %v: %s", err, rest)
	}
	post(t, srv.URL+"/v1/responses/"+id+"/cancel", ``, 404)
}
