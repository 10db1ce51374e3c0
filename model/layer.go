package model

import (
	"iter"

	"ridge/kernel"
	"ridge/nn"
)

// Layer is one layer of a network: a mixer, which looks back in the sequence,
// and an FFN, which does not. Both add to the residual rows what they compute
// from normalized ones.
type Layer struct {
	Pre  nn.Norm // of the mixer's input
	Mix  nn.Mixer
	Post nn.Norm // of what the mixer adds; without weights: as it is

	PreFFN  nn.Norm
	FFN     nn.FFN
	PostFFN nn.Norm

	// Beside is an FFN that reads the layer's input, whatever the rest of it does;
	// nil for none.
	PreBeside nn.Norm
	Beside    nn.FFN

	Wiring    Wiring
	NormResid bool    // the residual stream continues from the normalized rows
	Scale     float32 // of what both add
}

// Wiring says what the FFN of a layer reads.
type Wiring uint8

// The wirings.
const (
	Sequential     Wiring = iota // the rows that the mixer has added to
	Parallel                     // the layer's input, behind a norm of its own
	ParallelShared               // the mixer's normalized rows
)

// Regions gives what the layer's parts read, in the order in which they run.
func (l *Layer) Regions() iter.Seq[nn.Region] {
	return func(yield func(nn.Region) bool) {
		blocks := []nn.Block{l.Mix, l.FFN}
		if l.Beside != nil {
			blocks = append(blocks, l.Beside)
		}
		for _, b := range blocks {
			for _, r := range b.Reads().Regions {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// layerRows are what the layers compute on the way, [rows][hidden] each.
type layerRows struct {
	x     kernel.Acts // residual stream
	h, h2 kernel.Acts // normalized rows; those of a parallel FFN
	b     kernel.Acts // those of an FFN beside
	y     kernel.Acts // what is added
}

// run computes layer number i for the rows of s. Of the last layer only the
// rows that give an output are computed once the mixer has appended what it
// keeps; they move to the front.
func (l *Layer) run(e *nn.Exec, s *nn.Step, i int, last bool, r *layerRows) {
	var beside *kernel.Acts
	var besideDown *nn.Linear
	if l.Beside != nil {
		e.Norm(&r.b, &r.x, &l.PreBeside, l.Beside.Form())
		beside, besideDown = l.Beside.Feed(e, &r.b)
	}
	early, _ := l.FFN.(nn.Early)
	if early != nil {
		early.Look(e, &r.x)
	}
	form := l.Mix.Form()
	if l.Wiring == ParallelShared && !form.Quant() {
		form = l.FFN.Form()
	}
	e.Norm(&r.h, &r.x, &l.Pre, form)
	l.continueFromNorm(r)
	mixed, out := l.Mix.Mix(e, s, i, &r.h)
	if last {
		for _, a := range [3]*kernel.Acts{&r.x, &r.h, mixed} {
			nn.Keep(a, s.Wanted())
		}
		if beside != nil {
			nn.Keep(beside, s.Wanted())
		}
		if early != nil {
			early.Keep(e, s.Wanted())
		}
		if r.x.N == 0 {
			return
		}
	}
	if l.Wiring == Sequential {
		l.add(e, r, mixed, out, &l.Post)
		e.Norm(&r.h, &r.x, &l.PreFFN, l.FFN.Form())
		l.continueFromNorm(r)
		fed, down := l.FFN.Feed(e, &r.h)
		l.add(e, r, fed, down, &l.PostFFN)
		if beside != nil {
			l.add(e, r, beside, besideDown, &nn.Norm{})
		}
		return
	}
	// The FFN's input is taken before the mixer's output is added.
	in := &r.h
	if l.Wiring == Parallel {
		e.Norm(&r.h2, &r.x, &l.PreFFN, l.FFN.Form())
		in = &r.h2
	}
	fed, down := l.FFN.Feed(e, in)
	l.add(e, r, mixed, out, &l.Post)
	l.add(e, r, fed, down, &l.PostFFN)
}

// continueFromNorm makes the normalized rows the residual stream, where the
// architecture wants that.
func (l *Layer) continueFromNorm(r *layerRows) {
	if l.NormResid {
		for i := range r.x.N {
			copy(nn.Row(&r.x, i), nn.Row(&r.h, i))
		}
	}
}

// add adds w(x), or x if there is no matrix, normalized if post has weights, to
// the residual rows.
func (l *Layer) add(e *nn.Exec, r *layerRows, x *kernel.Acts, w *nn.Linear, post *nn.Norm) {
	switch {
	case w == nil:
		e.AddNorm(&r.x, x, post, l.Scale)
		return
	case post.W == nil:
		e.LinearAdd(&r.x, &r.y, x, w, l.Scale)
		return
	}
	e.Linear(x, nn.Out{L: w, Dst: &r.y})
	e.AddNorm(&r.x, &r.y, post, l.Scale)
}
