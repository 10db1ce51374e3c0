//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a server in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
	out *output
}

// launch starts "ridge serve" and waits until it is ready.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command("ridge", append([]string{"serve", "--port", "0", "--kv-memory", "1M", "-t", "2"}, args...)...), out: &output{}}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.end(t, syscall.SIGKILL) })
	for end := time.Now().Add(patience); p.url == ""; time.Sleep(5 * time.Millisecond) {
		if m := regexp.MustCompile(`at (http://\S+) \(ready`).FindStringSubmatch(p.out.String()); m != nil {
			p.url = m[1]
		}
		if time.Now().After(end) {
			t.Fatalf("not ready:\n%s", p.out)
		}
	}
	return p
}

// end sends a signal and waits for the end.
func (p *process) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(sig) // it may have ended
	_ = p.cmd.Wait()              // by a signal
	http.DefaultClient.CloseIdleConnections()
}

// ask sends a request and returns the status and the answer.
func (p *process) ask(t *testing.T, method, path, mime, body string) (int, map[string]any, []byte) {
	t.Helper()
	r, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", mime)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, p.out)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var o map[string]any
	_ = json.Unmarshal(b, &o) // files are no objects
	return resp.StatusCode, o, b
}

// results are the lines that a batch has on the disk, whole ones only.
func results(t *testing.T, dir, id string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, id+".results"))
	if err != nil {
		return nil
	}
	var out [][]byte
	for line := range bytes.Lines(b) {
		if bytes.HasSuffix(line, []byte("\n")) {
			out = append(out, line)
		}
	}
	return out
}

