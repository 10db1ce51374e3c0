package load

import (
	"fmt"
	"html"
	"strings"

	"ridge/measure/bench/chart"
)

const maxRows = 400 // of a timeline

// timelineSVG draws a bar for each request, in the order in which they were
// sent: thin from when it was due, pale until the first token, full to the end.
func timelineSVG(rep *Report) string {
	n := min(len(rep.Records), maxRows)
	if n == 0 {
		return ""
	}
	const rowH = 5
	h := chart.PadTop + n*rowH + chart.PadBottom
	end := max(rep.Duration, 1e-3)
	for i := range n {
		end = max(end, rep.Records[i].End.Seconds())
	}
	const width = chart.WideWidth
	toX := func(s float64) float64 { return chart.PadLeft + (width-chart.PadLeft-chart.PadRight)*s/end }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="w" viewBox="0 0 %d %d" role="img" aria-label="requests"><text class="t" x="%d" y="16">%s: requests over time</text>`, width, h, chart.PadLeft, html.EscapeString(rep.Target))
	for _, v := range chart.Ticks(0, end) {
		fmt.Fprintf(&b, `<path class="g" d="M%.1f %dV%d"/><text class="x" x="%.1f" y="%d">%s</text>`, toX(v), chart.PadTop, h-chart.PadBottom, toX(v), h-chart.PadBottom+15, chart.Label(v))
	}
	fmt.Fprintf(&b, `<text class="x" x="%d" y="%d">seconds</text>`, width/2, h-6)
	for i := range n {
		r := &rep.Records[i]
		y := chart.PadTop + i*rowH
		tip := fmt.Sprintf("session %d turn %d: %d + %d tokens, %d cached, first token after %.0f ms, end after %.0f ms", r.Session, r.Turn, r.Prompt, r.Output, r.Cached, ms(max(r.First-r.Sent, 0)), ms(r.End-r.Sent))
		class := "k"
		switch {
		case r.Failure != "":
			class, tip = "f", r.Failure
		case r.Intruder:
			class = "i"
		}
		fmt.Fprintf(&b, `<g class="%s"><title>%s</title>`, class, html.EscapeString(tip))
		if r.Sent > r.Due {
			fmt.Fprintf(&b, `<rect class="d" x="%.1f" y="%d" width="%.1f" height="1"/>`, toX(r.Due.Seconds()), y+2, toX(r.Sent.Seconds())-toX(r.Due.Seconds()))
		}
		first := r.First
		if first == 0 {
			first = r.End
		}
		fmt.Fprintf(&b, `<rect class="p" x="%.1f" y="%d" width="%.2f" height="4"/>`, toX(r.Sent.Seconds()), y, max(0.5, toX(first.Seconds())-toX(r.Sent.Seconds())))
		if r.End > first {
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.2f" height="4"/>`, toX(first.Seconds()), y, max(0.5, toX(r.End.Seconds())-toX(first.Seconds())))
		}
		b.WriteString("</g>")
	}
	b.WriteString("</svg>")
	return b.String()
}
