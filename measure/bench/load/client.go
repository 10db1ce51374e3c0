package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"
)

// Target is a server that speaks OpenAI's protocol.
type Target struct {
	Name  string         // in reports
	URL   string         // without the path of a route, with or without /v1
	Model string         // that requests ask for; "" asks for none
	Key   string         // API key, "" for none
	Chat  bool           // /v1/chat/completions instead of /v1/completions
	EOS   bool           // let the model end answers before they have their length
	Extra map[string]any // further fields of each request
	Fresh bool           // a new connection for each request
	PID   int            // of the server's process if it is known, else 0

	client *http.Client
}

// Failures, by kind. A status other than 200 is "status N".
const (
	FailConnect = "no connection" // refused, reset or unknown before an answer
	FailTimeout = "timeout"
	FailCut     = "cut off"    // the stream ended before its end
	FailStream  = "bad stream" // the stream is not what the protocol says, or has an error in it
	FailEmpty   = "no tokens"
)

// Record is what became of a request. Times are since the start of the run.
type Record struct {
	Session  int           `json:"session"`
	Turn     int           `json:"turn"`
	Group    int           `json:"group"` // with a common prefix, -1 for none
	Intruder bool          `json:"intruder,omitempty"`
	Due      time.Duration `json:"due_ns"` // when it should have been sent
	Sent     time.Duration `json:"sent_ns"`
	First    time.Duration `json:"first_ns"` // first piece of text
	Last     time.Duration `json:"last_ns"`  // last piece
	End      time.Duration `json:"end_ns"`

	Pieces  []time.Duration `json:"pieces_ns"` // when each piece of text came
	Silent  time.Duration   `json:"silent_ns"` // longest time in which nothing came, be it a comment
	Asked   int             `json:"asked"`     // tokens of the answer that were asked for
	Prompt  int             `json:"prompt_tokens"`
	Cached  int             `json:"cached_tokens"`
	Output  int             `json:"output_tokens"`
	Guessed bool            `json:"guessed,omitempty"` // the server gave no usage: Output counts pieces, Prompt is as planned
	Finish  string          `json:"finish,omitempty"`

	Failure string `json:"failure,omitempty"` // kind, "" for success
	Detail  string `json:"detail,omitempty"`
	Stopped bool   `json:"stopped,omitempty"` // ended by us, when the run was over: neither success nor failure

	text string
}

// OK says whether the request was answered whole.
func (r *Record) OK() bool { return r.Failure == "" && !r.Stopped }

func (t *Target) base() string { return strings.TrimSuffix(strings.TrimSuffix(t.URL, "/"), "/v1") }

func (t *Target) http() *http.Client {
	if t.client == nil {
		tr := http.DefaultTransport.(*http.Transport).Clone()
		tr.MaxIdleConnsPerHost, tr.MaxIdleConns, tr.DisableCompression, tr.DisableKeepAlives = 4096, 4096, true, t.Fresh
		t.client = &http.Client{Transport: tr}
	}
	return t.client
}

func (t *Target) request(ctx context.Context, method, path string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.base()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		// Not sent: it tells net/http to try again when the server closed a
		// connection that was kept for reuse, as other clients do.
		req.Header["X-Idempotency-Key"] = nil
	}
	if t.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	return req, nil
}

// said is what a session has said so far.
type said struct {
	prompts, answers []string
}

// body is the request for the next turn.
func (t *Target) body(h *said, turn *Turn) []byte {
	m := map[string]any{
		"stream": true, "stream_options": map[string]bool{"include_usage": true}, "max_tokens": turn.Max, "temperature": 0,
	}
	if t.Model != "" {
		m["model"] = t.Model
	}
	if !t.EOS {
		m["ignore_eos"] = true
	}
	if turn.Priority != 0 {
		m["priority"] = turn.Priority
	}
	maps.Copy(m, t.Extra)
	if t.Chat {
		type message struct {
			Role    string `json:"role"`
			Content string `json:"content"`
		}
		var messages []message
		for i, p := range h.prompts {
			messages = append(messages, message{"user", p}, message{"assistant", h.answers[i]})
		}
		m["messages"] = append(messages, message{"user", turn.Text})
	} else {
		var b strings.Builder
		for i, p := range h.prompts {
			b.WriteString(p + h.answers[i] + "\n")
		}
		b.WriteString(turn.Text)
		m["prompt"] = b.String()
	}
	out, err := json.Marshal(m)
	if err != nil {
		panic(err) // Extra came from JSON
	}
	return out
}

func (t *Target) path() string {
	if t.Chat {
		return "/v1/chat/completions"
	}
	return "/v1/completions"
}

