package packfile

import (
	"hash/crc32"
	"io"

	"ridge/internal/mmap"
)

// File is a file with packed weights that is open.
type File struct {
	Directory
	path string
	m    *mmap.Map
	data int64 // bytes of the matrices
}

// Open opens the file at path and reads its directory, which it checks as what
// comes from strangers: its errors are those of mmap.Open, and ErrDamaged.
func Open(path string) (*File, error) {
	m, err := mmap.OpenHuge(path)
	if err != nil {
		return nil, err
	}
	d, data, err := read(m, int64(len(m.Bytes())))
	if err != nil {
		m.Close()
		return nil, err
	}
	return &File{Directory: *d, path: path, m: m, data: data}, nil
}

// Fetch brings the matrices into memory and compares samples of them. Then
// Bytes can be used.
func (f *File) Fetch() error {
	f.m.Fetch(int(f.data))
	bad := ""
	err := mmap.Guard(func() {
		for i := range f.Matrix {
			if e := &f.Matrix[i]; !e.Matches(f.Bytes(i)) {
				bad = e.Name
				return
			}
		}
	})
	if err == nil && bad != "" {
		err = damaged("%s: matrix %q has other bytes than were written", f.path, bad)
	}
	return err
}

// Size returns the bytes of the matrices.
func (f *File) Size() int64 { return f.data }

// Huge reports whether nine tenths of the matrices at least are mapped by huge
// pages.
func (f *File) Huge() bool { return f.m.Huge() >= f.data/10*9 }

// Bytes returns matrix i, a view of the file that is valid until Close.
func (f *File) Bytes(i int) []byte {
	e := &f.Matrix[i]
	return f.m.Bytes()[e.Offset : e.Offset+e.Size : e.Offset+e.Size]
}

// ReadAt reads bytes of the file; those of matrix i are at its Offset.
func (f *File) ReadAt(b []byte, at int64) (int, error) { return f.m.ReadAt(b, at) }

// Behind gives back the memory of b, a part of Bytes, the system's too.
func (f *File) Behind(b []byte) { f.m.Forget(b) }

// Check returns an error if the file was changed since it was opened.
func (f *File) Check() error { return f.m.Check() }

// Close invalidates all Bytes.
func (f *File) Close() error { return f.m.Close() }

// Verify reads the whole file at path and compares every matrix with the sum
// that was taken of it when it was written.
func Verify(path string) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, chunk)
	for i := range f.Matrix {
		e := &f.Matrix[i]
		crc := uint32(0)
		for r := io.NewSectionReader(f, e.Offset, e.Size); ; {
			n, err := r.Read(buf)
			crc = crc32.Update(crc, castagnoli, buf[:n])
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
		}
		if crc != e.CRC {
			return damaged("%s: matrix %q: checksum: expected %08x, found %08x", path, e.Name, e.CRC, crc)
		}
	}
	return nil
}
