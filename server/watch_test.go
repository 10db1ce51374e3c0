package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ridge/server/watch"
)

// fetch gets a route with a key and decodes the answer.
func fetch[T any](t testing.TB, url, key string) *T {
	t.Helper()
	status, _, b := send(t, http.MethodGet, url, "", "Authorization", "Bearer "+key)
	out := new(T)
	if err := json.Unmarshal(b, out); err != nil || status != http.StatusOK {
		t.Fatalf("%s: status %d: %s (%v)", url, status, b, err)
	}
	return out
}

// many runs a request for each of some clients at once.
func many(t testing.TB, url string, clients, tokens int, header func(i int) []string) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			body := fmt.Sprintf(`{"prompt":"the cat %d and the dog","max_tokens":%d,"ignore_eos":true,"seed":%d}`, i, tokens, i)
			if code, _, b := send(t, http.MethodPost, url+"/v1/completions", body, header(i)...); code != http.StatusOK {
				t.Errorf("client %d: status %d: %s", i, code, b)
			}
		})
	}
	wg.Wait()
}

// The steps add up to the counters of the status, and the stream of events has all of
// them.
func TestWatchSteps(t *testing.T) {
	srv := tiny(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/ridge/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewScanner(resp.Body)
	events.Buffer(nil, 16<<20)
	next := func() (name, data string) {
		for events.Scan() {
			line := events.Text()
			if n, ok := strings.CutPrefix(line, "event: "); ok {
				name = n
			}
			if d, ok := strings.CutPrefix(line, "data: "); ok {
				return name, d
			}
		}
		t.Fatal("the stream ended: ", events.Err())
		return
	}
	if name, data := next(); name != "status" || !strings.Contains(data, `"models":[{"name":"tiny"`) {
		t.Fatalf("the first event is %s: %s", name, data)
	}
	many(t, srv.URL, 16, 5, func(int) []string { return nil })
	m := fetch[Status](t, srv.URL+"/ridge/status", "").Models[0]
	got := fetch[watch.Steps](t, srv.URL+"/ridge/steps?model=tiny&last=1000", "")
	var prompt, answer int64
	took := 0.0
	for i, s := range got.Steps {
		if s.N != int64(i+1) || s.At < 1e9 || s.Budget < len(s.Rows) {
			t.Errorf("step %d: %+v", i, s)
		}
		took += s.Took
		for _, r := range s.Rows {
			if r.Kind == "prefill" {
				prompt += int64(r.Tokens)
			} else {
				answer += int64(r.Tokens)
			}
		}
	}
	if got.Model != "tiny" || int64(len(got.Steps)) != m.Steps || prompt != m.PromptTokens || answer != m.GeneratedTokens-16 || took-m.Busy > 1e-6 || m.Busy-took > 1e-6 {
		t.Errorf("%d steps, rows %d and %d, %g s; the status has %+v", len(got.Steps), prompt, answer, took, m)
	}
	for seen := int64(0); seen < m.Steps; {
		name, data := next()
		if name != "steps" {
			continue
		}
		var s watch.Steps
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			t.Fatal(err)
		}
		for _, x := range s.Steps {
			if seen++; x.N != seen {
				t.Fatalf("step %d is told after %d", x.N, seen-1)
			}
		}
	}
	for query, want := range map[string]int{"model=none": 404, "last=x": 400, "last=0": 400} {
		get(t, srv.URL+"/ridge/steps?"+query, want)
	}
}

// keyed writes a file of keys for an option.
func keyed(t testing.TB, lines string) func(*Options) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.KeyFile = path }
}

// Who has a key sees the ids of its own requests alone, whatever the route; who
// administers the server sees all.
func TestWatchTenants(t *testing.T) {
	srv := tiny(t, keyed(t, "k-alice name=alice\nk-bob name=bob\nk-root name=root admin=1\n"))
	many(t, srv.URL, 6, 20, func(i int) []string {
		name := []string{"alice", "bob"}[i%2]
		return []string{"Authorization", "Bearer k-" + name, "X-Request-Id", fmt.Sprintf("id-of-%s-%d", name, i)}
	})
	for _, path := range []string{"/ridge/steps?last=256", "/ridge/status", "/slots"} {
		for _, who := range []string{"alice", "bob", "root"} {
			_, _, b := send(t, http.MethodGet, srv.URL+path, "", "Authorization", "Bearer k-"+who)
			own, other := strings.Contains(string(b), "id-of-alice"), strings.Contains(string(b), "id-of-bob")
			if who == "bob" {
				own, other = other, own
			}
			if other && who != "root" || strings.HasPrefix(path, "/ridge/steps") && (!own || who == "root" && !other) {
				t.Errorf("%s tells %s: %.300s", path, who, b)
			}
		}
	}
	steps := fetch[watch.Steps](t, srv.URL+"/ridge/steps?last=256", "k-alice")
	names := map[string]bool{}
	for _, s := range steps.Steps {
		for _, r := range s.Rows {
			names[r.ID] = true
		}
	}
	if len(names) != 6 { // others are told apart all the same
		t.Errorf("%v", names)
	}
}

// A stream of events does not keep a server that is to end.
func TestWatchEnds(t *testing.T) {
	s, srv := listen(t, Options{Models: []*Model{fakeModel(t, byteTokenizer(t), &script{})}})
	resp, err := http.Get(srv.URL + "/ridge/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		ended <- err
	}()
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
