//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// terminal runs ridge on a pseudo-terminal.
type terminal struct {
	t   *testing.T
	f   *os.File
	cmd *exec.Cmd
	mu  sync.Mutex
	out bytes.Buffer
	vt  *vt.Emulator // what a person sees, if the terminal has a size
}

func startTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	return startTerminalWith(t, []string{"RIDGE_OFFLINE=1"}, args...)
}

// startTerminalWith adds variables to the environment.
func startTerminalWith(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	return startScreen(t, 0, 0, t.TempDir(), env, args...)
}

// startScreen starts ridge on a terminal of the given size, 0 for none, with a home
// that other terminals may have.
func startScreen(t *testing.T, width, height int, home string, env []string, args ...string) *terminal {
	t.Helper()
	c := exec.Command("ridge", args...)
	c.Env = append(os.Environ(), "RIDGE_OFFLINE=1", "HOME="+home, "XDG_CACHE_HOME="+home, "RIDGE_MODELS="+filepath.Join(home, "models"), "TERM=xterm")
	c.Env = append(c.Env, env...)
	f, err := pty.StartWithSize(c, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, f: f, cmd: c}
	t.Cleanup(func() { f.Close(); c.Process.Kill() })
	if width > 0 {
		term.vt = vt.NewEmulator(width, height)
		go io.Copy(f, term.vt) // a terminal answers what it is asked
		t.Cleanup(func() { term.vt.Close() })
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			term.mu.Lock()
			term.out.Write(buf[:n])
			if term.vt != nil {
				term.vt.Write(buf[:n])
			}
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

// see waits until the screen, as a person sees it, satisfies ok.
func (p *terminal) see(what string, ok func(screen string) bool) {
	p.t.Helper()
	var text string
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text = p.screen(); ok(text) {
			return
		}
	}
	p.t.Fatalf("%s is not on the screen:\n%s", what, text)
}

// sees waits until the text is on the screen.
func (p *terminal) sees(text string) {
	p.t.Helper()
	p.see(text, func(s string) bool { return strings.Contains(s, text) })
}

// screen is what a person sees.
func (p *terminal) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.vt.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// paste pastes a text as terminals do: brackets around it, a carriage return for
// the end of a line.
func (p *terminal) paste(text string) {
	p.t.Helper()
	p.send("\x1b[200~" + strings.ReplaceAll(text, "\n", "\r") + "\x1b[201~")
}

// ends waits until the program ends, without an error.
func (p *terminal) ends() {
	p.t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			p.t.Errorf("the program ended with %v", err)
		}
	case <-time.After(patience):
		p.t.Error("the program did not end")
	}
}
