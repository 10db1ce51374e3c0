//go:build linux

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/sched"
	"ridge/server/run"
)

// faulty starts a server with a real engine on a tiny model for a test of what
// goes wrong. At the test's end nothing may be left of it: no requests, no
// pages, no goroutines, no descriptors, and it must still answer.
func faulty(t *testing.T, queue int, change ...func(*Options)) (*Server, *httptest.Server) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	before := measure()
	t.Cleanup(func() { nothingLeft(t, before) }) // after the server was closed
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxQueue = queue
	s, srv := serveAs(t, openTiny(t, tinyPath, 2), run.ModelConfig{Path: tinyPath}, engine.Options{Sched: &cfg, Events: 32}, change...)
	e := s.o.Models[0].Engine()
	t.Cleanup(func() { // before it is
		idle(t, e)
		post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","max_tokens":4}`, 200)
		idle(t, e)
	})
	return s, srv
}

// nothingLeft waits until there are no more goroutines and descriptors than before.
func nothingLeft(t *testing.T, before footprint) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	until(t, "nothing more is left than "+before.String(), func() bool {
		after := measure()
		return after.goroutines <= before.goroutines && after.fds <= before.fds+1
	})
}

// idle waits until e has nothing to do, and checks its books.
func idle(t *testing.T, e *engine.Engine) {
	t.Helper()
	until(t, "the engine is idle", func() bool {
		st := e.Stats()
		return st.Requests == 0 && st.Waiting == 0 && st.Pool.InUse == 0
	})
	if err := e.Check(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// Clients that vanish, before the answer and in the middle of it, and clients
// that do not read, stop nobody else, and nothing of them stays.
func TestClientsVanish(t *testing.T) {
	_, srv := faulty(t, 0, func(o *Options) { o.WriteTimeout = 200 * time.Millisecond })
	const body = `{"prompt":"the cat and the","max_tokens":100,"ignore_eos":true,"stream":true,"logprobs":20,"n":4}`
	head := fmt.Sprintf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", len(body))
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			c, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			switch i % 4 {
			case 0: // half a request
				_, _ = io.WriteString(c, (head + body)[:len(head)+10])
			case 1: // away before the answer
				_, _ = io.WriteString(c, head+body)
			case 2: // away in the middle, without goodbye
				_, _ = io.WriteString(c, head+body)
				_, _ = io.CopyN(io.Discard, c, 500)
				_ = c.(*net.TCPConn).SetLinger(0)
			case 3: // does not read, with as little room as the system allows
				_ = c.(*net.TCPConn).SetReadBuffer(1)
				_, _ = io.WriteString(c, head+body)
				time.Sleep(500 * time.Millisecond)
			}
		})
	}
	for range 5 { // others are served meanwhile
		post(t, srv.URL+"/v1/completions", `{"prompt":"the dog","max_tokens":8}`, 200)
	}
	wg.Wait()
}

// Bodies that are large, deep, or no JSON at all are refused as what they are.
func TestHostileBodies(t *testing.T) {
	_, srv := faulty(t, 0, func(o *Options) { o.MaxBodyBytes = 12 << 20 })
	deep := 1 << 20
	if testing.Short() {
		deep = 1 << 17
	}
	bodies := map[string]string{
		"deep arrays":   `{"messages":` + strings.Repeat("[", deep) + strings.Repeat("]", deep) + `}`,
		"deep objects":  strings.Repeat(`{"messages":`, deep/8),
		"deep schema":   `{"messages":[{"role":"user","content":"x"}],"prompt":"x","max_tokens":2,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + strings.Repeat(`{"type":"array","items":`, 20000) + `{}` + strings.Repeat("}", 20000) + `}}}`,
		"deep tools":    `{"messages":[{"role":"user","content":"x"}],"max_tokens":2,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","parameters":` + strings.Repeat(`{"properties":{"a":`, 5000) + `{}` + strings.Repeat("}}", 5000) + `}}]}`,
		"ten megabytes": `{"messages":[{"role":"user","content":"` + strings.Repeat("many words ", 10<<20/11) + `"}],"max_tokens":2}`,
		"noise":         string(bytes.Repeat([]byte{0, 0xff, '{', 0x80, '"', '\\'}, 1000)),
	}
	paths := []string{"/v1/chat/completions", "/v1/messages", "/api/chat", "/v1/responses"}
	if testing.Short() {
		paths = paths[:2]
	}
	for name, body := range bodies {
		for _, path := range paths {
			var status int
			var b []byte
			testdata.Within(t, 10*time.Second, name+" to "+path, func() { status, _, b = send(t, http.MethodPost, srv.URL+path, body) })
			if status < 400 || status >= 500 || !json.Valid(b) {
				if !(name == "deep tools" || name == "deep schema") || status != 200 { // not every dialect reads these
					t.Errorf("%s to %s: status %d: %.200s", name, path, status, b)
				}
			}
		}
	}
	status, _, b := send(t, http.MethodPost, srv.URL+"/v1/completions", `{"prompt":"`+strings.Repeat("x", 13<<20)+`"}`)
	equal(t, "too large", status, http.StatusRequestEntityTooLarge)
	if !json.Valid(b) {
		t.Errorf("not JSON: %.200s", b)
	}
}

