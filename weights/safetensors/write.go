package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"unicode/utf8"

	"ridge/internal/atomicfile"
	"ridge/internal/diag"
)

// typeOrder lists the element types as the reference implementation orders
// tensors: the widest first, so that all data is aligned to its own type.
var typeOrder = []string{
	"U64", "I64", "F64", "C64", "F32", "U32", "I32", "BF16", "F16", "U16", "I16",
	"F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2", "I8", "U8", "F6_E3M2", "F6_E2M3", "F4", "BOOL",
}

// Bytes is tensor data in memory, as Tensor takes it.
type Bytes []byte

// WriteTo writes all of b to w, and can be called any number of times.
func (b Bytes) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

// Tensor is a tensor to write.
type Tensor struct {
	Name  string
	Type  string   // as TensorInfo.Type
	Shape []uint64 // as TensorInfo.Shape
	// Data writes exactly the bytes that Type and Shape ask for, the same each
	// time: Bytes, or something that makes them when they are needed.
	Data io.WriterTo
}

// Write writes tensors and metadata (which may be nil) to path. The file is
// there whole or not at all: it is written beside path under another name first.
// Tensors are laid out as the reference implementation does, by type and name:
// what it wrote is written again byte for byte, save for the order of metadata.
func Write(path string, tensors []Tensor, metadata map[string]string) error {
	var writing error
	err := atomicfile.Write(path, func(w io.Writer) error {
		writing = writeTo(w, path, tensors, metadata)
		return writing
	})
	if err != nil && writing == nil {
		err = fmt.Errorf("safetensors: %s: save: %w", diag.Path(path), err)
	}
	return err
}

// writeTo is Write to w, a file called name.
func writeTo(w io.Writer, name string, tensors []Tensor, metadata map[string]string) error {
	tensors = slices.Clone(tensors)
	slices.SortStableFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(slices.Index(typeOrder, a.Type), slices.Index(typeOrder, b.Type)), cmp.Compare(a.Name, b.Name))
	})
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fault(name, keyMetadata+" "+diag.Quote(k), "UTF-8", "other bytes")
		}
	}
	sizes, err := checkTensors(name, tensors)
	if err != nil {
		return err
	}
	out := &counter{w: w, name: name}
	head := header(tensors, sizes, metadata)
	if n := len(head) - 8; n > maxHeaderSize {
		return fault(name, "header length", fmt.Sprintf("at most %d", maxHeaderSize), fmt.Sprint(n))
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	for i, t := range tensors {
		before := out.n
		if _, err := t.Data.WriteTo(out); err != nil {
			return err
		}
		if n := out.n - before; n != sizes[i] {
			return fault(name, tensorField(t.Name)+": data", fmt.Sprintf("%d bytes", sizes[i]), fmt.Sprint(n))
		}
	}
	return nil
}

// checkTensors returns the bytes of each tensor.
func checkTensors(file string, tensors []Tensor) ([]int64, error) {
	sizes := make([]int64, len(tensors))
	seen := map[string]bool{}
	for i, t := range tensors {
		if t.Name == keyMetadata {
			return nil, fault(file, tensorField(t.Name), "another name", "the one of the metadata")
		}
		if !utf8.ValidString(t.Name) {
			return nil, fault(file, tensorField(t.Name), "UTF-8", "other bytes")
		}
		if seen[t.Name] {
			return nil, fault(file, tensorField(t.Name), "each name once", "it a second time")
		}
		seen[t.Name] = true
		size, err := dataSize(file, t.Name, t.Type, t.Shape)
		if err != nil {
			return nil, err
		}
		sizes[i] = int64(size) // dataSize returns less than 2^61
		if have, ok := t.Data.(Bytes); ok && uint64(len(have)) != size {
			return nil, fault(file, tensorField(t.Name)+": data", fmt.Sprintf("%d bytes", size), fmt.Sprint(len(have)))
		}
	}
	return sizes, nil
}

// header returns the length and the JSON before the data.
func header(tensors []Tensor, sizes []int64, metadata map[string]string) []byte {
	b := append(make([]byte, 8, 256), '{')
	if metadata != nil {
		b = append(appendString(b, keyMetadata), ":{"...)
		for i, k := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, k)
			b = append(b, ':')
			b = appendString(b, metadata[k])
		}
		b = append(b, '}')
	}
	offset := int64(0)
	for i, t := range tensors {
		if i > 0 || metadata != nil {
			b = append(b, ',')
		}
		b = appendString(b, t.Name)
		b = fmt.Appendf(b, `:{"dtype":"%s","shape":[`, t.Type)
		for j, d := range t.Shape {
			if j > 0 {
				b = append(b, ',')
			}
			b = fmt.Append(b, d)
		}
		b = fmt.Appendf(b, `],"data_offsets":[%d,%d]}`, offset, offset+sizes[i])
		offset += sizes[i]
	}
	b = append(b, '}')
	for len(b)%8 != 0 { // so that the data is aligned
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	return b
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false) // "<" stands for itself, as in files of other programs
	_ = e.Encode(s)        // a string always can be encoded
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
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
		err = fmt.Errorf("safetensors: %s: write: %w", diag.Path(c.name), err)
	}
	return n, err
}
