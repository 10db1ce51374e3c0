package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"

	"ridge/internal/atomicfile"
	"ridge/internal/diag"
)

const newFile = "new file" // stands for the name of a file that has none yet

// Bytes is tensor data in memory, as Builder.AddTensor takes it.
type Bytes []byte

// WriteTo writes all of b to w, and can be called any number of times.
func (b Bytes) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// Builder collects metadata and tensors and writes them as a GGUF file. Tensors
// are laid out in the order they are added, one after the other, each padded to
// the alignment: the only layout every reader accepts. A file that was written
// so, as the common tools do, is written again byte for byte.
type Builder struct {
	version   uint32
	alignment uint64
	keys      []string
	values    map[string]any
	tensors   []entry
	names     map[string]bool
	noPad     bool // no padding after the last tensor
	padEmpty  bool // padding after the directory even if there are no tensors
}

type entry struct {
	TensorInfo
	data io.WriterTo
}

// NewBuilder returns an empty builder of a file of version 3.
func NewBuilder() *Builder {
	return &Builder{version: 3, alignment: defaultAlignment, values: map[string]any{}, names: map[string]bool{}}
}

// Builder returns a builder that holds the metadata and tensors of f, and
// writes them in f's version. A split model becomes one file. The builder reads
// tensor data from f, so f must stay open until it has written.
func (f *File) Builder() *Builder {
	b := NewBuilder()
	b.version, b.alignment = uint32(f.version), f.alignment
	split := len(f.shards) > 1
	for i, k := range f.keys {
		if split && (k == keySplitNo || k == keySplitCount || k == keySplitTensors) {
			continue
		}
		b.keys = append(b.keys, k)
		b.values[k] = f.values[i]
	}
	for _, t := range f.tensors {
		b.tensors = append(b.tensors, entry{t, Bytes(f.Data(t))})
		b.names[t.Name] = true
	}
	if !split {
		padded := f.shards[0].padded
		b.noPad = len(f.tensors) > 0 && !padded
		b.padEmpty = len(f.tensors) == 0 && padded
	}
	return b
}

// Set gives key the value, whose type must be one that File.Lookup returns: the
// type in the file is that of the Go value. A key that is set again keeps its
// place. The builder keeps slices, it does not copy them.
func (b *Builder) Set(key string, value any) error {
	if err := checkIdent("key", key); err != nil {
		return err
	}
	if !encodable(value, 1) {
		return fault(newFile, metadataField(key),
			fmt.Sprintf("a GGUF value nested at most %d deep", maxDepth), describe(value))
	}
	if key == keyAlignment {
		a, err := checkAlignment(newFile, value)
		if err != nil {
			return err
		}
		b.alignment = a
	}
	b.put(key, value)
	return nil
}

// Floats returns the float32 values that key has, nil if it has none.
func (b *Builder) Floats(key string) []float32 {
	v, _ := b.values[key].([]float32)
	return v
}

// put is Set for a value known to be right.
func (b *Builder) put(key string, value any) {
	if _, ok := b.values[key]; !ok {
		b.keys = append(b.keys, key)
	}
	b.values[key] = value
}

// Keys returns the metadata keys in the order of the file.
func (b *Builder) Keys() []string { return slices.Clone(b.keys) }

// Remove takes key out of the metadata, if it is there.
func (b *Builder) Remove(key string) {
	if _, ok := b.values[key]; !ok {
		return
	}
	delete(b.values, key)
	b.keys = slices.DeleteFunc(b.keys, func(k string) bool { return k == key })
	if key == keyAlignment {
		b.alignment = defaultAlignment
	}
}

// AddTensor adds a tensor with the name, type and dimensions of t; its other
// fields are ignored. When the file is written, data must write exactly the
// bytes that type and dimensions ask for, the same each time.
func (b *Builder) AddTensor(t TensorInfo, data io.WriterTo) error {
	if err := checkIdent("tensor name", t.Name); err != nil {
		return err
	}
	at := &spot{file: newFile, in: "tensor", name: t.Name}
	if b.names[t.Name] {
		return at.fault("", "each name once", "it a second time")
	}
	if len(t.Dims) > maxDims {
		return at.fault("number of dimensions", fmt.Sprintf("at most %d", maxDims), fmt.Sprint(len(t.Dims)))
	}
	size, err := at.dataSize(t.Type, t.Dims)
	if err != nil {
		return err
	}
	if have, ok := data.(Bytes); ok && uint64(len(have)) != size {
		return at.fault("data", fmt.Sprintf("%d bytes", size), fmt.Sprint(len(have)))
	}
	t.Size = size
	t.Dims = slices.Clone(t.Dims)
	b.names[t.Name] = true
	b.tensors = append(b.tensors, entry{t, data})
	return nil
}

// RemoveTensor takes a tensor out, if it is there.
func (b *Builder) RemoveTensor(name string) {
	delete(b.names, name)
	b.tensors = slices.DeleteFunc(b.tensors, func(e entry) bool { return e.Name == name })
}

