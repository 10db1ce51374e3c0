// Package safetensors reads and writes safetensors files: named tensors behind
// a JSON header, in one file or in several with an index. It knows the container
// and nothing of models.
//
// Files come from strangers, so every size and offset is checked against the
// size of the file before anything is allocated or read. Errors are one line,
// "safetensors: FILE: FIELD: expected X, found Y".
//
// The format is described in docs/formats/safetensors.md.
package safetensors

import (
	"fmt"
	"maps"

	"ridge/internal/diag"
	"ridge/internal/mmap"
	"ridge/weights/tensor"
)

// TensorInfo describes one tensor of a file.
type TensorInfo struct {
	Name string
	// Type is the element type as the file spells it: F32, BF16, U8, ...
	Type string
	// Shape holds the extents, outermost first: the values of the last index
	// are contiguous. A scalar has none; an extent may be 0. The slice belongs
	// to the file.
	Shape []uint64
	// Offset is where the data starts, in bytes from the end of the header of
	// the tensor's shard.
	Offset uint64
	// Size is the number of bytes of the data.
	Size uint64
	// Shard is the index of the file that holds the data.
	Shard int
}

// DType returns the element type as package tensor names it, false for one
// that no matrix can have there: BOOL, unsigned and sub-byte types, F8 and C64.
func (t TensorInfo) DType() (tensor.DType, bool) {
	switch t.Type {
	case "F64":
		return tensor.F64, true
	case "F32":
		return tensor.F32, true
	case "F16":
		return tensor.F16, true
	case "BF16":
		return tensor.BF16, true
	case "I64":
		return tensor.I64, true
	case "I32":
		return tensor.I32, true
	case "I16":
		return tensor.I16, true
	case "I8":
		return tensor.I8, true
	}
	return 0, false
}

// typeBits holds the bits of a value of each element type, which are also all
// types there are.
var typeBits = map[string]uint64{
	"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32,
	"C64": 64, "F64": 64, "I64": 64, "U64": 64,
}

// File is an open safetensors file, or all files of a model in several. Its
// methods may be called from several goroutines, Close only when no other call
// is running.
type File struct {
	name     string
	metadata map[string]string
	tensors  []TensorInfo
	byName   map[string]int
	shards   []*shard
	maps     mmap.Files // of the shards; none for OpenBytes
}

// shard is one file on disk, or the bytes given to OpenBytes.
type shard struct {
	name string
	data []byte // all bytes after the header
}

// Name returns the path or name the file was opened with.
func (f *File) Name() string { return f.name }

// Shards returns the paths of the files that hold the tensors, in the order of
// TensorInfo.Shard.
func (f *File) Shards() []string {
	names := make([]string, len(f.shards))
	for i, s := range f.shards {
		names[i] = s.name
	}
	return names
}

// Metadata returns a copy of the free-form metadata. Where several files give
// the same key, it holds the value of the first.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Tensors returns all tensors in header order, shard after shard.
func (f *File) Tensors() []TensorInfo { return append([]TensorInfo(nil), f.tensors...) }

// Tensor returns the description of the tensor called name.
func (f *File) Tensor(name string) (TensorInfo, bool) {
	i, ok := f.byName[name]
	if !ok {
		return TensorInfo{}, false
	}
	return f.tensors[i], true
}

// Data returns the bytes of the tensor called name, nil if there is none. They
// are a view of the mapped file at any alignment: they must not be written to
// and are valid until Close.
func (f *File) Data(name string) []byte {
	t, ok := f.Tensor(name)
	if !ok {
		return nil
	}
	return f.shards[t.Shard].data[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// Mat returns the tensor called name as a matrix whose columns are the last
// extent and whose rows are all other indices: a vector has one row. Its data is
// a view as that of Data.
func (f *File) Mat(name string) (tensor.Mat, error) {
	t, ok := f.Tensor(name)
	if !ok {
		return tensor.Mat{}, fault(f.name, tensorField(name), "it in the file", "no tensor of that name")
	}
	file := f.shards[t.Shard].name
	typ, ok := t.DType()
	if !ok {
		return tensor.Mat{}, fault(file, tensorField(name)+": dtype", "F64, F32, F16, BF16, I64, I32, I16 or I8", t.Type)
	}
	rows, cols := uint64(1), uint64(1)
	for i, d := range t.Shape {
		if d == 0 {
			return tensor.Mat{}, fault(file, tensorField(name)+": shape", "no 0", diag.Shape(t.Shape))
		}
		if i == len(t.Shape)-1 {
			cols = d
		} else {
			rows *= d // at most the elements, which fit in the file
		}
	}
	return tensor.Mat{Type: typ, Rows: int(rows), Cols: int(cols), Data: f.Data(name)}, nil
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
func (f *File) Read(dst, b []byte) error { return mmap.Explain("safetensors", f.maps.Read(dst, b)) }

// Check returns an error with mmap.ErrChanged if one of the files was written
// to or cut short since it was opened: then no data of it can be relied on.
func (f *File) Check() error {
	return mmap.Explain("safetensors", f.maps.Check())
}

// ID returns what tells the content of the files from any other, see
// mmap.Map.ID; "" if that is not known.
func (f *File) ID() (id string, settled bool) { return f.maps.ID() }

// Close removes the mapping: all tensor data is invalid afterwards. Closing
// twice does nothing.
func (f *File) Close() error {
	for _, s := range f.shards {
		s.data = nil
	}
	return mmap.Explain("safetensors", f.maps.Close())
}

// fault is the error of this package.
func fault(file, field, expected, found string) error {
	return fmt.Errorf("safetensors: %s: %s: expected %s, found %s", diag.Path(file), field, expected, found)
}

func tensorField(name string) string { return "tensor " + diag.Quote(name) }
