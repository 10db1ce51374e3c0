package mmap

import (
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
