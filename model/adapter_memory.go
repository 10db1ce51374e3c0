package model

import (
	"ridge/internal/arena"
	"ridge/kernel"
	"ridge/weights/tensor"
)

// adapterMemory gives the matrices of an adapter places one behind the other, in the
// order in which they are read: a step reads a little of each adapter in turns, and
// finds most of it in pages that it knows. The memory is the garbage collector's.
type adapterMemory struct{ free []byte }

// line is what the matrices' places are multiples of.
const line = 64

// room returns about what the matrices of a file take.
func (f *adapterFile) room() int {
	n := 0
	for _, p := range f.pairs {
		for _, m := range []*tensor.Mat{&p.down, &p.up} {
			rows := (m.Rows + kernel.Lanes - 1) / kernel.Lanes * kernel.Lanes
			n += m.Type.RowBytes(m.Cols)*rows + line
		}
	}
	return n
}

// reserve makes room for n bytes.
func (a *adapterMemory) reserve(n int) { a.free = arena.HeapBytes(n) }

// take returns n zeroed bytes.
func (a *adapterMemory) take(n int) []byte {
	if len(a.free) < n {
		a.reserve(n)
	}
	b := a.free[:n:n]
	a.free = a.free[min(n+(-n&(line-1)), len(a.free)):]
	return b
}

// pack packs a matrix in the form that plan gives it.
func (a *Adapter) pack(memory *adapterMemory, m tensor.Mat, plan func(tensor.Mat, func(int) []byte) (*kernel.Packed, error)) (*kernel.Packed, error) {
	p, err := plan(m, memory.take)
	if err != nil {
		return nil, err
	}
	p.Pack(m, 0, p.Groups)
	a.Bytes += int64(p.Size())
	return p, nil
}
