package mmap

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file that is cut short, or written to, is found out; nothing is allocated
// as long as it is not.
func TestChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if !m.Mapped() {
		t.Skip("skipped: nothing is mapped here")
	}
	sum := 0
	read := func() { sum += int(m.Bytes()[1<<15]) }
	if n := testing.AllocsPerRun(100, func() {
		if err := errors.Join(Guard(read), m.Check()); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := Guard(read); err != ErrChanged {
		t.Errorf("cut short: got %v", err)
	}
	if err := m.Check(); !errors.Is(err, ErrChanged) {
		t.Errorf("cut short: got %v", err)
	}
	if err := os.WriteFile(path, make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := Guard(read); err != nil {
		t.Errorf("written again: got %v", err)
	}
	if err := m.Check(); !errors.Is(err, ErrChanged) {
		t.Errorf("written again: got %v", err)
	}
	defer func() {
		if v := recover(); v != "mine" {
			t.Errorf("another panic: got %v", v)
		}
	}()
	_ = Guard(func() { panic("mine") })
}

// Read gives what lies in a file that is mapped, and other memory, and says where
// the file was cut short; it leaves no page in memory.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	content := make([]byte, 1<<16)
	for i := range content {
		content[i] = byte(i * 7)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	files, got := Files{nil, m}, make([]byte, 100)
	for _, b := range [][]byte{m.Bytes()[5000:5100], []byte("of the heap")} {
		if err := files.Read(got, b); err != nil || !bytes.Equal(got[:len(b)], b) {
			t.Errorf("got %x, %v, want %x", got, err, b)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = files.Read(got, m.Bytes()[:50]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if err := files.Read(got, m.Bytes()[5:50]); m.Mapped() && !errors.Is(err, ErrChanged) {
		t.Errorf("cut short: got %v", err)
	}
}
