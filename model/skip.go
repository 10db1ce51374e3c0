package model

import (
	"fmt"

	"ridge/nn"
)

// runPart is run without the mixer, the FFN or both.
func (l *Layer) runPart(e *nn.Exec, s *nn.Step, i int, last bool, r *layerRows, mixer, ffn bool) {
	switch {
	case (mixer || l.Mix == nil) && (ffn || l.FFN == nil):
		if last {
			nn.Keep(&r.x, s.Wanted())
			nn.Keep(&r.inputs, s.Wanted())
			r.streams.Keep(s.Wanted())
			e.KeepOutputs(0, len(s.Wanted()))
		}
		return
	case mixer:
		l.feedAlone(e, s, last, r)
	default:
		e.Norm(&r.h, &r.x, &l.Pre, l.Mix.Form())
		mixed, out := l.Mix.Mix(e, s, i, &r.h)
		if last {
			nn.Keep(&r.x, s.Wanted())
			nn.Keep(mixed, s.Wanted())
			e.KeepOutputs(0, len(s.Wanted()))
		}
		if r.x.N > 0 {
			l.add(e, r, mixed, out, &l.Post)
		}
	}
	if r.x.N > 0 {
		l.finish(e, i, r)
	}
}

// inParts says whether the mixer and the FFN of the layer can run without the other.
func (l *Layer) inParts() bool {
	_, early := l.FFN.(nn.Early)
	return l.Wiring == Sequential && l.Beside == nil && l.Laurel == nil && l.AltUp == nil && l.PerLayer == nil && !l.NormResid && !early
}

// checkSkip checks what a step leaves out.
func (n *Net) checkSkip(s *Step, stateful bool) error {
	switch {
	case s.Skip == nil:
		return nil
	case len(s.Skip) != len(n.Layers):
		return fmt.Errorf("expected a number for each of %d layers, found %d", len(n.Layers), len(s.Skip))
	case stateful:
		return fmt.Errorf("expected layers that can drop their last tokens, found some with states")
	}
	for i := range n.Layers {
		l := &n.Layers[i]
		if s.Skip[i] > 3 {
			return fmt.Errorf("layer %d: expected 0 to 3, found %d", i, s.Skip[i])
		}
		if mixer, ffn := s.Skips(i); mixer != ffn && l.Mix != nil && l.FFN != nil && !l.inParts() {
			return fmt.Errorf("layer %d: expected both of its parts or none, as they run side by side, found %d", i, s.Skip[i])
		}
		a, ok := l.Mix.(*nn.Attention)
		if mixer, _ := s.Skips(i); !ok || mixer || a.KeysOf == nil {
			continue
		}
		if mixer, _ := s.Skips(a.KeysLayer); mixer {
			return fmt.Errorf("layer %d: expected the mixer of layer %d, whose keys it reads, found it left out", i, a.KeysLayer)
		}
	}
	return nil
}

// Skippable returns what a step may leave out of each layer on its own, as Step.Skip has
// it: 3 where its parts can be left out apart, 2 where that is the FFN, 0 for nothing but
// what checkSkip allows together.
func (n *Net) Skippable() []uint8 {
	out := make([]uint8, len(n.Layers))
	for i := range n.Layers {
		if l := &n.Layers[i]; l.Mix != nil && l.FFN != nil && l.inParts() {
			out[i] = 3
		}
	}
	for i := range n.Layers {
		if a, ok := n.Layers[i].Mix.(*nn.Attention); ok && a.KeysOf != nil {
			out[a.KeysLayer] &= 2
		}
	}
	return out
}