// Of ten thousand requests at once as many as fit wait and are answered in
// full; the others hear when to come again and how many wait.
func TestTenThousandRequests(t *testing.T) {
	const queue = 64
	s, _ := faulty(t, queue)
	n := 10000
	if testing.Short() {
		n = 1000
	}
	var good, busy atomic.Int64
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-gate
			r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/completions", strings.NewReader(fmt.Sprintf(`{"prompt":"the cat %d","max_tokens":2,"ignore_eos":true,"stream":%v}`, i, i%2 == 0)))
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, r)
			body := w.Body.String()
			switch w.Code {
			case http.StatusOK:
				if i%2 == 0 && !strings.HasSuffix(body, "data: [DONE]\n\n") || i%2 == 1 && !strings.Contains(body, `"completion_tokens":2`) {
					t.Errorf("request %d was accepted, and got %.300s", i, body)
				}
				good.Add(1)
			case http.StatusTooManyRequests:
				sec, err := strconv.Atoi(w.Header().Get("Retry-After"))
				if err != nil || sec < 1 || sec > 3600 || !strings.Contains(body, fmt.Sprint(queue)) {
					t.Errorf("request %d: Retry-After %q, body %s", i, w.Header().Get("Retry-After"), body)
				}
				busy.Add(1)
			default:
				t.Errorf("request %d: status %d: %.300s", i, w.Code, body)
			}
		})
	}
	close(gate)
	wg.Wait()
	t.Logf("%d answered, %d told to come again", good.Load(), busy.Load())
	if good.Load() < queue || good.Load()+busy.Load() != int64(n) {
		t.Errorf("of %d requests %d were answered, %d refused", n, good.Load(), busy.Load())
	}
}

