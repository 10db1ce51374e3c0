package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path"
	"slices"

	"ridge/weights/gguf"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// matrices is a model's file, of either kind, as extract reads it.
type matrices interface {
	Mat(name string) (tensor.Mat, error)
	Release(b []byte)
	Close() error
}

// extract writes the tensors of a file whose names match the pattern to a
// safetensors file, as float32, for programs that look at weights. done is told
// how many are written.
func extract(from, pattern, to string, done func(done, total int)) (n int, err error) {
	in, err := inspect(from, false)
	if err != nil {
		return 0, err
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return 0, fmt.Errorf("--match: expected a pattern such as 'blk.0.*', found %q: %w", pattern, err)
	}
	var f matrices
	if in.Format == "GGUF" {
		f, err = gguf.Open(in.File)
	} else {
		f, err = safetensors.Open(in.File)
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var out []safetensors.Tensor
	count := 0
	for _, t := range in.Tensors {
		if ok, _ := path.Match(pattern, t.Name); !ok {
			continue
		}
		m, err := f.Mat(t.Name)
		if err != nil {
			return 0, err
		}
		if !m.Type.CanDecode() {
			return 0, fmt.Errorf("%s: tensor %q: element type %v cannot be read", in.File, t.Name, m.Type)
		}
		shape := slices.Clone(t.Shape)
		if in.Format == "GGUF" {
			slices.Reverse(shape) // GGUF names the innermost dimension first
		}
		out = append(out, safetensors.Tensor{Name: t.Name, Type: "F32", Shape: shape, Data: &decoded{m, f, func() {
			count++
			done(count, len(out))
		}}})
	}
	if len(out) == 0 {
		return 0, fmt.Errorf("%s: --match: expected a pattern that a tensor's name matches, found %q", in.File, pattern)
	}
	return len(out), safetensors.Write(to, out, map[string]string{"source": path.Base(in.File)})
}

// decoded writes the values of a matrix, row by row.
type decoded struct {
	m    tensor.Mat
	f    matrices
	done func()
}

// WriteTo writes the matrix as little-endian float32.
func (d *decoded) WriteTo(w io.Writer) (sum int64, err error) {
	x, b := make([]float32, d.m.Cols), make([]byte, 0, 4*d.m.Cols)
	for r := range d.m.Rows {
		d.m.DecodeRow(x, r)
		b = b[:0]
		for _, v := range x {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		n, err := w.Write(b)
		if sum += int64(n); err != nil {
			return sum, err
		}
	}
	d.f.Release(d.m.Data)
	d.done()
	return sum, nil
}
