package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
	"ridge/kvcache"
)

// shiftMix is a mixture of rows with those before them.
type shiftMix struct {
	out   *kernel.Acts
	lerp  []float32    // how much of the row before is in a row
	more  *kernel.Acts // what each row adds to lerp; nil for nothing
	quant bool
}

// shiftTask mixes rows of runs with the rows before them, of which the first is in the
// state, in equal shares of its parts. It is split by rows.
type shiftTask struct {
	s            *Step
	kv           *kvcache.Pool
	layer, parts int
	x            *kernel.Acts
	mixes        []shiftMix
}

// begin makes the task ready for the rows of a step.
func (t *shiftTask) begin(e *Exec, s *Step, layer, parts int, x *kernel.Acts) {
	*t = shiftTask{s: s, kv: e.KV, layer: layer, parts: parts, x: x, mixes: t.mixes[:0]}
}

// add adds a mixture, whose rows have the form f.
func (t *shiftTask) add(out *kernel.Acts, lerp []float32, more *kernel.Acts, f Form) {
	formRows(out, t.x.N, t.x.K, f)
	t.mixes = append(t.mixes, shiftMix{out, lerp, more, f.Quant()})
}

// run mixes.
func (t *shiftTask) run(e *Exec) { e.run(t, t.x.N*t.x.K*len(t.mixes)) }

// keep leaves the last rows in the states.
func (t *shiftTask) keep() {
	for i := range t.s.Runs {
		if run := &t.s.Runs[i]; run.Rows() > 0 {
			t.kept(run, func(kept, columns []float32) { copy(kept, columns) }, Row(t.x, run.First()+run.Rows()-1))
		}
	}
}

// kept calls do with each part of the row that the state has, and with those of x.
func (t *shiftTask) kept(run *Run, do func(kept, columns []float32), x []float32) {
	share := t.x.K / t.parts
	for p := range t.parts {
		do(floats(t.kv.State(t.layer, p, run.Seq))[:share], x[p*share:][:share])
	}
}

func (t *shiftTask) Do(worker, workers int) {
	lo, hi := pool.Split(t.x.N, worker, workers)
	for i := range t.s.Runs {
		run := &t.s.Runs[i]
		for row := max(lo, run.First()); row < min(hi, run.First()+run.Rows()); row++ {
			for k := range t.mixes {
				t.mix(run, row, &t.mixes[k])
			}
		}
	}
}

// mix computes a row of a mixture: x + (before - x)·lerp.
func (t *shiftTask) mix(run *Run, row int, m *shiftMix) {
	x, out := Row(t.x, row), Row(m.out, row)
	if row > run.First() {
		copy(out, Row(t.x, row-1))
	} else {
		t.kept(run, func(kept, columns []float32) { copy(columns, kept) }, out)
	}
	kernel.AddScaled(out, x, -1)
	lerp := m.lerp
	if m.more != nil {
		lerp = Row(m.more, row)
		kernel.Add(lerp, m.lerp)
	}
	kernel.Mul(out, lerp)
	kernel.Add(out, x)
	if m.quant {
		m.out.Quantize(row, 0, m.out.K)
	}
}
