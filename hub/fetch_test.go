package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ridge/internal/disk"
)

// start runs a server with one model at /m.gguf.
func start(t *testing.T, s *server, content []byte) string {
	t.Helper()
	if s.content == nil {
		s.content = map[string][]byte{}
	}
	if content != nil {
		s.content["/m.gguf"] = content
	}
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	ts.Config.ErrorLog = nil
	return ts.URL
}

// TestFaults downloads a file from servers with every kind of trouble. All of
// them must end with the right bytes.
func TestFaults(t *testing.T) {
	big := fakeGGUF(1<<20+12345, 1)
	for _, tc := range []struct {
		name    string
		s       *server
		content []byte
		suffix  string
	}{
		{name: "plain", s: &server{}, content: big},
		{name: "one segment", s: &server{}, content: big[:1000]},
		{name: "exact segments", s: &server{}, content: big[:4*64<<10]},
		{name: "with checksum", s: &server{}, content: big, suffix: "#sha256=" + sumOf(big)},
		{name: "no ranges", s: &server{noRanges: true}, content: big},
		{name: "no etag", s: &server{noETag: true}, content: big},
		{name: "cut often", s: &server{cutAt: 30000, cuts: 40}, content: big},
		{name: "cut at once", s: &server{cutAt: 0, cuts: 4}, content: big},
		{name: "cut, no ranges", s: &server{noRanges: true, cutAt: 500000, cuts: 3}, content: big},
		{name: "server errors", s: &server{fail: []int{0, 500, 502, 503, 0, 429}}, content: big},
		{name: "corrupt once, checksum", s: &server{corrupt: 1}, content: big, suffix: "#sha256=" + sumOf(big)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := sandbox(t)
			url := start(t, tc.s, tc.content)
			bars := &counter{}
			m, err := Resolve(t.Context(), url+"/m.gguf"+tc.suffix, Options{Progress: bars})
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, m, tc.content)
			bars.check(t)
			if m.Owner != OwnerRidge || !strings.HasPrefix(m.Path(), dir) {
				t.Errorf("model %+v is not in the store %s", m, dir)
			}
			// Again: nothing is asked of the server.
			before := tc.s.requested("")
			again, err := Resolve(t.Context(), url+"/m.gguf"+tc.suffix, Options{})
			if err != nil || again.Path() != m.Path() || tc.s.requested("") != before {
				t.Errorf("second Resolve: %v, %v, %d requests", again, err, tc.s.requested("")-before)
			}
		})
	}
}

// TestHopeless downloads from servers that cannot deliver. The error must say
// why, no model may appear, and nothing unusable may be kept.
func TestHopeless(t *testing.T) {
	big := fakeGGUF(500_000, 2)
	html := []byte("<!DOCTYPE html><html>please log in</html>")
	for _, tc := range []struct {
		name    string
		s       *server
		content []byte
		suffix  string
		want    string
		keeps   bool
	}{
		{name: "not there", s: &server{}, want: "HTTP 404"},
		{name: "forbidden", s: &server{fail: []int{401}}, content: big, want: "HTTP 401"},
		{name: "always 500", s: &server{fail: repeat(500, 50)}, content: big, want: "HTTP 500"},
		{name: "wrong sum", s: &server{}, content: big, suffix: "#sha256=" + sumOf(html), want: "checksum: expected " + sumOf(html)},
		{name: "always corrupt", s: &server{corrupt: 1000}, content: big, suffix: "#sha256=" + sumOf(big), want: "checksum"},
		{name: "html", s: &server{}, content: html, want: "not a GGUF file"},
		{name: "empty", s: &server{}, content: []byte{}, want: "not a GGUF file"},
		{name: "always cut", s: &server{cutAt: 0, cuts: 1 << 30}, content: big, want: "given up after 6 failures"},
		{name: "dies half-way", s: &server{fail: append(make([]int, 4), repeat(503, 50)...)}, content: big, want: "HTTP 503", keeps: true},
		{name: "lost half-way", s: &server{fail: append(make([]int, 4), repeat(404, 50)...)}, content: big, want: "HTTP 404", keeps: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := sandbox(t)
			url := start(t, tc.s, tc.content)
			_, err := Resolve(t.Context(), url+"/m.gguf"+tc.suffix, Options{Connections: 1})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want one with %q", err, tc.want)
			}
			if left := leftovers(dir); (len(left) > 0) != tc.keeps {
				t.Errorf("left in the store: %v", left)
			}
			if ms, err := listOnDisk(Options{}); len(ms) != 0 || err != nil {
				t.Errorf("List = %v, %v", ms, err)
			}
		})
	}
}

