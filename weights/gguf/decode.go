package gguf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"ridge/internal/diag"
	"ridge/weights/tensor"
)

const (
	magic            = "GGUF"
	keyAlignment     = "general.alignment"
	defaultAlignment = 32
	minAlignment     = 8       // the format wants a multiple of 8
	maxAlignment     = 1 << 24 // far above any page size; bounds what a rewrite may pad
	maxDims          = 4       // as ggml
	maxNameLen       = 1<<16 - 1

	// The least bytes a metadata entry and a directory entry can take: they
	// bound how many of them a file can hold.
	minEntrySize  = 8 + 1 + 4 + 1
	minTensorSize = 8 + 1 + 4 + 4 + 8
)

// decode reads the metadata and directory of one file. The result has one
// shard, without a mapping.
func decode(name string, b []byte) (*File, error) {
	c := &cursor{spot: spot{file: name}, b: b}
	f := &File{name: name, alignment: defaultAlignment}
	if err := c.magic(); err != nil {
		return nil, err
	}
	var err error
	if f.version, err = c.version(); err != nil {
		return nil, err
	}
	// Both counts first, so that a wrong one is reported as what it is and not
	// as what follows from it.
	tensors, err := c.count(minTensorSize, "tensor count")
	if err != nil {
		return nil, err
	}
	entries, err := c.count(minEntrySize, "metadata count")
	if err != nil {
		return nil, err
	}
	if err := f.readMetadata(c, entries); err != nil {
		return nil, err
	}
	if err := f.readDirectory(c, tensors); err != nil {
		return nil, err
	}
	if err := f.placeData(c); err != nil {
		return nil, err
	}
	return f, nil
}

// magic checks the first bytes, and names what else is often taken for a model.
func (c *cursor) magic() error {
	b := c.b[:min(len(c.b), len(magic))]
	if string(b) == magic {
		c.off = len(magic)
		return nil
	}
	found := diag.Quote(string(b))
	switch start := bytes.ToLower(bytes.TrimSpace(c.b[:min(len(c.b), 64)])); {
	case len(c.b) == 0:
		found = "an empty file"
	case bytes.HasPrefix(start, []byte("version https://git-lfs")):
		found = "a Git LFS pointer, not the file it stands for"
	case bytes.HasPrefix(start, []byte("<!doctype html")), bytes.HasPrefix(start, []byte("<html")):
		found = "a web page"
	}
	return c.fault("magic", diag.Quote(magic), found)
}

func (c *cursor) version() (int, error) {
	v, err := c.u32("version")
	if err != nil {
		return 0, err
	}
	if v == 2 || v == 3 {
		return int(v), nil
	}
	found := fmt.Sprint(v)
	if v == 1 {
		found = "1, an old layout: convert the model again"
	} else if r := bits.ReverseBytes32(v); v&0xffff == 0 && r != 0 {
		found = fmt.Sprintf("a big-endian file of version %d", r)
	}
	return 0, c.fault("version", "2 or 3, little-endian", found)
}

func (f *File) readMetadata(c *cursor, entries int) error {
	f.keys = make([]string, 0, entries)
	f.values = make([]any, 0, entries)
	f.index = make(map[string]int, entries)
	for i := range entries {
		c.spot = spot{file: f.name, in: "metadata", index: i}
		key, err := c.ident("key")
		if err != nil {
			return err
		}
		c.name = key
		if first, ok := f.index[key]; ok {
			return c.fault("", "each key once", fmt.Sprintf("it as entry %d and entry %d", first, i))
		}
		t, err := c.u32("type")
		if err != nil {
			return err
		}
		v, err := c.value(valueType(t))
		if err != nil {
			return err
		}
		if key == keyAlignment {
			if f.alignment, err = checkAlignment(f.name, v); err != nil {
				return err
			}
		}
		f.index[key] = i
		f.keys = append(f.keys, key)
		f.values = append(f.values, v)
	}
	return nil
}

// ident reads a key or a tensor name.
func (c *cursor) ident(what string) (string, error) {
	n, err := c.count(1, what+" length")
	if err != nil {
		return "", err
	}
	if n == 0 || n > maxNameLen {
		return "", c.fault(what+" length", fmt.Sprintf("1 to %d", maxNameLen), fmt.Sprint(n))
	}
	b, err := c.take(n, what)
	return string(b), err
}

func checkAlignment(file string, v any) (uint64, error) {
	a, ok := v.(uint32)
	if !ok {
		return 0, fault(file, metadataField(keyAlignment), "a uint32", describe(v))
	}
	if a < minAlignment || a > maxAlignment || a&(a-1) != 0 {
		return 0, fault(file, metadataField(keyAlignment),
			fmt.Sprintf("a power of two from %d to %d", minAlignment, maxAlignment), fmt.Sprint(a))
	}
	return uint64(a), nil
}