// A full disk: what cannot be stored is refused with the reason and leaves
// nothing half-written; a batch under way waits for room and then ends whole.
func TestFullDisk(t *testing.T) {
	dir, ok := testdata.SmallDisk(t, 512<<10)
	if !ok {
		return
	}
	s, srv := faulty(t, 0, func(o *Options) { o.DataDir = dir })
	s.batches.pause = 20 * time.Millisecond
	const lines, room = 40, 80 << 10 // for the results of a third of the lines
	var in strings.Builder
	for i := range lines {
		fmt.Fprintf(&in, `{"custom_id":"l%d","method":"POST","url":"/v1/completions","body":{"prompt":"the cat %d","max_tokens":60,"ignore_eos":true,"logprobs":3}}`+"\n", i, i)
	}
	_, file := upload(t, srv.URL, "batch", in.String())
	ballast := filepath.Join(dir, "ballast")
	testdata.Fill(t, ballast)
	st, err := os.Stat(ballast)
	if err == nil {
		err = os.Truncate(ballast, st.Size()-room)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := post(t, srv.URL+"/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, file["id"]), 200)
	state := func() object { return get(t, srv.URL+"/v1/batches/"+fmt.Sprint(b["id"]), 200) }
	until(t, "the batch is under way", func() bool { return state().at("request_counts", "completed") != 0.0 })
	testdata.Fill(t, ballast)
	status, o := upload(t, srv.URL, "batch", in.String())
	equal(t, "upload", status, http.StatusInsufficientStorage)
	equal(t, "upload", o.at("error", "code"), "disk_full")
	o = post(t, srv.URL+"/slots/0?action=save", `{"filename":"s","prompt":"the cat 1"}`, http.StatusInsufficientStorage)
	equal(t, "session", o.at("error", "code"), "disk_full")
	storeNothing(t, s, srv.URL)
	time.Sleep(100 * time.Millisecond)
	if st := state(); st["status"] != "in_progress" && st["status"] != "validating" {
		t.Errorf("while the disk is full: %v", st)
	}
	leftovers, err := filepath.Glob(filepath.Join(dir, "*", "*.incomplete"))
	if more, _ := filepath.Glob(filepath.Join(dir, "*.incomplete")); err != nil || len(more)+len(leftovers) > 1 { // one may be just being tried
		t.Errorf("left: %v %v %v", leftovers, more, err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	until(t, "the batch is completed when there is room again", func() bool { return state()["status"] == "completed" })
	_, _, out := send(t, http.MethodGet, srv.URL+"/v1/files/"+fmt.Sprint(state()["output_file_id"])+"/content", "")
	wholeBatch(t, out, lines)
	o = get(t, srv.URL+"/v1/files", 200)
	equal(t, "files", len(o["data"].([]any)), 2) // nothing of tries that failed
}

// storeNothing asks for what should be stored of a server whose disk is full:
// nothing is said to be stored that is not.
func storeNothing(t *testing.T, s *Server, url string) {
	t.Helper()
	full := func(what string, o object) {
		t.Helper()
		if msg, _ := o.at("error", "message").(string); o.at("error", "code") != "disk_full" || !strings.Contains(msg, `"store": false`) {
			t.Errorf("%s: got %v", what, o)
		}
	}
	const ask = `"input":"the cat","max_output_tokens":2`
	full("a response", post(t, url+"/v1/responses", `{`+ask+`}`, http.StatusInsufficientStorage))
	post(t, url+"/v1/responses", `{`+ask+`,"store":false}`, 200)
	names, evs := sse(t, url+"/v1/responses", `{`+ask+`,"stream":true}`)
	last := evs[len(evs)-1]
	equal(t, "last event", names[len(names)-1], "response.failed")
	equal(t, "status and store", []any{last.at("response", "status"), last.at("response", "store"), last.at("response", "incomplete_details")}, []any{"failed", false, nil})
	if msg, _ := last.at("response", "error", "message").(string); !strings.Contains(msg, "full") || !strings.Contains(msg, `"store": false`) {
		t.Errorf("last event: %v", last)
	}
	get(t, url+"/v1/responses/"+fmt.Sprint(last.at("response", "id")), 404)
	if kept, err := filepath.Glob(filepath.Join(s.o.DataDir, "responses", "*")); err != nil || len(kept) != 0 {
		t.Errorf("responses are stored: %v, %v", kept, err)
	}
	for path, body := range map[string]string{
		"/api/create": `{"model":"mine","from":"tiny","system":"x","stream":false}`,
		"/api/copy":   `{"source":"tiny","destination":"mine"}`,
	} {
		if o := post(t, url+path, body, http.StatusInsufficientStorage); !strings.Contains(fmt.Sprint(o["error"]), "full") {
			t.Errorf("%s: got %v", path, o)
		}
	}
	status, _, b := send(t, http.MethodPost, url+"/api/create", `{"model":"mine","from":"tiny","system":"x"}`)
	if status != 200 || !strings.Contains(string(b), `"error"`) || strings.Contains(string(b), "success") {
		t.Errorf("create, as a stream: status %d: %s", status, b)
	}
	post(t, url+"/api/show", `{"model":"mine"}`, 404)
}

// wholeBatch wants an answer to each of n lines, once.
func wholeBatch(t *testing.T, out []byte, n int) {
	t.Helper()
	seen := map[string]int{}
	for line := range bytes.Lines(out) {
		var r batchResult
		if err := json.Unmarshal(line, &r); err != nil || !r.ok() {
			t.Errorf("result %.200s: %v", line, err)
		}
		seen[r.CustomID]++
	}
	for i := range n {
		if id := fmt.Sprint("l", i); seen[id] != 1 {
			t.Errorf("line %s has %d results", id, seen[id])
		}
	}
}
