// Package nn holds the blocks that models are built from. Each takes a batch
// of rows and gives a batch of rows; the work of a block is split over the
// workers of a pool by output columns, rows or heads, never along a sum, so a
// row's values do not depend on the batch or on the number of workers.
package nn

import (
	"reflect"

	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// NormKind is a kind of normalization.
type NormKind int

// The normalizations.
const (
	NormRMS   NormKind = iota // x / rms(x) * w
	NormLayer                 // (x - mean) / std * w + b
)

// Activation is the non-linear function of an MLP.
type Activation int

// The activations.
const (
	SiLU Activation = iota
	GELUTanh
	GELUErf
	ReLU
	// ClampedSwiGLU is gpt-oss': x·sigmoid(1.702x) of a gate of at most 7, times 1
	// more than what is gated, limited to ±7.
	ClampedSwiGLU
	// ReLU2 is the square of ReLU (So et al., Primer, 2021).
	ReLU2
	// XIELU is MLP.XIELU's.
	XIELU
)

// Exec runs blocks on a pool of workers. It holds the state of the region that
// is running, and the rows that blocks compute on the way, so that a step
// allocates nothing; it is owned by one goroutine.
type Exec struct {
	KV *kvcache.Pool // of keys, values and states
	// Watch, when not nil, is called before rows are multiplied with matrices, l
	// being the first of these.
	Watch func(x *kernel.Acts, l *Linear)

	pool *pool.Pool

	norm    normTask
	linear  linearTask
	glu     gluTask
	append  appendTask
	table   tableTask
	attn    attnTask
	quant   quantTask
	addNorm addNormTask
	gate    gateTask
	lowRank lowRankTask

	adapted, adaptedOut []adaptedRows // of the step, and of its outputs
	rows                []adaptedRows // of the rows at hand

	ropes     []*ropeTable
	scratches map[reflect.Type]any
}

// NewExec returns an Exec on p, which stays the caller's.
func NewExec(p *pool.Pool) *Exec {
	return &Exec{pool: p, scratches: map[reflect.Type]any{}}
}

// Begin makes the Exec ready for a step that was placed.
func (e *Exec) Begin(s *Step) {
	e.adaptRows(s)
	for _, t := range e.ropes {
		t.ready = false
	}
}

// scratch returns the rows of one kind of block, which all of its kind share:
// they are needed while one of them runs.
func scratch[T any](e *Exec) *T {
	t := reflect.TypeFor[T]()
	if s, ok := e.scratches[t]; ok {
		return s.(*T)
	}
	s := new(T)
	e.scratches[t] = s
	return s
}

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

func (e *Exec) watch(x *kernel.Acts, l *Linear) {
	if e.Watch != nil {
		e.Watch(x, l)
	}
}

// Rows makes room for n rows of k elements in a, keeping its memory when that
// is large enough. Quantized rows, in the form that a has, get room too if
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
	a.LDA = len(a.Apart)
	if cap(a.A) < n*a.LDA {
		a.A = make([]float32, n*a.LDA)
	}
	a.A = a.A[:n*a.LDA]
}

// formRows is Rows for rows of the given form.
func formRows(a *kernel.Acts, n, k int, f Form) {
	a.Planes, a.Apart, a.Brain = f.Planes, f.Apart, f.Brain
	Rows(a, n, k, f.Quant())
}

// Keep moves the given rows of a, in ascending order, to the front, and forgets
// the others.
func Keep(a *kernel.Acts, rows []int) {
	quant := len(a.Q) >= a.N*a.LDQ
	for i, row := range rows {
		if i == row {
			continue
		}
		copy(a.F32[i*a.LDF:][:a.K], a.F32[row*a.LDF:])
		if quant {
			copy(a.Q[i*a.LDQ:][:a.LDQ], a.Q[row*a.LDQ:])
		}
		if len(a.Apart) > 0 {
			copy(a.A[i*a.LDA:][:a.LDA], a.A[row*a.LDA:])
		}
	}
	a.N = len(rows)
}

// Row returns row r of a.
func Row(a *kernel.Acts, r int) []float32 { return a.F32[r*a.LDF:][:a.K:a.K] }