func (f *File) readDirectory(c *cursor, count int) error {
	f.tensors = make([]TensorInfo, count)
	f.byName = make(map[string]int, count)
	dims := make([]uint64, 0, 2*count) // of all tensors, one after the other
	ends := make([]int, count)
	for i := range f.tensors {
		t := &f.tensors[i]
		c.spot = spot{file: f.name, in: "tensor", index: i}
		var err error
		if t.Name, err = c.ident("name"); err != nil {
			return err
		}
		c.name = t.Name
		if first, ok := f.byName[t.Name]; ok {
			return c.fault("", "each name once", fmt.Sprintf("it as tensor %d and tensor %d", first, i))
		}
		f.byName[t.Name] = i
		start := len(dims)
		if dims, err = c.dims(dims); err != nil {
			return err
		}
		ends[i] = len(dims)
		id, err := c.u32("type")
		if err != nil {
			return err
		}
		t.Type = tensor.DType(id)
		if t.Size, err = c.dataSize(t.Type, dims[start:]); err != nil {
			return err
		}
		if t.Offset, err = c.u64("offset"); err != nil {
			return err
		}
		if t.Offset%f.alignment != 0 {
			return c.fault("offset", fmt.Sprintf("a multiple of %d", f.alignment), fmt.Sprint(t.Offset))
		}
	}
	for i, start := 0, 0; i < count; i++ { // dims is complete and stays where it is
		f.tensors[i].Dims = dims[start:ends[i]:ends[i]]
		start = ends[i]
	}
	return nil
}

// dims appends the extents of a tensor to dst.
func (c *cursor) dims(dst []uint64) ([]uint64, error) {
	n, err := c.u32("number of dimensions")
	if err != nil {
		return nil, err
	}
	if n > maxDims {
		return nil, c.fault("number of dimensions", fmt.Sprintf("at most %d", maxDims), fmt.Sprint(n))
	}
	b, err := c.take(8*int(n), "dimensions")
	if err != nil {
		return nil, err
	}
	for ; len(b) > 0; b = b[8:] {
		dst = append(dst, binary.LittleEndian.Uint64(b))
	}
	return dst, nil
}

// otherTypes names type ids that are, or were, in use but are not supported.
var otherTypes = map[tensor.DType]string{
	4: "Q4_2", 5: "Q4_3", 31: "Q4_0_4_4", 32: "Q4_0_4_8", 33: "Q4_0_8_8",
	36: "IQ4_NL_4_4", 37: "IQ4_NL_4_8", 38: "IQ4_NL_8_8", 40: "NVFP4", 41: "Q1_0", 42: "Q2_0",
}

// dataSize returns the bytes of a tensor, after checking its type and shape.
func (s *spot) dataSize(typ tensor.DType, dims []uint64) (uint64, error) {
	if !typ.Valid() {
		found := fmt.Sprintf("type %d", uint32(typ))
		if other, ok := otherTypes[typ]; ok {
			found += " (" + other + ")"
		}
		return 0, s.fault("type", "a known element type", found)
	}
	elements, cols := uint64(1), uint64(1)
	for j, d := range dims {
		if d == 0 {
			return 0, s.fault(fmt.Sprintf("dimension %d", j), "at least 1", "0")
		}
		hi, lo := bits.Mul64(elements, d)
		if hi != 0 || lo > math.MaxInt {
			return 0, s.fault("dimensions", fmt.Sprintf("a product of at most %d", math.MaxInt), fmt.Sprint(dims))
		}
		elements = lo
	}
	if len(dims) > 0 {
		cols = dims[0]
	}
	block := uint64(typ.BlockSize())
	if cols%block != 0 {
		return 0, s.fault("dimension 0", fmt.Sprintf("a multiple of %d, the block size of %v", block, typ), fmt.Sprint(cols))
	}
	hi, size := bits.Mul64(elements/block, uint64(typ.BlockBytes()))
	if hi != 0 || size > math.MaxInt64 {
		return 0, s.fault("dimensions", fmt.Sprintf("at most %d bytes of data", uint64(math.MaxInt64)), fmt.Sprint(dims))
	}
	return size, nil
}

// placeData finds the data section, which starts at the next aligned offset
// after the directory, and checks that every tensor lies in it by itself.
func (f *File) placeData(c *cursor) error {
	start := alignUp(uint64(c.off), f.alignment)
	s := &shard{name: f.name}
	f.shards = []*shard{s}
	size := uint64(len(c.b))
	if len(f.tensors) == 0 {
		s.padded = start == size && start > uint64(c.off)
		return nil
	}
	if start > size {
		return fault(f.name, "tensor data", fmt.Sprintf("it to start at byte %d", start), fmt.Sprintf("the end of the file at %d", size))
	}
	s.data = c.b[start:]
	last, err := f.checkLayout(uint64(len(s.data)))
	s.padded = alignUp(last, f.alignment) <= uint64(len(s.data))
	return err
}

// checkLayout checks the places of all tensors in a data section of size bytes
// and returns the end of the last.
func (f *File) checkLayout(size uint64) (last uint64, err error) {
	order := make([]*TensorInfo, len(f.tensors))
	for i := range order {
		t := &f.tensors[i]
		order[i] = t
		if t.Size > size || t.Offset > size-t.Size {
			return 0, fault(f.name, tensorField(t.Name)+": data", fmt.Sprintf("%d bytes at offset %d", t.Size, t.Offset),
				fmt.Sprintf("a data section of %d bytes", size))
		}
	}
	slices.SortStableFunc(order, func(a, b *TensorInfo) int { return cmp.Compare(a.Offset, b.Offset) })
	for i, t := range order {
		if t.Offset < last {
			return 0, fault(f.name, tensorField(t.Name)+": offset",
				fmt.Sprintf("at least %d, the end of tensor %s", last, diag.Quote(order[i-1].Name)), fmt.Sprint(t.Offset))
		}
		last = t.Offset + t.Size
	}
	return last, nil
}

// alignUp rounds n, below 2^63, up to a multiple of a, a power of two.
func alignUp(n, a uint64) uint64 { return (n + a - 1) &^ (a - 1) }
