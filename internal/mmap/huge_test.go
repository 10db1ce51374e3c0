package mmap

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"
)

// A file that is mapped for huge pages has the same bytes, at an address that
// huge pages need, whole or fetched in part; closing it leaves nothing mapped.
func TestOpenHuge(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 4096, hugePage - 1, hugePage, 3*hugePage + 5} {
		want := make([]byte, size)
		rng.Read(want)
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenHuge(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, size / 2, size} {
			m.Fetch(n)
		}
		if !bytes.Equal(m.Bytes(), want) {
			t.Errorf("%d bytes: other content", size)
		}
		if m.room != nil && uintptr(unsafe.Pointer(&m.Bytes()[0]))%hugePage != 0 {
			t.Errorf("%d bytes are mapped at %p", size, &m.Bytes()[0])
		}
		if h := m.Huge(); h < 0 || h > int64(size) {
			t.Errorf("%d of %d bytes are in huge pages", h, size)
		} else if size > hugePage {
			t.Logf("%d of %d bytes are in huge pages", h, size)
		}
		part := make([]byte, 10)
		if n, err := m.ReadAt(part, int64(size)-4); size >= 4 && (n != 4 || err != io.EOF || !bytes.Equal(part[:4], want[size-4:])) {
			t.Errorf("%d bytes: ReadAt the end gives %d bytes, %v", size, n, err)
		}
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		if hugeBytes(want) != 0 {
			t.Error("the heap is said to be in huge pages of a file")
		}
	}
}

// What is fetched of a file that was cut short is no reason to crash.
func TestFetchCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, make([]byte, 3*hugePage), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := OpenHuge(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.Mapped() {
		t.Skip("skipped: nothing is mapped here")
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	m.Fetch(3 * hugePage)
	sum := 0
	if err := Guard(func() { sum += int(m.Bytes()[2*hugePage]) }); err != ErrChanged {
		t.Errorf("got %v", err)
	}
	if _, err := m.ReadAt(make([]byte, 20), 0); err != io.EOF {
		t.Errorf("ReadAt: got %v", err)
	}
	if err := m.Check(); !errors.Is(err, ErrChanged) {
		t.Errorf("Check: got %v", err)
	}
}

// Each change of a file is another ID, even if size and time are the same; a
// file that nobody touches keeps its own.
func TestID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
	}
	id := func() (string, bool) {
		t.Helper()
		m, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if !m.Mapped() {
			t.Skip("skipped: nothing is mapped here")
		}
		return m.ID()
	}
	var first string
	for try, quick := 0, false; try < 100 && !quick; try++ { // else it could be settled already
		begin, settled := time.Now(), false
		write("one")
		first, settled = id()
		if quick = time.Since(begin) < 30*time.Millisecond; first == "" || quick && settled {
			t.Fatalf("written just now: ID %q, settled %v", first, settled)
		}
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		again, settled := id()
		if again != first || !settled && time.Since(begin) > time.Minute {
			t.Fatalf("ID %q after %q, settled %v", again, first, settled)
		}
		if settled {
			break
		}
	}
	write("two")
	second, _ := id()
	if second == first {
		t.Errorf("written over: ID %q as before", second)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write("two")
	if third, _ := id(); third == second {
		t.Errorf("replaced: ID %q as before", third)
	}
	if id, settled := new(Map).ID(); id != "" || settled {
		t.Errorf("of an empty file: ID %q, settled %v", id, settled)
	}
}
