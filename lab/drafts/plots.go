package drafts

import (
	"fmt"
	"slices"

	"ridge/measure/bench/chart"
)

// plots shows rows: the pairs of each kind of prompt, and how speed depends on what
// they differ in.
func plots(rows []Row) (out []chart.Figure) {
	add := func(title, svg string) {
		if svg != "" {
			out = append(out, chart.Figure{Name: chart.Slug(title), SVG: svg})
		}
	}
	pairs := chart.Strips{Title: "Speed of each pair, with guesses over without", X: "times"}
	steps := chart.Strips{Title: "Tokens a step, by kind of prompt", X: "tokens"}
	settings := settingsOf(rows)
	for i := range rows {
		r := &rows[i]
		name, class := columns[0].text(r), slices.Index(settings, columns[0].text(r))%chart.Colours
		name = fmt.Sprintf("%s, %s, batch %d", r.Category, name, r.Batch)
		if len(r.ratios) > 0 {
			pairs.Rows = append(pairs.Rows, chart.Strip{Name: name, Text: fmt.Sprintf("%.2f (expected %.2f)", r.Median, r.Estimated), Class: class, Samples: r.ratios, Middle: r.Median})
		}
		steps.Rows = append(steps.Rows, chart.Strip{Name: name, Text: fmt.Sprintf("%.2f", r.PerStep), Class: class, Samples: []float64{r.PerStep}, Middle: r.PerStep})
	}
	add(pairs.Title, pairs.SVG())
	add(steps.Title, steps.SVG())
	for _, c := range []*chart.Chart{
		against(rows, "Speed over answers at a time", "answers at a time", func(r *Row) int { return r.Batch }, func(r *Row) string { return columns[0].text(r) }),
		against(rows, "Speed over guesses", "guesses of an answer in a step, at most", func(r *Row) int { return r.Most }, func(r *Row) string { return fmt.Sprintf("%s, batch %d", r.Setting, r.Batch) }),
	} {
		if len(c.Lines) > 0 {
			add(c.Title, c.SVG())
		}
	}
	return out
}

// settingsOf returns the different settings of rows.
func settingsOf(rows []Row) (out []string) {
	for i := range rows {
		if name := columns[0].text(&rows[i]); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// against plots the speed of all prompts against x, measured and, dashed, as expected: a
// line for each name that has several x.
func against(rows []Row, title, axis string, x func(*Row) int, name func(*Row) string) *chart.Chart {
	c := &chart.Chart{Title: title, X: axis, Y: "times the speed without guesses"}
	var names []string
	for i := range rows {
		r := &rows[i]
		if r.Category != all || r.Speed == 0 || x(r) == 0 {
			continue
		}
		at := slices.Index(names, name(r))
		if at < 0 {
			at, names = len(names), append(names, name(r))
			c.Lines = append(c.Lines, chart.Line{Name: name(r), Label: name(r), Class: at % chart.Colours, Marks: true}, chart.Line{Name: name(r) + ", expected", Class: at % chart.Colours, Dashed: true})
		}
		for k, y := range [2]float64{r.Speed, r.Estimated} {
			l := &c.Lines[2*at+k]
			l.Points = append(l.Points, [2]float64{float64(x(r)), y})
		}
	}
	c.Lines = slices.DeleteFunc(c.Lines, func(l chart.Line) bool { return len(l.Points) < 2 })
	return c
}
