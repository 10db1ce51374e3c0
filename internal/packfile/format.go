// Package packfile keeps the packed weights of a model in a file, from which the
// next start takes them instead of packing again. It knows matrices as bytes
// with a name and a shape; package model says what they are.
//
// A file is the bytes of the matrices, each at a multiple of 64 from the start,
// so that they can be used where they are mapped; then a directory in JSON; then
// a trailer of 32 bytes, all numbers little-endian:
//
//	 0  8  "ridgepck"
//	 8  4  version of this format
//	12  4  bytes of the directory
//	16  8  bytes of the matrices, with their padding
//	24  4  CRC-32C of the directory and of the 24 bytes before
//	28  4  zero
package packfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

const (
	magic   = "ridgepck"
	version = 1
	trailer = 32
	// maxDirectory bounds the bytes of a directory: some hundred for a matrix.
	maxDirectory = 64 << 20
	align        = 64
)

// ErrDamaged is the reason why a file is of no use: it is not whole, or not what
// was written.
var ErrDamaged = errors.New("the file is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Directory says what is in a file.
type Directory struct {
	Model  string  `json:"model"`  // the file or folder that it was made from
	Key    string  `json:"key"`    // of all that the bytes depend on
	Print  []byte  `json:"print"`  // the model's fingerprint
	Matrix []Entry `json:"matrix"` // in the order of their offsets
}

// Entry is one packed matrix.
type Entry struct {
	Name       string `json:"name"`
	Type       uint32 `json:"type"`
	Rows, Cols int
	Offset     int64  `json:"at"`
	Size       int64  `json:"size"`
	CRC        uint32 `json:"crc"`     // CRC-32C of all bytes
	Samples    uint32 `json:"samples"` // and of some, see sum
}

// Bytes of every step of a matrix go into its sampled sum.
const (
	sampleStep  = 256 << 10
	sampleBytes = 64
)

// sum returns the CRC-32C of the beginning of each stretch of a matrix, and of
// its end. It is quick, and tells a matrix from another, from one that is not
// where it should be, and from one of which a stretch never reached the disk.
func sum(b []byte) uint32 {
	crc := uint32(0)
	for at := 0; at < len(b); at += sampleStep {
		crc = crc32.Update(crc, castagnoli, b[at:min(at+sampleBytes, len(b))])
	}
	return crc32.Update(crc, castagnoli, b[max(0, len(b)-sampleBytes):])
}

// Matches reports whether b can be the matrix, by its size and by samples.
func (e *Entry) Matches(b []byte) bool { return int64(len(b)) == e.Size && sum(b) == e.Samples }

// layOut gives the matrices their places and returns the bytes of all.
func (d *Directory) layOut() int64 {
	at := int64(0)
	for i := range d.Matrix {
		d.Matrix[i].Offset = at
		at += (d.Matrix[i].Size + align - 1) &^ (align - 1)
	}
	return at
}

// encode returns what comes after the matrices.
func (d *Directory) encode(data int64) ([]byte, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if len(b) > maxDirectory {
		return nil, fmt.Errorf("packfile: directory: expected at most %d bytes, found %d", maxDirectory, len(b))
	}
	size := len(b)
	var t [trailer]byte
	copy(t[:], magic)
	binary.LittleEndian.PutUint32(t[8:], version)
	binary.LittleEndian.PutUint32(t[12:], uint32(size))
	binary.LittleEndian.PutUint64(t[16:], uint64(data))
	binary.LittleEndian.PutUint32(t[24:], checksum(b, t[:24]))
	return append(b, t[:]...), nil
}

func checksum(dir, head []byte) uint32 {
	return crc32.Update(crc32.Checksum(dir, castagnoli), castagnoli, head)
}

// read returns the directory of a file of size bytes, and the bytes of its
// matrices. Nothing of the file is believed: every error is ErrDamaged, but for
// those of reading.
func read(r io.ReaderAt, size int64) (*Directory, int64, error) {
	if size < trailer {
		return nil, 0, damaged("expected at least %d bytes, found %d", trailer, size)
	}
	var t [trailer]byte
	if _, err := r.ReadAt(t[:], size-trailer); err != nil {
		return nil, 0, err
	}
	n, data := int64(binary.LittleEndian.Uint32(t[12:])), binary.LittleEndian.Uint64(t[16:])
	switch {
	case string(t[:8]) != magic:
		return nil, 0, damaged("expected %q at the end, found %q", magic, t[:8])
	case binary.LittleEndian.Uint32(t[8:]) != version || binary.LittleEndian.Uint32(t[28:]) != 0:
		return nil, 0, damaged("version: expected %d, found %d", version, binary.LittleEndian.Uint32(t[8:]))
	case n > maxDirectory || data > math.MaxInt64/2 || int64(data)+n+trailer != size:
		return nil, 0, damaged("size: expected %d, found %d", data+uint64(n)+trailer, size)
	}
	b := make([]byte, n)
	if _, err := r.ReadAt(b, int64(data)); err != nil {
		return nil, 0, err
	}
	if want, got := binary.LittleEndian.Uint32(t[24:]), checksum(b, t[:24]); got != want {
		return nil, 0, damaged("checksum of the directory: expected %08x, found %08x", want, got)
	}
	d := &Directory{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, 0, damaged("directory: %v", err)
	}
	return d, int64(data), d.check(int64(data))
}

// check makes sure that all matrices lie within the first data bytes, one after
// the other.
func (d *Directory) check(data int64) error {
	end := int64(0)
	for i := range d.Matrix {
		e := &d.Matrix[i]
		if e.Rows <= 0 || e.Cols <= 0 || e.Size <= 0 || e.Offset%align != 0 || e.Offset < end || e.Offset > data || e.Size > data-e.Offset {
			return damaged("matrix %q: %d x %d, %d bytes at %d of %d", e.Name, e.Rows, e.Cols, e.Size, e.Offset, data)
		}
		end = e.Offset + e.Size
	}
	return nil
}

func damaged(format string, a ...any) error {
	return fmt.Errorf("packfile: %w: %s", ErrDamaged, fmt.Sprintf(format, a...))
}
