package nn

import (
	"ridge/internal/pool"
	"ridge/kernel"
)

// MLP is an FFN of dense matrices: down(act(gate x) * (up x)), or down(act(up x))
// without a gate.
type MLP struct {
	Gate, Up Linear // [ffn][hidden]; Gate may be without weights
	Down     Linear // [hidden][ffn]
	Gated    bool
	Act      Activation
	Sub      Norm       // of what goes into Down; without weights: none
	XIELU    [4]float32 // of Act XIELU: Pos, Neg, Beta, Eps
	// Multipliers of what Gate and Up give, with their biases; 0 for none.
	GateScale, UpScale float32
	// Sparse makes the gate sparse: what is less than the row's mean and Cutoff times
	// its standard deviation becomes 0, and that is taken from the rest.
	Sparse bool
	Cutoff float32
}

// mlpRows is what an MLP computes on the way, [rows][ffn].
type mlpRows struct {
	gate, up kernel.Acts
	normed   kernel.Acts // of an MLP with Sub
	sparse   sparseTask
}

// Form returns the form of the rows that gate and up read.
func (m *MLP) Form() Form { return FormOf(&m.Gate, &m.Up) }

// Reads returns the two regions of an MLP.
func (m *MLP) Reads() Reads {
	hidden := reads(groupsPerUnit, &m.Up)
	if m.Gated {
		hidden = reads(groupsPerUnit, &m.Gate, &m.Up)
	}
	return Reads{Regions: []Region{hidden, reads(1, &m.Down)}}
}

// Feed computes the rows that go into the down matrix.
func (m *MLP) Feed(e *Exec, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[mlpRows](e)
	if m.Sparse && m.Gated {
		e.hiddenInTwo(x, r, m)
	} else {
		e.mlpHidden(x, &r.gate, &r.up, m)
	}
	if m.Sub.W != nil {
		e.Norm(&r.normed, &r.up, &m.Sub, FormOf(&m.Down))
		return &r.normed, &m.Down
	}
	return &r.up, &m.Down
}

// hiddenForm returns the form of the rows behind the activation.
func (m *MLP) hiddenForm() Form {
	if m.Sub.W != nil { // which gives the rows their form
		return Form{}
	}
	return FormOf(&m.Down)
}

type gluTask struct {
	m        *MLP
	x        *kernel.Acts
	gate, up *kernel.Acts
	quant    bool
	low      *lowRankTask // what adapters change, nil for nothing
	shares   pool.Shares
}

// mlpHidden computes what goes into the down matrix, in the rows of up. gate
// is scratch. The result is quantized if the down matrix needs it.
func (e *Exec) mlpHidden(x, gate, up *kernel.Acts, m *MLP) {
	t := &e.glu
	f := m.hiddenForm()
	t.m, t.x, t.gate, t.up, t.quant = m, x, gate, up, f.Quant()
	formRows(up, x.N, m.Up.W.Rows, f)
	e.watch(x, &m.Up)
	w := m.Up.W
	matrices := 1
	if m.Gated {
		Rows(gate, x.N, m.Gate.W.Rows, false)
		matrices = 2
		t.low = e.lower(x, Out{&m.Up, up}, Out{&m.Gate, gate})
	} else {
		t.low = e.lower(x, Out{&m.Up, up})
	}
	units := (w.Groups + groupsPerUnit - 1) / groupsPerUnit
	e.pool.RunShared(t, &t.shares, units, pieceGroups(x.N, matrices*w.GroupBytes)/groupsPerUnit)
}

// groupsPerUnit keeps a worker's share a whole number of quantized block
// pairs: 64 columns.
const groupsPerUnit = 4

func (t *gluTask) Do(worker, _ int) {
	groups := t.m.Up.W.Groups
	for lo, hi, ok := t.shares.Next(worker); ok; lo, hi, ok = t.shares.Next(worker) {
		t.part(lo*groupsPerUnit, min(hi*groupsPerUnit, groups))
	}
}

// part computes the columns of the groups [g0, g1).
func (t *gluTask) part(g0, g1 int) {
	w := t.m.Up.W
	c0, c1 := 16*g0, min(16*g1, w.Rows)
	if t.m.Gated {
		t.m.Gate.W.Mul(t.gate.F32, t.gate.LDF, t.x, 0, t.x.N, g0, g1)
	}
	w.Mul(t.up.F32, t.up.LDF, t.x, 0, t.x.N, g0, g1)
	if t.low != nil {
		if t.m.Gated {
			t.low.raise(&Out{&t.m.Gate, t.gate}, g0, g1)
		}
		t.low.raise(&Out{&t.m.Up, t.up}, g0, g1)
	}
	for r := range t.x.N {
		up := Row(t.up, r)[c0:c1]
		if b := t.m.Up.Bias; b != nil {
			kernel.Add(up, b[c0:c1])
		}
		var gate []float32
		if t.m.Gated {
			gate = Row(t.gate, r)[c0:c1]
			if b := t.m.Gate.Bias; b != nil {
				kernel.Add(gate, b[c0:c1])
			}
		}
		t.m.activate(up, gate)
		if t.quant {
			t.up.Quantize(r, c0, c1)
		}
	}
}

// activate puts what the MLP makes of up, and of gate if that is not nil, in up.
func (m *MLP) activate(up, gate []float32) {
	if m.UpScale != 0 {
		kernel.Scale(up, m.UpScale)
	}
	if m.GateScale != 0 && gate != nil {
		kernel.Scale(gate, m.GateScale)
	}
	if m.Act == XIELU {
		xielu(up, &m.XIELU)
		return
	}
	activate(m.Act, up, gate)
}

// activate puts act(gate) * up, or act(up) if gate is nil, in up.
func activate(a Activation, up, gate []float32) {
	if gate != nil {
		switch a {
		case SiLU:
			kernel.SiLUMul(up, gate, up)
			return
		case GELUTanh:
			kernel.GELUMul(up, gate, up)
			return
		case ClampedSwiGLU:
			clampedSwiGLU(up, gate)
			return
		}
		activate(a, gate, nil)
		kernel.Mul(up, gate)
		return
	}
	switch a {
	case SiLU:
		kernel.SiLU(up, up)
	case GELUTanh:
		kernel.GELU(up, up)
	case GELUErf:
		kernel.GELUErf(up, up)
	case ReLU:
		kernel.ReLU(up, up)
	case ReLU2:
		kernel.ReLU(up, up)
		kernel.Mul(up, up)
	}
}

// clampedSwiGLU is ClampedSwiGLU. gate is overwritten.
func clampedSwiGLU(up, gate []float32) {
	const alpha, limit = 1.702, 7
	for i, g := range gate {
		gate[i] = alpha * min(g, limit)
		up[i] = (max(min(up[i], limit), -limit) + 1) / alpha
	}
	kernel.SiLUMul(up, gate, up)
}
