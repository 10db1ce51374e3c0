package compress

import (
	"fmt"
	"math"

	"ridge/weights/gguf"
)

// Importance says how much the errors of each column of a matrix count: the mean
// square of the inputs that meet it in a calibration text.
type Importance struct {
	// Datasets names the texts, Chunks and ChunkTokens say how much of them was read.
	Datasets            []string
	Chunks, ChunkTokens int

	entries map[string]*entry
}

// entry is what was collected for one matrix, or for a stack of them.
type entry struct {
	sums   []float32 // of squares, of each column of each matrix
	counts []float32 // rows that met each matrix
}

// of returns the mean squares for the tensor called name, nil if there are none. A
// matrix of a stack that no row met counts all columns alike.
func (im *Importance) of(name string) []float32 {
	e := im.entries[name]
	if e == nil {
		return nil
	}
	out := make([]float32, len(e.sums))
	cols := len(e.sums) / len(e.counts)
	for i, s := range e.sums {
		if n := e.counts[i/cols]; n > 0 {
			out[i] = s / n
		} else {
			out[i] = 1
		}
	}
	return out
}

// fits reports whether im, which may be nil, has tensor t, and fails if it has it in
// another shape.
func (im *Importance) fits(t gguf.TensorInfo) (bool, error) {
	if im == nil || im.entries[t.Name] == nil {
		return false, nil
	}
	e := im.entries[t.Name]
	want := t.Dims[0]
	if len(t.Dims) > 2 {
		want *= t.Dims[2]
	}
	if uint64(len(e.sums)) != want {
		if roleOf(t.Name) == embedding {
			return false, nil
		}
		return false, fmt.Errorf("compress: importance matrix: tensor %q: expected %d values, found %d: it is of another model", t.Name, want, len(e.sums))
	}
	for i, v := range e.sums {
		if !(v >= 0) || math.IsInf(float64(v), 0) {
			return false, fmt.Errorf("compress: importance matrix: tensor %q: value %d: expected a number of at least 0, found %v", t.Name, i, v)
		}
	}
	return true, nil
}
