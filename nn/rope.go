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
}

// ropeTable is the cosines and sines of a step's rows, [rows][len(Inv)].
type ropeTable struct {
	rope     *Rope
	cos, sin []float32
	ready    bool // for the step at hand
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
	e.table = tableTask{t.cos, t.sin, s.rows, r.Inv, r.Scale}
	e.run(&e.table, 16*n) // a sine costs many additions
	return t
}

type tableTask struct {
	cos, sin []float32
	rows     []rowRef
	inv      []float32
	scale    float32
}

func (t *tableTask) Do(worker, workers int) {
	lo, hi := pool.Split(len(t.rows), worker, workers)
	n := len(t.inv)
	for r := lo; r < hi; r++ {
		kernel.RopeTables(t.cos[r*n:][:n], t.sin[r*n:][:n], t.rows[r].pos, t.inv, t.scale)
	}
}
