package load

import (
	"fmt"

	"ridge/measure/bench/chart"
)

// figures returns the plots of reports of one load: charts, and a timeline for each
// run. Their names begin with prefix.
func figures(reports []*Report, prefix string) (plots, lines []chart.Figure) {
	for _, c := range charts(reports) {
		plots = append(plots, chart.Figure{Name: prefix + chart.Slug(c.Title), SVG: c.SVG()})
	}
	for _, r := range reports {
		if s := timelineSVG(r); s != "" {
			lines = append(lines, chart.Figure{Name: prefix + chart.Slug("timeline "+r.label(true)), SVG: s})
		}
	}
	return plots, lines
}

// WriteFigures writes the plots of reports as SVG files into a folder, which it
// makes if there is none.
func WriteFigures(dir string, reports []*Report) error {
	var all []chart.Figure
	for i, g := range groupsOf(reports) {
		plots, lines := figures(g, fmt.Sprintf("%d-", i+1))
		all = append(append(all, plots...), lines...)
	}
	if err := chart.WriteFiles(dir, all); err != nil {
		return fmt.Errorf("load: figures: %w", err)
	}
	return nil
}
