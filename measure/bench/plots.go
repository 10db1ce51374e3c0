package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"ridge/measure/bench/chart"
	"ridge/measure/roofline"
)

// group is the results whose speeds are shown together: those of one model, as it was
// run.
type group struct {
	title   string
	results []*Result
}

func groupsOf(results []*Result) (groups []*group) {
	for _, r := range results {
		title := fmt.Sprintf("%s (%s), threads: %d, keys and values: %s, activations: %s", r.Model, filepath.Base(r.File), r.Threads, kvName(r.KV), r.Act)
		i := slices.IndexFunc(groups, func(g *group) bool { return g.title == title && g.results[0].File == r.File })
		if i < 0 {
			i, groups = len(groups), append(groups, &group{title: title})
		}
		groups[i].results = append(groups[i].results, r)
	}
	return groups
}

// figures are the plots of a group; those that have a row for themselves come apart.
// What was not measured has no plot.
func (g *group) figures(prefix string) (wide, plots []chart.Figure) {
	add := func(to []chart.Figure, title, svg string) []chart.Figure {
		return append(to, chart.Figure{Name: prefix + chart.Slug(title), SVG: svg})
	}
	strips := chart.Strips{Title: "Speed of each repetition", X: "tok/s"}
	for _, r := range g.results {
		strips.Rows = append(strips.Rows, chart.Strip{Name: r.Work.String(), Text: spreadText(r.Speed), Samples: perSecond(r.Work.Tokens(), r.Seconds), Middle: r.Speed.Median})
		for _, p := range r.Peers {
			strips.Rows = append(strips.Rows, chart.Strip{Name: r.Work.String() + ", " + p.Name, Text: spreadText(p.Speed), Class: 1, Samples: p.Samples, Middle: p.Speed.Median})
		}
	}
	if svg := strips.SVG(); svg != "" {
		wide = add(wide, strips.Title, svg)
	}
	for _, c := range []*chart.Chart{
		g.against("Generation speed against depth", "tokens that a sequence holds before", func(w *roofline.Work) *int { return &w.Depth }),
		g.against("Generation speed against sequences", "sequences at once", func(w *roofline.Work) *int { w.Seqs = max(w.Seqs, 1); return &w.Seqs }),
		g.roofline(),
	} {
		if len(c.Lines) > 0 {
			plots = add(plots, c.Title, c.SVG())
		}
	}
	return wide, plots
}

// against is the plot of generation whose speed was measured at several x; of says which
// part of a work x is.
func (g *group) against(title, axis string, of func(*roofline.Work) *int) *chart.Chart {
	type series struct {
		work roofline.Work // without x
		peer string
	}
	var seen []series
	lines := map[series]*chart.Line{}
	add := func(s series, x, y float64) {
		if lines[s] == nil {
			seen = append(seen, s)
			lines[s] = &chart.Line{Marks: true, Dashed: s.peer != ""}
		}
		if p := lines[s].Points; y > 0 && !slices.ContainsFunc(p, func(o [2]float64) bool { return o[0] == x }) {
			lines[s].Points = append(p, [2]float64{x, y})
		}
	}
	for _, r := range g.results {
		if r.Work.Gen == 0 || r.Work.Prompt > 0 {
			continue
		}
		s := series{work: r.Work}
		at := of(&s.work)
		x := float64(*at)
		*at = 0
		add(s, x, r.Speed.Median)
		for _, p := range r.Peers {
			s.peer = p.Name
			add(s, x, p.Speed.Median)
		}
	}
	c := &chart.Chart{Title: title, X: axis, Y: "tok/s"}
	for _, s := range seen {
		l := lines[s]
		if len(l.Points) < 2 {
			continue
		}
		slices.SortFunc(l.Points, func(a, b [2]float64) int { return int(a[0] - b[0]) })
		l.Name = s.work.String()
		if s.peer != "" {
			l.Name += ", " + s.peer
		}
		l.Label, l.Class = l.Name, len(c.Lines)
		c.Lines = append(c.Lines, *l)
	}
	return c
}

// roofline is the plot of what tests did for each byte that they read, under the lines of
// the machine. Without these it is empty.
func (g *group) roofline() *chart.Chart {
	c := &chart.Chart{Title: "Roofline", X: "operations per byte read", Y: "GOP/s", XLog: true, YLog: true}
	x0, x1 := math.Inf(1), 0.0
	var marks []chart.Line
	for _, r := range g.results {
		if r.Cost.Bytes() == 0 || r.Ops() == 0 {
			continue
		}
		x := r.Cost.Ops() / float64(r.Cost.Bytes())
		x0, x1 = min(x0, x), max(x1, x)
		name := fmt.Sprintf("%s: %.1f GB/s, %.1f GOP/s", r.Work, r.Bytes()/1e9, r.Ops()/1e9)
		if limit := r.LimitText(); limit != "" {
			name += ", " + limit
		}
		marks = append(marks, chart.Line{Name: name, Label: r.Work.String(), Points: [][2]float64{{x, r.Ops() / 1e9}}, Marks: true, Apart: true})
	}
	read := g.rate("read", func(r *Result) float64 { return r.ReadRate }) / 1e9
	if len(marks) == 0 || read == 0 {
		return c
	}
	type peak struct {
		kind string
		of   func(*Result) float64
		rate float64
	}
	peaks, top := []peak{
		{kind: "int8", of: func(r *Result) float64 { return r.IntRate }},
		{kind: "bf16", of: func(r *Result) float64 { return r.BrainRate }},
		{kind: "f32", of: func(r *Result) float64 { return r.FloatRate }},
	}, 0.0
	for i := range peaks {
		peaks[i].rate = g.rate(peaks[i].kind, peaks[i].of) / 1e9
		top = max(top, peaks[i].rate)
	}
	x0, x1 = x0/2, 2*max(x1, top/read)
	to := x1
	if top > 0 {
		to = max(top/read, x0)
	}
	name := fmt.Sprintf("%.1f GB/s", read)
	c.Lines = append(c.Lines, chart.Line{Name: name, Label: name, Class: 5, Points: [][2]float64{{x0, read * x0}, {math.Sqrt(x0 * to), read * math.Sqrt(x0*to)}, {to, read * to}}})
	for i, p := range peaks {
		if p.rate == 0 {
			continue
		}
		name := fmt.Sprintf("%.0f %s GOP/s", p.rate, p.kind)
		c.Lines = append(c.Lines, chart.Line{Name: name, Label: name, Class: 2 + i, Points: [][2]float64{{max(p.rate/read, x0), p.rate}, {x1, p.rate}}})
	}
	c.Lines = append(c.Lines, marks...)
	return c
}

// rate is what the machine reached: the middle one of the results that it limits, or of
// all if it limits none, so that it is one that the table has if it has any.
func (g *group) rate(limit string, of func(*Result) float64) float64 {
	var limited, all []float64
	for _, r := range g.results {
		if v := of(r); v > 0 {
			all = append(all, v)
			if r.Limit == limit {
				limited = append(limited, v)
			}
		}
	}
	if len(limited) > 0 {
		all = limited
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}
