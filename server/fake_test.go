package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/model"
	"ridge/sample"
	"ridge/server/run"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// byteTokenizer has a token for each byte and a few of chats.
func byteTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{}
	n := 0
	for b := range 256 {
		r := rune(b)
		if b < '!' || b > '~' && b < 0xa1 || b == 0xad {
			r = rune(256 + n)
			n++
		}
		vocab[string(r)] = b
	}
	type added struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	}
	var specials []added
	for i, s := range []string{"<s>", "<|im_end|>", "<|im_start|>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"} {
		specials = append(specials, added{256 + i, s, s[1] == '|' || s == "<s>"})
	}
	raw, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": specials,
		"pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		"decoder":       map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false},
		"model":         map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromJSON(raw, []byte(`{"bos_token": "<s>", "eos_token": "<|im_end|>"}`))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// script is a backend that answers with what it is told to.
type script struct {
	tok   *tokenizer.Tokenizer
	reply func(r *engine.Request, choice int) string
	delay time.Duration // before each token
	// hold returns what the token of a number waits for, nil for nothing: so a
	// request is where a test wants it, however fast the machine is.
	hold   func(r *engine.Request, token int) <-chan struct{}
	queued bool // it tells nobody how far prompts are, as if they had to wait
	refuse func(r *engine.Request) error
	full   error // of requests before they are submitted
	fail   error // in place of a stream
	broke  error // after the first token
	end    int32 // stop token that ends answers, 0 for none

	mu       sync.Mutex
	requests []engine.Request
	open     atomic.Int64 // streams not closed
	stopped  atomic.Int64
	draining atomic.Bool
}

func (b *script) Submit(ctx context.Context, r engine.Request) (run.Stream, error) {
	b.mu.Lock()
	b.requests = append(b.requests, r)
	b.mu.Unlock()
	if b.fail != nil {
		return nil, b.fail
	}
	if b.refuse != nil {
		if err := b.refuse(&r); err != nil {
			return nil, err
		}
	}
	if b.draining.Load() {
		return nil, engine.ErrDraining
	}
	b.open.Add(1)
	s := &scriptStream{b: b, r: r, ctx: ctx, ended: make([]bool, max(1, r.N)), at: make([]int, max(1, r.N))}
	for i := range s.ended {
		s.ids = append(s.ids, b.tok.Encode(nil, b.reply(&r, i), tokenizer.EncodeOptions{ParseSpecial: true}))
	}
	return s, nil
}

func (b *script) last() engine.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.requests[len(b.requests)-1]
}

func (b *script) Stats() engine.Stats         { return engine.Stats{Requests: int(b.open.Load())} }
func (b *script) Drain(context.Context) error { b.draining.Store(true); return nil }
func (b *script) Admit() error                { return b.full }
func (b *script) Healthy() error              { return nil }
func (b *script) Close() error                { return nil }

// never and open are what a token may wait for.
var never, open = make(<-chan struct{}), func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

type scriptStream struct {
	b      *script
	r      engine.Request
	ctx    context.Context
	ids    [][]int32
	at     []int
	ended  []bool
	turn   int
	told   bool
	begun  bool      // it was told how far the prompt is
	due    time.Time // when the next event comes
	closed atomic.Bool
}

func (s *scriptStream) Stop(choice int) {
	s.b.stopped.Add(1)
	if !s.ended[choice] {
		s.ids[choice] = s.ids[choice][:s.at[choice]]
	}
}

func (s *scriptStream) Close() {
	if !s.closed.Swap(true) {
		s.b.open.Add(-1)
	}
}

