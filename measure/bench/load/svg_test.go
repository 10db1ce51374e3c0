package load

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A distribution's curve says what the table says, of a handful of requests and of one,
// too; parts of the time that are shorter than a second are told.
func TestShortCurves(t *testing.T) {
	for n, answers := range map[int][]time.Duration{1: {700}, 2: {400, 900}, 6: {300, 450, 700, 790, 2100, 2680}} {
		r := &Report{Target: "ridge", Duration: 3}
		var took []float64
		for _, d := range answers {
			d *= time.Millisecond
			r.Records = append(r.Records, Record{First: d, Last: d, End: d, Pieces: []time.Duration{d}, Output: 1})
			took = append(took, ms(d))
		}
		all := charts([]*Report{r})
		pts, d := all[0].Lines[0].Points, DistOf(took)
		for part, want := range map[float64]float64{0: d.Min, .5: d.P50, .9: d.P90, .99: d.P99, 1: d.Max} {
			at := 0.0
			for i := range pts[1:] {
				if a, b := pts[i], pts[i+1]; part >= a[1] && part <= b[1] {
					at = a[0] + (part-a[1])/(b[1]-a[1])*(b[0]-a[0])
				}
			}
			if math.Abs(at-want) > 1e-6 {
				t.Errorf("of %d requests %g took at most %g ms, the curve says %g", n, part, want, at)
			}
		}
		if rates := all[4]; rates.X != "seconds, in parts of 0.15" {
			t.Errorf("the time's axis is called %q", rates.X)
		}
		if svg := all[0].SVG(); strings.Count(svg, `class="l`) != 1 || strings.Contains(svg, "NaN") {
			t.Errorf("%d requests are drawn as %s", n, svg)
		}
	}
}
