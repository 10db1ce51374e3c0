package hub

import (
	"archive/zip"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ridge/internal/disk"
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
			n, err := disk.Free(d)
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
		if s.bytes() > 0 && !noRanges {
			t.Errorf("%d bytes were fetched without room for them", s.bytes())
		}
		more += 1 << 30
		fails("full half-way", "no space left on device", "m.gguf"+incompleteSuffix)
		left, sent := leftovers(store), s.bytes()
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
		if again := s.bytes() - sent; !noRanges && again > int64(len(content))*3/4 {
			t.Errorf("%d bytes were fetched again, of %d", again, len(content))
		}
		if err := os.RemoveAll(store); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDiskUnpacking fills the disk between an archive and what is in it. The
// archive is kept, the half of its content is not, and it is unpacked without
// being fetched again when there is room.
func TestFullDiskUnpacking(t *testing.T) {
	dir, ok := testdata.SmallDisk(t, 4<<20)
	if !ok {
		return
	}
	sandbox(t)
	defer func(f func(string) (int64, error)) { freeSpace = f }(freeSpace)
	freeSpace = func(string) (int64, error) { return 1 << 40, nil } // as long as nobody else takes it
	content := fakeGGUF(1<<20, 10)
	archive := zipFile(t, zip.Deflate, "inner.gguf", content)
	s := &server{content: map[string][]byte{"/a.zip": archive}}
	c, err := newClient(Options{HTTP: http.DefaultClient})
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 5<<19), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &planFile{name: "m.gguf", size: int64(len(content)), sha256: sumOf(content), pieces: []piece{{
		obj: object{url: start(t, s, nil) + "/a.zip", http: c.plain, size: int64(len(archive)), sha256: sumOf(archive)},
		raw: "a.zip", form: formZip, member: "inner.gguf", size: int64(len(content)),
	}}}
	p := &plan{files: []planFile{*f}}
	before, err := p.need(dir)
	if err != nil || before != int64(len(archive)+len(content)) {
		t.Errorf("%d bytes are needed, %v", before, err)
	}
	if _, err := c.file(t.Context(), f, dir, "m"); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v", err)
	}
	after, err := p.need(dir)
	if err != nil || after != int64(len(content)) {
		t.Errorf("%d bytes are still needed, want %d: the archive is there; %v", after, len(content), err)
	}
	if left, want := leftovers(dir), []string{"a.zip" + incompleteSuffix, "a.zip" + stateSuffix, "ballast"}; !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	sent := s.bytes()
	done, err := c.file(t.Context(), f, dir, "m")
	if err != nil || done.SHA256 != sumOf(content) || s.bytes() != sent {
		t.Errorf("with room again: %v, %v, %d bytes fetched again", done, err, s.bytes()-sent)
	}
}
