// Package gguf reads and writes GGUF files: typed metadata and tensors, in one
// file or split into several. It knows the container and nothing of models.
//
// Files come from strangers, so every count, length and offset is checked
// against the size of the file before anything is allocated or read: memory
// taken by Open is at most a small multiple of the size of the metadata.
// Errors are one line, "gguf: FILE: FIELD: expected X, found Y".
//
// The format is described in docs/formats/gguf.md.
package gguf

import (
	"fmt"
	"math"
	"sync"

	"ridge/internal/diag"
	"ridge/internal/mmap"
	"ridge/weights/tensor"
)

// TensorInfo is an entry of the tensor directory.
type TensorInfo struct {
	Name string
	Type tensor.DType
	// Dims holds the extents, at least 1 each, innermost first: Dims[0] values
	// are contiguous and form a row. A scalar has none. The slice belongs to
	// the file.
	Dims []uint64
	// Offset is where the data starts, in bytes from the start of the data
	// section of the tensor's shard.
	Offset uint64
	// Size is the number of bytes of the data.
	Size uint64
	// Shard is the index of the file of a split model that holds the data.
	Shard int
}

// Elements returns the number of values in the tensor.
func (t TensorInfo) Elements() uint64 {
	n := uint64(1)
	for _, d := range t.Dims {
		n *= d // Open has checked that this does not overflow
	}
	return n
}

// File is an open GGUF file, or all files of a split one. Its methods may be
// called from several goroutines, Close only when no other call is running.
type File struct {
	name      string
	version   int
	alignment uint64
	keys      []string
	values    []any
	index     map[string]int
	tensors   []TensorInfo
	byName    map[string]int
	shards    []*shard
	maps      mmap.Files // of the shards; none for OpenBytes

	mu  sync.Mutex
	err error // first misuse of a typed getter
}

// shard is one file on disk, or the bytes given to OpenBytes.
type shard struct {
	name   string
	data   []byte // the data section: all bytes after the directory and its padding
	padded bool   // the file ends with padding to the alignment
}

// Name returns the path or name the file was opened with.
func (f *File) Name() string { return f.name }

// Version returns the format version, 2 or 3.
func (f *File) Version() int { return f.version }

// Alignment returns the number of bytes, a power of two, of which every tensor
// offset is a multiple.
func (f *File) Alignment() int { return int(f.alignment) }

// Shards returns the paths of the files that make up the model, in order.
func (f *File) Shards() []string {
	names := make([]string, len(f.shards))
	for i, s := range f.shards {
		names[i] = s.name
	}
	return names
}

// Keys returns the metadata keys in file order. For a split model they are
// those of the first file.
func (f *File) Keys() []string { return append([]string(nil), f.keys...) }

// Lookup returns the metadata value of key. Its Go type is that of the file:
// string, bool, uint8 to uint64, int8 to int64, float32, float64, a slice of
// one of these, or []any for an array of arrays, whose elements are again such
// slices. Slices are shared: they must not be modified. Values stay valid after
// Close.
func (f *File) Lookup(key string) (any, bool) {
	i, ok := f.index[key]
	if !ok {
		return nil, false
	}
	return f.values[i], true
}

// String returns the string value of key, or def if there is none. A value of
// another type also gives def, and is reported by Err.
func (f *File) String(key, def string) string {
	v, ok := f.Lookup(key)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		f.misuse(key, "a string", v)
		return def
	}
	return s
}

// Bool is String for a boolean.
func (f *File) Bool(key string, def bool) bool {
	v, ok := f.Lookup(key)
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		f.misuse(key, "a bool", v)
		return def
	}
	return b
}

// Uint is String for an integer of any width and signedness that is not
// negative.
func (f *File) Uint(key string, def uint64) uint64 {
	v, ok := f.Lookup(key)
	if !ok {
		return def
	}
	n, ok := asUint(v)
	if !ok {
		f.misuse(key, "an integer of at least 0", v)
		return def
	}
	return n
}

// Float is String for a number of any type; integers are converted.
func (f *File) Float(key string, def float64) float64 {
	v, ok := f.Lookup(key)
	if !ok {
		return def
	}
	switch x := v.(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	}
	if n, ok := asInt(v); ok {
		return float64(n)
	}
	if n, ok := asUint(v); ok {
		return float64(n)
	}
	f.misuse(key, "a number", v)
	return def
}

// Err returns an error about the first metadata value that String, Bool, Uint
// or Float found to be of the wrong type, nil if there was none. Ask it once
// after reading a group of values.
func (f *File) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

