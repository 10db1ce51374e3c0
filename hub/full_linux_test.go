package hub

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ridge/internal/testdata"
)

// TestFullDisk pulls onto a disk that is full: at first as the server's size
// shows, then because others fill it during the download. The errors say what
// is missing, no model and no half one appears, and once there is room again
// the download goes on from where it was.
func TestFullDisk(t *testing.T) {
	dir, ok := testdata.SmallDisk(t, 4<<20)
	if !ok {
		return
	}
	defer func(f func(string) (int64, error)) { freeSpace = f }(freeSpace)
	content := fakeGGUF(2<<20, 9)
	ballast := filepath.Join(dir, "ballast")
	for name, noRanges := range map[string]bool{"ranges": false, "no ranges": true} {
		sandbox(t)
		store := filepath.Join(dir, name)
		t.Setenv("RIDGE_MODELS", store)
		more := int64(64 << 20) // what is kept in reserve
		freeSpace = func(d string) (int64, error) {
			n, err := diskFree(d)
			return n + more, err
		}
		if err := os.WriteFile(ballast, make([]byte, 3<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		s := &server{noRanges: noRanges, delay: 2 * time.Millisecond}
		ref := start(t, s, content) + "/m.gguf#sha256=" + sumOf(content)
		fails := func(when string, want ...string) {
			t.Helper()
			_, err := Resolve(t.Context(), ref, Options{})
			if !errors.Is(err, ErrNoSpace) {
				t.Fatalf("%s: %s: error %v", name, when, err)
			}
			for _, w := range append(want, store, "free ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %s: error %v, want one with %q", name, when, err, w)
				}
			}
			if ms, err := listOnDisk(Options{}); len(ms) != 0 || err != nil {
				t.Errorf("%s: %s: List = %v, %v", name, when, ms, err)
			}
			for _, f := range leftovers(store) {
				if !strings.Contains(f, incompleteSuffix) {
					t.Errorf("%s: %s: %s is there", name, when, f)
				}
			}
		}
		fails("no room from the start", "needed 2.1 MB")
		if s.sent > 0 && !noRanges {
			t.Errorf("%d bytes were fetched without room for them", s.sent)
		}
		more += 1 << 30
		fails("full half-way", "no space left on device", "m.gguf"+incompleteSuffix)
		left, sent := leftovers(store), s.sent
		if resumes := slices.ContainsFunc(left, func(f string) bool { return strings.HasSuffix(f, stateSuffix) }); resumes == noRanges && !noRanges || !resumes && len(left) > 0 {
			t.Errorf("%s: left for the next try: %v", name, left)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		m, err := Resolve(t.Context(), ref, Options{})
		if err != nil {
			t.Fatalf("%s: with room again: %v", name, err)
		}
		checkModel(t, m, content)
		if again := s.sent - sent; !noRanges && again > int64(len(content))*3/4 {
			t.Errorf("%d bytes were fetched again, of %d", again, len(content))
		}
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
	}
}
