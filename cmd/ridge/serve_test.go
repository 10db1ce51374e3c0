package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"ridge/engine"
	"ridge/kvcache"
	"ridge/model"
)

// patience is how long tests wait for what has to happen: longer than it takes
// on any machine, since it is not what they test.
const patience = 3 * time.Minute

// output may be written and read at the same time.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// The command serves, says where, and ends when it is told to.
func TestServe(t *testing.T) {
	var out, log output
	c := serveCommand()
	c.SetOut(&out)
	c.SetErr(&log)
	c.SetArgs([]string{tinyLlama, "--name", "tiny", "--port", "0", "--kv-memory", "1M", "--data", t.TempDir()})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() { done <- c.ExecuteContext(ctx) }()
	var url string
	for end := time.Now().Add(patience); url == ""; time.Sleep(5 * time.Millisecond) {
		if m := regexp.MustCompile(`at (http://\S+) \(ready`).FindStringSubmatch(out.String()); m != nil {
			url = m[1]
		}
		select {
		case err := <-done:
			t.Fatalf("it ended: %v\n%s%s", err, out.String(), log.String())
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("not ready:\n%s%s", out.String(), log.String())
		}
	}
	resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"model":"tiny","prompt":"the","max_tokens":4}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Errorf("status %s", resp.Status)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), `"model":"tiny"`) {
		t.Errorf("the request is not in the log: %s", log.String())
	}
}

func TestServeRefuses(t *testing.T) {
	for args, says := range map[string]string{
		"--kv q4 MODEL":                       "--kv",
		"--act int4 MODEL":                    "--act",
		"--log-level loud x":                  "--log-level",
		"--log-format xml x":                  "--log-format",
		"--tls-cert x MODEL":                  "--tls-cert and --tls-key",
		"--kv-memory 1x MODEL":                "--kv-memory",
		"--sched magic MODEL":                 "--preset: sched: preset",
		"--policy magic MODEL":                "--policy: sched: policy",
		"--page-size 17 MODEL":                "16",
		"--config /none MODEL":                "--config",
		"/none/model.gguf":                    "/none/model.gguf",
		"--api-key-file /n MODEL":             "keys",
		"--ctx -5 MODEL":                      "--ctx: expected 0 or more, found -5",
		"--max-queue 0 MODEL":                 "--max-queue: expected 1 or more, found 0",
		"--max-seqs -1 MODEL":                 "--max-seqs: expected 0 or more, found -1",
		"--ping -1s MODEL":                    "--ping: expected a time, found -1s",
		"--deadline -1s MODEL":                "--deadline: expected a time, found -1s",
		"--swap-ram much MODEL":               "--swap-ram: expected",
		"--swap-disk 1x MODEL":                "--swap-disk: expected",
		"--chunk -1 MODEL":                    "--chunk: expected 0 or more, found -1",
		"--kv q4 --local":                     "--kv", // before a model is asked for
		"--act int4 --local":                  "--act",
		"--preset orca --chunk 8":             "--chunk: the preset orca does not split prompts",
		"--lora x MODEL":                      "--lora: expected NAME=FILE or NAME=FILE:SCALE, found \"x\"",
		"--lora a=x:y MODEL":                  "--lora: x:y: expected a file, or a file and a scale",
		"--lora a=/none MODEL":                "adapter a cannot be loaded: model: adapter none: expected a GGUF file, or a folder",
		"--max-loras -1 MODEL":                "--max-loras: expected 0 or more, found -1",
		"--lora-memory x MODEL":               "--lora-memory: expected",
		"--lora-dir /none MODEL":              "--lora-dir: expected a folder, found \"/none\"",
		"--control-vector /none/c.gguf MODEL": "--control-vector: ",
		"--control-vector-layers 5 MODEL":     "--control-vector-layers: expected FIRST-LAST, found \"5\"",
		"--watts -1 MODEL":                    "--watts: expected 0 to 1e6, found -1",
	} {
		c := serveCommand()
		c.SilenceUsage, c.SilenceErrors = true, true
		c.SetOut(&bytes.Buffer{})
		c.SetErr(&bytes.Buffer{})
		c.SetArgs(append(strings.Fields(strings.ReplaceAll(args, "MODEL", tinyLlama)), "--port", "0", "--offline"))
		err := c.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %s", args, err, says)
		}
	}
}

