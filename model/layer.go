package model

import (
	"iter"

	"ridge/kernel"
	"ridge/nn"
)

// Layer is one layer of a network: a mixer, which looks back in the sequence, and an
// FFN, which does not. Not every layer has both. They add to the residual rows what
// they compute from normalized ones.
type Layer struct {
	Pre  nn.Norm  // of the mixer's input
	Mix  nn.Mixer // nil for none: Pre, Post and what is beside both are not there either
	Post nn.Norm  // of what the mixer adds; without weights: as it is

	PreFFN  nn.Norm
	FFN     nn.FFN // nil for none
	PostFFN nn.Norm

	// Beside is an FFN that reads the layer's input, whatever the rest of it does;
	// nil for none.
	PreBeside nn.Norm
	Beside    nn.FFN

	Wiring    Wiring
	Summed    bool    // Post and PostFFN are of the rows that have been added to, not of what is added
	NormResid bool    // the residual stream continues from the normalized rows
	Scale     float32 // of what both add

	Laurel   *nn.Laurel   // beside the mixer; nil for none
	AltUp    *nn.AltUp    // around all parts; nil for none
	PerLayer *nn.PerLayer // behind the other parts; nil for none
	OutScale float32      // of the rows behind all; 0 for 1
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
		var all []nn.Region
		if l.AltUp != nil {
			all = append(all, l.AltUp.Reads().Regions...)
		}
		if l.Laurel != nil {
			all = append(all, l.Laurel.Reads().Regions...)
		}
		if l.Mix != nil {
			all = append(all, l.Mix.Reads().Regions...)
		}
		if l.FFN != nil {
			all = append(all, l.FFN.Reads().Regions...)
		}
		if l.Beside != nil {
			all = append(all, l.Beside.Reads().Regions...)
		}
		if l.PerLayer != nil {
			all = append(all, l.PerLayer.Reads().Regions...)
		}
		for _, r := range all {
			if !yield(r) {
				return
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

	streams *nn.Streams // of layers with AltUp
	laurel  kernel.Acts // what Laurel gives
	inputs  kernel.Acts // of PerLayer, [rows][layers·width]
}

// run computes layer number i for the rows of s. Of the last layer only the
// rows that give an output are computed once the mixer has appended what it
// keeps; they move to the front.
func (l *Layer) run(e *nn.Exec, s *nn.Step, i int, last bool, r *layerRows) {
	if mixer, ffn := s.Skips(i); mixer || ffn {
		l.runPart(e, s, i, last, r, mixer, ffn)
		return
	}
	if l.Mix == nil {
		l.feedAlone(e, s, last, r)
		return
	}
	if l.AltUp != nil {
		l.AltUp.Predict(e, r.streams, &r.x)
	}
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
	if l.Laurel != nil && !form.Quant() {
		form = l.Laurel.Form()
	}
	if l.Wiring == ParallelShared && !form.Quant() {
		form = l.FFN.Form()
	}
	e.Norm(&r.h, &r.x, &l.Pre, form)
	l.continueFromNorm(r)
	if l.Laurel != nil {
		l.Laurel.Run(e, &r.laurel, &r.h)
	}
	mixed, out := l.Mix.Mix(e, s, i, &r.h)
	if last {
		for _, a := range [5]*kernel.Acts{&r.x, &r.h, mixed, &r.laurel, &r.inputs} {
			nn.Keep(a, s.Wanted())
		}
		if beside != nil {
			nn.Keep(beside, s.Wanted())
		}
		if early != nil {
			early.Keep(e, s.Wanted())
		}
		r.streams.Keep(s.Wanted())
		e.KeepOutputs(0, len(s.Wanted()))
		if r.x.N == 0 {
			return
		}
	}
	if l.Wiring == Sequential {
		l.add(e, r, mixed, out, &l.Post)
		if l.Laurel != nil {
			l.Laurel.Join(&r.x, &r.laurel)
		}
		if l.FFN == nil {
			l.finish(e, i, r)
			return
		}
		e.Norm(&r.h, &r.x, &l.PreFFN, l.FFN.Form())
		l.continueFromNorm(r)
		fed, down := l.FFN.Feed(e, &r.h)
		l.add(e, r, fed, down, &l.PostFFN)
		if beside != nil {
			l.add(e, r, beside, besideDown, &nn.Norm{})
		}
		l.finish(e, i, r)
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

// feedAlone is run for a layer without a mixer.
func (l *Layer) feedAlone(e *nn.Exec, s *nn.Step, last bool, r *layerRows) {
	if last {
		nn.Keep(&r.x, s.Wanted())
		if e.KeepOutputs(0, len(s.Wanted())); r.x.N == 0 {
			return
		}
	}
	e.Norm(&r.h, &r.x, &l.PreFFN, l.FFN.Form())
	fed, down := l.FFN.Feed(e, &r.h)
	l.add(e, r, fed, down, &l.PostFFN)
}

// finish runs what comes behind mixer and FFN.
func (l *Layer) finish(e *nn.Exec, i int, r *layerRows) {
	if l.AltUp != nil {
		l.AltUp.Correct(e, r.streams, &r.x)
	}
	if p := l.PerLayer; p != nil && l.AltUp != nil {
		p.Run(e, &r.y, l.AltUp.Output(r.streams, &r.x), &r.inputs, i)
		r.streams.AddToOthers(&r.y)
	} else if p != nil {
		p.Run(e, &r.y, &r.x, &r.inputs, i)
		e.AddNorm(&r.x, &r.y, nil, 1)
	}
	if l.OutScale != 0 {
		for row := range r.x.N {
			kernel.Scale(nn.Row(&r.x, row), l.OutScale)
		}
	}
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
// the residual rows, or normalizes these.
func (l *Layer) add(e *nn.Exec, r *layerRows, x *kernel.Acts, w *nn.Linear, post *nn.Norm) {
	if l.Summed {
		l.addTo(e, r, x, w, nil)
		e.Norm(&r.x, &r.x, post, nn.Form{})
		return
	}
	l.addTo(e, r, x, w, post)
}

func (l *Layer) addTo(e *nn.Exec, r *layerRows, x *kernel.Acts, w *nn.Linear, post *nn.Norm) {
	switch {
	case w == nil:
		e.AddNorm(&r.x, x, post, l.Scale)
		return
	case post == nil || post.W == nil:
		e.LinearAdd(&r.x, &r.y, x, w, l.Scale)
		return
	}
	e.Linear(x, nn.Out{L: w, Dst: &r.y})
	e.AddNorm(&r.x, &r.y, post, l.Scale)
}
