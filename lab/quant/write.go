package quant

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"ridge/engine"
	"ridge/measure/bench/chart"
)

// Lengths of what is timed.
const (
	promptTokens = 512
	answerTokens = 64
)

// speed returns tokens a second of a prompt and of an answer, the quicker of two turns.
func speed(ctx context.Context, e *engine.Engine, text []int32) (prefill, decode float64, err error) {
	for turn := range 2 {
		// Another prompt each time: nothing of it is known.
		prompt := text[turn*promptTokens%max(len(text)-promptTokens, 1):][:min(promptTokens, len(text))]
		var first, end time.Time
		begin, n := time.Now(), 0
		s, err := e.Submit(ctx, engine.Request{Tokens: prompt, MaxTokens: answerTokens, IgnoreEOS: true})
		if err != nil {
			return 0, 0, err
		}
		for {
			ev, ok := s.Next(ctx)
			if ev.Err != nil || !ok {
				break
			}
			if end = time.Now(); n == 0 {
				first = end
			}
			n++
		}
		s.Close()
		if n < 2 {
			return 0, 0, errors.New("expected an answer that can be timed, found none")
		}
		prefill = max(prefill, float64(len(prompt))/first.Sub(begin).Seconds())
		decode = max(decode, float64(n-1)/end.Sub(first).Seconds())
	}
	return prefill, decode, nil
}

// heads are those of the columns of the table.
var heads = []string{"grid", "method", "bits", "bytes", "perplexity", "KL, 10⁻³ nats (95%)", "KL against", "difference (95%)", "", "prefill tok/s", "decode tok/s"}

// cells returns a line of the table. What was not measured is empty.
func (r *Row) cells() []string {
	out := make([]string, len(heads))
	out[0], out[1], out[6] = r.Grid, r.Method, r.Against
	m := r.Measured
	if m == nil {
		return out
	}
	out[2], out[3], out[4] = fmt.Sprintf("%.3f", m.Bits), fmt.Sprint(m.Bytes), fmt.Sprintf("%.3f", m.Perplexity)
	out[5] = fmt.Sprintf("%.3f (%.3f to %.3f)", 1e3*m.KL.Mean, 1e3*m.KL.Low, 1e3*m.KL.High)
	if p := m.Paired; p != nil {
		out[7], out[8] = fmt.Sprintf("%+.3f (%+.3f to %+.3f)", 1e3*p.KL.Mean, 1e3*p.KL.Low, 1e3*p.KL.High), p.KL.Verdict()
	}
	for i, v := range []float64{m.Prefill, m.Decode} {
		if v > 0 {
			out[9+i] = fmt.Sprintf("%.0f", v)
		}
	}
	return out
}

// WriteMarkdown writes rows as a table.
func WriteMarkdown(w io.Writer, rows []Row) error {
	var b strings.Builder
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| ")
			if c != "" {
				b.WriteString(c + " ")
			}
		}
		b.WriteString("|\n")
	}
	line(heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for i := range rows {
		line(rows[i].cells())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// body is the page: plots, and the table.
const body = `<p>{{.Note}}</p><div class="plots">{{range .Plots}}{{.Page}}{{end}}</div>
<h2>All figures</h2><div style="overflow-x:auto"><table><tr>{{range .Heads}}<th>{{.}}</th>{{end}}</tr>
{{range .Cells}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table></div>
`

// WriteHTML writes rows as a page: divergence over bits, the intervals of each grid, and
// the table.
func WriteHTML(w io.Writer, title, note string, rows []Row) error {
	var cells [][]string
	for i := range rows {
		cells = append(cells, rows[i].cells())
	}
	page := chart.NewPage(body, template.FuncMap{})
	return chart.WritePage(w, page, title, map[string]any{"Note": note, "Plots": plots(rows), "Heads": heads, "Cells": cells})
}

// plots shows the rows that were measured.
func plots(rows []Row) (out []chart.Figure) {
	over := chart.Chart{Title: "Divergence over bits a weight", X: "bits", Y: "nats", YLog: true}
	var grids, methods []string
	strips := map[string]*chart.Strips{}
	for i := range rows {
		r := &rows[i]
		if r.Measured == nil {
			continue
		}
		if !slices.Contains(methods, r.Method) {
			methods = append(methods, r.Method)
		}
		if strips[r.Grid] == nil {
			grids, strips[r.Grid] = append(grids, r.Grid), &chart.Strips{Title: "Divergence, " + r.Grid, X: "10⁻³ nats, with the interval of 95%"}
		}
		kl := r.Measured.KL
		strips[r.Grid].Rows = append(strips[r.Grid].Rows, chart.Strip{Name: r.Method, Text: fmt.Sprintf("%.2f, %.2f bits", 1e3*kl.Mean, r.Measured.Bits), Class: len(methods) % chart.Colours, Samples: []float64{1e3 * kl.Low, 1e3 * kl.Mean, 1e3 * kl.High}, Middle: 1e3 * kl.Mean})
		if r.Reference || kl.Mean <= 0 {
			continue // grids of activations cost what bits of weights do not say
		}
		at := slices.IndexFunc(over.Lines, func(l chart.Line) bool { return l.Name == r.Method })
		if at < 0 {
			at = len(over.Lines)
			over.Lines = append(over.Lines, chart.Line{Name: r.Method, Label: r.Method, Class: at % chart.Colours, Marks: true})
		}
		over.Lines[at].Points = append(over.Lines[at].Points, [2]float64{r.Measured.Bits, kl.Mean})
	}
	for i := range over.Lines {
		slices.SortFunc(over.Lines[i].Points, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
	}
	if len(over.Lines) > 0 {
		out = append(out, chart.Figure{Name: chart.Slug(over.Title), SVG: over.SVG()})
	}
	for _, g := range grids {
		if svg := strips[g].SVG(); svg != "" {
			out = append(out, chart.Figure{Name: chart.Slug(strips[g].Title), SVG: svg})
		}
	}
	return out
}

// WriteJSON writes rows, one a line.
func WriteJSON(w io.Writer, rows []Row) error {
	enc := json.NewEncoder(w)
	for i := range rows {
		if err := enc.Encode(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}
