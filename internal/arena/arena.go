// Package arena gives large zeroed memory outside the Go heap: anonymous
// pages, huge where the system has them. Weights and key-value pages live
// there, so the garbage collector never sees them.
package arena

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrTooLarge is returned for sizes that no machine has.
var ErrTooLarge = errors.New("arena: size out of range")

const (
	cacheLine = 64
	hugePage  = 2 << 20
	maxSize   = 1 << 46
)

// Arena is one region of anonymous memory. It is zero at first, and pages are
// given by the system only as they are touched.
type Arena struct {
	raw  []byte // what the system gave
	data []byte // aligned part
	used int
}

// New reserves size bytes, aligned to 2 MiB, or to 64 bytes if it is less. Free
// gives them back. What is whole huge pages of it is asked to be such; the rest
// is not, so that no more is ever resident than the size.
func New(size int) (*Arena, error) {
	if size < 0 || size > maxSize {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLarge, size)
	}
	align := hugePage
	if size < hugePage {
		align = cacheLine
	}
	raw, err := reserve(size + align)
	if err != nil {
		return nil, fmt.Errorf("arena: reserve %d bytes: %w", size, err)
	}
	off := 0
	if a := uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % uintptr(align); a != 0 {
		off = align - int(a)
	}
	whole := off + size&^(hugePage-1)
	advise(raw[off:whole], raw[whole:])
	return &Arena{raw: raw, data: raw[off : off+size : off+size]}, nil
}

// HeapBytes returns n zeroed bytes of the Go heap, aligned and asked to be huge pages
// as those of New are: for matrices that live as long as somebody has them.
func HeapBytes(n int) []byte {
	align := hugePage
	if n < hugePage {
		align = cacheLine
	}
	b := make([]byte, n+align-1)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(align))
	b = b[off : off+n : off+n]
	advise(b[:n&^(hugePage-1)], nil)
	return b
}

// Bytes returns the whole region.
func (a *Arena) Bytes() []byte { return a.data }

// Alloc returns the next n bytes, aligned to 64 bytes, or nil when the arena
// is full.
func (a *Arena) Alloc(n int) []byte {
	lo := (a.used + 63) &^ 63
	if n < 0 || lo+n > len(a.data) {
		return nil
	}
	a.used = lo + n
	return a.data[lo : lo+n : lo+n]
}

// Free returns the memory to the system. Views of it must not be used again.
func (a *Arena) Free() error {
	if a.raw == nil {
		return nil
	}
	raw := a.raw
	a.raw, a.data, a.used = nil, nil, 0
	return release(raw)
}

// Huge reports whether the system gives huge pages to memory that asks for them,
// as arenas do.
func Huge() bool { return huge() }
