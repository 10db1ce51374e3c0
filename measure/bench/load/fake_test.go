package load

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
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
	context    int // told of the model, unless 0
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
		told := ""
		if f.context > 0 {
			told = fmt.Sprintf(`,"max_model_len":%d`, f.context)
		}
		fmt.Fprintf(w, `{"object":"list","data":[{"id":"fake-1"%s}]}`, told)
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

// start serves f on a network within the process. In a bubble of synctest, where
// time passes when all wait, what clients see is the same on every machine.
func (f *fake) start(t *testing.T) *Target {
	t.Helper()
	wire := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: f}
	go func() { _ = s.Serve(wire) }() // until it is closed
	target := &Target{Name: "fake", URL: "http://fake/v1", Model: "fake-1"}
	tr := target.http().Transport.(*http.Transport)
	tr.DialContext, tr.Proxy = wire.dial, nil
	t.Cleanup(func() {
		_ = s.Close()
		tr.CloseIdleConnections()
	})
	return target
}

// pipes are a network of one server.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "fake", Net: "pipe"} }
