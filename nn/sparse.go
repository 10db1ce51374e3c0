package nn

import (
	"math"

	"ridge/internal/pool"
	"ridge/kernel"
)

// sparseTask is what lies between the first matrices and the last one of an MLP
// whose gate is made sparse, which needs whole rows of the gate.
type sparseTask struct {
	m        *MLP
	gate, up *kernel.Acts
	quant    bool
}

// hiddenInTwo is mlpHidden for an MLP with a cutoff: first the products, then what is
// made of them.
func (e *Exec) hiddenInTwo(x *kernel.Acts, r *mlpRows, m *MLP) {
	e.Linear(x, Out{&m.Gate, &r.gate}, Out{&m.Up, &r.up})
	f := m.hiddenForm()
	formRows(&r.up, r.up.N, r.up.K, f)
	r.sparse = sparseTask{m, &r.gate, &r.up, f.Quant()}
	e.run(&r.sparse, r.up.N*r.up.K)
}

func (t *sparseTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.up.N, worker, workers)
	for i := lo; i < hi; i++ {
		up, gate := Row(t.up, i), Row(t.gate, i)
		mean, std := moments(gate)
		cut := float32(mean + std*float64(t.m.Cutoff))
		for k, v := range gate {
			gate[k] = max(v-cut, 0)
		}
		t.m.activate(up, gate)
		if t.quant {
			t.up.Quantize(i, 0, t.up.K)
		}
	}
}

// moments returns the mean and the standard deviation of x.
func moments(x []float32) (mean, std float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		std += d * d
	}
	return mean, math.Sqrt(std / float64(len(x)))
}
