//go:build unix

package main

import (
	"bufio"
	"io"
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

// The program as systemd runs it: SIGTERM ends it after the stream that is under
// way, while it refuses what is new and says so where load balancers look. Its
// flags come from a file, the environment and the command line, in rising order.
func TestServeDrains(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("name = of-file\nport = 1\ngrace = 60s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("ridge", "serve", tinyLlama, "--config", config, "--port", "0", "--kv-memory", "1M", "--offline")
	c.Env = append(os.Environ(), "RIDGE_SERVE_NAME=of-env", "RIDGE_SERVE_PORT=2", "HOME="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	m := regexp.MustCompile(`serves of-env at (http://\S+) \(ready`).FindStringSubmatch(first)
	if err != nil || m == nil {
		t.Fatalf("%q, %v", first, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }() // the rest is for people
	status := func(path string) int {
		resp, err := http.Get(m[1] + path)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if status("/live") != 200 || status("/ready") != 200 {
		t.Error("it is not ready")
	}
	// A stream that has begun and is not near its end.
	resp, err := http.Post(m[1]+"/v1/completions", "application/json", strings.NewReader(`{"prompt":"the","max_tokens":100,"ignore_eos":true,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := bufio.NewReader(resp.Body)
	if _, err := body.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(body)
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(rest)), "[DONE]") {
		t.Errorf("the stream was cut: %v: ...%s", err, rest[max(0, len(rest)-100):])
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("it did not end")
	}
	if status("/live") != 0 {
		t.Error("the port is still open")
	}
}
