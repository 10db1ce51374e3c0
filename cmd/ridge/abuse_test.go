//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// memoryGroup makes a control group for memory (v1 or v2) beside that of this
// process, with a limit in bytes, and returns its folder; "" where the system
// does not let it.
func memoryGroup(t *testing.T, limit int) string {
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || f[1] != "memory" && f[1] != "" {
			continue
		}
		root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		if f[1] == "" {
			root, file = "/sys/fs/cgroup", "memory.max"
		}
		for _, at := range []string{filepath.Join(root, f[2]), root} {
			dir := filepath.Join(at, fmt.Sprintf("ridge-abuse-%d", os.Getpid()))
			if os.Mkdir(dir, 0o755) != nil {
				continue
			}
			t.Cleanup(func() { _ = os.Remove(dir) }) // after the server has ended
			if os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0o600) == nil {
				return dir
			}
		}
	}
	return ""
}

// launchIn starts a server in a control group, "" for none.
func launchIn(t *testing.T, group string, args ...string) *process {
	t.Helper()
	path, err := exec.LookPath("ridge")
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-c", `[ -z "$0" ] || echo $$ >"$0/cgroup.procs" || exit 9; exec "$@"`, group, path, "serve", "--port", "0", "-t", "2"}, args...)
	p := &process{cmd: exec.Command("sh", args...), out: &output{}}
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

// abuse is a server, those who do it harm, and what was seen.
type abuse struct {
	*process
	http *http.Client
	mu   sync.Mutex
	seen map[string]int // answers by kind and status
	took map[string]time.Duration
	errs []string
}

func (a *abuse) fail(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.errs) < 30 {
		a.errs = append(a.errs, fmt.Sprintf(format, args...))
	}
}

// note counts an answer and complains of a status that nobody may get.
func (a *abuse) note(kind string, status int, body []byte, took time.Duration) {
	a.mu.Lock()
	a.seen[fmt.Sprintf("%s %d", kind, status)]++
	a.took[kind] = max(a.took[kind], took)
	a.mu.Unlock()
	if status >= 500 && !slices.Contains([]int{http.StatusNotImplemented, http.StatusServiceUnavailable, 529}, status) {
		a.fail("%s: status %d: %.300s", kind, status, body)
	}
}

// send posts a body until the server has room for it, and reads the answer.
func (a *abuse) send(kind, path, body string, header ...string) {
	for range 20 {
		if a.try(kind, path, body, header) != http.StatusTooManyRequests {
			return
		}
		time.Sleep(50 * time.Millisecond) // sooner than it was told to
	}
}

// try posts a body once and returns the status, 0 for none.
func (a *abuse) try(kind, path, body string, header []string) int {
	r, err := http.NewRequest(http.MethodPost, a.url+path, strings.NewReader(body))
	if err != nil {
		a.fail("%s: %v", kind, err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	start := time.Now()
	resp, err := a.http.Do(r)
	if err != nil { // a server may refuse a body before it has read it all
		if a.alive() {
			a.note(kind+" cut", 0, nil, time.Since(start))
		} else {
			a.fail("%s: %v", kind, err)
		}
		return 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 2000))
	_, _ = io.Copy(io.Discard, resp.Body)
	if err != nil && !a.alive() {
		a.fail("%s: %v", kind, err)
	}
	a.note(kind, resp.StatusCode, b, time.Since(start))
	return resp.StatusCode
}

// alive reports whether the process is there.
func (a *abuse) alive() bool { return a.cmd.Process.Signal(syscall.Signal(0)) == nil }

// raw writes bytes to the server, reads some of what comes and hangs up.
func (a *abuse) raw(r *rand.Rand, text string, read int64) {
	c, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		a.fail("dial: %v", err)
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, text)
	_ = c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(300)) * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c, read)
	if r.IntN(2) == 0 {
		_ = c.(*net.TCPConn).SetLinger(0) // without goodbye
	}
	a.note("vanish", 0, nil, 0)
}

// fixed is a greedy request.
const fixed = `{"prompt":"Why is the sky blue?","max_tokens":32,"temperature":0,"logprobs":3,"ignore_eos":true}`

