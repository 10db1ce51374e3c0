package bench

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"ridge/measure/bench/chart"
)

// HTML writes a page with the table and plots of results, which needs nothing from
// elsewhere.
func HTML(w io.Writer, results []*Result) error {
	type section struct {
		Title string
		Plots []template.HTML
		Wide  []template.HTML
	}
	data := struct {
		Made     string
		Head     []string
		Right    []bool
		Rows     [][]string
		Foot     []string
		Sections []section
	}{Made: "no results"}
	if len(results) > 0 {
		r := results[0]
		data.Made = fmt.Sprintf("ridge %s, %s, kernels %s", r.Build, r.CPU, r.Tier)
		tab := tableOf(results, slices.ContainsFunc(results, func(r *Result) bool { return r.StepP50 > 0 }))
		for _, h := range tab.head {
			h, right := strings.CutPrefix(h, "-")
			data.Head, data.Right = append(data.Head, h), append(data.Right, right)
		}
		data.Rows, data.Foot = tab.rows, strings.Split(strings.TrimSpace(foot(results)), "\n")
	}
	for i, g := range groupsOf(results) {
		s := section{Title: g.title}
		wide, plots := g.figures(fmt.Sprintf("%d-", i+1))
		for _, f := range wide {
			s.Wide = append(s.Wide, f.Page())
		}
		for _, f := range plots {
			s.Plots = append(s.Plots, f.Page())
		}
		data.Sections = append(data.Sections, s)
	}
	if err := chart.WritePage(w, page, "ridge bench", data); err != nil {
		return fmt.Errorf("bench: page: %w", err)
	}
	return nil
}

// WriteFigures writes the plots of results as SVG files into a folder, which it makes
// if there is none.
func WriteFigures(dir string, results []*Result) error {
	var all []chart.Figure
	for i, g := range groupsOf(results) {
		wide, plots := g.figures(fmt.Sprintf("%d-", i+1))
		all = append(append(all, wide...), plots...)
	}
	if err := chart.WriteFiles(dir, all); err != nil {
		return fmt.Errorf("bench: figures: %w", err)
	}
	return nil
}

var page = chart.NewPage(`{{define "cell"}}padding:.2em .5em;{{if .}}white-space:nowrap{{else}}text-align:left{{end}}{{end}}<p>{{.Made}}</p>
{{if .Rows}}<div style="overflow-x:auto"><table style="font-size:12px"><tr>{{range $i, $head := .Head}}<th style="{{template "cell" index $.Right $i}}">{{$head}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range $i, $cell := .}}<td style="{{template "cell" index $.Right $i}}">{{$cell}}</td>{{end}}</tr>
{{end}}</table></div>
{{end}}{{range .Foot}}<p>{{.}}</p>
{{end}}{{range .Sections}}<h2>{{.Title}}</h2>
{{range .Wide}}{{.}}
{{end}}<div class="plots">{{range .Plots}}{{.}}
{{end}}</div>
{{end}}{{if .Sections}}<p>A ring in the first plot is a repetition, and the line between them their median. Lines of the machine are what loops of nothing but reads and nothing but products reached between the repetitions; marks without room for their names tell them to a pointer.</p>
{{end}}`, nil)