func (s *scriptStream) Next(ctx context.Context) (engine.Event, bool) {
	for n := 0; n < len(s.ended) && s.ended[s.turn]; n++ {
		s.turn = (s.turn + 1) % len(s.ended)
	}
	i := s.turn
	if s.ended[i] {
		return engine.Event{}, false
	}
	s.turn = (s.turn + 1) % len(s.ended)
	if s.r.Progress && !s.begun && !s.b.queued {
		s.begun = true
		return engine.Event{Token: -1, StopToken: -1, Progress: &engine.Progress{Tokens: len(s.r.Tokens), Cached: len(s.r.Tokens) / 2, Computed: len(s.r.Tokens) / 2}}, true
	}
	if s.b.hold != nil {
		select {
		case <-cmp.Or(s.b.hold(&s.r, s.at[i]), open):
		case <-ctx.Done():
			s.turn = i
			return engine.Event{}, false
		}
	}
	if s.b.delay > 0 {
		if s.due.IsZero() {
			s.due = time.Now().Add(s.b.delay)
		}
		select {
		case <-time.After(time.Until(s.due)):
			s.due = time.Time{}
		case <-ctx.Done():
			s.turn = i
			return engine.Event{}, false
		}
	}
	ev := engine.Event{Choice: i, Token: -1, StopToken: -1}
	if !s.told {
		s.told = true
		ev.Prompt = &engine.PromptInfo{Tokens: len(s.r.Tokens), Cached: len(s.r.Tokens) / 2, Queued: time.Millisecond, Computed: time.Millisecond}
		if s.r.PromptLogProbs > 0 {
			for j, id := range s.r.Tokens {
				ev.Prompt.LogProbs = append(ev.Prompt.LogProbs, sample.Result{Token: id, LogProb: -float32(j), Top: []sample.TokenProb{{Token: id, LogProb: -float32(j)}}})
			}
		}
	}
	switch {
	case s.b.broke != nil && s.at[i] == 1:
		return engine.Event{Choice: i, Token: -1, StopToken: -1, Finish: engine.FinishError, Err: s.b.broke}, true
	case s.r.Embed != engine.NoPooling:
		ev.Embedding, ev.Finish = []float32{0.6, 0, 0.8, 0}, engine.FinishStop
	case s.at[i] >= len(s.ids[i]):
		if ev.Finish = engine.FinishStop; s.b.end > 0 {
			ev.StopToken, ev.LogProb, ev.Top = s.b.end, -0.25, []sample.TokenProb{{Token: s.b.end, LogProb: -0.25}}
		}
	case s.r.MaxTokens < 0 || s.r.MaxTokens > 0 && s.at[i] >= s.r.MaxTokens:
		ev.Finish = engine.FinishLength
	default:
		ev.Token = s.ids[i][s.at[i]]
		s.at[i]++
		if n := s.r.Sampling.LogProbs; n > 0 {
			ev.LogProb = -0.5
			for k := range n {
				ev.Top = append(ev.Top, sample.TokenProb{Token: (ev.Token + int32(k)) % 256, LogProb: -0.5 - float32(k)})
			}
		}
	}
	if ev.Finish != "" {
		s.ended[i] = true
	}
	return ev, true
}

// hermes is a template with tools and reasoning.
const hermes = `{%- if tools %}<|im_start|>system
{{ messages[0].content if messages[0].role == 'system' else '' }}
<tools>{% for t in tools %}
{{ t | tojson }}{% endfor %}
</tools>
<tool_call>{"name": ...}</tool_call><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}`

// fakeModel is a model with a backend of the tests.
func fakeModel(t testing.TB, tok *tokenizer.Tokenizer, b run.Backend) *run.Model {
	t.Helper()
	info := run.Info{Name: "fake", Path: "fake", Context: 4096, Created: time.Unix(1e9, 0), Arch: "fake", Hidden: 4, Digest: strings.Repeat("a", 64), Parameters: 1e6, PageTokens: 16, Pages: 256, Slots: 4}
	m, err := run.ModelOf(b, tok, info, hermes)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scripted starts a server whose one model, "fake", answers with reply.
func scripted(t testing.TB, reply string, change ...func(*Options, *script)) (*httptest.Server, *script) {
	t.Helper()
	tok := byteTokenizer(t)
	b := &script{tok: tok, reply: func(*engine.Request, int) string { return reply }}
	m := fakeModel(t, tok, b)
	o := Options{Models: []*run.Model{m}, Version: "test"}
	for _, f := range change {
		f(&o, b)
	}
	t.Cleanup(func() { // after the server was closed
		if n := b.open.Load(); n != 0 {
			t.Errorf("%d streams were not closed", n)
		}
	})
	_, srv := listen(t, o)
	return srv, b
}

// listen starts a server, which ends with the test.
func listen(t testing.TB, o Options) (*Server, *httptest.Server) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, srv
}

// tinyPath is the file of the tiny model of random weights.
const tinyPath = "../internal/tinymodel/testdata/llama/llama.gguf"