// neighbour asks for one fixed greedy answer after the other until stop is
// closed, or n of them; all must be the same bytes. It returns their times.
func (a *abuse) neighbour(n int, stop <-chan struct{}, want *string) []time.Duration {
	var took []time.Duration
	for n == 0 || len(took) < n {
		select {
		case <-stop:
			return took
		default:
		}
		start := time.Now()
		resp, err := a.http.Post(a.url+"/v1/completions", "application/json", strings.NewReader(fixed))
		if err != nil {
			a.fail("neighbour: %v", err)
			return took
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests { // told to come again: so it does
			a.note("neighbour", resp.StatusCode, b, 0)
			time.Sleep(20 * time.Millisecond)
			continue
		}
		took = append(took, time.Since(start))
		var o struct {
			Choices json.RawMessage `json:"choices"`
		}
		if err != nil || resp.StatusCode != 200 || json.Unmarshal(b, &o) != nil {
			a.fail("neighbour: status %d, %v: %.300s", resp.StatusCode, err, b)
			continue
		}
		if *want == "" {
			*want = string(o.Choices)
		}
		if string(o.Choices) != *want {
			a.fail("neighbour: got %.600s\nalone %.600s", o.Choices, *want)
		}
	}
	return took
}

// middle returns the median and the 95th percentile.
func middle(d []time.Duration) (p50, p95 time.Duration) {
	if len(d) == 0 {
		return 0, 0
	}
	slices.Sort(d)
	return d[len(d)/2].Round(10 * time.Microsecond), d[len(d)*95/100].Round(10 * time.Microsecond)
}

// A server whose memory is bounded, under requests that mean it harm: nothing
// ends it, nobody gets a 500, and a fixed greedy answer stays the same bytes.
// RIDGE_ABUSE is the number of requests, with bodies of 30 MB then,
// RIDGE_ABUSE_CLIENTS that of those that send them at one time.
func TestAbuse(t *testing.T) {
	n, clients := 2*len(hostile), 4
	if testing.Short() {
		n /= 2
	}
	for name, v := range map[string]*int{"RIDGE_ABUSE": &n, "RIDGE_ABUSE_CLIENTS": &clients} {
		if s := os.Getenv(name); s != "" {
			var err error
			if *v, err = strconv.Atoi(s); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if os.Getenv("RIDGE_ABUSE") != "" {
		largeBytes *= 10
	}
	const limit = 600 << 20
	group := memoryGroup(t, limit)
	if group == "" {
		t.Log("no control group can be made: the server's memory is not bounded")
	}
	a := &abuse{process: launchIn(t, group, "tiny", "--allow-request-template", "--log-level", "error", "--data", t.TempDir()), seen: map[string]int{}, took: map[string]time.Duration{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * clients}, Timeout: 2 * time.Minute}}
	var want string
	_ = a.neighbour(10, nil, &want) // the first of all
	rounds := max(1, n/200)
	phases := []*phase{{name: "alone"}, {name: "polite", acts: []act{polite}}, {name: "ordinary", acts: ordinary}, {name: "hostile", acts: hostile}}
	for round := range rounds {
		for _, p := range phases {
			a.run(p, n/2/rounds, clients, round, &want)
		}
	}
	for _, p := range phases {
		p.report(t, phases[:2])
	}
	a.rest(t)
	for _, e := range a.errs {
		t.Error(e)
	}
	if !a.alive() || strings.Contains(a.out.String(), "panic") {
		t.Errorf("the server: %s", tail(a.out.String()))
	}
	if group != "" {
		for _, f := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
			if b, err := os.ReadFile(filepath.Join(group, f)); err == nil {
				peak, _ := strconv.Atoi(strings.TrimSpace(string(b)))
				t.Logf("at most %d MB of %d were used", peak>>20, limit>>20)
			}
		}
	}
}

// phase is what clients do beside the neighbour, and what came of it. Phases take
// turns, so that what else the machine does falls on all of them.
type phase struct {
	name  string
	acts  []act // nil: nothing
	done  int
	wall  time.Duration
	times []time.Duration // of the neighbour
	seen  map[string]int
	took  map[string]time.Duration
}

// polite is what the neighbour does, too.
func polite(a *abuse, _ *rand.Rand) { a.send("polite", "/v1/completions", fixed) }

// run has clients do n things beside the neighbour.
func (a *abuse) run(p *phase, n, clients, round int, want *string) {
	start := time.Now()
	defer func() { p.wall += time.Since(start) }()
	if p.acts == nil {
		p.times = append(p.times, a.neighbour(20, nil, want)...)
		return
	}
	a.seen, a.took = p.seen, p.took
	if p.seen == nil {
		a.seen, a.took = map[string]int{}, map[string]time.Duration{}
		p.seen, p.took = a.seen, a.took
	}
	var left atomic.Int64
	left.Store(int64(n))
	stop, ended := make(chan struct{}), make(chan []time.Duration, 1)
	go func() { ended <- a.neighbour(0, stop, want) }()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), uint64(round)))
			for {
				i := left.Add(-1)
				if i < 0 || !a.alive() {
					return
				}
				p.acts[(p.done+int(i))%len(p.acts)](a, r)
			}
		})
	}
	wg.Wait()
	close(stop)
	p.times = append(p.times, <-ended...)
	p.done += n
}

// report tells how long the neighbour took, and how often it had taken so long in
// the phases that others are compared with.
func (p *phase) report(t *testing.T, than []*phase) {
	p50, p95 := middle(p.times)
	line := fmt.Sprintf("%s: %d requests in %s; %d neighbours: median %s, 95%% %s", p.name, p.done, p.wall.Round(time.Millisecond), len(p.times), p50, p95)
	for _, o := range than {
		if q50, q95 := middle(o.times); q50 > 0 && o != p {
			line += fmt.Sprintf("; of %s %.2f, %.2f", o.name, float64(p50)/float64(q50), float64(p95)/float64(q95))
		}
	}
	t.Log(line)
	var lines []string
	for k, v := range p.seen {
		kind, _, _ := strings.Cut(k, " ")
		lines = append(lines, fmt.Sprintf("%s: %d (at most %s)", k, v, p.took[kind].Round(time.Millisecond)))
	}
	slices.Sort(lines)
	if lines != nil {
		t.Log(strings.Join(lines, "; "))
	}
}

// rest waits until nothing is under way and looks for what was left over.
func (a *abuse) rest(t *testing.T) {
	t.Helper()
	a.http.CloseIdleConnections()
	for end := time.Now().Add(patience); a.alive(); time.Sleep(50 * time.Millisecond) {
		_, o, b := a.ask(t, http.MethodGet, "/load", "", "")
		if o["server_load"] == 0.0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("not idle: %s", b)
		}
	}
	runtime.GC() // bodies of this process
	if status, _, b := a.ask(t, http.MethodGet, "/health", "", ""); status != 200 {
		t.Errorf("health: status %d: %s", status, b)
	}
}

// tail is the end of a text.
func tail(s string) string { return s[max(0, len(s)-3000):] }
