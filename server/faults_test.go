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
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"ridge/engine"
	"ridge/model"
	"ridge/sched"
	"ridge/tensor"
)

// faulty starts a server with a real engine on a tiny model for a test of what
// goes wrong. At the test's end nothing may be left of it: no requests, no
// pages, no goroutines, no descriptors, and it must still answer.
func faulty(t *testing.T, queue int, change ...func(*Options)) (*Server, *httptest.Server) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	before := measure()
	const path = "../internal/tinymodel/testdata/llama/llama.gguf"
	mm, err := model.Open(path, model.Options{Workers: 2, PageTokens: 16, KVBytes: 1 << 20, KV: tensor.F16})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := sched.Preset("ridge")
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxQueue = queue
	e, err := engine.New(mm, engine.Options{Sched: &cfg, Events: 32})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(ModelConfig{Name: "tiny", Path: path, Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Models: []*Model{m}, Version: "test"}
	for _, f := range change {
		f(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		idle(t, e)
		post(t, srv.URL+"/v1/completions", `{"prompt":"the cat","max_tokens":4}`, 200)
		idle(t, e)
		http.DefaultClient.CloseIdleConnections()
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for i := 0; ; i++ {
			after := measure()
			if after.goroutines <= before.goroutines && after.fds <= before.fds+1 {
				return
			}
			if i == 200 {
				buf := make([]byte, 1<<20)
				t.Fatalf("before: %v; after: %v\n%s", before, after, buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	return s, srv
}

// idle waits until e has nothing to do, and checks its books.
func idle(t *testing.T, e *engine.Engine) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		st := e.Stats()
		if st.Requests == 0 && st.Waiting == 0 && st.Pool.InUse == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not idle: %+v", st)
		}
	}
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
			start := time.Now()
			status, _, b := send(t, http.MethodPost, srv.URL+path, body)
			if status < 400 || status >= 500 || !json.Valid(b) {
				if !(name == "deep tools" || name == "deep schema") || status != 200 { // not every dialect reads these
					t.Errorf("%s to %s: status %d: %.200s", name, path, status, b)
				}
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%s to %s took %v", name, path, took)
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
	dir := t.TempDir()
	if err := sys.Mount("ridge", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("skipped: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := sys.Unmount(dir, sys.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s, srv := faulty(t, 0, func(o *Options) { o.DataDir = dir })
	s.batches.pause = 20 * time.Millisecond
	const lines = 40
	var in strings.Builder
	for i := range lines {
		fmt.Fprintf(&in, `{"custom_id":"l%d","method":"POST","url":"/v1/completions","body":{"prompt":"the cat %d","max_tokens":60,"ignore_eos":true,"logprobs":3}}`+"\n", i, i)
	}
	_, file := upload(t, srv.URL, "batch", in.String())
	ballast := filepath.Join(dir, "ballast")
	fill := func() {
		t.Helper()
		f, err := os.OpenFile(ballast, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for size := 64 << 10; size > 0; size /= 2 {
			for err == nil {
				_, err = f.Write(make([]byte, size))
			}
			err = nil
		}
	}
	b := post(t, srv.URL+"/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, file["id"]), 200)
	state := func() object { return get(t, srv.URL+"/v1/batches/"+fmt.Sprint(b["id"]), 200) }
	for state().at("request_counts", "completed") == 0.0 {
		time.Sleep(time.Millisecond)
	}
	fill()
	status, o := upload(t, srv.URL, "batch", in.String())
	equal(t, "upload", status, http.StatusInsufficientStorage)
	equal(t, "upload", o.at("error", "code"), "disk_full")
	o = post(t, srv.URL+"/slots/0?action=save", `{"filename":"s","prompt":"the cat 1"}`, http.StatusInsufficientStorage)
	equal(t, "session", o.at("error", "code"), "disk_full")
	post(t, srv.URL+"/v1/responses", `{"input":"the cat","max_output_tokens":2}`, 200) // kept in memory
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
	for end := time.Now().Add(30 * time.Second); state()["status"] != "completed"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("with room again: %v", state())
		}
	}
	_, _, out := send(t, http.MethodGet, srv.URL+"/v1/files/"+fmt.Sprint(state()["output_file_id"])+"/content", "")
	wholeBatch(t, out, lines)
	o = get(t, srv.URL+"/v1/files", 200)
	equal(t, "files", len(o["data"].([]any)), 2) // nothing of tries that failed
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
