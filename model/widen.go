package model

import (
	"strings"

	"ridge/internal/pool"
	"ridge/weights/tensor"
)

// Formats that no kernel multiplies with are widened as they are read, to formats
// of the same numbers: Q1_0 and Q2_0 have the scale and multiples of it that Q4_0
// has, and each value of NVFP4 is a float16.
var widened = map[tensor.DType]tensor.DType{tensor.Q1_0: tensor.Q4_0, tensor.Q2_0: tensor.Q4_0, tensor.NVFP4: tensor.F16}

// widen returns a weight in a format that is multiplied with. A weight in NVFP4
// may have a scale beside it, or as many as it has experts: values times scales
// are rounded to float16.
func (b *builder) widen(name string, m tensor.Mat) tensor.Mat {
	scale := strings.TrimSuffix(name, ".weight") + ".scale"
	if b.kept != nil {
		b.used[scale] = true // it was used when the matrix was packed
	}
	to, ok := widened[m.Type]
	if !ok {
		return m
	}
	var scales []float32
	if m.Type == tensor.NVFP4 {
		scales = b.floats(b.find(scale, 0, 0))
	}
	if n := len(scales); n > 0 && m.Rows%n != 0 {
		b.fail("tensor %q: expected one scale, or one for each part of %d rows, found %d", scale, m.Rows, n)
		return m
	}
	out := tensor.Mat{Type: to, Rows: m.Rows, Cols: m.Cols}
	if b.shapes || b.err != nil {
		return out
	}
	out.Data = make([]byte, m.Rows*to.RowBytes(m.Cols))
	b.pool.Run(&widenTask{src: m, dst: out, scales: scales})
	b.src.release(m.Data)
	b.copies += int64(len(out.Data))
	return out
}

// copied returns the bytes of weights that were copied to change them.
func (b *builder) copied() int64 { return b.src.copied() + b.copies }

type widenTask struct {
	src, dst tensor.Mat
	scales   []float32
}

func (t *widenTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.src.Rows, worker, workers)
	var row []float32
	for r := lo; r < hi; r++ {
		switch t.src.Type {
		case tensor.Q1_0:
			nibbles(t.dst.Row(r), t.src.Row(r), 128, 1, 7, 2)
		case tensor.Q2_0:
			nibbles(t.dst.Row(r), t.src.Row(r), 64, 2, 7, 1)
		default:
			row = append(row[:0], make([]float32, t.src.Cols)...)
			t.src.DecodeRow(row, r)
			if n := len(t.scales); n > 0 {
				s := t.scales[r/(t.src.Rows/n)]
				for i := range row {
					row[i] *= s
				}
			}
			// F16 takes any number.
			_ = tensor.F16.Encode(t.dst.Row(r), row)
		}
	}
}

// nibbles turns blocks of size codes of some bits behind a float16 scale into
// blocks of Q4_0 with the same scale, whose codes are first + step times the code.
func nibbles(dst, src []byte, size, bits int, first, step byte) {
	const q4 = 18 // bytes of a block of 32
	each := 8 / bits
	mask := byte(1)<<bits - 1
	for len(src) > 0 {
		codes := src[2 : 2+size/each]
		for at := 0; at < size; at += 32 {
			copy(dst[:2], src[:2])
			for i := range 16 {
				code := func(i int) byte { return first + step*(codes[i/each]>>(i%each*bits)&mask) }
				dst[2+i] = code(at+i) | code(at+i+16)<<4
			}
			dst = dst[q4:]
		}
		src = src[2+size/each:]
	}
}
