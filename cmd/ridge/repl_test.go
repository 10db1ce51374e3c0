//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal runs ridge on a pseudo-terminal.
type terminal struct {
	t   *testing.T
	f   *os.File
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
}

func startTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	return startTerminalWith(t, []string{"RIDGE_OFFLINE=1"}, args...)
}

// startTerminalWith adds variables to the environment.
func startTerminalWith(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	c := exec.Command("ridge", args...)
	home := t.TempDir()
	c.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "RIDGE_MODELS="+filepath.Join(home, "models"), "TERM=xterm")
	c.Env = append(c.Env, env...)
	f, err := pty.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, f: f, cmd: c}
	t.Cleanup(func() { f.Close(); c.Process.Kill() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			term.mu.Lock()
			term.out.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

// expect waits until the text appears in what was printed since the last
// expect.
func (p *terminal) expect(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		i := strings.Index(p.out.String(), text)
		if i >= 0 {
			p.out.Next(i + len(text))
		}
		p.mu.Unlock()
		if i >= 0 {
			return
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Fatalf("%q did not appear in:\n%s", text, p.out.String())
}

// flows waits until so many bytes were printed since the last expect.
func (p *terminal) flows(n int) {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		text := p.out.String()
		p.mu.Unlock()
		if len(text) >= n {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%d bytes did not appear:\n%s", n, text)
		}
	}
}

func (p *terminal) send(text string) {
	p.t.Helper()
	if _, err := p.f.WriteString(text); err != nil {
		p.t.Fatal(err)
	}
}

// A chat as a person has it.
func TestChat(t *testing.T) {
	tiny, err := filepath.Abs("../../internal/tinymodel/testdata/llama/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	p := startTerminal(t, "run", tiny, "-n", "5", "--raw")
	p.expect("/? for help")
	p.send("ab\r")
	p.expect(">>> ")
	p.send("/?\r")
	p.expect("/save NAME")
	p.send("/set temperature 0.7\r/set top_k x\r")
	p.expect("top_k: expected a whole number")
	p.send("/show parameters\r")
	p.expect("0.7")
	p.send("/set system \"Be brief.\"\r/show system\r")
	p.expect("Be brief.")
	p.send("/show\r")
	p.expect("architecture")
	p.send("/save one\r")
	p.expect("Saved 2 messages")
	p.send("/clear\r")
	p.expect("forgotten")
	p.send("/load one\r")
	p.expect("Took up 2 messages")
	p.send("/load ../one\r")
	p.expect("conversation name: expected")
	p.send("\"\"\"a\rb\"\"\"\r")
	p.expect(">>> ")
	p.send("/nosuch\r")
	p.expect("expected a command")
	p.send("/set verbose\rab\r")
	p.expect("tok/s")
	p.send("/bye\r")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// SIGTERM ends a chat that waits for a question.
func TestChatTerminated(t *testing.T) {
	p := startTerminal(t, "run", "../../internal/tinymodel/testdata/llama/llama.gguf")
	p.expect("/? for help")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the program ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("it did not end")
	}
}

// Ctrl-C stops an answer and not the program.
func TestChatInterrupt(t *testing.T) {
	tiny, err := filepath.Abs("../../internal/tinymodel/testdata/llama/llama.gguf")
	if err != nil {
		t.Fatal(err)
	}
	// The reference code and a long answer leave time to interrupt.
	p := startTerminal(t, "run", tiny, "--raw", "--ignore-eos", "--ref", "--ctx", "128000")
	p.expect("/? for help")
	p.send("ab\r")
	p.flows(1000) // the answer has begun
	p.send("\x03")
	p.expect("(stopped)")
	p.send("/bye\r")
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}
