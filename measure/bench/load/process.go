package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ridge/internal/cmdline"
)

// Command is a server that is started for a run.
type Command struct {
	Name string
	args []string
}

// CommandOptions fill in a command.
type CommandOptions struct {
	Self  string // the ridge that starts servers named ridge
	Model string // file of the model, "" if there is none
}

// ParseCommand reads a server's command: [NAME=]PROGRAM ARGS, where {model}
// stands for the model's file, {port} for the port and {host} for the address
// to listen on. Without {port}, llama-server gets its flags for them, and
// "ridge" runs ridge serve.
func ParseCommand(s string, o CommandOptions) (*Command, error) {
	words, err := cmdline.Split(s)
	if err != nil {
		return nil, fmt.Errorf("load: server %q: %w", s, err)
	}
	if len(words) == 0 {
		return nil, errors.New("load: server: expected a command, found none")
	}
	c := &Command{Name: filepath.Base(words[0])}
	if name, prog, ok := strings.Cut(words[0], "="); ok && name != "" && prog != "" {
		c.Name, words[0] = name, prog
	}
	base := filepath.Base(words[0])
	switch {
	case slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "{port}") }):
	case words[0] == "ridge":
		words = slices.Insert(words, 1, "serve", "{model}", "--host", "{host}", "--port", "{port}", "--log-level", "error")
	case strings.Contains(base, "llama-server"):
		words = append(words, "--host", "{host}", "--port", "{port}", "-m", "{model}")
	default:
		return nil, fmt.Errorf("load: server %q: expected {port} among its words, found none", s)
	}
	if words[0] == "ridge" && o.Self != "" {
		words[0] = o.Self
	}
	for i, w := range words {
		if strings.Contains(w, "{model}") {
			if o.Model == "" {
				return nil, fmt.Errorf("load: server %q: expected a model for {model}, found none", s)
			}
			words[i] = strings.ReplaceAll(w, "{model}", o.Model)
		}
	}
	c.args = words
	return c, nil
}

// Process is a server that was started.
type Process struct {
	cmd   *exec.Cmd
	out   tail
	ended chan struct{}
	err   error
}

// Start starts the server on a free loopback port and waits until it is ready,
// for at most patience. The target's other fields are for the caller to set.
func (c *Command) Start(ctx context.Context, patience time.Duration) (*Process, *Target, error) {
	port, err := freePort()
	if err != nil {
		return nil, nil, fmt.Errorf("load: %s: %w", c.Name, err)
	}
	fill := strings.NewReplacer("{port}", strconv.Itoa(port), "{host}", "127.0.0.1")
	args := make([]string, len(c.args))
	for i, a := range c.args {
		args[i] = fill.Replace(a)
	}
	p := &Process{cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("load: %s: %w", c.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t := &Target{Name: c.Name, URL: "http://127.0.0.1:" + strconv.Itoa(port), PID: p.cmd.Process.Pid}
	wctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- t.Ready(wctx) }()
	select {
	case err = <-ready:
	case <-p.ended:
		cancel()
		<-ready
		err = fmt.Errorf("load: %s ended before it was ready: %w", strings.Join(args, " "), errors.Join(p.err, errors.New(p.out.String())))
	}
	if err != nil {
		p.Stop()
		return nil, nil, err
	}
	return p, t, nil
}

// Stop ends the server: it is asked to, and killed when it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// freePort is a port that nobody listens on now.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail keeps the last of what is written.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailSize; n > 0 {
		t.b = slices.Delete(t.b, 0, n)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