// A server that is killed in the middle of a batch, twice, goes on with it:
// what it had counted is in the output as it was, and each line is there once.
func TestKilledDuringBatch(t *testing.T) {
	const lines = 48
	dir := t.TempDir()
	args := []string{tinyLlama, "--data", dir, "--log-level", "error"}
	p := launch(t, args...)
	var in, form bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&in, `{"custom_id":"l%d","method":"POST","url":"/v1/completions","body":{"prompt":"the cat %d","max_tokens":100,"ignore_eos":true,"logprobs":20,"n":4}}`+"\n", i, i)
	}
	w := multipart.NewWriter(&form)
	_ = w.WriteField("purpose", "batch") // into memory
	part, _ := w.CreateFormFile("file", "in.jsonl")
	_, _ = part.Write(in.Bytes())
	_ = w.Close()
	_, file, b := p.ask(t, http.MethodPost, "/v1/files", w.FormDataContentType(), form.String())
	_, batch, b2 := p.ask(t, http.MethodPost, "/v1/batches", "application/json", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, file["id"]))
	id, ok := batch["id"].(string)
	if !ok {
		t.Fatalf("%s %s", b, b2)
	}
	_, answer, _ := p.ask(t, http.MethodPost, "/v1/responses", "application/json", `{"input":"the cat","max_output_tokens":3}`)
	kept := map[string]bool{}
	for kill := 1; kill <= 2; kill++ {
		counted := 0.0
		for end := time.Now().Add(patience); counted < float64(8*kill); time.Sleep(time.Millisecond) {
			_, o, b := p.ask(t, http.MethodGet, "/v1/batches/"+id, "", "")
			if counted, _ = o["request_counts"].(map[string]any)["completed"].(float64); counted >= lines || time.Now().After(end) {
				t.Fatalf("the batch is not under way: %s", b)
			}
		}
		p.end(t, syscall.SIGKILL)
		now := results(t, dir, id)
		if float64(len(now)) < counted {
			t.Errorf("%v results were counted, %d are on the disk", counted, len(now))
		}
		for _, line := range now {
			kept[string(line)] = true
		}
		p = launch(t, args...)
	}
	var o map[string]any
	for end := time.Now().Add(patience); o["status"] != "completed"; time.Sleep(10 * time.Millisecond) {
		if _, o, b = p.ask(t, http.MethodGet, "/v1/batches/"+id, "", ""); time.Now().After(end) || o["status"] == "failed" {
			t.Fatalf("%s", b)
		}
	}
	_, _, out := p.ask(t, http.MethodGet, fmt.Sprintf("/v1/files/%s/content", o["output_file_id"]), "", "")
	seen := map[string]int{}
	for line := range bytes.Lines(out) {
		var r struct {
			ID string `json:"custom_id"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Errorf("%.200s: %v", line, err)
		}
		seen[r.ID]++
		delete(kept, string(line))
	}
	for i := range lines {
		if n := seen[fmt.Sprint("l", i)]; n != 1 {
			t.Errorf("line %d has %d results", i, n)
		}
	}
	if len(seen) != lines || len(kept) > 0 {
		t.Errorf("%d lines have results, want %d; %d results from before a kill are lost", len(seen), lines, len(kept))
	}
	if status, _, b := p.ask(t, http.MethodGet, fmt.Sprint("/v1/responses/", answer["id"]), "", ""); status != 200 {
		t.Errorf("the stored response: status %d: %s", status, b)
	}
	if _, o, b := p.ask(t, http.MethodGet, "/v1/files", "", ""); len(o["data"].([]any)) != 2 {
		t.Errorf("files: %s", b)
	}
}

// A server outlives whatever happens to its model's file, and answers from the
// model that it has, or says that there is none and loads it when it is back.
func TestModelFileReplaced(t *testing.T) {
	b, err := os.ReadFile(tinyLlama)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	write := func(path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, b)
	p := launch(t, path, "--name", "m", "--log-level", "error")
	const body = `{"prompt":"the cat and the","max_tokens":20,"temperature":0}`
	ask := func() (int, string) {
		t.Helper()
		status, o, b := p.ask(t, http.MethodPost, "/v1/completions", "application/json", body)
		if status != 200 {
			return status, string(b)
		}
		return status, o["choices"].([]any)[0].(map[string]any)["text"].(string)
	}
	_, want := ask()
	wants := func(when string, want string) {
		t.Helper()
		for range 3 {
			if status, text := ask(); status != 200 || text != want {
				t.Errorf("%s: status %d, %q, want %q", when, status, text, want)
			}
		}
	}
	// A rename leaves the server what it has.
	write(path+".new", []byte("another model"))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	wants("replaced by a rename", want)
	p.end(t, syscall.SIGTERM)
	write(path, b)
	p = launch(t, path, "--name", "m", "--log-level", "error")
	for _, c := range []struct {
		name string
		b    []byte
	}{{"cut to nothing", nil}, {"cut in the middle", b[:len(b)/2]}, {"nonsense", bytes.Repeat([]byte{0x5a}, len(b))}} {
		wants("before it was "+c.name, want)
		time.Sleep(20 * time.Millisecond) // clocks of file systems are coarse, and the size may stay
		stream := make(chan string, 1)
		go func() { // one that is under way
			resp, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"the","max_tokens":100,"ignore_eos":true,"n":4,"stream":true}`))
			if err != nil {
				stream <- err.Error()
				return
			}
			defer resp.Body.Close()
			b, _ := io.ReadAll(resp.Body) // what comes is looked at
			stream <- string(b)
		}()
		time.Sleep(5 * time.Millisecond)
		write(path, c.b)
		for range 4 {
			if status, text := ask(); status != http.StatusServiceUnavailable || !strings.Contains(text, "file") && !strings.Contains(text, "loaded") {
				t.Errorf("%s: status %d, %s", c.name, status, text)
			}
		}
		if s := <-stream; !strings.Contains(s, "[DONE]") && !strings.Contains(s, "file was changed") && !strings.Contains(s, "loaded") {
			t.Errorf("%s, under way: %s", c.name, s)
		}
		if status, _, b := p.ask(t, http.MethodGet, "/health", "", ""); status != 503 {
			t.Errorf("%s: no model can answer, and health says: status %d: %s", c.name, status, b)
		}
		write(path, b)
		if status, _, b := p.ask(t, http.MethodGet, "/health", "", ""); status != 200 {
			t.Errorf("%s, and repaired: health: status %d: %s", c.name, status, b)
		}
	}
	wants("in the end", want)
	p.end(t, syscall.SIGTERM)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, p.out)
	}
}
