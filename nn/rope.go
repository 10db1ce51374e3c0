package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
)

// RopeStyle says which elements of a head are rotated together.
type RopeStyle int

// The rotary styles, named as ggml names them.
const (
	RopeNone RopeStyle = iota
	RopeNorm           // neighbours: 2i and 2i+1
	RopeNeox           // halves: i and i+n/2
)

// Rope is a rotation of queries and keys by their positions (Su et al., RoFormer,
// 2021). Layers that rotate alike share one, whose table is computed once a step.
type Rope struct {
	Style RopeStyle
	Inv   []float32 // inverse frequencies; twice as many elements of a head are rotated, from the first
	Scale float32   // of cosines and sines

	// Grow, when not nil, fills inv with the frequencies of sequences of more than
	// Limit tokens, which depend on their length: see [Run.Length].
	Grow  func(inv []float32, length int)
	Limit int
}

// frequencies returns the inverse frequencies for a sequence of length tokens.
// They may be in buf.
func (r *Rope) frequencies(buf []float32, length int) []float32 {
	if r.Grow == nil || length <= r.Limit {
		return r.Inv
	}
	r.Grow(buf, length)
	return buf
}

// rotate rotates the first elements of x, by the cosines and sines of its position.
func (r *Rope) rotate(x, cos, sin []float32) {
	if r.Style == RopeNorm {
		kernel.RopeNorm(x[:2*len(cos)], cos, sin)
	} else {
		kernel.RopeNeox(x[:2*len(cos)], cos, sin)
	}
}

// ropeTable is the cosines and sines of a step's rows, [rows][len(Inv)].
type ropeTable struct {
	rope     *Rope
	cos, sin []float32
	grown    []float32 // room for the frequencies of a long sequence, [workers][len(Inv)]
	ready    bool      // for the step at hand
}

// ropeTable returns the table of r for the rows of s.
func (e *Exec) ropeTable(r *Rope, s *Step) *ropeTable {
	var t *ropeTable
	for _, x := range e.ropes {
		if x.rope == r {
			t = x
		}
	}
	if t == nil {
		t = &ropeTable{rope: r}
		e.ropes = append(e.ropes, t)
	}
	if t.ready {
		return t
	}
	n := s.Rows() * len(r.Inv)
	if cap(t.cos) < n {
		t.cos, t.sin = make([]float32, n), make([]float32, n)
	}
	t.cos, t.sin, t.ready = t.cos[:n], t.sin[:n], true
	if need := e.pool.Workers() * len(r.Inv); r.Grow != nil && len(t.grown) < need {
		t.grown = make([]float32, need)
	}
	e.table = tableTask{t, s.rows}
	e.run(&e.table, 16*n) // a sine costs many additions
	return t
}

type tableTask struct {
	t    *ropeTable
	rows []rowRef
}

func (k *tableTask) Do(worker, workers int) {
	t, r := k.t, k.t.rope
	lo, hi := pool.Split(len(k.rows), worker, workers)
	n := len(r.Inv)
	inv, buf, length := r.Inv, t.grown, 0
	if r.Grow != nil {
		buf = buf[worker*n:][:n]
	}
	for i := lo; i < hi; i++ {
		row := &k.rows[i]
		if r.Grow != nil && row.length != length {
			length = row.length
			inv = r.frequencies(buf, length)
		}
		kernel.RopeTables(t.cos[i*n:][:n], t.sin[i*n:][:n], row.pos, inv, r.Scale)
	}
}
