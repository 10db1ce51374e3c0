package model

import (
	"encoding/binary"
	"fmt"
	"math"

	"ridge/weights/tensor"
)

// The fixes below bring weights of Hugging Face checkpoints into the order
// that GGUF files use, so that one forward pass serves both.

// reorderRows returns m with row i taken from row from(i). A vector (one row)
// is reordered by element.
func reorderRows(m tensor.Mat, from func(i int) int) tensor.Mat {
	rows, size := m.Rows, m.Type.RowBytes(m.Cols)
	if m.Rows == 1 {
		rows, size = m.Cols, m.Type.BlockBytes()
	}
	out := make([]byte, len(m.Data))
	for i := range rows {
		j := from(i)
		copy(out[i*size:(i+1)*size], m.Data[j*size:(j+1)*size])
	}
	m.Data = out
	return m
}

// permuteRope reorders the rows of query or key heads from rotated halves to
// rotated neighbours.
func permuteRope(heads int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		rows := m.Rows
		if rows == 1 {
			rows = m.Cols
		}
		if heads <= 0 || rows%(2*heads) != 0 {
			return m, fmt.Errorf("rows: expected a multiple of 2 x %d heads, found %d", heads, rows)
		}
		dim := rows / heads
		return reorderRows(m, func(i int) int {
			head, j := i/dim, i%dim
			return head*dim + j%2*(dim/2) + j/2
		}), nil
	}
}

// takeRows returns n rows of a matrix that has so many in total, or elements of a
// vector: row i is from(i).
func takeRows(total, n int, from func(i int) int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		rows, size := m.Rows, m.Type.RowBytes(m.Cols)
		if rows == 1 && total > 1 {
			rows, size = m.Cols, m.Type.BlockBytes()
		}
		if rows != total {
			return m, fmt.Errorf("rows: expected %d, found %d", total, rows)
		}
		out := make([]byte, n*size)
		for i := range n {
			copy(out[i*size:(i+1)*size], m.Data[from(i)*size:])
		}
		if m.Data = out; m.Rows == 1 {
			m.Cols = n
		} else {
			m.Rows = n
		}
		return m, nil
	}
}

// takeColumns reorders the columns of a matrix, which lie in so many equal pieces:
// piece i is from(i).
func takeColumns(pieces int, from func(i int) int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		if m.Cols%pieces != 0 || m.Cols/pieces%m.Type.BlockSize() != 0 {
			return m, fmt.Errorf("columns: expected %d pieces of whole blocks of %d, found %d", pieces, m.Type.BlockSize(), m.Cols)
		}
		row, size := m.Type.RowBytes(m.Cols), m.Type.RowBytes(m.Cols/pieces)
		out := make([]byte, m.Rows*row)
		for r := range m.Rows {
			for i := range pieces {
				copy(out[r*row+i*size:][:size], m.Data[r*row+from(i)*size:])
			}
		}
		m.Data = out
		return m, nil
	}
}

// halves returns which row of rotated halves is row i of rotated neighbours, in
// heads of so many elements.
func halves(i, dim int) int { return i/dim*dim + i%2*(dim/2) + i%dim/2 }

// groupsToFused reorders the rows of a fused matrix that lies as groups of
// perGroup query heads, one key head and one value head to all queries, all
// keys, all values.
func groupsToFused(groups, perGroup, dim int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		rows := m.Rows
		if rows == 1 {
			rows = m.Cols
		}
		if want := groups * (perGroup + 2) * dim; rows != want {
			return m, fmt.Errorf("rows: expected %d, found %d", want, rows)
		}
		q, kv := groups*perGroup*dim, groups*dim
		return reorderRows(m, func(i int) int {
			switch {
			case i < q:
				head, j := i/dim, i%dim
				return (head/perGroup*(perGroup+2)+head%perGroup)*dim + j
			case i < q+kv:
				i -= q
				return (i/dim*(perGroup+2)+perGroup)*dim + i%dim
			}
			i -= q + kv
			return (i/dim*(perGroup+2)+perGroup+1)*dim + i%dim
		}), nil
	}
}

// transpose turns the [in][out] matrices of GPT-2 around.
func transpose(m tensor.Mat) (tensor.Mat, error) {
	size := m.Type.BlockBytes()
	if m.Type.BlockSize() != 1 {
		return m, fmt.Errorf("type: expected an unquantized one, found %v", m.Type)
	}
	out := make([]byte, len(m.Data))
	for r := range m.Rows {
		for c := range m.Cols {
			copy(out[(c*m.Rows+r)*size:][:size], m.Data[(r*m.Cols+c)*size:][:size])
		}
	}
	return tensor.Mat{Type: m.Type, Rows: m.Cols, Cols: m.Rows, Data: out}, nil
}

// addOne adds 1 to each element: Gemma's checkpoints store norm weights as
// their distance from 1.
func addOne(m tensor.Mat) (tensor.Mat, error) {
	x := make([]float32, m.Cols)
	m.DecodeRow(x, 0)
	out := make([]byte, 4*m.Cols)
	for i, v := range x {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(v+1))
	}
	return tensor.Mat{Type: tensor.F32, Rows: 1, Cols: m.Cols, Data: out}, nil
}

// turnExperts turns the [in][out] matrices of n experts around, which hold so many
// parts in their columns: column column(out, o) is row o of the out rows of the
// part that is taken. Biases have no rows of in.
func turnExperts(n, parts int, bias bool, column func(out, o int) int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		n := max(n, 1)
		if m.Type == tensor.MXFP4 && m.Rows%(n*parts) == 0 { // they lie [out][in], since they were quantized
			return pickRows(m, n, parts, column), nil
		}
		if m.Type.BlockSize() != 1 || m.Rows%n != 0 || m.Cols%parts != 0 {
			return m, fmt.Errorf("expected unquantized matrices of %d experts, found %d x %d of type %v", n, m.Rows, m.Cols, m.Type)
		}
		size, in, out := m.Type.BlockBytes(), m.Rows/n, m.Cols/parts
		t := tensor.Mat{Type: m.Type, Rows: n * out, Cols: in, Data: make([]byte, len(m.Data)/parts)}
		if bias {
			t.Rows, t.Cols = n, out // in is 1
		}
		for e := range n {
			for o := range out {
				col := column(out, o)
				for i := range in {
					copy(t.Data[((e*out+o)*in+i)*size:][:size], m.Data[((e*in+i)*m.Cols+col)*size:])
				}
			}
		}
		return t, nil
	}
}

// pickRows returns the part of the rows of n experts that turnExperts returns of
// their columns.
func pickRows(m tensor.Mat, n, parts int, column func(out, o int) int) tensor.Mat {
	out, size := m.Rows/(n*parts), m.Type.RowBytes(m.Cols)
	t := tensor.Mat{Type: m.Type, Rows: n * out, Cols: m.Cols, Data: make([]byte, n*out*size)}
	for e := range n {
		for o := range out {
			copy(t.Row(e*out+o), m.Row(e*out*parts+column(out, o)))
		}
	}
	return t
}
