package packfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"ridge/internal/atomicfile"
)

// matrices returns the bytes of made-up matrices and their directory.
func matrices(sizes ...int) ([][]byte, *Directory) {
	rng := rand.NewChaCha8([32]byte{7})
	d := &Directory{Key: "key", Print: []byte{1, 2, 3}}
	var all [][]byte
	for i, n := range sizes {
		b := make([]byte, n)
		rng.Read(b)
		all = append(all, b)
		d.Matrix = append(d.Matrix, Entry{Name: string(rune('a' + i)), Type: uint32(i), Rows: i + 1, Cols: 7})
	}
	return all, d
}

// model is a file that stands for a model.
func model(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "the model.gguf")
	if err := os.WriteFile(path, []byte("model"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, dir string, d *Directory, all [][]byte) string {
	t.Helper()
	if err := Write(t.Context(), dir, d, Writing{Bytes: func(i int) []byte { return all[i] }}); err != nil {
		t.Fatal(err)
	}
	return Path(dir, d.Model)
}

var sizes = []int{1, 64, 100_000, chunk - 64, chunk + 1, 3*chunk + 17, 5}

// What was written is read again, mapped and by ReadAt, at places that kernels
// can read from.
func TestWriteOpen(t *testing.T) {
	all, d := matrices(sizes...)
	d.Model = model(t)
	dir := filepath.Join(t.TempDir(), "new", "folder")
	paused := 0
	last := false
	if err := Write(t.Context(), dir, d, Writing{
		Bytes: func(i int) []byte { return all[i] },
		Pause: func(n int) { paused += n },
		Last:  func() error { last = true; return nil },
	}); err != nil || !last {
		t.Fatal(err, last)
	}
	path := Path(dir, d.Model)
	st, err := os.Stat(path)
	if err != nil || int64(paused) != st.Size() || Kept(dir, d.Model) != st.Size() {
		t.Errorf("%v: %d bytes with pauses of %d, %d", err, paused, st.Size(), Kept(dir, d.Model))
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Fetch(); err != nil {
		t.Fatal(err)
	}
	if f.Key != d.Key || !bytes.Equal(f.Print, d.Print) || len(f.Matrix) != len(all) || f.Check() != nil {
		t.Errorf("read %+v", f.Directory)
	}
	for i, e := range f.Matrix {
		b := make([]byte, e.Size)
		if _, err := f.ReadAt(b, e.Offset); err != nil || !bytes.Equal(b, all[i]) || !bytes.Equal(f.Bytes(i), all[i]) {
			t.Errorf("matrix %q: other bytes, %v", e.Name, err)
		}
		if e != d.Matrix[i] || e.Offset%64 != 0 || !e.Matches(all[i]) || cap(f.Bytes(i)) != len(all[i]) {
			t.Errorf("matrix %q: %+v", e.Name, e)
		}
	}
	if err := Verify(path); err != nil {
		t.Error(err)
	}
	if got := List(dir); len(got) != 1 || got[0] != (Listed{Path: path, Model: whole(d.Model), Size: st.Size()}) {
		t.Errorf("listed: %+v", got)
	}
	if got, err := Remove(dir, d.Model); !got || err != nil {
		t.Error(got, err)
	}
	if got, err := Remove(dir, d.Model); got || err != nil || Kept(dir, d.Model) != 0 {
		t.Error("removed twice", got, err)
	}
}

// A flipped bit: Open finds it in the directory, Fetch where it samples, Verify
// wherever it matters.
func TestDamage(t *testing.T) {
	all, d := matrices(300_000, 20)
	d.Model = model(t)
	path := write(t, t.TempDir(), d, all)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data := int(d.Matrix[1].Offset) + 64
	try := func(b []byte) (open, fetch, verify error) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		verify = Verify(path)
		f, open := Open(path)
		if open == nil {
			fetch = f.Fetch()
			f.Close()
		}
		return open, fetch, verify
	}
	for at := data; at < len(whole); at++ {
		b := slices.Clone(whole)
		b[at] ^= byte(1 << (at % 8))
		if open, _, verify := try(b); !errors.Is(open, ErrDamaged) || !errors.Is(verify, ErrDamaged) {
			t.Fatalf("byte %d of %d behind the matrices: %v, %v", at-data, len(whole)-data, open, verify)
		}
	}
	for _, at := range []int{0, 63, sampleStep + 5, 299_999, int(d.Matrix[1].Offset) + 3} {
		b := slices.Clone(whole)
		b[at] ^= 16
		if open, fetch, verify := try(b); open != nil || !errors.Is(fetch, ErrDamaged) || !errors.Is(verify, ErrDamaged) {
			t.Errorf("byte %d: %v, %v, %v", at, open, fetch, verify)
		}
	}
	b := slices.Clone(whole)
	b[150_000] ^= 1
	if open, fetch, verify := try(b); open != nil || fetch != nil || !errors.Is(verify, ErrDamaged) {
		t.Errorf("between samples: %v, %v, %v", open, fetch, verify)
	}
	for n := range len(whole) {
		if n%997 == 0 || n > len(whole)-40 {
			if open, _, _ := try(whole[:n]); open == nil {
				t.Fatalf("cut to %d of %d bytes: no error", n, len(whole))
			}
		}
	}
	if open, fetch, verify := try(whole); errors.Join(open, fetch, verify) != nil {
		t.Error(open, fetch, verify)
	}
}

// On a disk without room nothing is written, and what is half written goes.
func TestNoRoom(t *testing.T) {
	defer func(f func(string) (int64, error)) { freeSpace = f }(freeSpace)
	all, d := matrices(sizes...)
	d.Model = model(t)
	dir := t.TempDir()
	write := func() error {
		return Write(t.Context(), dir, d, Writing{Bytes: func(i int) []byte { return all[i] }})
	}
	freeSpace = func(string) (int64, error) { return reserve + 1000, nil }
	if err := write(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	freeSpace = func(string) (int64, error) { return 0, errors.ErrUnsupported }
	if err := write(); err != nil {
		t.Errorf("free space not known: %v", err)
	}
}

// An error at the end, or an end in the middle, leaves no file, and not the old
// one either, whose key was another.
func TestGivenUp(t *testing.T) {
	all, d := matrices(sizes...)
	d.Model = model(t)
	dir := t.TempDir()
	path := write(t, dir, d, all)
	for _, key := range []string{"at the end", "in the middle"} {
		d.Key = key
		ctx, stop := context.WithCancel(t.Context())
		broken := errors.New("broken")
		w := Writing{Bytes: func(i int) []byte { return all[i] }, Last: func() error { return broken }}
		if key == "in the middle" {
			broken = context.Canceled
			w.Pause = func(int) { stop() }
		}
		if err := Write(ctx, dir, d, w); !errors.Is(err, broken) {
			t.Errorf("%s: %v", key, err)
		}
		stop()
		if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != lockName {
			t.Errorf("%s: left: %v", key, left)
		}
	}
	d.Key = "whole"
	if write(t, dir, d, all) != path {
		t.Error("another place")
	}
}

// One process writes at a time. Who waits does not write again what the other
// has written, and can be told to wait no longer.
func TestOneWrites(t *testing.T) {
	all, d := matrices(1000)
	d.Model = model(t)
	dir := t.TempDir()
	l := flock.New(filepath.Join(dir, lockName))
	if ok, err := l.TryLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	n := 0
	w := Writing{Bytes: func(i int) []byte { n++; return all[i] }}
	if err := Write(ctx, dir, d, w); !errors.Is(err, context.DeadlineExceeded) || n > 0 {
		t.Errorf("while another writes: %v, %d", err, n)
	}
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := Write(t.Context(), dir, d, w); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			n = 0
		}
	}
	if n > 0 {
		t.Error("written twice")
	}
}

