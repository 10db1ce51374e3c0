package model

import (
	"fmt"
	"slices"

	"ridge/kernel"
	"ridge/nn"
)

// behind reports whether a step has a tap behind the last layer, so that all rows go
// through it and not only those that give an output.
func behind(s *Step, n *Net) bool {
	return len(s.Taps) > 0 && s.Taps[len(s.Taps)-1] == len(n.Layers)
}

// tap keeps the rows that a layer reads, if the step has a tap there.
func (r *netRows) tap(s *Step, layer int) {
	k := slices.Index(s.Taps, layer)
	if k < 0 {
		return
	}
	for len(r.taps) <= k {
		r.taps = append(r.taps, kernel.Acts{})
	}
	t := &r.taps[k]
	nn.Rows(t, r.x.N, r.x.K, false)
	for i := range t.N {
		copy(nn.Row(t, i), nn.Row(&r.x, i))
	}
}

// Tapped returns what tap number k of the last step has of a row of the step. It is valid
// until the next step.
func (m *Model) Tapped(k, row int) []float32 { return nn.Row(&m.rows.taps[k], row) }

// checkTaps checks the taps of a step.
func (m *Model) checkTaps(taps []int) error {
	for i, layer := range taps {
		if layer < 0 || layer > len(m.net.Layers) || i > 0 && taps[i-1] >= layer {
			return fmt.Errorf("model: taps: expected rising numbers from 0 to %d, found %v", len(m.net.Layers), taps)
		}
	}
	if len(taps) > 0 && m.net.Embed.Streams != nil {
		return fmt.Errorf("model: taps: expected a model with one residual stream, found %s", m.cfg.Arch)
	}
	return nil
}
