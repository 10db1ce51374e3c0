package load

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fake is a server whose times are known. Its tokens are words.
type fake struct {
	first, gap time.Duration
	noUsage    bool
	fail       func(n int64) string
	metrics    atomic.Int64

	n, now, most atomic.Int64
	mu           sync.Mutex
	prompts      []string
	bodies       []map[string]any
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/health":
		w.WriteHeader(http.StatusOK)
		return
	case "/v1/models":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"fake-1"}]}`)
		return
	case "/metrics":
		k := f.metrics.Add(1)
		fmt.Fprintf(w, "# HELP x\nridge_steps_total{model=\"a}\\\"\"} %d\nridge_steps_total{model=\"b\"} 1\nridge_requests_running 2\nridge_kv_waste_ratio 0.25\nridge_kv_used_ratio 0.5\n", 10*k)
		return
	}
	var b map[string]any
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	chat := strings.HasSuffix(r.URL.Path, "/chat/completions")
	prompt, _ := b["prompt"].(string)
	if chat {
		for _, m := range b["messages"].([]any) {
			prompt += m.(map[string]any)["content"].(string) + " "
		}
	}
	n := f.n.Add(1)
	f.mu.Lock()
	f.prompts, f.bodies = append(f.prompts, prompt), append(f.bodies, b)
	f.mu.Unlock()
	now := f.now.Add(1)
	defer f.now.Add(-1)
	for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); most = f.most.Load() {
	}
	how := ""
	if f.fail != nil {
		how = f.fail(n)
	}
	if how == "429" {
		http.Error(w, `{"error":{"message":"queue full"}}`, http.StatusTooManyRequests)
		return
	}
	f.answer(w, r, chat, how, len(strings.Fields(prompt)), int(b["max_tokens"].(float64)))
}

func (f *fake) answer(w http.ResponseWriter, r *http.Request, chat bool, how string, prompt, tokens int) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
	pause := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-r.Context().Done():
		}
	}
	pause(f.first)
	if chat {
		send(`data: {"choices":[{"delta":{"role":"assistant"}}]}`)
	}
	for i := range tokens {
		if i > 0 {
			pause(f.gap)
		}
		switch {
		case how == "cut" && i == 2:
			return
		case how == "error" && i == 2:
			send(`data: {"error":{"message":"broken"}}`)
			return
		case how == "garbage" && i == 2:
			send(`data: {"choices":[`)
			return
		case how == "hang" && i == 2:
			<-r.Context().Done()
			return
		case chat:
			send(`data: {"choices":[{"delta":{"content":" w%d"}}],"usage":null}`, i)
		default:
			send(": a comment\ndata: {\"choices\":[{\"text\":\" w%d\",\"finish_reason\":null}]}", i)
		}
	}
	send(`data: {"choices":[{"text":"","delta":{},"finish_reason":"length"}]}`)
	if !f.noUsage {
		send(`data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":3}}}`, prompt, tokens)
	}
	send(`data: [DONE]`)
}

func (f *fake) start(t *testing.T) *Target {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return &Target{Name: "fake", URL: s.URL + "/v1", Model: "fake-1"}
}