// openTiny opens a tiny model with room for some thousand tokens.
func openTiny(t testing.TB, path string, workers int) *model.Model {
	t.Helper()
	mm, err := model.Open(path, model.Options{Workers: workers, PageTokens: 16, KVBytes: 1 << 20, KV: tensor.F16})
	if err != nil {
		t.Fatal(err)
	}
	return mm
}

// tiny starts a server with a real engine on the tiny model of random weights.
func tiny(t testing.TB, change ...func(*Options)) *httptest.Server {
	t.Helper()
	return serve(t, openTiny(t, tinyPath, 1), tinyPath, change...)
}

func serve(t testing.TB, mm *model.Model, path string, change ...func(*Options)) *httptest.Server {
	t.Helper()
	_, srv := serveAs(t, mm, run.ModelConfig{Path: path}, engine.Options{}, change...)
	return srv
}

// serveSmol starts a server of SmolLM2 with room for eight answers of a benchmark.
func serveSmol(t testing.TB) (*Server, *httptest.Server) {
	t.Helper()
	path := testdata.Model(t, "smollm2")
	o := model.DefaultOptions()
	o.MaxContext, o.KVBytes = 1024, 128<<20
	mm, err := model.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return serveAs(t, mm, run.ModelConfig{Path: path}, engine.Options{})
}

// serveAs starts a server whose one model, "tiny", is mm as c says.
func serveAs(t testing.TB, mm *model.Model, c run.ModelConfig, eo engine.Options, change ...func(*Options)) (*Server, *httptest.Server) {
	t.Helper()
	var err error
	if c.Engine, err = engine.New(mm, eo); err != nil {
		t.Fatal(err)
	}
	c.Name = "tiny"
	m, err := run.NewModel(c)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Models: []*run.Model{m}, Version: "test"}
	for _, f := range change {
		f(&o)
	}
	return listen(t, o)
}

// object is decoded JSON.
type object map[string]any

// at follows keys and indexes.
func (o object) at(path ...any) any {
	var v any = map[string]any(o)
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[p]
		case int:
			l, ok := v.([]any)
			if !ok || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// send sends a request and returns status, headers and body.
func send(t testing.TB, method, url, body string, header ...string) (int, http.Header, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, b
}

// post sends a JSON body and wants a JSON answer with the given status.
func post(t testing.TB, url, body string, status int, header ...string) object {
	t.Helper()
	got, _, b := send(t, http.MethodPost, url, body, header...)
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("%s %s: status %d, body %q: %v", url, body, got, b, err)
	}
	if got != status {
		t.Fatalf("%s %s: status %d, want %d: %s", url, body, got, status, b)
	}
	return o
}

func get(t testing.TB, url string, status int) object {
	t.Helper()
	got, _, b := send(t, http.MethodGet, url, "")
	var o object
	if err := json.Unmarshal(b, &o); err != nil || got != status {
		t.Fatalf("%s: status %d, want %d: %s (%v)", url, got, status, b, err)
	}
	return o
}

// sse sends a request and returns the events of the stream.
func sse(t testing.TB, url, body string) (names []string, data []object) {
	t.Helper()
	status, header, b := send(t, http.MethodPost, url, body)
	if status != http.StatusOK || !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s %s: status %d, type %s: %s", url, body, status, header.Get("Content-Type"), b)
	}
	return eventsOf(t, b)
}

// eventsOf returns the events of a stream: their names, and their data. The last
// one is nil for [DONE].
func eventsOf(t testing.TB, stream []byte) (names []string, data []object) {
	t.Helper()
	for _, ev := range bytes.Split(bytes.TrimSpace(stream), []byte("\n\n")) {
		name := ""
		for _, line := range bytes.Split(ev, []byte("\n")) {
			switch {
			case bytes.HasPrefix(line, []byte("event: ")):
				name = string(line[7:])
			case bytes.Equal(line, []byte("data: [DONE]")):
				names, data = append(names, name), append(data, nil)
			case bytes.HasPrefix(line, []byte("data: ")):
				var o object
				if err := json.Unmarshal(line[6:], &o); err != nil {
					t.Fatalf("event %q: %v", line, err)
				}
				names, data = append(names, name), append(data, o)
			case bytes.HasPrefix(line, []byte(":")):
			default:
				t.Fatalf("not a line of events: %q", line)
			}
		}
	}
	return names, data
}

// patience is how long tests wait for what has to happen: longer than it takes
// on any machine, since it is not what they test.
const patience = 3 * time.Minute

// until polls for something that has to happen.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("it does not happen that %s\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
