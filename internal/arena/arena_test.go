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

func TestHeapBytes(t *testing.T) {
	for _, n := range []int{0, 1, 100, hugePage - 1, 2*hugePage + 1} {
		b := HeapBytes(n)
		if len(b) != n || cap(b) != n {
			t.Fatalf("%d bytes: found %d of %d", n, len(b), cap(b))
		}
		if n == 0 {
			continue
		}
		if at := uintptr(unsafe.Pointer(&b[0])); at%cacheLine != 0 || n >= hugePage && at%hugePage != 0 {
			t.Errorf("%d bytes lie at %#x", n, at)
		}
		b[0], b[n-1] = 1, 1
	}
}