// With --local clients see the models of this machine, and name them as a person
// does; without it they see those that are served, loaded or not.
func TestShelf(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "LLAMA_CACHE", "XDG_CACHE_HOME"} {
		t.Setenv(v, t.TempDir())
	}
	t.Setenv("RIDGE_MODELS", dir)
	if err := os.MkdirAll(filepath.Join(os.Getenv("OLLAMA_MODELS"), "manifests/registry.ollama.ai/library/mini"), 0o755); err != nil {
		t.Fatal(err)
	}
	blobs := filepath.Join(os.Getenv("OLLAMA_MODELS"), "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(tinyLlama)
	if err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(b))
	manifest := fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d}]}`, sum, len(b))
	for file, text := range map[string][]byte{filepath.Join(blobs, "sha256-"+sum): b, filepath.Join(os.Getenv("OLLAMA_MODELS"), "manifests/registry.ollama.ai/library/mini/latest"): []byte(manifest)} {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	names := func(s *serveShelf) (out []string) {
		for _, c := range s.list() {
			out = append(out, c.Name)
		}
		return out
	}
	for _, local := range []bool{false, true} {
		o := serveOptions{local: local}
		o.offline = true
		s, err := o.shelf(t.Context(), []string{"tiny"})
		if err != nil {
			t.Fatal(err)
		}
		if got := names(s); got[0] != "tiny" || len(got) != map[bool]int{false: 1, true: 2}[local] {
			t.Errorf("local %v: the list is %v", local, got)
		}
		for _, name := range []string{"mini", "ollama:mini", "Ollama:Mini:latest"} {
			if c, ok := s.find(name); ok != local || ok && s.path(c.Name) == "" {
				t.Errorf("local %v: %s: found %v", local, name, ok)
			}
		}
		for _, name := range []string{"nothing", "/etc/passwd", "../x", filepath.Join(blobs, "sha256-"+sum), "https://example.com/x.gguf"} {
			if _, ok := s.find(name); ok {
				t.Errorf("local %v: %s is found", local, name)
			}
		}
	}
}

// A server that others can reach without a key says so.
func TestGreetOpen(t *testing.T) {
	load := func(context.Context, string, *kvcache.Budget) (*model.Model, engine.Options, error) {
		return nil, engine.Options{}, errors.New("not here")
	}
	reg, err := engine.NewRegistry(load, engine.RegistryOptions{PageBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer reg.Close(t.Context())
	for _, c := range []struct {
		ip   net.IP
		keys []string
		open bool
	}{{net.IPv4zero, nil, true}, {net.IPv6unspecified, nil, true}, {net.IPv4(10, 0, 0, 1), nil, true}, {net.IPv4(127, 0, 0, 1), nil, false}, {net.IPv6loopback, nil, false}, {net.IPv4zero, []string{"k"}, false}} {
		var out bytes.Buffer
		o := serveOptions{keys: c.keys}
		o.greet(&out, &net.TCPAddr{IP: c.ip, Port: 80}, &serveShelf{}, reg, 0)
		if strings.Contains(out.String(), "whoever reaches this address") != c.open {
			t.Errorf("%v with keys %v: %s", c.ip, c.keys, out.String())
		}
	}
}

// A flag counts before the environment, the environment before the file.
func TestFillFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("# comment\na = file\nb = file\nc = \"file\"\nlist = 1\nlist = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	a, b, c, l := fs.String("a", "", ""), fs.String("b", "", ""), fs.String("c", "", ""), fs.StringArray("list", nil, "")
	if err := fs.Parse([]string{"--a", "flag"}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("X_A", "env")
	t.Setenv("X_B", "env")
	if _, err := fillFlags(fs, "X_", file); err != nil {
		t.Fatal(err)
	}
	if *a != "flag" || *b != "env" || *c != "file" || strings.Join(*l, ",") != "1,2" {
		t.Errorf("got %q %q %q %q", *a, *b, *c, *l)
	}
	if err := os.WriteFile(file, []byte("unknown = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := fillFlags(fs, "X_", file); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("got %v", err)
	}
}

// A model is only loaded if its weights leave the memory that keys and values
// may still take, within what the control group and the machine have.
func TestRoomForWeights(t *testing.T) {
	pages := kvcache.BudgetStats{Bytes: 400, Used: 100}
	for _, c := range []struct {
		l    kvcache.Limits
		size int64
		ok   bool
	}{
		{kvcache.Limits{Free: 1000, Group: -1}, 700, true},
		{kvcache.Limits{Free: 1000, Group: -1}, 701, false},
		{kvcache.Limits{Free: 1000, Group: 500}, 200, true},
		{kvcache.Limits{Free: 1000, Group: 500}, 201, false},
		{kvcache.Limits{Free: 100, Group: -1}, 0, true},
		{kvcache.Limits{Group: -1}, 1 << 40, true}, // not known
	} {
		if err := room(c.l, c.size, pages); (err == nil) != c.ok {
			t.Errorf("%+v: weights of %d bytes: %v", c.l, c.size, err)
		}
	}
}
