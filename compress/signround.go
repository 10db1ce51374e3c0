package compress

import (
	"fmt"
	"math"
	"slices"
)

// signRound learns for each weight whether it is rounded up or down: an offset, at most half
// a step, moves against the sign of the slope of the error of the outputs, by shrinking
// amounts, and the codes of the best turn are taken (Cheng et al., SignRound, 2024,
// called AutoRound). The slope is that of all calibration rows at once. Ranges are
// those that Clip finds by search, where the paper learns them along.
type signRound struct{ Turns int }

func (signRound) Name() string { return "signround" }

func (p signRound) Settings() string { return fmt.Sprintf("turns=%d", p.Turns) }

// Transform implements Pass: nothing changes.
func (signRound) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p signRound) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	g := gridOf(m.Type)
	if g == nil {
		return fmt.Sprintf("plain: %s has no evenly spaced steps", m.Type), m.plain(threads)
	}
	if note, err := (clip{}).Round(m, in, threads); err != nil {
		return note, err
	}
	h := in.square(0)
	parallel(m.Rows, threads, func(r int) {
		c := newCoded(m, r, g, h)
		c.signed(p.Turns)
		c.write(m, r)
	})
	return "", nil
}

// signed finds the codes of a row.
func (c *coded) signed(turns int) {
	n := len(c.w)
	offset, best, least := make([]float64, n), slices.Clone(c.code), c.loss()
	slope := make([]float64, n)
	for turn := range turns {
		rate := (1 - float64(turn)/float64(turns)) / float64(turns)
		copy(slope, c.slope) // all offsets move by the slopes of one turn
		for t, s := range slope {
			if s == 0 || c.step[t] == 0 {
				continue
			}
			at := (c.w[t] - float64(c.low[t])) / float64(c.step[t])
			// Beyond the ends of the codes an offset changes nothing.
			if q := math.Floor(at + offset[t] + 0.5); q < 0 || q > float64(c.g.highest(t%c.g.n)) {
				continue
			}
			by := math.Copysign(rate, s) * math.Copysign(1, float64(c.step[t]))
			offset[t] = min(max(offset[t]-by, -0.5), 0.5)
			q := math.Floor(at + offset[t] + 0.5)
			if code := int(min(max(q, 0), float64(c.g.highest(t%c.g.n)))); code != c.code[t] {
				c.set(t, code)
			}
		}
		if l := c.loss(); l < least {
			least = l
			copy(best, c.code)
		}
	}
	copy(c.code, best)
}
