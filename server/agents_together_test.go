package server

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/server/run"
)

// session is a recorded conversation of an agent: the request of its first turn, and
// the one with what became of it, which came after a pause: as it was recorded, else of
// two seconds.
type session struct {
	file, path string
	bodies     []string
	pause      time.Duration
}

// sessions are those of all programs, as streams of a few tokens of a model.
func sessions(t *testing.T, model string) (all []*session) {
	t.Helper()
	files, err := filepath.Glob("testdata/agents/*.json")
	if err != nil || len(files) != len(programs) {
		t.Fatalf("found %q: %v", files, err)
	}
	for _, file := range files {
		all = append(all, readSession(t, file, model))
	}
	return all
}

func readSession(t *testing.T, file, model string) *session {
	t.Helper()
	var rec struct {
		Path  string
		Pause int64 `json:"pause_ms"`
		Body  map[string]any
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &rec)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &session{file: file, path: rec.Path, pause: time.Duration(cmp.Or(rec.Pause, 2000)) * time.Millisecond}
	list, most := "messages", "max_tokens"
	if rec.Body[list] == nil {
		list, most = "input", "max_output_tokens"
	}
	delete(rec.Body, "max_completion_tokens")
	delete(rec.Body, "thinking")
	rec.Body["model"], rec.Body["stream"], rec.Body["temperature"], rec.Body[most] = model, true, 0, 6
	items := rec.Body[list].([]any)
	first := slices.IndexFunc(items, func(x any) bool {
		item := x.(map[string]any)
		typ, _ := item["type"].(string)
		return item["role"] == "assistant" || strings.HasSuffix(typ, "_call") || typ == "reasoning"
	})
	if first < 1 {
		t.Fatalf("%s: no answer in the recorded conversation", file)
	}
	for _, n := range []int{first, len(items)} {
		rec.Body[list] = items[:n]
		b, err := json.Marshal(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		s.bodies = append(s.bodies, string(b))
	}
	return s
}

// saidBy is what a stream says: the parts of its answer in their order, however they were
// cut, and how it ends.
func saidBy(stream string) string {
	var out, end strings.Builder
	var walk func(v any)
	walk = func(v any) {
		o, _ := v.(map[string]any)
		for _, k := range []string{"content", "reasoning_content", "text", "thinking", "partial_json", "name", "arguments"} {
			if text, ok := o[k].(string); ok {
				out.WriteString(text)
			}
		}
		for _, k := range []string{"finish_reason", "stop_reason", "status", "incomplete_details"} {
			if o[k] != nil {
				fmt.Fprintf(&end, "\n%s: %v", k, o[k])
			}
		}
		if text, ok := o["delta"].(string); ok {
			out.WriteString(text)
		}
		walkIn(o["delta"], walk)
		walkIn(o["content_block"], walk)
		walkIn(o["function"], walk)
		if r, ok := o["response"].(map[string]any); ok && r["status"] != "in_progress" {
			fmt.Fprintf(&end, "\n%v %v", r["status"], r["incomplete_details"])
		}
		for _, k := range []string{"choices", "tool_calls"} {
			list, _ := o[k].([]any)
			for _, x := range list {
				walk(x)
			}
		}
	}
	for line := range strings.Lines(stream) {
		var v any
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &v) == nil {
			walk(v)
		}
	}
	return out.String() + end.String()
}

func walkIn(v any, walk func(any)) {
	if _, ok := v.(map[string]any); ok {
		walk(v)
	}
}

// replay sends the turns of a session with a part of its pause between them, and
// returns what the answers say.
func (s *session) replay(t *testing.T, url string, part float64) (answers []string) {
	for i, body := range s.bodies {
		if i > 0 {
			time.Sleep(time.Duration(part * float64(s.pause)))
		}
		status, _, b := send(t, http.MethodPost, url+s.path, body)
		if status != 200 {
			t.Errorf("%s: status %d: %.300s", s.file, status, b)
			return answers
		}
		answers = append(answers, saidBy(string(b)))
	}
	return answers
}

// Ten agents at once on one server, with a part of the pauses that they made when they
// were recorded: every answer is that of a run with nobody else, and nothing is found
// in a cache there.
func TestAgentsTogether(t *testing.T) {
	all := sessions(t, "tiny")
	if testing.Short() {
		all = all[2:5]
	}
	alone := make([][]string, len(all))
	url := agentServer(t, testdata.Tiny, nil, engine.Options{NoPrefixCache: true})
	for i, s := range all {
		if alone[i] = s.replay(t, url, 0); len(alone[i]) != 2 || len(alone[i][1]) < 20 {
			t.Fatalf("%s: answers %q", s.file, alone[i])
		}
	}
	url = agentServer(t, testdata.Tiny, nil, engine.Options{PinShare: .5})
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			if got := s.replay(t, url, 0.02); !slices.Equal(got, alone[i]) {
				t.Errorf("%s: together\n%q\nalone\n%q", s.file, got, alone[i])
			}
		})
	}
	wg.Wait()
}

// pipes are a network of one server within a bubble of synctest.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "server", Net: "pipe"} }

// No stream of ten agents is silent for five seconds, however long a model takes to its
// first token and from each token to the next: on a clock that passes when all wait.
func TestAgentsAreNotSilent(t *testing.T) {
	for name, queued := range map[string]bool{"computed": false, "queued": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { notSilent(t, queued) }) })
	}
}

func notSilent(t *testing.T, queued bool) {
	tok := byteTokenizer(t)
	b := &script{tok: tok, queued: queued, delay: 47 * time.Second, reply: func(*engine.Request, int) string { return "It is" }}
	s, err := New(Options{Models: []*run.Model{fakeModel(t, tok, b)}, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	wire := make(pipes)
	srv := &http.Server{Handler: s.Handler()}
	served := make(chan struct{})
	go func() { _ = srv.Serve(wire); close(served) }()
	var wg sync.WaitGroup
	for _, agent := range sessions(t, "fake") {
		wg.Go(func() {
			ours, theirs := net.Pipe()
			wire <- theirs
			longest, all := heard(t, ours, agent)
			if longest >= 5*time.Second {
				t.Errorf("%s: nothing came for %v", agent.file, longest)
			}
			if !strings.Contains(all, "[DONE]") && !strings.Contains(all, "response.completed") && !strings.Contains(all, "response.incomplete") && !strings.Contains(all, "message_stop") {
				t.Errorf("%s: the stream ends with %s", agent.file, all[max(0, len(all)-300):])
			}
		})
	}
	wg.Wait()
	close(wire)
	<-served
	_ = srv.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// heard sends the first request of a session and reads the answer to its end. longest is
// the longest time in which nothing came.
func heard(t *testing.T, c net.Conn, s *session) (longest time.Duration, all string) {
	defer c.Close()
	r, err := http.NewRequest(http.MethodPost, "http://localhost"+s.path, strings.NewReader(s.bodies[0]))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Connection", "close")
	last := time.Now()
	if err := r.Write(c); err != nil {
		t.Error(err)
		return 0, ""
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		longest, last = max(longest, time.Since(last)), time.Now()
		if all += string(buf[:n]); err != nil {
			return longest, all
		}
	}
}
