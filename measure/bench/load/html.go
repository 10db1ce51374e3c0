package load

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"ridge/measure/bench/chart"
)

// HTML writes a page with tables and plots of reports, which needs nothing
// from elsewhere. The reports must have their records.
func HTML(w io.Writer, reports []*Report, version string) error {
	type group struct {
		Title   string
		Reports []*Report
		Charts  []template.HTML
		Lines   []template.HTML // a timeline for each run
		Compare string
		Tables  []string
	}
	var groups []*group
	for i, rs := range groupsOf(reports) {
		g := &group{Title: rs[0].title(), Reports: rs}
		groups = append(groups, g)
		var b strings.Builder
		Compare(&b, rs)
		g.Compare = b.String()
		for _, r := range rs {
			var t strings.Builder
			r.Print(&t)
			g.Tables = append(g.Tables, t.String())
		}
		plots, lines := figures(rs, fmt.Sprintf("%d-", i+1))
		for _, f := range plots {
			g.Charts = append(g.Charts, f.Page())
		}
		for _, f := range lines {
			g.Lines = append(g.Lines, f.Page())
		}
	}
	err := chart.WritePage(w, page, "ridge bench serve", map[string]any{"Version": version, "Groups": groups})
	if err != nil {
		return fmt.Errorf("load: page: %w", err)
	}
	return nil
}