// Writing removes what is of no use: files of models that are gone, damaged
// ones, and those that killed processes have left. Others stay.
func TestSweep(t *testing.T) {
	all, gone := matrices(1000)
	dir := t.TempDir()
	gone.Model = model(t)
	first := write(t, dir, gone, all)
	if err := os.Remove(gone.Model); err != nil {
		t.Fatal(err)
	}
	_, stays := matrices(1000)
	stays.Model = filepath.Dir(model(t)) // a folder
	kept := write(t, dir, stays, all)
	if _, err := os.Stat(first); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a model that is gone: %v", err)
	}
	bad := filepath.Join(dir, "bad"+suffix)
	half := kept + ".x" + atomicfile.Suffix
	for _, p := range []string{bad, half, filepath.Join(dir, "notes")} {
		if err := os.WriteFile(p, []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list := List(dir); len(list) != 2 || !slices.ContainsFunc(list, func(l Listed) bool { return l.Path == bad && l.Error != "" }) {
		t.Errorf("listed: %+v", list)
	}
	_, third := matrices(1000)
	third.Model = model(t)
	path := write(t, dir, third, all)
	var names []string
	left, _ := os.ReadDir(dir)
	for _, e := range left {
		names = append(names, e.Name())
	}
	want := []string{lockName, "notes", filepath.Base(kept), filepath.Base(path)}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("left: %q, want %q", names, want)
	}
}

// A model has one place, however it is named, and no two models the same.
func TestPath(t *testing.T) {
	m, other := model(t), model(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(m, link); err != nil {
		t.Skipf("skipped: %v", err)
	}
	t.Chdir(filepath.Dir(m))
	want := Path("d", m)
	for _, p := range []string{link, filepath.Base(m), "./" + filepath.Base(m), filepath.Dir(m) + "/x/../" + filepath.Base(m)} {
		if got := Path("d", p); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
	if Path("d", other) == want || filepath.Dir(want) != "d" {
		t.Errorf("%s and %s", Path("d", other), want)
	}
	if got := filepath.Base(Path("d", "/x/"+string(bytes.Repeat([]byte("é"), 200)))); len(got) > 110 {
		t.Errorf("name of %d bytes: %q", len(got), got)
	}
}

// No bytes make the parser crash, reserve much, or give a matrix that is not
// within the file.
func FuzzRead(f *testing.F) {
	_, d := matrices(1, 2, 3)
	for i := range d.Matrix {
		d.Matrix[i].Size = int64(100 * (i + 1))
	}
	data := d.layOut()
	rest, err := d.encode(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append(make([]byte, data), rest...), true)
	f.Add(rest, true)
	f.Add([]byte(`{"matrix":[{"name":"x","Rows":1,"Cols":1,"at":9223372036854775744,"size":128}]}`), true)
	f.Fuzz(func(t *testing.T, b []byte, sign bool) {
		if n := len(b) - trailer; sign && n >= 0 { // else nothing gets past the checksum
			b = slices.Clone(b)
			dir := min(int(binary.LittleEndian.Uint32(b[n+12:])), n)
			binary.LittleEndian.PutUint32(b[n+24:], checksum(b[n-dir:n], b[n:n+24]))
		}
		d, n, err := read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, e := range d.Matrix {
			if e.Offset < 0 || e.Size <= 0 || e.Offset > n-e.Size || n > int64(len(b)) || e.Offset%align != 0 {
				t.Errorf("matrix %+v of %d bytes", e, n)
			}
		}
	})
}
