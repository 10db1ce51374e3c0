// Command quantize writes a GGUF file with its matrices in other formats, by
// ridge's own encoders.
//
//	go run ./tools/tinymodel/quantize -in tiny-f32.gguf -out tiny.gguf -embd q5_0 -rest q8_0
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

func main() {
	in := flag.String("in", "", "file of F32 tensors")
	out := flag.String("out", "", "file to write")
	embd := flag.String("embd", "q5_0", "format of the token embedding, which is the output matrix as well")
	rest := flag.String("rest", "q8_0", "format of the other matrices")
	flag.Parse()
	if err := run(*in, *out, *embd, *rest); err != nil {
		fmt.Fprintln(os.Stderr, "quantize:", err)
		os.Exit(1)
	}
}

func run(in, out, embd, rest string) error {
	te, err := tensor.ParseDType(embd)
	if err != nil {
		return err
	}
	tr, err := tensor.ParseDType(rest)
	if err != nil {
		return err
	}
	f, err := gguf.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	b := gguf.NewBuilder()
	for _, k := range f.Keys() {
		v, _ := f.Lookup(k)
		if err := b.Set(k, v); err != nil {
			return err
		}
	}
	types := map[tensor.DType]uint32{tensor.F32: 0, tensor.Q8_0: 7, tensor.Q5_0: 8, tensor.Q5_1: 9, tensor.Q4_0: 2, tensor.Q4_1: 3}
	if err := b.Set("general.file_type", types[te]); err != nil {
		return err
	}
	for _, t := range f.Tensors() {
		data := f.Data(t)
		if len(t.Dims) == 2 {
			if t.Type = tr; t.Name == "token_embd.weight" {
				t.Type = te
			}
			if data, err = encode(t, data); err != nil {
				return err
			}
		}
		if err := b.AddTensor(t, gguf.Bytes(data)); err != nil {
			return err
		}
	}
	return b.Save(filepath.Clean(out))
}

// encode converts F32 data to t.Type, row by row.
func encode(t gguf.TensorInfo, data []byte) ([]byte, error) {
	cols, rows := int(t.Dims[0]), int(t.Dims[1])
	size := t.Type.RowBytes(cols)
	if size < 0 {
		return nil, fmt.Errorf("%s: rows of %d values: expected a multiple of %d", t.Name, cols, t.Type.BlockSize())
	}
	x, out := make([]float32, cols), make([]byte, rows*size)
	for r := range rows {
		tensor.F32.Decode(x, data[r*cols*4:])
		if err := t.Type.Encode(out[r*size:(r+1)*size], x); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", t.Name, r, err)
		}
	}
	return out, nil
}
