// Package chart draws plots as SVG, and the pages that show them: neither needs
// another program, nor anything from elsewhere.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Chart is a plot of lines.
type Chart struct {
	Title, X, Y string
	XLog, YLog  bool
	YMax        float64 // 0: from the lines
	Lines       []Line
}

// Line is a line of a chart, or the marks of a kind.
type Line struct {
	Name   string
	Class  int // of colour, from 0
	Points [][2]float64
	Step   bool // goes up and down only where a point is
	Marks  bool // a ring at each point
	Apart  bool // no line between the marks
	Dashed bool
	Label  string // beside the middle point, if there is room
}

// The size of a plot and of its margins, in pixels.
const (
	Width, Height     = 520, 260
	PadLeft, PadRight = 56, 12
	PadTop, PadBottom = 26, 40
	WideWidth         = 2*Width + 16 // of a plot that has a row of the page for itself
	innerW, innerH    = Width - PadLeft - PadRight, Height - PadTop - PadBottom
	maxPoints         = 400 // of a line: more cannot be seen
)

// Colours is how many colours there are.
const Colours = 6

// area is what a plot shows.
type area struct {
	x0, x1, y0, y1 float64
	xlog, ylog     bool
}

// area returns the part of the plane in which the lines are, false if there are none.
func (c *Chart) area() (area, bool) {
	a := area{x0: math.Inf(1), x1: math.Inf(-1), y0: math.Inf(1), y1: c.YMax, xlog: c.XLog, ylog: c.YLog}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if c.XLog && p[0] <= 0 || c.YLog && p[1] <= 0 {
				continue
			}
			a.x0, a.x1, a.y0 = min(a.x0, p[0]), max(a.x1, p[0]), min(a.y0, p[1])
			if c.YMax == 0 {
				a.y1 = max(a.y1, p[1])
			}
		}
	}
	if math.IsInf(a.x0, 0) || a.y1 <= 0 {
		return a, false
	}
	if !c.XLog {
		a.x0 = 0
	}
	if a.x1 <= a.x0 && c.XLog { // one value: its line stands in the middle
		a.x0, a.x1 = a.x0/2, 2*a.x1
	} else if a.x1 <= a.x0 {
		a.x1 = a.x0 + 1
	}
	if c.YLog {
		a.y0, a.y1 = a.y0/1.5, a.y1*1.5
	} else {
		a.y0 = 0
	}
	return a, true
}

func (a *area) x(v float64) float64 {
	if a.xlog {
		return PadLeft + innerW*math.Log(max(v, a.x0)/a.x0)/math.Log(a.x1/a.x0)
	}
	return PadLeft + innerW*(v-a.x0)/(a.x1-a.x0)
}

func (a *area) y(v float64) float64 {
	if a.ylog {
		return PadTop + innerH*(1-math.Log(min(max(v, a.y0), a.y1)/a.y0)/math.Log(a.y1/a.y0))
	}
	return PadTop + innerH*(1-min(v, a.y1)/a.y1)
}

// SVG draws the chart.
func (c *Chart) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><text class="t" x="%d" y="16">%s</text>`, Width, Height, html.EscapeString(c.Title), PadLeft, html.EscapeString(c.Title))
	a, ok := c.area()
	if !ok {
		fmt.Fprintf(&b, `<text x="%d" y="%d">no data</text></svg>`, Width/2-24, Height/2)
		return b.String()
	}
	c.axes(&b, &a)
	var labels labels
	for _, l := range c.Lines {
		if len(l.Points) == 0 {
			continue
		}
		name := html.EscapeString(l.Name)
		if !l.Apart {
			dashes := ""
			if l.Dashed {
				dashes = ` stroke-dasharray="5 3"`
			}
			fmt.Fprintf(&b, `<path class="l c%d" d="%s"%s><title>%s</title></path>`, l.Class%Colours, l.path(&a), dashes, name)
			labels.avoidLine(&a, l.Points)
		}
		for _, p := range l.Points {
			if l.Marks {
				fmt.Fprintf(&b, `<circle class="l c%d" cx="%.1f" cy="%.1f" r="3.5"><title>%s</title></circle>`, l.Class%Colours, a.x(p[0]), a.y(p[1]), name)
				labels.avoid(a.x(p[0]), a.y(p[1]), 4)
			}
		}
	}
	for _, l := range c.Lines {
		if l.Label != "" && len(l.Points) > 0 {
			p := l.Points[len(l.Points)/2]
			labels.put(&b, a.x(p[0]), a.y(p[1]), l.Label)
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

func (l *Line) path(a *area) string {
	var b strings.Builder
	every := max(1, (len(l.Points)+maxPoints-1)/maxPoints)
	for i, p := range l.Points {
		if i%every != 0 && i != len(l.Points)-1 {
			continue
		}
		x, y := a.x(p[0]), a.y(p[1])
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		case l.Step:
			fmt.Fprintf(&b, "H%.1fV%.1f", x, y)
		default:
			fmt.Fprintf(&b, "L%.1f %.1f", x, y)
		}
	}
	return b.String()
}

func (c *Chart) axes(b *strings.Builder, a *area) {
	fmt.Fprintf(b, `<path class="a" d="M%d %dV%dH%d"/>`, PadLeft, PadTop, Height-PadBottom, Width-PadRight)
	levels := Ticks(0, a.y1)
	if c.YLog {
		levels = logTicks(a.y0, a.y1)
	}
	for _, v := range levels {
		fmt.Fprintf(b, `<path class="g" d="M%d %.1fH%d"/><text class="y" x="%d" y="%.1f">%s</text>`, PadLeft, a.y(v), Width-PadRight, PadLeft-6, a.y(v)+4, Label(v))
	}
	marks := Ticks(a.x0, a.x1)
	if c.XLog {
		marks = logTicks(a.x0, a.x1)
	}
	for _, v := range marks {
		fmt.Fprintf(b, `<path class="g" d="M%.1f %dV%d"/><text class="x" x="%.1f" y="%d">%s</text>`, a.x(v), PadTop, Height-PadBottom, a.x(v), Height-PadBottom+15, Label(v))
	}
	fmt.Fprintf(b, `<text class="x" x="%d" y="%d">%s</text>`, PadLeft+innerW/2, Height-6, html.EscapeString(c.X))
	fmt.Fprintf(b, `<text class="x" transform="translate(12 %d) rotate(-90)">%s</text>`, PadTop+innerH/2, html.EscapeString(c.Y))
}

// Ticks are round numbers from lo to hi, about five.
func Ticks(lo, hi float64) []float64 {
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

// Label writes a number of an axis.
func Label(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return fmt.Sprintf("%gM", math.Round(v/1e5)/10)
	case a >= 1e4:
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	case a > 0 && a < 1e-3:
		return fmt.Sprintf("%.1g", v)
	}
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}
