package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf8"

	"ridge/internal/diag"
)

const (
	keyMetadata   = "__metadata__"
	maxHeaderSize = 100_000_000 // as the reference implementation
)

// decode reads the header of one file. The result has one shard, without a
// mapping.
func decode(name string, b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, fault(name, "header length", "8 bytes", fmt.Sprint(len(b)))
	}
	if bytes.HasPrefix(b, []byte("version https://git-lfs")) {
		return nil, fault(name, "header length", "a number", "a Git LFS pointer, not the file it stands for")
	}
	n, left := binary.LittleEndian.Uint64(b), uint64(len(b)-8)
	if n > left || n > maxHeaderSize {
		return nil, fault(name, "header length", fmt.Sprintf("at most %d", min(left, maxHeaderSize)), fmt.Sprint(n))
	}
	header := b[8 : 8+n]
	if !utf8.Valid(header) {
		return nil, fault(name, "header", "UTF-8", "other bytes")
	}
	if len(header) == 0 || header[0] != '{' {
		found := "nothing"
		if len(header) > 0 {
			r, _ := utf8.DecodeRune(header)
			found = fmt.Sprintf("%q", r)
		}
		return nil, fault(name, "header", "'{' at its start", found)
	}
	f := &File{name: name, byName: map[string]int{}}
	s := &scanner{file: name, what: "header", b: header}
	if err := s.object(func(key string) error { return f.member(s, key) }); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	f.shards = []*shard{{name: name, data: b[8+n:]}}
	if err := f.checkLayout(left - n); err != nil {
		return nil, err
	}
	return f, nil
}

// member reads one entry of the header.
func (f *File) member(s *scanner, key string) error {
	if key == keyMetadata {
		return f.readMetadata(s)
	}
	if _, ok := f.byName[key]; ok {
		return fault(s.file, tensorField(key), "each name once", "it a second time")
	}
	t, err := readTensor(s, key)
	if err != nil {
		return err
	}
	f.byName[key] = len(f.tensors)
	f.tensors = append(f.tensors, t)
	return nil
}

func (f *File) readMetadata(s *scanner) error {
	if f.metadata != nil {
		return fault(s.file, keyMetadata, "it once", "it a second time")
	}
	f.metadata = map[string]string{}
	return s.object(func(key string) error {
		if _, ok := f.metadata[key]; ok {
			return fault(s.file, keyMetadata+" "+diag.Quote(key), "each key once", "it a second time")
		}
		v, err := s.str()
		f.metadata[key] = v
		return err
	})
}

// readTensor reads and checks the description of a tensor, without regard to
// the others.
func readTensor(s *scanner, name string) (TensorInfo, error) {
	t := TensorInfo{Name: name}
	var seen [3]int // of dtype, shape, data_offsets
	var end uint64
	err := s.object(func(key string) error {
		var err error
		switch key {
		case "dtype":
			seen[0]++
			t.Type, err = s.str()
		case "shape":
			seen[1]++
			t.Shape, err = s.uints(t.Shape[:0], -1, name, key)
		case "data_offsets":
			seen[2]++
			var buf [2]uint64
			var at []uint64
			if at, err = s.uints(buf[:0], 2, name, key); err == nil {
				t.Offset, end = at[0], at[1]
			}
		default:
			err = s.skip(1) // the reference implementation ignores it too
		}
		return err
	})
	if err != nil {
		return t, err
	}
	for i, key := range []string{"dtype", "shape", "data_offsets"} {
		if seen[i] != 1 {
			return t, fault(s.file, tensorField(name)+": "+key, "it once", fmt.Sprintf("it %d times", seen[i]))
		}
	}
	if end < t.Offset {
		return t, fault(s.file, tensorField(name)+": data_offsets", "a start and an end", fmt.Sprintf("[%d %d]", t.Offset, end))
	}
	t.Size = end - t.Offset
	return t, t.checkSize(s.file)
}

// uints appends an array of n integers, or of any number if n is -1, to dst.
func (s *scanner) uints(dst []uint64, n int, name, key string) ([]uint64, error) {
	err := s.list('[', ']', func() error {
		u, err := s.uint()
		dst = append(dst, u)
		return err
	})
	if err == nil && n >= 0 && len(dst) != n {
		err = fault(s.file, tensorField(name)+": "+key, fmt.Sprintf("%d integers", n), fmt.Sprint(len(dst)))
	}
	return dst, err
}

// checkSize checks that type and shape ask for as many bytes as t has.
func (t *TensorInfo) checkSize(file string) error {
	size, err := dataSize(file, t.Name, t.Type, t.Shape)
	if err != nil {
		return err
	}
	if size != t.Size {
		return fault(file, tensorField(t.Name)+": data_offsets",
			fmt.Sprintf("%d bytes for %s of shape %s", size, t.Type, diag.Shape(t.Shape)), fmt.Sprint(t.Size))
	}
	return nil
}

// dataSize returns the bytes of a tensor.
func dataSize(file, name, typ string, shape []uint64) (uint64, error) {
	width, ok := typeBits[typ]
	if !ok {
		return 0, fault(file, tensorField(name)+": dtype", "a known element type", diag.Quote(typ))
	}
	if slices.Contains(shape, 0) { // however large the other extents are
		return 0, nil
	}
	n := width
	for _, d := range shape {
		hi, lo := bits.Mul64(n, d)
		if hi != 0 {
			return 0, fault(file, tensorField(name)+": shape", "fewer than 2^64 bits of data", diag.Shape(shape))
		}
		n = lo
	}
	if n%8 != 0 {
		return 0, fault(file, tensorField(name)+": shape", "whole bytes of "+typ, diag.Shape(shape))
	}
	return n / 8, nil
}

// checkLayout checks that the tensors fill the size bytes of data without a
// hole and without sharing one.
func (f *File) checkLayout(size uint64) error {
	order := make([]*TensorInfo, len(f.tensors))
	for i := range order {
		order[i] = &f.tensors[i]
	}
	// Equal offsets happen with empty tensors, which have to come first.
	slices.SortFunc(order, func(a, b *TensorInfo) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size))
	})
	end := uint64(0)
	for i, t := range order {
		if t.Offset != end {
			where := "the start of the data"
			if i > 0 {
				where = "the end of tensor " + diag.Quote(order[i-1].Name)
			}
			return fault(f.name, tensorField(t.Name)+": data_offsets", fmt.Sprintf("a start at %d, %s", end, where), fmt.Sprint(t.Offset))
		}
		if t.Size > size-end {
			return fault(f.name, tensorField(t.Name)+": data_offsets", fmt.Sprintf("an end within the %d bytes of data", size),
				fmt.Sprint(t.Offset+t.Size))
		}
		end += t.Size
	}
	if end != size {
		return fault(f.name, "data", fmt.Sprintf("%d bytes as the header says", end), fmt.Sprint(size))
	}
	return nil
}
