package drafts

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"ridge/measure/bench/chart"
)

// column is a column of the table: its head, and what is in it, nothing for a number
// that was not measured.
type column struct {
	head string
	text func(r *Row) string
}

// number returns a column of numbers, empty where there is none.
func number(head, format string, of func(r *Row) float64) column {
	return column{head, func(r *Row) string {
		if x := of(r); x != 0 {
			return fmt.Sprintf(format, x)
		}
		return ""
	}}
}

func count(head string, of func(r *Row) int) column {
	return column{head, func(r *Row) string { return fmt.Sprint(of(r)) }}
}

var columns = []column{
	{"guesses", func(r *Row) string {
		if r.Most > 0 {
			return fmt.Sprintf("%s, at most %d", r.Setting, r.Most)
		}
		return r.Setting
	}},
	count("batch", func(r *Row) int { return r.Batch }),
	{"category", func(r *Row) string { return r.Category }},
	count("prompts", func(r *Row) int { return r.Prompts }),
	count("tokens", func(r *Row) int { return r.Tokens }),
	count("guessed", func(r *Row) int { return r.Guessed }),
	number("accepted", "%.0f%%", func(r *Row) float64 { return 100 * r.Share }),
	number("of places", "%.0f%%", func(r *Row) float64 { return 100 * r.Alpha }),
	number("tokens a guessing step", "%.2f", func(r *Row) float64 { return r.Length }),
	number("tokens a step", "%.2f", func(r *Row) float64 { return r.PerStep }),
	{"steps, plain and drafted", func(r *Row) string {
		if r.Steps[0] == 0 {
			return ""
		}
		return fmt.Sprintf("%d, %d", r.Steps[0], r.Steps[1])
	}},
	number("plain tok/s", "%.1f", func(r *Row) float64 { return r.Plain }),
	number("drafted tok/s", "%.1f", func(r *Row) float64 { return r.Drafted }),
	number("expected", "%.2f", func(r *Row) float64 { return r.Estimated }),
	number("speed", "%.2f", func(r *Row) float64 { return r.Speed }),
	number("median", "%.2f", func(r *Row) float64 { return r.Median }),
	number("lower quartile", "%.2f", func(r *Row) float64 { return r.Low }),
	number("processor", "%.2f", func(r *Row) float64 { return r.CPU }),
	number("median processor", "%.2f", func(r *Row) float64 { return r.CPUMedian }),
	number("p99 plain", "%.1f ms", func(r *Row) float64 { return r.PlainP99 }),
	number("p99 drafted", "%.1f ms", func(r *Row) float64 { return r.DraftP99 }),
	number("guessing", "%.1f%%", func(r *Row) float64 { return 100 * r.Drafting }),
	number("build", "%.2f s", func(r *Row) float64 { return r.Build }),
	count("different", func(r *Row) int { return r.Different }),
}

// WriteMarkdown writes rows as a table.
func WriteMarkdown(w io.Writer, rows []Row) error {
	var b strings.Builder
	line := func(cell func(c *column) string) {
		for i := range columns {
			b.WriteString("| " + cell(&columns[i]) + " ")
		}
		b.WriteString("|\n")
	}
	line(func(c *column) string { return c.head })
	b.WriteString(strings.Repeat("|---", len(columns)) + "|\n")
	for i := range rows {
		line(func(c *column) string { return strings.ReplaceAll(c.text(&rows[i]), "|", `\|`) })
	}
	_, err := io.WriteString(w, b.String())
	return err
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

// body is the page: plots, and the table.
const body = `<p>{{.Note}}</p><div class="plots">{{range .Plots}}{{.Page}}{{end}}</div>
<h2>All figures</h2><div style="overflow-x:auto"><table><tr>{{range .Heads}}<th>{{.}}</th>{{end}}</tr>
{{range .Cells}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</table></div>
`

// WriteHTML writes rows as a page with plots: what guesses gain by kind of prompt, and
// over the number of answers at a time and of guesses, where rows are of several.
func WriteHTML(w io.Writer, title, note string, rows []Row) error {
	var heads []string
	var cells [][]string
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	for i := range rows {
		var line []string
		for _, c := range columns {
			line = append(line, c.text(&rows[i]))
		}
		cells = append(cells, line)
	}
	page := chart.NewPage(body, template.FuncMap{})
	return chart.WritePage(w, page, title, map[string]any{"Note": note, "Plots": plots(rows), "Heads": heads, "Cells": cells})
}
