package model

import (
	"fmt"
	"math"

	"ridge/kernel"
	"ridge/nn"
)

// coarse says how rows are rounded: integers of so many bits with one step for a row,
// but for values of at least a magnitude, 0 for none.
type coarse struct {
	bits  int
	apart float32
}

// SetCoarse rounds what matrices of layers read from now on to integers of 2 to 8 bits with
// one step for a whole row, as W8A8 without blocks has them: its largest magnitude over
// the largest integer. Values of at least apart, if that is not 0, stay as they are, and
// the step is that of the others (Dettmers et al., LLM.int8(), 2022: 6). It is a
// reference that shows what such a grid costs, with float products; ridge's own
// activations have a step for each block of 32 values and do not need it.
//
// All matrices of layers must have floats. Those of experts and the output matrix read
// what they did. The model must not compute meanwhile.
func (m *Model) SetCoarse(bits int, apart float32) error {
	c := coarse{bits, apart}
	if c.bits < 2 || c.bits > 8 || !(c.apart >= 0) {
		return fmt.Errorf("model: coarse rows: expected 2 to 8 bits and a bound of at least 0, found %d and %v", c.bits, c.apart)
	}
	inside := map[*nn.Linear]bool{}
	var err error
	m.net.sites(func(site, layer int, mats []*nn.Linear) {
		for _, l := range mats {
			if l.W == nil || site == siteHead {
				continue
			}
			if inside[l] = true; l.W.UsesQuant() {
				err = fmt.Errorf("model: coarse rows: layer %d: expected matrices of floats, found one whose kernel rounds rows itself", layer)
			}
		}
	})
	if err != nil {
		return err
	}
	m.exec.Watch = func(x *kernel.Acts, l *nn.Linear) {
		if inside[l] {
			for r := range x.N {
				c.round(nn.Row(x, r)[:x.K])
			}
		}
	}
	return nil
}

// round rounds a row.
func (c *coarse) round(x []float32) {
	apart := func(v float64) bool { return c.apart > 0 && math.Abs(v) >= float64(c.apart) }
	largest := 0.0
	for _, v := range x {
		if !apart(float64(v)) {
			largest = max(largest, math.Abs(float64(v)))
		}
	}
	step := largest / float64(int(1)<<(c.bits-1)-1)
	if step == 0 {
		return
	}
	for i, v := range x {
		if !apart(float64(v)) {
			x[i] = float32(math.RoundToEven(float64(v)/step) * step)
		}
	}
}
