package nn

import "ridge/kernel"

// Dual is an MLP and a mixture of experts side by side, which read a layer's rows
// behind norms of their own: what both give is normalized, and added (Gemma 4). The
// norm before it in a layer passes rows through.
type Dual struct {
	MLP             *MLP
	PreMLP, PostMLP Norm
	Mixture         EarlyMoE
	PreRouter       Norm // of what the router reads
	PreMoE, PostMoE Norm
}

// dualRows is what a Dual computes on the way, [rows][hidden].
type dualRows struct{ in, sum, down kernel.Acts }

// Form returns the form of the rows that the norms read.
func (d *Dual) Form() Form { return Form{} }

// Reads returns the regions of both.
func (d *Dual) Reads() Reads {
	out := d.MLP.Reads()
	out.Regions = append(out.Regions, d.Mixture.Reads().Regions...)
	return out
}

// Feed computes what both add to the rows.
func (d *Dual) Feed(e *Exec, x *kernel.Acts) (*kernel.Acts, *Linear) {
	r := scratch[dualRows](e)
	e.Norm(&r.in, x, &d.PreMLP, d.MLP.Form())
	hidden, down := d.MLP.Feed(e, &r.in)
	e.Linear(hidden, Out{down, &r.down})
	e.Norm(&r.sum, &r.down, &d.PostMLP, Form{})
	e.Norm(&r.in, x, &d.PreRouter, Form{})
	d.Mixture.Look(e, &r.in)
	e.Norm(&r.in, x, &d.PreMoE, d.Mixture.Form())
	given, _ := d.Mixture.Feed(e, &r.in)
	e.AddNorm(&r.sum, given, &d.PostMoE, 1)
	return &r.sum, nil
}
