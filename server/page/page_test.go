package page

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	if !Serve(w, r) {
		t.Fatalf("%s is not served", path)
	}
	return w
}

// Who probes for a server gets the old answer; who asks for HTML, the page.
func TestWanted(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/plain": false, "text/html": true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, "application/json, TEXT/HTML;q=0.5": true,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", accept)
		if got := Wanted(r); got != want {
			t.Errorf("Accept %q: %v, want %v", accept, got, want)
		}
	}
}

// The page names its files by their contents, allows nothing from elsewhere, and
// is small.
func TestServe(t *testing.T) {
	index := get(t, "/")
	policy := index.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %q", policy)
	}
	names := regexp.MustCompile(`/ui/[a-z]+-[0-9a-f]{12}\.(?:js|css|svg)`).FindAllString(index.Body.String(), -1)
	if len(names) != 3 {
		t.Fatalf("the page names %q, want a script, a style sheet and an icon", names)
	}
	sum := 0
	for _, name := range names {
		plain, packed := get(t, name), get(t, name, "Accept-Encoding", "br, gzip")
		sum += packed.Body.Len()
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(z); err != nil || !bytes.Equal(b, plain.Body.Bytes()) {
			t.Errorf("%s: packed is not what plain is: %v", name, err)
		}
		if c := plain.Header().Get("Cache-Control"); !strings.Contains(c, "immutable") {
			t.Errorf("%s: Cache-Control %q", name, c)
		}
		if w := get(t, name, "If-None-Match", plain.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s: status %d for what the browser has", name, w.Code)
		}
	}
	if sum > 250_000 {
		t.Errorf("%d bytes compressed, want at most 250,000", sum)
	}
	w := httptest.NewRecorder()
	if Serve(w, httptest.NewRequest(http.MethodGet, "/ui/../page.go", nil)) {
		t.Error("a file that is none of the page's is served")
	}
}
