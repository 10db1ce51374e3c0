package model

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// convertOptions are the choices of Convert.
type convertOptions struct {
	Type       tensor.DType // of matrices
	Keep       bool         // they stay what they are
	SplitBytes uint64
	Progress   func(done, total int64)
}

// Convert writes the model at src, a checkpoint folder or a GGUF file, as a GGUF
// file at dst, or as several; or, if dst ends in a slash, that of a GGUF file as a
// checkpoint folder, which must not be there and has one file of weights. Weights get the names and the order that GGUF has
// for the architecture, the description its keys; tokenizer and chat template go
// with them. Matrices of floats become typ, which is f32, f16 or bf16, or stay what
// they are with keep; others always do. A file has at most split bytes of tensors,
// 0 for one file. progress, which may be nil, is told how many bytes were written.
//
// It returns the files. What was written is read again before it appears at dst, and must say the same
// of the model: what GGUF has no key for is an error that names it.
func Convert(src, dst, typ string, split uint64, progress func(done, total int64)) (files []string, err error) {
	c := &conversion{o: convertOptions{SplitBytes: split, Progress: progress}}
	if err := c.o.parse(typ); err != nil {
		return nil, err
	}
	m := &Model{path: src}
	defer m.Close()
	if err := m.openSource(); err != nil {
		return nil, err
	}
	if strings.HasSuffix(dst, "/") {
		dst = filepath.Clean(dst)
		return []string{filepath.Join(dst, "model.safetensors")}, c.toCheckpoint(m, dst)
	}
	return c.toGGUF(m, dst)
}

// parse takes over the type of matrices.
func (o *convertOptions) parse(typ string) error {
	switch typ {
	case "keep":
		o.Keep = true
	case "f32":
		o.Type = tensor.F32
	case "f16":
		o.Type = tensor.F16
	case "bf16":
		o.Type = tensor.BF16
	default:
		return fmt.Errorf("model: convert: type: expected f32, f16, bf16 or keep, found %q", typ)
	}
	return nil
}

// toGGUF writes m as a GGUF file at dst, or as several.
func (c *conversion) toGGUF(m *Model, dst string) (files []string, err error) {
	var b *gguf.Builder
	if m.gg != nil {
		b, err = c.again(m, m.gg)
	} else {
		b, err = c.describe(m)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(dst), ".convert-")
	if err != nil {
		return nil, fmt.Errorf("model: convert: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := c.allPlanned(m); err != nil {
		return nil, err
	}
	made, err := c.save(b, filepath.Join(dir, filepath.Base(dst)))
	if err != nil {
		return nil, err
	}
	if err := c.compare(m, made[0]); err != nil {
		return nil, fmt.Errorf("model: convert: %s: a GGUF file of type %s does not say what this model is: %w", m.path, m.arch.name, err)
	}
	for _, f := range made {
		to := filepath.Join(filepath.Dir(dst), filepath.Base(f))
		if err := os.Rename(f, to); err != nil {
			return nil, fmt.Errorf("model: convert: %w", err)
		}
		files = append(files, to)
	}
	return files, nil
}

// conversion is one run of Convert.
type conversion struct {
	o           convertOptions
	done, total int64 // bytes of tensors

	changes    map[string]*weightChange // of weights by their names, see Merge
	requantize bool                     // changed matrices that are quantized stay so
}

// save writes b to path, or to files whose names begin like it.
func (c *conversion) save(b *gguf.Builder, path string) ([]string, error) {
	if c.o.SplitBytes == 0 {
		return []string{path}, b.Save(path)
	}
	return b.SaveShards(path[:len(path)-len(filepath.Ext(path))], c.o.SplitBytes)
}

// add adds a tensor of a type, whose rows come from mats, one after the other.
func (c *conversion) add(b *gguf.Builder, name string, typ tensor.DType, dims []uint64, rows rowsOf) error {
	return c.addChanged(b, name, typ, dims, nil, rows)
}

// addChanged adds a tensor with a change, which may be nil.
func (c *conversion) addChanged(b *gguf.Builder, name string, typ tensor.DType, dims []uint64, x *weightChange, rows rowsOf) error {
	t := gguf.TensorInfo{Name: name, Type: typ, Dims: dims}
	c.total += int64(t.Elements()) / int64(typ.BlockSize()) * int64(typ.BlockBytes())
	return b.AddTensor(t, &tensorWriter{c: c, typ: typ, rows: rows, change: x})
}

// again has the tensors of a GGUF file, floats in the type that is wanted.
func (c *conversion) again(m *Model, f *gguf.File) (*gguf.Builder, error) {
	b := f.Builder()
	names := map[string]string{} // of weights that are changed, by the file's
	for name := range c.changes {
		names[m.src.names(name)[0]] = name
	}
	for _, t := range f.Tensors() {
		b.RemoveTensor(t.Name)
	}
	for _, t := range f.Tensors() {
		mat, err := f.Mat(t.Name)
		if err != nil {
			return nil, err
		}
		typ := t.Type
		if isFloat(typ) {
			typ = c.typeOf(t.Name, typ, len(t.Dims) < 2)
		}
		x, typ, err := c.change(m, names[t.Name], t.Type, typ)
		if err != nil {
			return nil, err
		}
		read := func(yield func(tensor.Mat) error) error {
			defer f.Release(mat.Data)
			return yield(mat)
		}
		if err := c.addChanged(b, t.Name, typ, t.Dims, x, read); err != nil {
			return nil, err
		}
	}
	if _, ok := f.Lookup("general.file_type"); ok && !c.o.Keep {
		b.Set("general.file_type", fileTypeOf(c.o.Type))
	}
	return b, nil
}

// isFloat reports whether t has plain numbers.
func isFloat(t tensor.DType) bool {
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.F64:
		return true
	}
	return false
}

// fileTypeOf returns what general.file_type is for matrices of type t.
func fileTypeOf(t tensor.DType) uint32 {
	switch t {
	case tensor.F16:
		return 1
	case tensor.BF16:
		return 32
	}
	return 0
}
