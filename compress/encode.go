package compress

import (
	"context"
	"fmt"
	"io"

	"ridge/weights/gguf"
	"ridge/weights/tensor"
)

// encoder writes one tensor in another type.
type encoder struct {
	ctx        context.Context
	f          *gguf.File
	row        Row
	importance []float32 // of each column, for each matrix of a stack; nil for none
	threads    int
	report     func(bytes int64) // of the input
}

// chunkValues is about how many values one thread quantizes at a time.
const chunkValues = 1 << 17

// chunk is some rows of a tensor on their way.
type chunk struct {
	first, rows int
	out         []byte
	err         error
	done        chan struct{}
}

// WriteTo implements io.WriterTo. Threads quantize chunks of rows, which are
// written in order.
func (e *encoder) WriteTo(w io.Writer) (n int64, err error) {
	m, err := e.f.Mat(e.row.Name)
	if err != nil {
		return 0, err
	}
	defer e.f.Release(m.Data)
	rows := max(1, chunkValues/max(1, m.Cols))
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	todo, inOrder := make(chan *chunk), make(chan *chunk, e.threads)
	for range e.threads {
		go func() {
			var x []float32
			for c := range todo {
				if x == nil {
					x = make([]float32, rows*m.Cols)
				}
				c.err = e.encode(c, m, x)
				close(c.done)
			}
		}()
	}
	go func() {
		defer close(inOrder)
		defer close(todo)
		for i := 0; i < m.Rows; i += rows {
			c := &chunk{first: i, rows: min(rows, m.Rows-i), done: make(chan struct{})}
			select {
			case inOrder <- c:
			case <-ctx.Done():
				return
			}
			todo <- c // a chunk in order is always done
		}
	}()
	for c := range inOrder {
		<-c.done
		if err == nil {
			err = c.err
		}
		if err == nil {
			var k int
			k, err = w.Write(c.out)
			n += int64(k)
		}
		if err != nil {
			cancel() // and wait for the others
			continue
		}
		e.report(int64(c.rows * m.Type.RowBytes(m.Cols)))
	}
	if err == nil {
		err = e.ctx.Err()
	}
	return n, err
}

// encode makes c.out; x has room for its values.
func (e *encoder) encode(c *chunk, m tensor.Mat, x []float32) error {
	size := m.Type.RowBytes(m.Cols)
	in := m.Data[c.first*size : (c.first+c.rows)*size]
	if e.row.To == m.Type {
		c.out = in
		return nil
	}
	x = x[:c.rows*m.Cols]
	m.Type.Decode(x, in)
	size = e.row.To.RowBytes(m.Cols)
	c.out = make([]byte, c.rows*size)
	for i := range c.rows {
		src := x[i*m.Cols : (i+1)*m.Cols]
		if err := e.row.To.EncodeWeighted(c.out[i*size:(i+1)*size], src, e.weights(c.first+i, m)); err != nil {
			return fmt.Errorf("compress: %s: tensor %q, row %d: %w", e.f.Name(), e.row.Name, c.first+i, err)
		}
	}
	return nil
}

// weights returns the importance of the columns of a row: those of its matrix, if
// the tensor is a stack.
func (e *encoder) weights(row int, m tensor.Mat) []float32 {
	if e.importance == nil {
		return nil
	}
	n := len(e.importance) / m.Cols
	at := row / (m.Rows / n) * m.Cols
	return e.importance[at : at+m.Cols]
}
