package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/engine"
	"ridge/server/fault"
	"ridge/server/run"
)

var updateAgents = flag.Bool("update-agents", false, "write docs/agents.md's table and testdata/agents from what the programs do")

// sent is a request that a program has sent.
type sent struct {
	path         string
	body         []byte
	begun, ended time.Time // when it came, and when it was answered or the client had gone
}

// place is where a program runs: its home, a server of its own, and what was sent.
type place struct {
	dir, home, url, model string

	mu   sync.Mutex
	sent []sent
}

// record notes requests before h answers them.
func (l *place) record(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		l.mu.Lock()
		at := len(l.sent)
		l.sent = append(l.sent, sent{path: r.Method + " " + r.URL.Path, body: body, begun: time.Now()})
		l.mu.Unlock()
		h.ServeHTTP(w, r)
		l.mu.Lock()
		l.sent[at].ended = time.Now()
		l.mu.Unlock()
	})
}

// all is what was sent so far.
func (l *place) all() []sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

// newPlace makes a home and starts a server.
func newPlace(t *testing.T, dir string, p *program, o Options) *place {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &place{dir: dir, home: t.TempDir(), model: o.Models[0].Info().Name}
	srv := httptest.NewServer(l.record(s.Handler()))
	t.Cleanup(func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l.url = srv.URL
	if err := os.MkdirAll(filepath.Join(l.home, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range p.files {
		file := filepath.Join(l.home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(l.fill(t, text, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *place) fill(t *testing.T, s, text string) string {
	t.Helper()
	here, err := filepath.Abs("testdata/agents/programs")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("@URL@", l.url, "@MODEL@", l.model, "@TEXT@", text, "@HERE@", here).Replace(s)
}

// command is a turn of p, which ends with ctx.
func (l *place) command(t *testing.T, ctx context.Context, p *program, args []string, text string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, filepath.Join(l.dir, p.path))
	for _, a := range args {
		cmd.Args = append(cmd.Args, l.fill(t, a, text))
	}
	cmd.Dir = filepath.Join(l.home, "work")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.home, "TERM=dumb", "PYTHONUNBUFFERED=1"}
	for _, e := range p.env {
		cmd.Env = append(cmd.Env, l.fill(t, e, text))
	}
	cmd.WaitDelay = time.Second // of what it has started
	return cmd
}

// turn runs p to its end and returns what it prints.
func (l *place) turn(t *testing.T, p *program, args []string, text string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := l.command(t, ctx, p, args, text).CombinedOutput()
	return string(out), err
}

// What the model is told to do, beside the calls.
const (
	answers int32 = iota
	busy          // refuse the first request, as a full server does
	waits         // begin an answer that does not end
	fails         // refuse all
)

// double is a model that does what a test of programs wants.
type double struct {
	*script
	p       *program
	mode    atomic.Int32
	waiting chan struct{}
}

// own says whether a prompt is of the conversation, not for a title of it.
func (d *double) own(prompt string) bool {
	return d.p.tool == "" || strings.Contains(prompt, `"name": "`+d.p.tool+`"`)
}

func newDouble(t *testing.T, p *program) (*double, *run.Model) {
	t.Helper()
	tok := byteTokenizer(t)
	d := &double{p: p, script: &script{tok: tok}, waiting: make(chan struct{}, 16)}
	d.reply = func(r *engine.Request, _ int) string {
		prompt := tok.DecodeSpecial(r.Tokens)
		call := p.call
		if call == "" {
			call = `<tool_call>{"name":"` + p.tool + `","arguments":{"` + p.field + `":"` + command + `"}}</tool_call>`
		}
		switch {
		case !d.own(prompt):
			return "A title"
		case d.mode.Load() == waits:
			return strings.Repeat("waiting ", 100)
		case strings.Contains(prompt, didCall) && p.final != "":
			return p.final
		case strings.Contains(prompt, didCall):
			return said
		}
		return call
	}
	d.refuse = func(r *engine.Request) error {
		switch {
		case d.mode.Load() == fails:
			return &fault.Error{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: fault.CodeContext, Message: "ridge-fault: the prompt is too long"}
		case d.own(tok.DecodeSpecial(r.Tokens)) && d.mode.CompareAndSwap(busy, answers):
			return &engine.QueueFullError{Position: 1, RetryAfter: time.Second}
		}
		return nil
	}
	d.hold = func(r *engine.Request, token int) <-chan struct{} {
		if token < 40 || d.mode.Load() != waits || !d.own(tok.DecodeSpecial(r.Tokens)) {
			return nil
		}
		select {
		case d.waiting <- struct{}{}:
		default:
		}
		return never
	}
	m, err := run.ModelOf(d, tok, run.Info{Name: "fake", Path: "fake", Context: 1 << 19, Created: time.Unix(1e9, 0), Arch: "fake", Hidden: 4, Digest: strings.Repeat("a", 64), Parameters: 1e6, PageTokens: 16, Pages: 1 << 15}, hermes)
	if err != nil {
		t.Fatal(err)
	}
	return d, m
}

// The real programs work unchanged with a model that calls the tool for commands once
// and says what it printed: they start, come again to a server that is busy, send all
// their tools, run the call, send its result, go on in a second turn of the same
// conversation, end what they are told to end, and say what the server refuses.
func TestAgentPrograms(t *testing.T) {
	dir := programFolder(t)
	lines := make([]string, len(programs))
	t.Run("programs", func(t *testing.T) {
		for i := range programs {
			p := &programs[i]
			t.Run(p.file, func(t *testing.T) {
				t.Parallel()
				lines[i] = runProgram(t, dir, p)
			})
		}
	})
	if t.Failed() || slices.Contains(lines, "") {
		return // or not all were run
	}
	const page = "../docs/agents.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, table, after := rows(string(b))
	want := "| program | version | asks for | prompt | tools | call and result | next turn | busy server | cancelled | error |\n|---|---|---|---|---|---|---|---|---|---|\n" + strings.Join(lines, "\n") + "\n"
	if *updateAgents {
		if err := os.WriteFile(page, []byte(before+want+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want {
		t.Errorf("%s: the table is\n%s\nand the programs do\n%s\n-update-agents writes it", page, table, want)
	}
}

// runProgram returns the line of docs/agents.md.
func runProgram(t *testing.T, dir string, p *program) string {
	d, m := newDouble(t, p)
	l := newPlace(t, dir, p, Options{Models: []*run.Model{m}, Version: "test"})
	d.mode.Store(busy)
	begun := time.Now()
	step := func(what string) { t.Logf("%s after %.1f s", what, time.Since(begun).Seconds()) }
	out, err := l.turn(t, p, p.turn, "run it")
	if err != nil || !strings.Contains(out, said) {
		t.Fatalf("first turn: %v: %s", err, out)
	}
	if d.mode.Load() != answers {
		t.Error("the server was not busy")
	}
	if p.made != "" {
		if b, err := os.ReadFile(filepath.Join(l.home, "work", p.made)); err != nil || !strings.Contains(string(b), didCall) {
			t.Errorf("%s has %q: %v", p.made, b, err)
		}
	}
	step("first turn")
	first := d.ownPrompts()
	next := "no"
	if p.next != nil {
		if out, err = l.turn(t, p, p.next, "and again"); err != nil || !strings.Contains(out, said) {
			t.Fatalf("second turn: %v: %s", err, out)
		}
		prompts := d.ownPrompts()
		last := prompts[len(prompts)-1]
		for _, want := range []string{"run it", didCall, "and again"} {
			if !strings.Contains(last, want) {
				t.Errorf("the last prompt of the second turn has no %q: %s", want, last)
			}
		}
		next = "yes"
		step("second turn")
	}
	if *updateAgents {
		l.keep(t, p)
	}
	l.cancelled(t, p, d)
	step("cancelled")
	d.mode.Store(fails)
	out, _ = l.turn(t, p, p.turn, "fail") // some end with an error, some without
	if !strings.Contains(out, cmp.Or(p.told, "ridge-fault")) {
		t.Errorf("what the server refuses is not told: %s", out)
	}
	step("refused")
	var paths []string
	for _, s := range l.all() {
		if path := strings.TrimPrefix(s.path, "POST "); path != s.path && !slices.Contains(paths, path) || strings.HasSuffix(s.path, "/models") && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	tools := strings.Count(first[0], `{"type": "function"`)
	return fmt.Sprintf("| %s | %s | `%s` | %d | %d | yes | %s | comes again | ends at once | is told |", p.name, p.version(t), strings.Join(paths, "`, `"), p.prompt, tools, next)
}

// ownPrompts are those of the conversation so far.
func (d *double) ownPrompts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for i := range d.requests {
		if text := d.tok.DecodeSpecial(d.requests[i].Tokens); d.own(text) {
			out = append(out, text)
		}
	}
	return out
}

// cancelled ends the program, as Ctrl-C does, when the answer has begun: nothing is
// computed any more.
func (l *place) cancelled(t *testing.T, p *program, d *double) {
	t.Helper()
	d.mode.Store(waits)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := l.command(t, ctx, p, p.turn, "wait")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.waiting:
	case <-ctx.Done():
		t.Fatal("no answer has begun")
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // by a signal or not
	until(t, "what was cancelled ends", func() bool { return d.open.Load() == 0 })
	if ctx.Err() != nil {
		t.Errorf("it does not end: %s", out.String())
	}
}

// sends says whether a request is of the conversation, not for a title of it.
func (p *program) sends(s *sent) bool {
	return strings.HasPrefix(s.path, "POST ") && (p.tool == "" || bytes.Contains(s.body, []byte(`"`+p.tool+`"`)))
}

// keep writes what was sent last, with its texts replaced, and the pause before it.
func (l *place) keep(t *testing.T, p *program) {
	t.Helper()
	var last sent
	var pause time.Duration
	for _, s := range l.all() {
		if p.sends(&s) {
			pause = s.begun.Sub(last.ended)
			last = s
		}
	}
	_, path, _ := strings.Cut(last.path, " ")
	var body any
	if err := json.Unmarshal(last.body, &body); err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(map[string]any{"path": path, "version": p.version(t), "pause_ms": pause.Milliseconds(), "body": withoutTexts("", body, map[string]string{})}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/agents/"+p.file+".json", append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
