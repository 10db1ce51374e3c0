package roofline

import (
	"math"
	"testing"

	"ridge/model"
	"ridge/weights/tensor"
)

// Columns apart are read and multiplied besides, and matrices that have two
// planes count twice.
func TestActApart(t *testing.T) {
	s := shapeOf(t, 4, tensor.Q8_0)
	step := Step{{Rows: 64, Outputs: 1}}
	cost := func(a model.Act) Cost {
		s.Act = a
		return s.Cost(step)
	}
	low, mixed, fine, high := cost(model.ActInt8), cost(model.ActMixed), cost(model.ActFine), cost(model.ActInt16)
	elems := 0.0
	for m := range s.matrices() {
		elems += m.elems
	}
	if got, want := float64(mixed.Weights-low.Weights), 2*model.ActMixed.Apart()*elems; math.Abs(got-want) > 100 {
		t.Errorf("mixed: %g bytes more, want %g", got, want)
	}
	if mixed.IntOps != low.IntOps || mixed.FloatOps <= low.FloatOps || fine.FloatOps <= mixed.FloatOps {
		t.Errorf("operations: %+v, %+v, %+v", low, mixed, fine)
	}
	if fine.IntOps <= low.IntOps || fine.IntOps >= high.IntOps || high.IntOps != 2*low.IntOps {
		t.Errorf("integer operations: int8 %g, fine %g, int16 %g", low.IntOps, fine.IntOps, high.IntOps)
	}
	s.Act = model.ActMixed
	more := s.Memory(Use{Context: 64}).Weights
	s.Act = model.ActInt8
	if more -= s.Memory(Use{Context: 64}).Weights; math.Abs(float64(more)-2*model.ActMixed.Apart()*elems) > 100 {
		t.Errorf("memory of weights: %d more", more)
	}
}
