package arena

import (
	"errors"
	"testing"
	"unsafe"
)

func TestAlloc(t *testing.T) {
	a, err := New(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	first, second := a.Alloc(100), a.Alloc(100)
	for _, b := range [][]byte{first, second} {
		if uintptr(unsafe.Pointer(&b[0]))%64 != 0 {
			t.Errorf("allocation at %p is not aligned to 64 bytes", &b[0])
		}
		for i := range b {
			if b[i] != 0 {
				t.Fatal("memory is not zero")
			}
			b[i] = 0xff
		}
	}
	if len(first) != 100 || cap(first) != 100 {
		t.Errorf("len %d cap %d, want 100 and 100", len(first), cap(first))
	}
	if a.Alloc(1<<20) != nil {
		t.Error("an allocation beyond the end succeeded")
	}
	if err := a.Free(); err != nil {
		t.Fatal(err)
	}
	if err := a.Free(); err != nil {
		t.Errorf("second Free: %v", err)
	}
}

func TestNewRefusesAbsurdSizes(t *testing.T) {
	for _, n := range []int{-1, 1 << 60} {
		if _, err := New(n); !errors.Is(err, ErrTooLarge) {
			t.Errorf("New(%d) = %v, want ErrTooLarge", n, err)
		}
	}
}
