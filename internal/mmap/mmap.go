// Package mmap maps files read-only into memory, so that weights are read by
// the page and shared with the system's file cache. Where the system has no
// such mapping the file is read into memory instead: the callers see bytes
// either way.
package mmap

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// Advice tells the system how a mapping is about to be used. It never changes
// what the bytes are.
type Advice int

// The kinds of advice.
const (
	Normal     Advice = iota // no special treatment
	Sequential               // read from front to back: read ahead
	Random                   // read here and there: do not read ahead
	WillNeed                 // start reading all of it now
	DontNeed                 // give the resident pages back; a later access reads them again
)

// ErrNotRegular is the reason why a directory, a pipe or a device is refused:
// its size means nothing, so nothing could be checked against it.
var ErrNotRegular = errors.New("not a regular file")

// Map is the content of one file. The zero value is an empty map.
type Map struct {
	data   []byte
	mapped bool     // data is a mapping that Close removes, not memory of the Go heap
	room   room     // reserved around data, by OpenHuge
	file   *os.File // of a mapping, for Check
	state  state    // of the file when it was mapped
}

// ErrChanged is the reason why the content of a file can be trusted no longer:
// somebody has written to it, or cut it short, while it was mapped.
var ErrChanged = errors.New("the file was changed while it was in use")

// Open returns the content of the regular file at path. The file may be
// replaced (by a rename) or removed while it is open. If it is written to
// instead, its content changes, which Check tells, and where it was cut short
// the system answers an access with a signal, which Guard makes an error.
//
// Errors are of type *fs.PathError.
func Open(path string) (*Map, error) { return open(path, false) }

func open(path string, huge bool) (*Map, error) {
	// Asked before opening, because opening a pipe waits for its writer.
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	keep := false
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	size := st.Size()
	if size > math.MaxInt {
		return nil, &fs.PathError{Op: "map", Path: path, Err: errors.New("larger than the address space")}
	}
	if size == 0 {
		return &Map{}, nil
	}
	m := &Map{mapped: true, file: f}
	if huge {
		m.data, m.room, keep = mapHuge(f, int(size))
	}
	if !keep {
		m.data, keep = mapFile(f, int(size))
	}
	if keep {
		m.state, _ = stateOf(f) // it has just been asked for
		return m, nil
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return &Map{data: data}, nil
}

// Bytes returns the content of the file. It must not be written to, and not be
// used after Close.
func (m *Map) Bytes() []byte { return m.data }

// Mapped reports whether the content is a mapping, and not a copy in memory.
func (m *Map) Mapped() bool { return m.mapped }

// ReadAt reads the file as it is now; unlike Bytes it has an error where the file
// was cut short.
func (m *Map) ReadAt(b []byte, at int64) (int, error) {
	if m.mapped {
		return m.file.ReadAt(b, at)
	}
	return bytes.NewReader(m.data).ReadAt(b, at)
}

// Check returns a *fs.PathError with ErrChanged if the file was written to or
// cut short since it was mapped. It allocates nothing otherwise. A copy in
// memory is always as it was.
func (m *Map) Check() error {
	if !m.mapped {
		return nil
	}
	if now, err := stateOf(m.file); err != nil || now != m.state {
		return &fs.PathError{Op: "read", Path: m.file.Name(), Err: ErrChanged}
	}
	return nil
}

// Guard runs f, which reads mappings, and returns ErrChanged if it meets the
// end of a file that was cut short. Only what f does on the calling goroutine
// is guarded. Other panics pass.
func Guard(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); Faulted(v) {
			err = ErrChanged
		} else if v != nil {
			panic(v)
		}
	}()
	f()
	return nil
}

// Faulted reports whether a recovered value comes of an access to memory that
// is not there, on a goroutine with debug.SetPanicOnFault.
func Faulted(v any) bool {
	e, ok := v.(interface {
		runtime.Error
		Addr() uintptr
	})
	return ok && e.Addr() != 0
}

// Advise passes a to the system. A copy in memory ignores it.
func (m *Map) Advise(a Advice) error {
	if !m.mapped {
		return nil
	}
	return advise(m.data, a)
}

// faultAround is how much the system may map beside a page that is read.
const faultAround = 64 << 10

// Release gives the resident pages of b back to the system: a part of Bytes
// that has been read and is not read again soon. The content stays what it was;
// reading it again reads the file again. Pages that b shares with its neighbours
// go too, and so do those beside it that were mapped along with it. A slice of
// other memory, and a copy in memory, are left alone.
func (m *Map) Release(b []byte) error {
	lo, ok := m.place(b)
	if !ok {
		return nil
	}
	hi := min(lo+len(b), len(m.data))
	window := max(faultAround, os.Getpagesize())
	return advise(m.data[lo&^(window-1):min((hi+window-1)&^(window-1), len(m.data))], DontNeed)
}

// Forget gives back the memory of b, a part of Bytes, and asks the system to drop
// it from its file cache as well. Pages that b shares with its neighbours stay.
func (m *Map) Forget(b []byte) {
	lo, ok := m.place(b)
	page := os.Getpagesize()
	if hi := (lo + len(b)) &^ (page - 1); ok && (lo+page-1)&^(page-1) < hi {
		lo = (lo + page - 1) &^ (page - 1)
		_ = advise(m.data[lo:hi], DontNeed)
		dropCache(m.file, int64(lo), int64(hi-lo))
	}
}

// place returns where in the mapping b lies, if it does.
func (m *Map) place(b []byte) (int, bool) {
	if !m.mapped || len(b) == 0 {
		return 0, false
	}
	base, at := uintptr(unsafe.Pointer(unsafe.SliceData(m.data))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	if at < base || at-base >= uintptr(len(m.data)) {
		return 0, false
	}
	return int(at - base), true
}

// Close removes the mapping. Slices of Bytes are invalid afterwards. Closing
// twice does nothing.
func (m *Map) Close() error {
	data, mapped, room := m.data, m.mapped, m.room
	m.data, m.mapped, m.room = nil, false, nil
	if !mapped {
		return nil
	}
	if room != nil {
		return errors.Join(unmapRoom(room), m.file.Close())
	}
	return errors.Join(unmap(data), m.file.Close())
}
