package model

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// What is widened has the same numbers, but for the rounding of scaled NVFP4.
func TestWidenedIsEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for from, to := range widened {
		m := tensor.Mat{Type: from, Rows: 6, Cols: 256}
		m.Data = make([]byte, m.Rows*from.RowBytes(m.Cols))
		for i := range m.Data {
			m.Data[i] = byte(r.Uint32())
		}
		for _, scales := range [][]float32{nil, {0.25, -3}} {
			out := tensor.Mat{Type: to, Rows: m.Rows, Cols: m.Cols, Data: make([]byte, m.Rows*to.RowBytes(m.Cols))}
			if scales != nil && from != tensor.NVFP4 {
				continue
			}
			(&widenTask{src: m, dst: out, scales: scales}).Do(0, 1)
			want, got := make([]float32, m.Cols), make([]float32, m.Cols)
			for row := range m.Rows {
				m.DecodeRow(want, row)
				out.DecodeRow(got, row)
				for i := range want {
					if scales != nil {
						want[i] *= scales[row/3]
					}
					if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
						t.Fatalf("%v, row %d, column %d: %v, want %v", from, row, i, got[i], want[i])
					}
				}
			}
		}
	}
}

// A model in these formats computes what it does with its weights as float32.
func TestWidenedModel(t *testing.T) {
	for from := range widened {
		f, err := gguf.Open(testdata.Tiny)
		if err != nil {
			t.Fatal(err)
		}
		packed, plain := f.Builder(), f.Builder()
		r := rand.New(rand.NewPCG(6, uint64(from)))
		for _, info := range f.Tensors() {
			if !strings.HasPrefix(info.Name, "blk.") || len(info.Dims) != 2 {
				continue
			}
			replace(t, packed, plain, info, from, r)
		}
		dir := t.TempDir()
		var logits [2][]float32
		for i, b := range []*gguf.Builder{packed, plain} {
			path := filepath.Join(dir, fmt.Sprint(i, ".gguf"))
			if err := b.Save(path); err != nil {
				t.Fatal(err)
			}
			m := openTiny(t, path, 64, Options{KV: tensor.F32, Workers: 2, Act: ActInt16})
			logits[i] = compute(t, m, []int32{5, 600, 70, 8000}, 4)
			if _, err := ReadOutline(path); err != nil {
				t.Error(err)
			}
		}
		if d, _ := maxDiff(logits[0], logits[1]); !(d < 1e-2) {
			t.Errorf("%v: logits differ by %v", from, d)
		}
		f.Close()
	}
}

// replace puts random weights in place of a matrix: in blocks of a type, and as
// what these mean.
func replace(t *testing.T, packed, plain *gguf.Builder, info gguf.TensorInfo, typ tensor.DType, r *rand.Rand) {
	t.Helper()
	cols, rows := int(info.Dims[0]), int(info.Dims[1])
	data := make([]byte, rows*typ.RowBytes(cols))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for at := 0; at < len(data); at += typ.BlockBytes() {
		if typ == tensor.NVFP4 {
			for s := range 4 {
				data[at+s] = byte(8 + r.IntN(8))
			}
		} else {
			data[at], data[at+1] = byte(r.Uint32()), 0x28+byte(r.IntN(4)) // about 0.03 to 0.1
		}
	}
	values := make([]float32, rows*cols)
	typ.Decode(values, data)
	scale := float32(1)
	if typ == tensor.NVFP4 {
		scale = 4
	}
	for i := range values {
		values[i] *= scale
	}
	bytes := make([]byte, 4*len(values))
	if err := tensor.F32.Encode(bytes, values); err != nil {
		t.Fatal(err)
	}
	put := func(b *gguf.Builder, name string, typ tensor.DType, dims []uint64, data []byte) {
		if err := b.AddTensor(gguf.TensorInfo{Name: name, Type: typ, Dims: dims}, gguf.Bytes(data)); err != nil {
			t.Fatal(err)
		}
	}
	packed.RemoveTensor(info.Name)
	plain.RemoveTensor(info.Name)
	put(packed, info.Name, typ, info.Dims, data)
	put(plain, info.Name, tensor.F32, info.Dims, bytes)
	if typ == tensor.NVFP4 {
		stem := strings.TrimSuffix(info.Name, ".weight")
		put(packed, stem+".scale", tensor.F32, []uint64{1}, []byte{0, 0, 0x80, 0x40}) // 4
		put(packed, stem+".input_scale", tensor.F32, []uint64{1}, []byte{0, 0, 0x80, 0x3f})
	}
}
