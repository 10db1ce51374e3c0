package hub

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary is also the program that the tests kill: with
// HUB_TEST_PULL set it resolves that name and exits.
func TestMain(m *testing.M) {
	minSegment, saveEvery, retryPause = 64<<10, 20*time.Millisecond, time.Millisecond
	if ref := os.Getenv("HUB_TEST_PULL"); ref != "" {
		rate, _ := strconv.ParseInt(os.Getenv("HUB_TEST_RATE"), 10, 64)
		model, err := Resolve(context.Background(), ref, Options{LimitRate: rate})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(model.Path())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// sandbox gives the test an empty home and an environment without any of the
// variables that hub reads. It returns the store's folder.
func sandbox(t testing.TB) string {
	t.Helper()
	home := t.TempDir()
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		for _, p := range []string{"PIP_", "HF_", "HUGGING", "OLLAMA_", "LLAMA_", "RIDGE_", "XDG_", "MODEL_ENDPOINT", "VIRTUAL_ENV", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"} {
			if strings.HasPrefix(name, p) {
				if tt, ok := t.(*testing.T); ok {
					tt.Setenv(name, "")
				}
			}
		}
	}
	set := func(k, v string) {
		switch tt := t.(type) {
		case *testing.T:
			tt.Setenv(k, v)
		case *testing.F:
			tt.Setenv(k, v)
		}
	}
	set("HOME", home)
	set("PIP_CONFIG_FILE", os.DevNull)
	set("NO_PROXY", "127.0.0.1,localhost")
	set("RIDGE_MODELS", filepath.Join(home, "store"))
	return filepath.Join(home, "store")
}

// fakeGGUF is n bytes that begin like a GGUF file and do not compress.
func fakeGGUF(n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	copy(b, "GGUF")
	return b
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// server serves named contents with the faults that the network is known for.
type server struct {
	mu       sync.Mutex
	content  map[string][]byte // by path
	noRanges bool
	noETag   bool
	etag     string
	header   http.Header // added to each answer with content
	redirect map[string]string

	fail    []int         // statuses to answer with, one per request, before anything else
	cutAt   int           // break the connection after so many bytes of a body, ...
	cuts    int           // ... so many times
	delay   time.Duration // before each 16 kB
	hang    bool          // never answer
	corrupt int           // flip a byte in the first so many bodies
	limit   int64         // send no more than so many bytes in all, as long as it is not 0
	part    int           // send no more than so many bytes of a body and then nothing, 0 for all

	sent     int64
	requests []string
	auth     []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Range"))
	s.auth = append(s.auth, r.Header.Get("Authorization"))
	status := 0
	if len(s.fail) > 0 {
		status, s.fail = s.fail[0], s.fail[1:]
	}
	body, ok := s.content[r.URL.Path]
	target := s.redirect[r.URL.Path]
	hang := s.hang
	s.mu.Unlock()
	switch {
	case hang:
		<-r.Context().Done()
		return
	case status != 0:
		w.WriteHeader(status)
		return
	case target != "":
		http.Redirect(w, r, target, http.StatusFound)
		return
	case !ok:
		http.NotFound(w, r)
		return
	}
	for k, v := range s.header {
		w.Header()[k] = v
	}
	if !s.noETag {
		tag := s.etag
		if tag == "" {
			tag = `"` + sumOf(body)[:16] + `"`
		}
		w.Header().Set("ETag", tag)
	}
	if s.noRanges {
		r.Header.Del("Range")
	}
	if r.Method == http.MethodHead || len(body) == 0 {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
		return
	}
	http.ServeContent(&faultyWriter{ResponseWriter: w, s: s, noRanges: s.noRanges, ctx: r.Context()}, r, "", time.Time{}, bytes.NewReader(body))
}

type faultyWriter struct {
	http.ResponseWriter
	s        *server
	noRanges bool
	n        int
	ctx      context.Context // ends when the client has gone
}

// wait waits until n more bytes may be sent; after it the server's mutex is
// held.
func (w *faultyWriter) wait(n int) error {
	w.s.mu.Lock()
	for held := false; ; held = true {
		if (w.s.limit == 0 || w.s.sent+int64(n) <= w.s.limit) && (w.s.part == 0 || w.n+n <= w.s.part) {
			return nil
		}
		w.s.mu.Unlock()
		if !held {
			w.ResponseWriter.(http.Flusher).Flush()
		}
		select {
		case <-w.ctx.Done():
			w.s.mu.Lock()
			return w.ctx.Err()
		case <-time.After(time.Millisecond):
		}
		w.s.mu.Lock()
	}
}

func (w *faultyWriter) WriteHeader(code int) {
	if w.noRanges {
		w.Header().Del("Accept-Ranges")
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *faultyWriter) Write(b []byte) (int, error) {
	total := 0
	for len(b) > 0 {
		part := b[:min(len(b), 16<<10)]
		if err := w.wait(len(part)); err != nil {
			w.s.mu.Unlock()
			return total, err
		}
		cut := w.s.cuts > 0 && w.n+len(part) > w.s.cutAt
		if cut {
			w.s.cuts--
			part = part[:max(0, w.s.cutAt-w.n)]
		}
		delay := w.s.delay
		corrupt := w.s.corrupt > 0 && w.n == 0 && len(part) > 100
		if corrupt {
			w.s.corrupt--
		}
		w.s.sent += int64(len(part))
		w.s.mu.Unlock()
		if corrupt {
			part = bytes.Clone(part)
			part[50] ^= 1
		}
		n, err := w.ResponseWriter.Write(part)
		total += n
		w.n += n
		if err != nil {
			return total, err
		}
		if cut {
			if f, ok := w.ResponseWriter.(http.Flusher); ok {
				f.Flush()
			}
			panic(http.ErrAbortHandler)
		}
		b = b[len(part):]
		if delay > 0 {
			w.ResponseWriter.(http.Flusher).Flush()
			time.Sleep(delay)
		}
	}
	return total, nil
}

// allow lets the server send so many bytes more than it has sent, 0 for all.
func (s *server) allow(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit = 0; n > 0 {
		s.limit = s.sent + n
	}
}

// forget makes the server count from 0 again.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = 0
}

// patience is how long tests wait for what has to happen: longer than it takes
// on any machine, since it is not what they test.
const patience = 3 * time.Minute

// until polls for something that has to happen.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// bytes is how much content was sent so far.
func (s *server) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

func (s *server) requested(part string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.Contains(r, part) {
			n++
		}
	}
	return n
}

// zipFile makes an archive of name, content pairs.
func zipFile(t testing.TB, method uint16, members ...any) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for i := 0; i < len(members); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: members[i].(string), Method: method})
		if err != nil {
			t.Fatal(err)
		}
		switch c := members[i+1].(type) {
		case string:
			_, err = w.Write([]byte(c))
		case []byte:
			_, err = w.Write(c)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// wheelFile makes a wheel of members with the usual records.
func wheelFile(t testing.TB, name, version, metadata string, members ...any) []byte {
	info := strings.ReplaceAll(name, "-", "_") + "-" + version + ".dist-info/"
	record := ""
	for i := 0; i < len(members); i += 2 {
		b, ok := members[i+1].([]byte)
		if !ok {
			b = []byte(members[i+1].(string))
		}
		sum := sha256.Sum256(b)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", members[i], base64.RawURLEncoding.EncodeToString(sum[:]), len(b))
	}
	members = append(members, info+"METADATA", "Metadata-Version: 2.1\nName: "+name+"\nVersion: "+version+"\n"+metadata+"\n", info+"RECORD", record)
	return zipFile(t, zip.Deflate, members...)
}

// checkModel checks that the model at m has this content and that nothing but
// it and its manifest is in its folder.
func checkModel(t *testing.T, m *Model, want []byte) {
	t.Helper()
	got, err := os.ReadFile(m.Path())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("content of %s differs: %d bytes, want %d", m.Path(), len(got), len(want))
	}
	if m.Owner == OwnerRidge {
		if m.SHA256 != sumOf(want) {
			t.Errorf("SHA256 = %s, want %s", m.SHA256, sumOf(want))
		}
		entries, _ := os.ReadDir(filepath.Dir(m.Path()))
		if len(entries) != 2 {
			t.Errorf("folder holds %v, want the file and its manifest", entries)
		}
	}
}

