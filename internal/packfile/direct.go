package packfile

import "os"

// directUnit is what places and lengths of direct reads are multiples of.
const directUnit = 4096

// Reader reads matrices of a file past the system's cache, where the system can:
// what is kept in memory is then up to who reads.
type Reader struct {
	f      *File
	direct *os.File // nil: through the cache
}

// Reader returns a reader of f, which must be closed before it.
func (f *File) Reader() *Reader { return &Reader{f: f, direct: openDirect(f.path)} }

// smallest is the size from which a matrix is read past the cache: of a smaller
// one too much would be read around it.
const smallest = 64 << 10

func (r *Reader) past(i int) bool { return r.direct != nil && r.f.Matrix[i].Size >= smallest }

// Room returns the bytes that Read needs for matrix i.
func (r *Reader) Room(i int) int {
	size := int(r.f.Matrix[i].Size)
	if !r.past(i) {
		return (size + align - 1) &^ (align - 1)
	}
	return (size+directUnit-1)&^(directUnit-1) + directUnit
}

// Place returns where in buf, of Room bytes, Read puts matrix i. If that is more
// than smallest, buf has to lie at a multiple of 4 KiB in memory.
func (r *Reader) Place(i int, buf []byte) []byte {
	e, head := &r.f.Matrix[i], 0
	if r.past(i) {
		head = int(e.Offset % directUnit)
	}
	return buf[head : head+int(e.Size) : head+int(e.Size)]
}

// Read reads matrix i to where Place says.
func (r *Reader) Read(i int, buf []byte) error {
	e := &r.f.Matrix[i]
	if r.past(i) {
		head := int(e.Offset % directUnit)
		n := (head + int(e.Size) + directUnit - 1) &^ (directUnit - 1)
		got, err := r.direct.ReadAt(buf[:n], e.Offset-int64(head))
		if got >= head+int(e.Size) { // a file may end within a unit
			return nil
		} else if err != nil {
			return err
		}
		return damaged("%s: matrix %q: expected %d bytes, found %d", r.f.path, e.Name, e.Size, max(got-head, 0))
	}
	_, err := r.f.ReadAt(buf[:e.Size], e.Offset)
	return err
}

// Close closes the reader.
func (r *Reader) Close() error {
	if r.direct == nil {
		return nil
	}
	return r.direct.Close()
}