func repeat(code, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = code
	}
	return out
}

// TestResume stops a download half-way by cancelling it; the second run must
// fetch only the rest.
func TestResume(t *testing.T) {
	content := fakeGGUF(2<<20, 3)
	for _, sum := range []bool{false, true} {
		sandbox(t)
		const half = 1 << 20
		s := &server{limit: half}
		ref := start(t, s, content) + "/m.gguf"
		if sum {
			ref += "#sha256=" + sumOf(content)
		}
		ctx, cancel := context.WithCancel(t.Context())
		bars, ended := &counter{}, make(chan error, 1)
		go func() {
			_, err := Resolve(ctx, ref, Options{Progress: bars})
			ended <- err
		}()
		until(t, "half of it has arrived", func() bool { return bars.done() > half-64<<10 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled Resolve: %v", err)
		}
		if _, err := Find(ref, Options{}); !errors.Is(err, ErrNotFound) {
			t.Fatalf("Find after half a download: %v", err)
		}
		s.forget()
		s.allow(0)
		bars = &counter{}
		m, err := Resolve(t.Context(), ref, Options{Progress: bars})
		if err != nil {
			t.Fatal(err)
		}
		checkModel(t, m, content)
		bars.check(t)
		if s.sent > half+200_000 {
			t.Errorf("the second run fetched %d bytes of %d", s.sent, len(content))
		}
	}
}

// TestChangedBetweenRuns replaces the file at the address between two runs: the
// result must be the new file, not a mixture.
func TestChangedBetweenRuns(t *testing.T) {
	old, new := fakeGGUF(1<<20, 4), fakeGGUF(1<<20, 5)
	sandbox(t)
	s := &server{fail: append(make([]int, 6), repeat(503, 50)...)}
	ref := start(t, s, old) + "/m.gguf"
	if _, err := Resolve(t.Context(), ref, Options{}); err == nil {
		t.Fatal("first run: no error")
	}
	s.mu.Lock()
	s.fail, s.content["/m.gguf"] = nil, new
	s.mu.Unlock()
	m, err := Resolve(t.Context(), ref, Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, new)
}

// TestCorruptPartial damages what an interrupted run left.
func TestCorruptPartial(t *testing.T) {
	content := fakeGGUF(1<<20, 6)
	damage := map[string]func(t *testing.T, inc, state string){
		"bytes": func(t *testing.T, inc, state string) {
			f, err := os.OpenFile(inc, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt(make([]byte, 30), 40); err != nil {
				t.Fatal(err)
			}
		},
		"truncated": func(t *testing.T, inc, state string) {
			if err := os.Truncate(inc, 10); err != nil {
				t.Fatal(err)
			}
		},
		"no data":  func(t *testing.T, inc, state string) { os.Remove(inc) },
		"no state": func(t *testing.T, inc, state string) { os.Remove(state) },
		"half a state": func(t *testing.T, inc, state string) {
			if err := os.WriteFile(state, []byte(`{"version":1,"size":10`), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"lying state": func(t *testing.T, inc, state string) {
			lie := `{"version":1,"url":"x","size":1048576,"sha256":"` + sumOf(content) + `","segment":1,"have":[9223372036854775807]}`
			if err := os.WriteFile(state, []byte(lie), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, harm := range damage {
		t.Run(name, func(t *testing.T) {
			dir := sandbox(t)
			s := &server{fail: append(make([]int, 6), repeat(503, 50)...)}
			ref := start(t, s, content) + "/m.gguf#sha256=" + sumOf(content)
			if _, err := Resolve(t.Context(), ref, Options{}); err == nil {
				t.Fatal("first run: no error")
			}
			inc, _ := filepath.Glob(filepath.Join(dir, "*", "m.gguf.incomplete"))
			if len(inc) != 1 {
				t.Fatalf("no partial file in %v", leftovers(dir))
			}
			harm(t, inc[0], inc[0]+".json")
			s.mu.Lock()
			s.fail = nil
			s.mu.Unlock()
			m, err := Resolve(t.Context(), ref, Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkModel(t, m, content)
		})
	}
}

// reasonable is less than what a download is held up for without the times that
// tests set, and more than any machine takes with them.
const reasonable = 15 * time.Second

// TestHang checks that a host that accepts and says nothing, and one that
// stops in the middle, do not hold a download up for ever.
func TestHang(t *testing.T) {
	defer func(h, s time.Duration) { headerTimeout, stallTimeout = h, s }(headerTimeout, stallTimeout)
	headerTimeout, stallTimeout = 200*time.Millisecond, 200*time.Millisecond
	sandbox(t)
	t.Run("never answers", func(t *testing.T) {
		s := &server{hang: true}
		begin := time.Now()
		_, err := Resolve(t.Context(), start(t, s, fakeGGUF(1000, 1))+"/m.gguf", Options{})
		if err == nil || time.Since(begin) > reasonable {
			t.Fatalf("error %v after %v", err, time.Since(begin))
		}
	})
	t.Run("stalls", func(t *testing.T) {
		s := &server{part: 16 << 10}
		_, err := Resolve(t.Context(), start(t, s, fakeGGUF(100_000, 1))+"/m.gguf", Options{})
		if err != nil { // each request brings 16 kB before it stalls
			t.Fatal(err)
		}
	})
	t.Run("no route", func(t *testing.T) {
		defer func(d time.Duration) { connectTimeout = d }(connectTimeout)
		connectTimeout = 100 * time.Millisecond
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		_, err = Resolve(t.Context(), "http://"+addr+"/m.gguf", Options{})
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Fatalf("error %v", err)
		}
	})
}

// TestNoSpace simulates a full disk, before and during a download.
func TestNoSpace(t *testing.T) {
	defer func(f func(string) (int64, error)) { freeSpace = f }(freeSpace)
	for _, noRanges := range []bool{false, true} {
		dir := sandbox(t)
		freeSpace = func(string) (int64, error) { return 64<<20 + 100_000, nil }
		s := &server{noRanges: noRanges}
		ref := start(t, s, fakeGGUF(200_000, 7)) + "/m.gguf"
		_, err := Resolve(t.Context(), ref, Options{})
		if err == nil || !strings.Contains(err.Error(), "too little space: needed 200.0 kB") {
			t.Fatalf("error %v", err)
		}
		if s.sent != 0 && !noRanges {
			t.Errorf("%d bytes were fetched all the same", s.sent)
		}
		if ms, _ := listOnDisk(Options{}); len(ms) != 0 {
			t.Errorf("List = %v, store %v", ms, leftovers(dir))
		}
		freeSpace = disk.Free
		if m, err := Resolve(t.Context(), ref, Options{}); err != nil {
			t.Error(err)
		} else {
			checkModel(t, m, fakeGGUF(200_000, 7))
		}
	}
}

// TestRedirects follows redirects to another host without the token, and
// refuses to leave https.
func TestRedirects(t *testing.T) {
	sandbox(t)
	content := fakeGGUF(300_000, 8)
	cdn := &server{content: map[string][]byte{"/blob": content}}
	cdnURL := start(t, cdn, nil)
	front := &server{redirect: map[string]string{"/m.gguf": cdnURL + "/blob?signature=abc"}}
	m, err := Resolve(t.Context(), start(t, front, nil)+"/m.gguf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, content)

	secure := httptest.NewTLSServer(front)
	defer secure.Close()
	_, err = Resolve(t.Context(), secure.URL+"/m.gguf", Options{HTTP: secure.Client()})
	if err == nil || !strings.Contains(err.Error(), "redirect from https to http refused") {
		t.Errorf("downgrade: error %v", err)
	}
	loop := &server{redirect: map[string]string{"/m.gguf": "/m.gguf"}}
	if _, err = Resolve(t.Context(), start(t, loop, nil)+"/m.gguf", Options{}); err == nil || !strings.Contains(err.Error(), "10 redirects") {
		t.Errorf("loop: error %v", err)
	}
}

// TestCertificates checks that an unknown authority is refused with a hint,
// and accepted when a variable names it.
func TestCertificates(t *testing.T) {
	sandbox(t)
	content := fakeGGUF(1000, 9)
	ts := httptest.NewUnstartedServer(&server{content: map[string][]byte{"/m.gguf": content}})
	ts.Config.ErrorLog = discardLog()
	ts.StartTLS()
	defer ts.Close()
	_, err := Resolve(t.Context(), ts.URL+"/m.gguf", Options{})
	if err == nil || !strings.Contains(err.Error(), "certificate not trusted") {
		t.Fatalf("error %v", err)
	}
	pem := writeCert(t, ts)
	t.Setenv("REQUESTS_CA_BUNDLE", pem)
	m, err := Resolve(t.Context(), ts.URL+"/m.gguf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, content)
	t.Setenv("REQUESTS_CA_BUNDLE", filepath.Join(t.TempDir(), "missing.pem"))
	if _, err := Resolve(t.Context(), ts.URL+"/other.gguf", Options{}); err == nil || !strings.Contains(err.Error(), "missing.pem") {
		t.Errorf("missing file: error %v", err)
	}
}

// TestWrongRanges serves answers whose Content-Range lies.
func TestWrongRanges(t *testing.T) {
	for name, cr := range map[string]string{
		"other start": "bytes 5-999/1000", "no total": "bytes 0-999/*", "garbage": "pages 1-2", "none": "",
		"negative": "bytes -5-3/10", "backwards": "bytes 10-5/20", "huge": "bytes 0-9/99999999999999999999",
	} {
		t.Run(name, func(t *testing.T) {
			sandbox(t)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				w.Header().Set("Content-Range", cr)
				w.WriteHeader(http.StatusPartialContent)
				w.Write(fakeGGUF(1000, 1))
			})
			ts := httptest.NewServer(h)
			defer ts.Close()
			if _, err := Resolve(t.Context(), ts.URL+"/m.gguf", Options{}); err == nil || !strings.Contains(err.Error(), "Content-Range") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestHugeSize announces more bytes than any disk has.
func TestHugeSize(t *testing.T) {
	sandbox(t)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "4611686018427387904")
		if r.Method != http.MethodHead {
			w.WriteHeader(200)
		}
	})
	ts := httptest.NewServer(h)
	defer ts.Close()
	if _, err := Resolve(t.Context(), ts.URL+"/m.gguf", Options{}); err == nil || !strings.Contains(err.Error(), "too little space") {
		t.Errorf("error %v", err)
	}
}

// TestLimitRate checks the speed limit over several connections: that a download
// keeps to it, and that it does not wait for more.
func TestLimitRate(t *testing.T) {
	sandbox(t)
	content := fakeGGUF(300_000, 10)
	begin := time.Now()
	m, err := Resolve(t.Context(), start(t, &server{}, content)+"/m.gguf", Options{LimitRate: 600_000})
	if err != nil {
		t.Fatal(err)
	}
	checkModel(t, m, content)
	if d := time.Since(begin); d < 400*time.Millisecond {
		t.Errorf("300 kB at 600 kB/s took %v", d)
	}
	synctest.Test(t, func(t *testing.T) {
		begin, l := time.Now(), newLimiter(600_000)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for range 10 {
					if err := l.wait(t.Context(), 10_000); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if d := time.Since(begin).Round(time.Millisecond); d != 500*time.Millisecond {
			t.Errorf("300 kB at 600 kB/s should take %v", d)
		}
	})
}

// TestShards fetches all shards of a split file from their addresses.
func TestShards(t *testing.T) {
	sandbox(t)
	s := &server{content: map[string][]byte{}}
	for i, n := range []string{"/x-00001-of-00003.gguf", "/x-00002-of-00003.gguf", "/x-00003-of-00003.gguf"} {
		s.content[n] = fakeGGUF(100_000+i, uint64(i))
	}
	m, err := Resolve(t.Context(), start(t, s, nil)+"/x-00002-of-00003.gguf", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Files) != 3 || !strings.HasSuffix(m.Path(), "x-00001-of-00003.gguf") || m.Size != 300_003 {
		t.Errorf("model %+v", m)
	}
}

func TestOffline(t *testing.T) {
	sandbox(t)
	s := &server{}
	ref := start(t, s, fakeGGUF(1000, 11)) + "/m.gguf"
	if _, err := Resolve(t.Context(), ref, Options{Offline: true}); !errors.Is(err, ErrOffline) {
		t.Errorf("error %v", err)
	}
	t.Setenv("RIDGE_OFFLINE", "1")
	if _, err := Resolve(t.Context(), "smollm2", Options{}); !errors.Is(err, ErrOffline) {
		t.Errorf("error %v", err)
	}
	if n := s.requested(""); n != 0 {
		t.Errorf("%d requests in offline mode", n)
	}
	t.Setenv("RIDGE_OFFLINE", "")
	if _, err := Resolve(t.Context(), ref, Options{}); err != nil {
		t.Error(err)
	}
	if _, err := Resolve(t.Context(), ref, Options{Offline: true}); err != nil {
		t.Errorf("offline, but in the store: %v", err)
	}
}
