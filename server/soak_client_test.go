//go:build unix

package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"time"
)

// soakClient is a client of a soak.
type soakClient struct {
	*soak
	r *rand.Rand
}

// pick is one of several.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// words are what prompts are made of.
var words = strings.Fields("the cat and a dog went to see old king cole who had three of his own fiddlers one day")

func (c *soakClient) text() string {
	var b strings.Builder
	for range 1 + c.r.IntN(12) {
		b.WriteString(pick(c.r, words...) + " ")
	}
	if c.r.IntN(3) == 0 { // a beginning that many share
		return "the old king and his dog went to see " + b.String()
	}
	return b.String()
}

// act does one thing that clients do.
func (c *soakClient) act() {
	switch n := c.r.IntN(100); {
	case n < 22:
		c.ask("chat", "/v1/chat/completions", c.chat())
	case n < 40:
		c.ask("completion", "/v1/completions", c.completion())
	case n < 48:
		c.ask("anthropic", "/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":%d,"system":"be brief","messages":[{"role":"user","content":%q}],"stream":%v}`, c.model(), 1+c.r.IntN(20), c.text(), c.r.IntN(2) == 0))
	case n < 58:
		c.ask("ollama", pick(c.r, "/api/generate", "/api/chat"), fmt.Sprintf(`{"model":%q,"prompt":%q,"messages":[{"role":"user","content":%q}],"stream":%v,"options":{"num_predict":%d,"seed":%d},"keep_alive":%q}`,
			c.model(), c.text(), c.text(), c.r.IntN(2) == 0, 1+c.r.IntN(20), c.r.IntN(9), pick(c.r, "0s", "1s", "5m")))
	case n < 64:
		c.ask("embeddings", "/v1/embeddings", fmt.Sprintf(`{"model":%q,"input":[%q,%q]}`, c.model(), c.text(), c.text()))
	case n < 67:
		c.ask("rerank", "/v1/rerank", fmt.Sprintf(`{"model":%q,"query":%q,"documents":[%q,%q],"pooling":"mean"}`, c.model(), c.text(), c.text(), c.text()))
	case n < 72:
		c.respond()
	case n < 74:
		c.batch()
	case n < 77:
		c.session()
	case n < 83:
		c.same()
	case n < 92:
		c.bad()
	case n < 94:
		c.garbage()
	default:
		c.look()
	}
}

func (c *soakClient) model() string { return pick(c.r, "llama", "llama", "llama", "qwen", "tiny") }

// chat is the body of a chat completion.
func (c *soakClient) chat() string {
	more := pick(c.r, ``, `,"n":2`, `,"logprobs":true,"top_logprobs":2`, `,"stop":["e"]`, `,"response_format":{"type":"json_object"}`,
		`,"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}`,
		`,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"],"additionalProperties":false},"strict":true}}],"tool_choice":"required"`)
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}],"max_tokens":%d,"temperature":%.2f,"priority":%d,"stream":%v%s}`,
		c.model(), c.text(), 1+c.r.IntN(30), c.r.Float64(), c.r.IntN(3), c.r.IntN(2) == 0, more)
}

// completion is the body of a completion.
func (c *soakClient) completion() string {
	more := pick(c.r, ``, `,"n":3`, `,"best_of":3`, `,"echo":true,"logprobs":2`, `,"use_beam_search":true,"best_of":2,"temperature":0`, `,"regex":"[a-z ]+"`, `,"top_p":0.9,"top_k":40`,
		`,"min_p":0.1,"repetition_penalty":1.1`, `,"structured_outputs":{"choice":["yes","no"]}`,
		`,"structured_outputs":{"choice":["yes, certainly","yes, perhaps"],"jump_ahead":true}`, `,"cache_salt":"s"`, `,"t_max_predict_ms":20`)
	stream := c.r.IntN(2) == 0 && !strings.Contains(more, "best_of")
	return fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":%d,"stream":%v%s}`, c.model(), c.text(), 1+c.r.IntN(40), stream, more)
}

