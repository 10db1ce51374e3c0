package nn

import (
	"ridge/kernel"
	"ridge/kvcache"
)

// Joint is attention and a state-space layer side by side, which read the same
// rows: what both give, each times a scale of its own, is added (Falcon-H1, Zuo et
// al. 2025, arXiv 2507.22448). A sequence keeps keys and values and a state.
type Joint struct {
	Attention           *Attention
	SSD                 *SSD
	AttnScale, SSDScale float32 // of what each adds
}

// Form returns the form of the rows that both read.
func (m *Joint) Form() Form {
	return FormOf(&m.Attention.Q, &m.Attention.K, &m.Attention.V, &m.Attention.Gate, &m.SSD.In)
}

// Keeps returns the shape of the keys and values, and the state.
func (m *Joint) Keeps() kvcache.LayerShape {
	keeps, state := m.Attention.Keeps(), m.SSD.Keeps()
	keeps.State, keeps.Parts = state.State, state.Parts
	return keeps
}

// Reads returns the regions of both.
func (m *Joint) Reads() Reads {
	out := m.Attention.Reads()
	out.Regions = append(out.Regions, m.SSD.Reads().Regions...)
	return out
}

// jointRows is what a Joint computes on the way, [rows][hidden].
type jointRows struct{ sum, y kernel.Acts }

// Mix computes what both add to the rows.
func (m *Joint) Mix(e *Exec, s *Step, layer int, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[jointRows](e)
	mixed, out := m.Attention.Mix(e, s, layer, x)
	formRows(&r.sum, x.N, out.W.Rows, Form{})
	clear(r.sum.F32)
	e.LinearAdd(&r.sum, &r.y, mixed, out, m.AttnScale)
	mixed, out = m.SSD.Mix(e, s, layer, x)
	e.LinearAdd(&r.sum, &r.y, mixed, out, m.SSDScale)
	return &r.sum, nil
}