func (f *File) misuse(key, expected string, v any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fault(f.name, metadataField(key), expected, describe(v))
	}
}

// Tensors returns the tensor directory in file order, shard after shard.
func (f *File) Tensors() []TensorInfo { return append([]TensorInfo(nil), f.tensors...) }

// Tensor returns the directory entry of the tensor called name.
func (f *File) Tensor(name string) (TensorInfo, bool) {
	i, ok := f.byName[name]
	if !ok {
		return TensorInfo{}, false
	}
	return f.tensors[i], true
}

// Data returns the bytes of t, an entry of this file's directory. They are a
// view of the mapped file: they must not be written to and are valid until
// Close.
func (f *File) Data(t TensorInfo) []byte {
	return f.shards[t.Shard].data[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// Mat returns the tensor called name as a matrix with Dims[0] columns and a row
// for each combination of the other indices: a vector has one row, a stack of
// matrices has theirs one after the other. Its data is a view as that of Data.
func (f *File) Mat(name string) (tensor.Mat, error) {
	t, ok := f.Tensor(name)
	if !ok {
		return tensor.Mat{}, fault(f.name, tensorField(name), "it in the file", "no tensor of that name")
	}
	cols := uint64(1)
	if len(t.Dims) > 0 {
		cols = t.Dims[0]
	}
	return tensor.Mat{Type: t.Type, Rows: int(t.Elements() / cols), Cols: int(cols), Data: f.Data(t)}, nil
}

// Prefetch asks the system to read all tensor data into memory now, ahead of
// its use. It returns at once.
func (f *File) Prefetch() { f.maps.Advise(mmap.WillNeed) }

// DropPages gives the memory of pages read so far back to the system. The data
// stays valid; reading it again reads the file again. Call it when the weights
// have been copied elsewhere.
func (f *File) DropPages() { f.maps.Advise(mmap.DontNeed) }

// Release is DropPages for b alone, a view that Data or Mat gave. Other memory
// is left alone, so that a caller need not know whether it has a view.
func (f *File) Release(b []byte) {
	f.maps.Release(b)
}

// Read copies b, a view that Data or Mat gave, to dst, from the file itself: no
// page of it comes into this process. Other memory is copied.
func (f *File) Read(dst, b []byte) error { return mmap.Explain("gguf", f.maps.Read(dst, b)) }

// Check returns an error with mmap.ErrChanged if one of the files was written
// to or cut short since it was opened: then no data of it can be relied on.
func (f *File) Check() error {
	return mmap.Explain("gguf", f.maps.Check())
}

// ID returns what tells the content of the files from any other, see
// mmap.Map.ID; "" if that is not known.
func (f *File) ID() (id string, settled bool) { return f.maps.ID() }

// Close removes the mapping: all tensor data is invalid afterwards, metadata is
// not. Closing twice does nothing.
func (f *File) Close() error {
	for _, s := range f.shards {
		s.data = nil
	}
	return mmap.Explain("gguf", f.maps.Close())
}

// asUint returns the value of an integer of any type, false if v is no integer
// or is negative.
func asUint(v any) (uint64, bool) {
	switch x := v.(type) {
	case uint8:
		return uint64(x), true
	case uint16:
		return uint64(x), true
	case uint32:
		return uint64(x), true
	case uint64:
		return x, true
	}
	n, ok := asInt(v)
	return uint64(n), ok && n >= 0
}

// asInt returns the value of an integer of any type, false if v is no integer
// or does not fit.
func asInt(v any) (int64, bool) {
	switch x := v.(type) {
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case uint64:
		return int64(x), x <= math.MaxInt64
	}
	return 0, false
}

// fault is the error of this package.
func fault(file, field, expected, found string) error {
	return fmt.Errorf("gguf: %s: %s: expected %s, found %s", diag.Path(file), field, expected, found)
}

func metadataField(key string) string { return "metadata " + diag.Quote(key) }

func tensorField(name string) string { return "tensor " + diag.Quote(name) }

// spot is a part of a file. It turns into text only in a message: files of many
// small parts must not cost a string for each.
type spot struct {
	file  string
	in    string // "metadata", "tensor" or "", the header
	index int    // number of the entry
	name  string // its name, empty if not yet known
}

// fault is an error about what (may be empty) of the part.
func (s *spot) fault(what, expected, found string) error {
	field := what
	if s.in != "" {
		field = fmt.Sprintf("%s %d", s.in, s.index)
		if s.name != "" {
			field = s.in + " " + diag.Quote(s.name)
		}
		if what != "" {
			field += ": " + what
		}
	}
	return fault(s.file, field, expected, found)
}