// ask sends a request and reads the answer well or badly.
func (c *soakClient) ask(kind, path, body string) []byte {
	how := c.r.IntN(10)
	if how > 2 { // read it all
		b, _ := c.send(kind, http.MethodPost, path, "application/json", body)
		return b
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(body))
	if err != nil {
		c.fail("%s: %v", path, err)
		return nil
	}
	if how == 0 { // leave at any time, perhaps before the answer begins
		time.AfterFunc(time.Duration(c.r.IntN(60))*time.Millisecond, cancel)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			c.fail("%s %s: %v", path, body, err)
		}
		c.count(kind, "left")
		return nil
	}
	defer resp.Body.Close()
	switch how {
	case 1: // leave in the middle
		_, _ = io.CopyN(io.Discard, resp.Body, int64(c.r.IntN(400)))
	default: // read slowly
		for buf := make([]byte, 64); !c.stop.Load(); time.Sleep(time.Duration(c.r.IntN(30)) * time.Millisecond) {
			if _, err := resp.Body.Read(buf); err != nil {
				break
			}
		}
	}
	c.judge(kind, path, body, resp.StatusCode, nil)
	return nil
}

func (c *soakClient) count(kind, status string) {
	c.mu.Lock()
	c.seen[kind+" "+status]++
	c.mu.Unlock()
}

// judge counts an answer and complains of statuses that nobody may get.
func (c *soakClient) judge(kind, path, body string, status int, answer []byte) {
	c.count(kind, fmt.Sprint(status))
	if status >= 500 && status != http.StatusNotImplemented && status != http.StatusServiceUnavailable && status != 529 {
		c.fail("%s %.300s: status %d: %.300s", path, body, status, answer)
	}
}

// send sends a request and reads all of the answer.
func (c *soakClient) send(kind, method, path, mime, body string) ([]byte, int) {
	req, err := http.NewRequest(method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.fail("%s: %v", path, err)
		return nil, 0
	}
	req.Header.Set("Content-Type", mime)
	resp, err := c.http.Do(req)
	if err != nil {
		c.fail("%s %.300s: %v", path, body, err)
		return nil, 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.fail("%s %.300s: the answer breaks off: %v", path, body, err)
	}
	c.judge(kind, path, body, resp.StatusCode, b)
	return b, resp.StatusCode
}

// same asks what has one answer, whatever else the server does.
func (c *soakClient) same() {
	body := fmt.Sprintf(`{"model":%q,"prompt":"the cat and the %s","max_tokens":12,"temperature":0.8,"seed":%d,"n":2}`, c.model(), pick(c.r, words...), c.r.IntN(3))
	b, status := c.send("same", http.MethodPost, "/v1/completions", "application/json", body)
	var o object
	if status != http.StatusOK || json.Unmarshal(b, &o) != nil {
		return
	}
	got := fmt.Sprint(o.at("choices", 0, "text"), "|", o.at("choices", 1, "text"))
	c.mu.Lock()
	want, known := c.answers[body]
	c.answers[body] = got
	c.mu.Unlock()
	if known && got != want {
		c.fail("%s: got %q, before that %q", body, got, want)
	}
}

// respond has a conversation that the server remembers.
func (c *soakClient) respond() {
	m, last := c.model(), ""
	for range 2 {
		b, status := c.send("responses", http.MethodPost, "/v1/responses", "application/json",
			fmt.Sprintf(`{"model":%q,"input":%q,"max_output_tokens":8,"previous_response_id":%q}`, m, pick(c.r, words...), last))
		var o object
		if status != http.StatusOK || json.Unmarshal(b, &o) != nil {
			return
		}
		last = fmt.Sprint(o["id"])
	}
	c.send("responses", http.MethodGet, "/v1/responses/"+last, "", "")
	if c.r.IntN(2) == 0 {
		c.send("responses", http.MethodDelete, "/v1/responses/"+last, "", "")
	}
}