// Save writes the file to path. The file is there whole or not at all: it is
// written beside path under another name first.
func (b *Builder) Save(path string) error {
	var writing error
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, writing = b.writeTo(w, path)
		return writing
	})
	if err != nil && writing == nil {
		err = fmt.Errorf("gguf: %s: save: %w", diag.Path(path), err)
	}
	return err
}

// WriteTo writes the file to w.
func (b *Builder) WriteTo(w io.Writer) (int64, error) { return b.writeTo(w, newFile) }

// writeTo is WriteTo for a file called name.
func (b *Builder) writeTo(w io.Writer, name string) (int64, error) {
	out := &counter{w: w, name: name}
	if err := b.writeHead(out); err != nil {
		return out.n, err
	}
	if len(b.tensors) > 0 || b.padEmpty {
		if err := out.pad(b.alignment); err != nil {
			return out.n, err
		}
	}
	for i, t := range b.tensors {
		before := out.n
		if _, err := t.data.WriteTo(out); err != nil {
			return out.n, err
		}
		if n := out.n - before; uint64(n) != t.Size {
			return out.n, fault(name, tensorField(t.Name)+": data", fmt.Sprintf("%d bytes", t.Size), fmt.Sprint(n))
		}
		if i == len(b.tensors)-1 && b.noPad {
			break
		}
		// The data section starts aligned, so what is aligned in the file is
		// aligned in the section.
		if err := out.pad(b.alignment); err != nil {
			return out.n, err
		}
	}
	return out.n, nil
}

// writeHead writes all that comes before the padding and the tensor data.
func (b *Builder) writeHead(out *counter) error {
	w := bufio.NewWriterSize(out, 1<<16)
	le := binary.LittleEndian
	buf := append([]byte(nil), magic...)
	buf = le.AppendUint32(buf, b.version)
	buf = le.AppendUint64(buf, uint64(len(b.tensors)))
	buf = le.AppendUint64(buf, uint64(len(b.keys)))
	for _, k := range b.keys {
		v := b.values[k]
		typ, _, _ := typeOf(v)
		buf = appendString(buf, k)
		buf = le.AppendUint32(buf, uint32(typ))
		buf = appendValue(buf, v)
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	offset := uint64(0)
	for _, t := range b.tensors {
		buf = appendString(buf, t.Name)
		buf = le.AppendUint32(buf, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			buf = le.AppendUint64(buf, d)
		}
		buf = le.AppendUint32(buf, uint32(t.Type))
		buf = le.AppendUint64(buf, offset)
		if t.Size > math.MaxInt64-offset-b.alignment {
			return fault(out.name, tensorField(t.Name)+": offset", fmt.Sprintf("at most %d bytes of tensors", uint64(math.MaxInt64)), "more")
		}
		offset = alignUp(offset+t.Size, b.alignment)
	}
	if _, err := w.Write(buf); err != nil {
		return err
	}
	return w.Flush()
}

// counter counts what is written to w, the file called name.
type counter struct {
	w    io.Writer
	name string
	n    int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if err != nil {
		err = fmt.Errorf("gguf: %s: write: %w", diag.Path(c.name), err)
	}
	return n, err
}

// pad writes zeros up to the next multiple of alignment.
func (c *counter) pad(alignment uint64) error {
	n := alignUp(uint64(c.n), alignment) - uint64(c.n)
	_, err := c.Write(make([]byte, n))
	return err
}

func checkIdent(what, s string) error {
	if len(s) == 0 || len(s) > maxNameLen {
		return fault(newFile, what+" length", fmt.Sprintf("1 to %d", maxNameLen), fmt.Sprint(len(s)))
	}
	return nil
}

// encodable reports whether v is a GGUF value; depth is how deep it lies in
// arrays if it is one itself.
func encodable(v any, depth int) bool {
	typ, elem, ok := typeOf(v)
	if !ok || typ != typeArray {
		return ok
	}
	if depth > maxDepth {
		return false
	}
	if elem == typeArray {
		for _, e := range v.([]any) {
			if t, _, ok := typeOf(e); !ok || t != typeArray || !encodable(e, depth+1) {
				return false
			}
		}
	}
	return true
}

func appendString(buf []byte, s string) []byte {
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(s)))
	return append(buf, s...)
}

// appendValue appends an encodable value; for an array also the type and number
// of its elements.
func appendValue(buf []byte, v any) []byte {
	le := binary.LittleEndian
	typ, elem, _ := typeOf(v)
	if typ == typeArray {
		buf = le.AppendUint32(buf, uint32(elem))
		buf = le.AppendUint64(buf, uint64(reflect.ValueOf(v).Len()))
	}
	switch x := v.(type) {
	case string:
		return appendString(buf, x)
	case []string:
		for _, s := range x {
			buf = appendString(buf, s)
		}
		return buf
	case []any:
		for _, e := range x {
			buf = appendValue(buf, e)
		}
		return buf
	}
	buf, _ = binary.Append(buf, le, v) // a number, a bool or a slice of them: cannot fail
	return buf
}
