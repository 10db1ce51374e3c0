// Package nn holds the blocks that models are built from. Each takes a batch
// of rows and gives a batch of rows; the work of a block is split over the
// workers of a pool by output columns, rows or heads, never along a sum, so a
// row's values do not depend on the batch or on the number of workers.
package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
)

// NormKind is a kind of normalization.
type NormKind int

// The normalizations.
const (
	NormRMS   NormKind = iota // x / rms(x) * w
	NormLayer                 // (x - mean) / std * w + b
)

// QKNorm says how queries and keys are normalized before rotation.
type QKNorm int

// The query and key normalizations.
const (
	QKNormNone QKNorm = iota
	QKNormHead        // each head on its own
	QKNormFull        // all heads of a row together
)

// RopeStyle says which elements of a head are rotated together.
type RopeStyle int

// The rotary styles, named as ggml names them.
const (
	RopeNone RopeStyle = iota
	RopeNorm           // neighbours: 2i and 2i+1
	RopeNeox           // halves: i and i+n/2
)

// Activation is the non-linear function of an MLP.
type Activation int

// The activations.
const (
	SiLU Activation = iota
	GELUTanh
	GELUErf
	ReLU
)

// Exec runs blocks on a pool of workers. It holds the state of the region that
// is running, so that a step allocates nothing; it is owned by one goroutine.
type Exec struct {
	pool *pool.Pool

	norm    normTask
	linear  linearTask
	glu     gluTask
	rope    ropeTask
	table   tableTask
	attn    attnTask
	quant   quantTask
	addNorm addNormTask
}

// NewExec returns an Exec on p, which stays the caller's.
func NewExec(p *pool.Pool) *Exec { return &Exec{pool: p} }

// serialElems is the number of elements below which an element-wise block runs
// on the caller alone: a region costs about as much as this many elements.
const serialElems = 8192

// run executes t on the pool, or on the caller alone when the work is small.
func (e *Exec) run(t pool.Task, elems int) {
	if elems < serialElems {
		t.Do(0, 1)
		return
	}
	e.pool.Run(t)
}

// Rows makes room for n rows of k elements in a, keeping its memory when that
// is large enough. Quantized rows, of as many planes as a has, get room too if
// quant is set.
func Rows(a *kernel.Acts, n, k int, quant bool) {
	a.N, a.K = n, k
	a.LDF = (k + 15) &^ 15
	if cap(a.F32) < n*a.LDF {
		a.F32 = make([]float32, n*a.LDF)
	}
	a.F32 = a.F32[:n*a.LDF]
	if !quant {
		return
	}
	a.LDQ = a.RowBytes()
	if cap(a.Q) < n*a.LDQ {
		a.Q = make([]byte, n*a.LDQ)
	}
	a.Q = a.Q[:n*a.LDQ]
}

// Row returns row r of a.
func Row(a *kernel.Acts, r int) []float32 { return a.F32[r*a.LDF:][:a.K:a.K] }
