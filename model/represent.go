package model

import (
	"math"

	"ridge/kernel"
	"ridge/nn"
)

// classifier makes scores of the state of a text: those of labels, before any
// sigmoid or softmax.
type classifier struct {
	Pool   Pooling // of the state that is read
	Labels int

	in   nn.Linear // [hidden][hidden]; without weights: none
	act  classAct
	norm nn.Norm
	out  nn.Linear // [labels][hidden]
}

// dense is a matrix that embeddings go through once their states are pooled.
type dense struct {
	linear nn.Linear // [out][in]
	tanh   bool      // of the product
}

// EmbeddingSize returns the numbers of an embedding.
func (m *Model) EmbeddingSize() int {
	if n := len(m.net.Dense); n > 0 {
		return m.net.Dense[n-1].linear.W.Rows
	}
	return m.cfg.Hidden
}

// Represent makes an embedding of pooled states, [hidden], and returns it unscaled,
// [EmbeddingSize].
func (m *Model) Represent(pooled []float32) []float32 {
	for i := range m.net.Dense {
		d := &m.net.Dense[i]
		pooled = m.multiply(pooled, &d.linear)
		if d.tanh {
			tanh(pooled)
		}
	}
	return pooled
}

// Classify makes the scores of labels of a pooled state, [hidden]: the model must
// have a Classifier.
func (m *Model) Classify(pooled []float32) []float32 {
	c := m.net.Classes
	if c.in.W != nil {
		pooled = m.multiply(pooled, &c.in)
		switch c.act {
		case classTanh:
			tanh(pooled)
		case classReLU:
			kernel.ReLU(pooled, pooled)
		case classGELU:
			kernel.GELUErf(pooled, pooled)
		}
	}
	if c.norm.W != nil {
		c.norm.Apply(pooled, pooled)
	}
	return m.multiply(pooled, &c.out)
}

// multiply returns the product of one row and a matrix.
func (m *Model) multiply(row []float32, l *nn.Linear) []float32 {
	var x, in, y kernel.Acts
	nn.Rows(&x, 1, len(row), false)
	copy(nn.Row(&x, 0), row)
	m.pool.Enter()
	defer m.pool.Leave()
	m.exec.Norm(&in, &x, nil, nn.FormOf(l))
	m.exec.Linear(&in, nn.Out{L: l, Dst: &y})
	return nn.Row(&y, 0)
}

func tanh(x []float32) {
	for i, v := range x {
		x[i] = float32(math.Tanh(float64(v)))
	}
}