// batch has work done in the background and counts the results.
func (c *soakClient) batch() {
	var lines, form bytes.Buffer
	n := 1 + c.r.IntN(6)
	for i := range n {
		fmt.Fprintf(&lines, `{"custom_id":"l%d","method":"POST","url":"/v1/completions","body":{"prompt":%q,"max_tokens":4}}`+"\n", i, c.text())
	}
	w := multipart.NewWriter(&form)
	_ = w.WriteField("purpose", "batch") // into memory
	part, _ := w.CreateFormFile("file", "in.jsonl")
	_, _ = part.Write(lines.Bytes())
	_ = w.Close()
	b, status := c.send("batch", http.MethodPost, "/v1/files", w.FormDataContentType(), form.String())
	var o object
	if status != http.StatusOK || json.Unmarshal(b, &o) != nil {
		c.fail("upload: status %d: %s", status, b)
		return
	}
	in := fmt.Sprint(o["id"])
	b, _ = c.send("batch", http.MethodPost, "/v1/batches", "application/json", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, in))
	_ = json.Unmarshal(b, &o)
	id := fmt.Sprint(o["id"])
	if c.r.IntN(4) == 0 {
		c.send("batch", http.MethodPost, "/v1/batches/"+id+"/cancel", "", "")
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		b, _ = c.send("batch", http.MethodGet, "/v1/batches/"+id, "", "")
		if json.Unmarshal(b, &o); o["status"] == "completed" || o["status"] == "cancelled" {
			break
		}
		if o["status"] == "failed" || time.Now().After(end) {
			c.fail("batch: %s", b)
			return
		}
	}
	if out, ok := o["output_file_id"].(string); ok {
		b, _ = c.send("batch", http.MethodGet, "/v1/files/"+out+"/content", "", "")
		if got := bytes.Count(b, []byte("\n")); o["status"] == "completed" && got != n || got > n {
			c.fail("batch of %d lines, %s: %d results", n, o["status"], got)
		}
		c.send("batch", http.MethodDelete, "/v1/files/"+out, "", "")
	}
	c.send("batch", http.MethodDelete, "/v1/files/"+in, "", "")
}

// session saves keys and values and brings them back.
func (c *soakClient) session() {
	body := fmt.Sprintf(`{"model":"llama","filename":"s%d","prompt":%q}`, c.r.IntN(4), c.text())
	for _, action := range []string{"save", "restore", "erase"} {
		c.send("session", http.MethodPost, "/slots/0?action="+action, "application/json", body)
	}
}

// bad sends what must be refused.
func (c *soakClient) bad() {
	path := pick(c.r, "/v1/chat/completions", "/v1/completions", "/v1/messages", "/api/chat", "/api/generate", "/v1/responses", "/v1/embeddings", "/v1/batches", "/tokenize", "/slots/0?action=save")
	body := pick(c.r, c.chat()[:20], `[]`, `{"messages":1}`, `{"model":"none","prompt":"x","messages":[{"role":"user","content":"x"}],"input":"x","max_tokens":3}`,
		strings.Repeat(`{"messages":[`, 5000), `{"prompt":"`+strings.Repeat("x ", 2000)+`"}`, `{"prompt":"x","grammar":"root ::= ("}`, `{"prompt":"x","temperature":-4}`, "\x00\xff", ``)
	c.send("bad", http.MethodPost, path, "application/json", body)
}

// garbage sends what is no HTTP, or half of it.
func (c *soakClient) garbage() {
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		c.fail("%v", err)
		return
	}
	defer conn.Close()
	head := pick(c.r, "", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n{\"prompt\":", "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
	noise := make([]byte, c.r.IntN(300))
	for i := range noise {
		noise[i] = byte(c.r.Uint32())
	}
	_, _ = conn.Write(append([]byte(head), noise...))
	_ = conn.SetReadDeadline(time.Now().Add(time.Duration(c.r.IntN(100)) * time.Millisecond))
	_, _ = io.Copy(io.Discard, conn)
	c.count("garbage", "sent")
}

// look asks how the server is.
func (c *soakClient) look() {
	path := pick(c.r, "/health", "/metrics", "/slots", "/ridge/status", "/props", "/load", "/api/tags", "/api/ps", "/v1/models", "/v1/batches", "/v1/files")
	c.send("look", http.MethodGet, path, "", "")
}