// chunk is an event of a stream of either route.
type chunk struct {
	Choices []struct {
		Text  string `json:"text"`
		Delta struct {
			Content   string          `json:"content"`
			Reasoning string          `json:"reasoning_content"`
			Thinking  string          `json:"reasoning"`
			Calls     json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		Prompt  int `json:"prompt_tokens"`
		Output  int `json:"completion_tokens"`
		Details *struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Timings *struct {
		Cached int `json:"cache_n"` // llama-server
	} `json:"timings"`
	Error json.RawMessage `json:"error"`
}

// do sends a request and reads the answer. now is the clock of the run, seen
// is called for each piece of text.
func (t *Target) do(ctx context.Context, now func() time.Duration, h *said, turn *Turn, timeout time.Duration, seen func()) (rec Record) {
	rec = Record{Asked: turn.Max, Pieces: make([]time.Duration, 0, min(turn.Max, 1<<14))}
	body := t.body(h, turn)
	sctx, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		sctx, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	rec.Sent = now()
	err := t.stream(sctx, now, body, &rec, seen)
	rec.End = now()
	switch {
	case ctx.Err() != nil && (err != nil || rec.Failure != ""):
		rec.Failure, rec.Stopped = "", true
	case err != nil && sctx.Err() != nil:
		rec.Failure, rec.Detail = FailTimeout, fmt.Sprintf("after %v", timeout)
	case err != nil && rec.Failure == "":
		rec.Failure, rec.Detail = FailConnect, err.Error()
	case rec.Failure == "" && len(rec.Pieces) == 0:
		// An answer of which no text can be shown, or none at all.
		if rec.Output == 0 {
			rec.Failure = FailEmpty
			break
		}
		rec.Pieces = append(rec.Pieces, rec.End)
	}
	if n := len(rec.Pieces); n > 0 {
		rec.First, rec.Last = rec.Pieces[0], rec.Pieces[n-1]
	}
	if rec.Output == 0 && len(rec.Pieces) > 0 {
		rec.Output, rec.Prompt, rec.Guessed = len(rec.Pieces), turn.Tokens, true
	}
	return rec
}

// maxLine bounds an event.
const maxLine = 8 << 20

func (t *Target) stream(ctx context.Context, now func() time.Duration, body []byte, rec *Record, seen func()) error {
	req, err := t.request(ctx, http.MethodPost, t.path(), body)
	if err != nil {
		return err
	}
	resp, err := t.http().Do(req)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op // without the URL, so that equal failures read alike
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		rec.Failure, rec.Detail = fmt.Sprintf("status %d", resp.StatusCode), clip(string(bytes.TrimSpace(text)), 300)
		return nil
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(make([]byte, 0, 16<<10), maxLine)
	text := strings.Builder{}
	heard := rec.Sent
	hear := func() {
		at := now()
		rec.Silent, heard = max(rec.Silent, at-heard), at
	}
	hear()
	for in.Scan() {
		hear()
		data, ok := bytes.CutPrefix(in.Bytes(), []byte("data:"))
		if !ok {
			continue // comments, names of events, empty lines
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			rec.text = text.String()
			// What follows is read, so that the connection can be used again.
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			return nil
		}
		if err := rec.take(data, now, &text, seen); err != nil {
			rec.Failure, rec.Detail = FailStream, err.Error()
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rec.Failure, rec.Detail = FailCut, fmt.Sprintf("after %d pieces", len(rec.Pieces))
	if err := in.Err(); err != nil {
		rec.Detail += ": " + err.Error()
	}
	return nil
}

// take reads an event.
func (r *Record) take(data []byte, now func() time.Duration, text *strings.Builder, seen func()) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("event %s: %w", clip(string(data), 80), err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return fmt.Errorf("error %s", clip(string(c.Error), 300))
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if s := ch.Text + ch.Delta.Reasoning + ch.Delta.Thinking + ch.Delta.Content; s != "" || len(ch.Delta.Calls) > 4 {
			text.WriteString(s)
			r.Pieces = append(r.Pieces, now())
			seen()
		}
		if ch.Finish != "" {
			r.Finish = ch.Finish
		}
	}
	if c.Usage != nil {
		r.Prompt, r.Output = c.Usage.Prompt, c.Usage.Output
		if c.Usage.Details != nil {
			r.Cached = c.Usage.Details.Cached
		}
	}
	if c.Timings != nil && c.Timings.Cached > r.Cached {
		r.Cached = c.Timings.Cached
	}
	return nil
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

// Ready waits until the server says that it is healthy, or can list its
// models.
func (t *Target) Ready(ctx context.Context) error {
	var last error
	for {
		for _, path := range []string{"/health", "/v1/models"} {
			req, err := t.request(ctx, http.MethodGet, path, nil)
			if err != nil {
				return fmt.Errorf("load: %w", err)
			}
			resp, err := t.http().Do(req)
			if err != nil {
				last = err
				break
			}
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
			last = fmt.Errorf("%s: status %s", path, resp.Status)
			if resp.StatusCode != http.StatusNotFound {
				break
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("load: %s is not ready: %w", t.Name, errors.Join(context.Cause(ctx), last))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// FirstModel is the first model that the server lists.
func (t *Target) FirstModel(ctx context.Context) (string, error) {
	list, err := t.models(ctx)
	if err != nil {
		return "", err
	}
	return list[0].ID, nil
}

// listed is a model in the server's list.
type listed struct {
	ID      string `json:"id"`
	Context int    `json:"max_model_len"` // 0 if the server does not tell
}

// models are those that the server lists, at least one.
func (t *Target) models(ctx context.Context) ([]listed, error) {
	req, err := t.request(ctx, http.MethodGet, "/v1/models", nil)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	resp, err := t.http().Do(req)
	if err != nil {
		return nil, fmt.Errorf("load: models of %s: %w", t.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 500)) // what the server says, as far as it comes
		return nil, fmt.Errorf("load: models of %s: status %s: %s", t.Name, resp.Status, bytes.TrimSpace(b))
	}
	var list struct {
		Data []listed `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&list); err != nil {
		return nil, fmt.Errorf("load: models of %s: %w", t.Name, err)
	}
	if len(list.Data) == 0 {
		return nil, fmt.Errorf("load: models of %s: expected at least one, found none", t.Name)
	}
	return list.Data, nil
}

// context is how many tokens a request may have, 0 if the server does not tell.
func (t *Target) context(ctx context.Context) int {
	list, err := t.models(ctx)
	if err != nil {
		return 0 // a server need not list models to be measured
	}
	for _, m := range list {
		if m.ID == t.Model {
			return m.Context
		}
	}
	return list[0].Context
}