// groupsOf returns the reports of each load, in their order.
func groupsOf(reports []*Report) (groups [][]*Report) {
	for _, r := range reports {
		i := slices.IndexFunc(groups, func(g []*Report) bool { return g[0].title() == r.title() })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// title is what a report's load is called.
func (rep *Report) title() string { return rep.Workload + "; " + rep.Load }

func (rep *Report) label(many bool) string {
	if many && rep.Round > 0 {
		return fmt.Sprintf("%s (round %d)", rep.Target, rep.Round)
	}
	return rep.Target
}

// charts are the plots of reports of one load: distributions, and what
// happened over time.
func charts(reports []*Report) []*chart.Chart {
	latencies := []struct {
		name string
		of   func(*Record) []float64
	}{
		{"Time to first token", func(r *Record) []float64 { return []float64{ms(r.First - r.Sent)} }},
		{"Time per output token", func(r *Record) []float64 {
			if r.Output < 2 || !r.OK() {
				return nil
			}
			return []float64{ms(r.Last-r.First) / float64(r.Output-1)}
		}},
		{"Inter-token latency", func(r *Record) []float64 {
			var out []float64
			for i := 1; i < len(r.Pieces); i++ {
				out = append(out, ms(r.Pieces[i]-r.Pieces[i-1]))
			}
			return out
		}},
		{"End to end", func(r *Record) []float64 {
			if !r.OK() {
				return nil
			}
			return []float64{ms(r.Last - r.Sent)}
		}},
	}
	var out []*chart.Chart
	for _, l := range latencies {
		c := &chart.Chart{Title: l.name, X: "ms", Y: "part of all", XLog: true, YMax: 1}
		for i, rep := range reports {
			var x []float64
			for k := range rep.Records {
				if r := &rep.Records[k]; r.Failure == "" && r.First > 0 {
					x = append(x, l.of(r)...)
				}
			}
			c.Lines = append(c.Lines, chart.Line{Name: rep.label(true), Class: colour(reports, i), Points: percentiles(x)})
		}
		out = append(out, c)
	}
	tokens := &chart.Chart{Title: "Output tokens per second", X: "seconds", Y: "tok/s"}
	running := &chart.Chart{Title: "Requests under way", X: "seconds", Y: "requests"}
	longest := 0.0
	for i, rep := range reports {
		t, n := chart.Line{Name: rep.label(true), Class: colour(reports, i), Step: true}, chart.Line{Name: rep.label(true), Class: colour(reports, i), Step: true}
		rates, under, width := rep.over()
		longest = max(longest, width)
		for k := range len(rates) + 1 {
			at, last := float64(k)*width, min(k, len(rates)-1)
			t.Points = append(t.Points, [2]float64{at, rates[last]})
			n.Points = append(n.Points, [2]float64{at, under[last]})
		}
		tokens.Lines, running.Lines = append(tokens.Lines, t), append(running.Lines, n)
	}
	tokens.X = fmt.Sprintf("seconds, in parts of %s", sig(longest))
	running.X = tokens.X
	return append(out, tokens, running)
}

// percentiles sorts x and returns the curve of its percentiles, from 0 to 1, as DistOf
// has them: of a few values, too, the curve says what the table says.
func percentiles(x []float64) (pts [][2]float64) {
	slices.Sort(x)
	for k, v := range x {
		pts = append(pts, [2]float64{max(v, 0.01), float64(k) / float64(max(len(x)-1, 1))})
	}
	if len(x) == 1 {
		pts = append(pts, [2]float64{pts[0][0], 1})
	}
	return pts
}

// over splits the run into equal parts that end when it ends, of a second or
// less: so many that a short run has some, too. It returns the tokens a second and
// the mean number of requests of each part, whose means over the run are those of
// the table, and the parts' width in seconds.
func (rep *Report) over() (rates, running []float64, width float64) {
	n := max(int(math.Ceil(rep.Duration)), min(20, int(rep.Duration*10)), 1)
	width = rep.Duration / float64(n)
	if width <= 0 {
		return []float64{0}, []float64{0}, 1
	}
	rates, running = make([]float64, n), make([]float64, n)
	part := func(t time.Duration) int { return min(max(int(t.Seconds()/width), 0), n-1) }
	for i := range rep.Records {
		q := &rep.Records[i]
		for _, at := range q.Pieces {
			rates[part(at)] += float64(q.Output) / float64(len(q.Pieces)) / width
		}
		for k := part(q.Sent); k <= part(q.End); k++ {
			from, to := max(q.Sent.Seconds(), float64(k)*width), min(q.End.Seconds(), float64(k+1)*width)
			running[k] += max(0, to-from) / width
		}
	}
	return rates, running, width
}

// colour is that of a report's target.
func colour(reports []*Report, i int) int {
	var seen []string
	for _, r := range reports[:i+1] {
		if !slices.Contains(seen, r.Target) {
			seen = append(seen, r.Target)
		}
	}
	return slices.Index(seen, reports[i].Target)
}

var page = chart.NewPage(body, template.FuncMap{
	"colour":  func(rs []*Report, i int) int { return colour(rs, i) % chart.Colours },
	"f":       sig,
	"seconds": func(v float64) string { return fmt.Sprintf("%.1f", v) },
})

const body = `<p>ridge {{.Version}}</p>
{{range .Groups}}{{$reports := .Reports}}
<h2>{{.Title}}</h2>
<table><tr><th>server</th><th>answered</th><th>failed</th><th>seconds</th><th>output tok/s</th><th>total tok/s</th><th>req/s</th><th>goodput</th><th>TTFT p50</th><th>p99</th><th>TPOT p50</th><th>p99</th><th>ITL p50</th><th>p99</th><th>E2E p50</th><th>p99</th></tr>
{{range $i, $r := .Reports}}<tr><td><span class="b c{{colour $reports $i}}"></span>{{.Target}}{{if .Round}} (round {{.Round}}){{end}}</td><td>{{.Completed}}</td><td>{{.Failed}}</td><td>{{seconds .Duration}}</td><td>{{f .OutputRate}}</td><td>{{f .TotalRate}}</td><td>{{f .RequestRate}}</td><td>{{if .SLO}}{{f .Goodput}}{{else}}–{{end}}</td><td>{{f .TTFT.P50}}</td><td>{{f .TTFT.P99}}</td><td>{{f .TPOT.P50}}</td><td>{{f .TPOT.P99}}</td><td>{{f .ITL.P50}}</td><td>{{f .ITL.P99}}</td><td>{{f .E2E.P50}}</td><td>{{f .E2E.P99}}</td></tr>
{{end}}</table>
<p>Times in milliseconds.</p>
<div class="plots">{{range .Charts}}{{.}}{{end}}</div>
{{range .Lines}}{{.}}{{end}}
{{with .Compare}}<pre>{{.}}</pre>{{end}}
{{range .Tables}}<details><summary>Whole table</summary><pre>{{.}}</pre></details>{{end}}
{{end}}
<p>In the timelines a bar is a request: pale until its first token, then full; a thin line before it is the time that it waited to be sent; red ones failed.</p>
`
