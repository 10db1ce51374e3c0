package load

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// chart is a plot of lines, written as SVG: the page needs no other program.
type chart struct {
	title, x, y string
	xlog        bool
	ymax        float64 // 0: from the lines
	lines       []line
}

type line struct {
	name  string
	class int // of colour
	pts   [][2]float64
	step  bool
}

// The size of a plot and of its margins, in pixels.
const (
	plotW, plotH      = 520, 260
	padLeft, padRight = 56, 12
	padTop, padBottom = 26, 40
	maxPoints         = 400 // of a line: more cannot be seen
	innerW, innerH    = plotW - padLeft - padRight, plotH - padTop - padBottom
	colours           = 6
	maxRows           = 400 // of a timeline
)

// svg draws the chart.
func (c *chart) svg() string {
	x0, x1, y1 := math.Inf(1), math.Inf(-1), c.ymax
	for _, l := range c.lines {
		for _, p := range l.pts {
			if c.xlog && p[0] <= 0 {
				continue
			}
			x0, x1 = min(x0, p[0]), max(x1, p[0])
			if c.ymax == 0 {
				y1 = max(y1, p[1])
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><text class="t" x="%d" y="16">%s</text>`, plotW, plotH, html.EscapeString(c.title), padLeft, html.EscapeString(c.title))
	if math.IsInf(x0, 0) || y1 <= 0 {
		fmt.Fprintf(&b, `<text x="%d" y="%d">no data</text></svg>`, plotW/2-24, plotH/2)
		return b.String()
	}
	if !c.xlog {
		x0 = 0
	}
	if x1 <= x0 && c.xlog { // one value: its line stands in the middle
		x0, x1 = x0/2, 2*x1
	} else if x1 <= x0 {
		x1 = x0 + 1
	}
	toX := func(v float64) float64 {
		if c.xlog {
			return padLeft + innerW*math.Log(max(v, x0)/x0)/math.Log(x1/x0)
		}
		return padLeft + innerW*(v-x0)/(x1-x0)
	}
	toY := func(v float64) float64 { return padTop + innerH*(1-min(v, y1)/y1) }
	c.axes(&b, x0, x1, y1, toX, toY)
	for _, l := range c.lines {
		if len(l.pts) == 0 {
			continue
		}
		fmt.Fprintf(&b, `<path class="l c%d" d="%s"><title>%s</title></path>`, l.class%colours, l.path(toX, toY), html.EscapeString(l.name))
	}
	b.WriteString("</svg>")
	return b.String()
}

func (l *line) path(toX, toY func(float64) float64) string {
	var b strings.Builder
	every := max(1, (len(l.pts)+maxPoints-1)/maxPoints)
	for i, p := range l.pts {
		if i%every != 0 && i != len(l.pts)-1 {
			continue
		}
		x, y := toX(p[0]), toY(p[1])
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		case l.step:
			fmt.Fprintf(&b, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&b, "L%.1f %.1f", x, y)
		}
	}
	return b.String()
}

func (c *chart) axes(b *strings.Builder, x0, x1, y1 float64, toX, toY func(float64) float64) {
	fmt.Fprintf(b, `<path class="a" d="M%d %dV%dH%d"/>`, padLeft, padTop, plotH-padBottom, plotW-padRight)
	for _, v := range ticks(0, y1) {
		fmt.Fprintf(b, `<path class="g" d="M%d %.1fH%d"/><text class="y" x="%d" y="%.1f">%s</text>`, padLeft, toY(v), plotW-padRight, padLeft-6, toY(v)+4, label(v))
	}
	marks := ticks(x0, x1)
	if c.xlog {
		marks = logTicks(x0, x1)
	}
	for _, v := range marks {
		fmt.Fprintf(b, `<path class="g" d="M%.1f %dV%d"/><text class="x" x="%.1f" y="%d">%s</text>`, toX(v), padTop, plotH-padBottom, toX(v), plotH-padBottom+15, label(v))
	}
	fmt.Fprintf(b, `<text class="x" x="%d" y="%d">%s</text>`, padLeft+innerW/2, plotH-6, html.EscapeString(c.x))
	fmt.Fprintf(b, `<text class="x" transform="translate(12 %d) rotate(-90)">%s</text>`, padTop+innerH/2, html.EscapeString(c.y))
}

// ticks are round numbers from lo to hi, about five.
func ticks(lo, hi float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/5)))
	for _, m := range []float64{1, 2, 5, 10} {
		if (hi-lo)/(step*m) <= 6 {
			step *= m
			break
		}
	}
	var out []float64
	for i := math.Ceil(lo / step); i*step <= hi*(1+1e-9) && len(out) < 20; i++ {
		out = append(out, i*step)
	}
	return out
}

// logTicks are powers of ten and, if these are few, 2 and 5 times them.
func logTicks(lo, hi float64) []float64 {
	var out []float64
	muls := []float64{1, 2, 5}
	if math.Log10(hi/lo) > 3 {
		muls = muls[:1]
	}
	for e := math.Floor(math.Log10(lo)); e <= math.Ceil(math.Log10(hi)); e++ {
		for _, m := range muls {
			if v := m * math.Pow(10, e); v >= lo && v <= hi {
				out = append(out, v)
			}
		}
	}
	if len(out) == 0 {
		out = []float64{lo, hi}
	}
	return out
}

func label(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return fmt.Sprintf("%gM", math.Round(v/1e5)/10)
	case a >= 1e4:
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// timelineSVG draws a bar for each request, in the order in which they were
// sent: thin from when it was due, pale until the first token, full to the end.
func timelineSVG(rep *Report) string {
	n := min(len(rep.Records), maxRows)
	if n == 0 {
		return ""
	}
	const rowH = 5
	h := padTop + n*rowH + padBottom
	end := max(rep.Duration, 1e-3)
	for i := range n {
		end = max(end, rep.Records[i].End.Seconds())
	}
	const width = 2*plotW + 16
	toX := func(s float64) float64 { return padLeft + (width-padLeft-padRight)*s/end }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="w" viewBox="0 0 %d %d" role="img" aria-label="requests"><text class="t" x="%d" y="16">%s: requests over time</text>`, width, h, padLeft, html.EscapeString(rep.Target))
	for _, v := range ticks(0, end) {
		fmt.Fprintf(&b, `<path class="g" d="M%.1f %dV%d"/><text class="x" x="%.1f" y="%d">%s</text>`, toX(v), padTop, h-padBottom, toX(v), h-padBottom+15, label(v))
	}
	fmt.Fprintf(&b, `<text class="x" x="%d" y="%d">seconds</text>`, width/2, h-6)
	for i := range n {
		r := &rep.Records[i]
		y := padTop + i*rowH
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