// leftovers lists what is in the store besides locks.
func leftovers(dir string) []string {
	var out []string
	for _, f := range walkFiles(dir, 5) {
		if !strings.HasPrefix(f.name, ".locks/") {
			out = append(out, f.name)
		}
	}
	return out
}

// counter is a Progress that remembers what it was told.
type counter struct {
	mu   sync.Mutex
	bars []*counterBar
}

type counterBar struct {
	mu          sync.Mutex
	name        string
	total, done int64
	ended       bool
	err         error
}

func (c *counter) Start(name string, total int64) Bar {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := &counterBar{name: name, total: total}
	c.bars = append(c.bars, b)
	return b
}

func (b *counterBar) Add(n int64)    { b.mu.Lock(); b.done += n; b.mu.Unlock() }
func (b *counterBar) Set(n int64)    { b.mu.Lock(); b.done = n; b.mu.Unlock() }
func (b *counterBar) Done(err error) { b.mu.Lock(); b.ended, b.err = true, err; b.mu.Unlock() }

// done is what all bars have counted.
func (c *counter) done() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range c.bars {
		b.mu.Lock()
		n += b.done
		b.mu.Unlock()
	}
	return n
}

// check checks that every bar ended at its total.
func (c *counter) check(t *testing.T) {
	t.Helper()
	for _, b := range c.bars {
		if !b.ended || b.err != nil || (b.total >= 0 && b.done != b.total) {
			t.Errorf("bar %q: done %d of %d, ended %v, error %v", b.name, b.done, b.total, b.ended, b.err)
		}
	}
}
