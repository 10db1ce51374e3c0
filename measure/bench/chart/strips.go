package chart

import (
	"fmt"
	"html"
	"math"
	"strings"
	"unicode/utf8"
)

// Strips is a plot of samples: a row for each set of them, with a ring for each sample
// and a line at its middle.
type Strips struct {
	Title, X string
	Rows     []Strip
}

// Strip is a row of Strips.
type Strip struct {
	Name, Text string // before and behind the samples
	Class      int    // of colour, from 0
	Samples    []float64
	Middle     float64
}

const stripH = 18

// SVG draws the plot, "" without samples. Far values have a logarithmic scale.
func (s *Strips) SVG() string {
	x0, x1, name, text := math.Inf(1), 0.0, 0, 0
	for _, r := range s.Rows {
		for _, v := range r.Samples {
			if v > 0 {
				x0, x1 = min(x0, v), max(x1, v)
			}
		}
		name, text = max(name, utf8.RuneCountInString(r.Name)), max(text, utf8.RuneCountInString(r.Text))
	}
	if x1 == 0 {
		return ""
	}
	left, right := PadLeft+min(letterW*name, WideWidth/3), WideWidth-PadRight-min(letterW*text+8, WideWidth/4)
	a := area{x1: 1.05 * x1}
	marks := Ticks(0, a.x1)
	if x1 > 8*x0 {
		a = area{x0: x0 / 1.3, x1: x1 * 1.3, xlog: true}
		marks = logTicks(a.x0, a.x1)
	}
	toX := func(v float64) float64 { return float64(left) + (a.x(v)-PadLeft)/innerW*float64(right-left) }
	height := PadTop + stripH*len(s.Rows) + PadBottom
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="w" viewBox="0 0 %d %d" role="img" aria-label="%s"><text class="t" x="%d" y="16">%s</text>`, WideWidth, height, html.EscapeString(s.Title), PadRight, html.EscapeString(s.Title))
	for _, v := range marks {
		fmt.Fprintf(&b, `<path class="g" d="M%.1f %dV%d"/><text class="x" x="%.1f" y="%d">%s</text>`, toX(v), PadTop, height-PadBottom, toX(v), height-PadBottom+15, Label(v))
	}
	fmt.Fprintf(&b, `<path class="a" d="M%d %dV%dH%d"/><text class="x" x="%d" y="%d">%s</text>`, left, PadTop, height-PadBottom, right, (left+right)/2, height-6, html.EscapeString(s.X))
	for i, r := range s.Rows {
		y, class := PadTop+stripH*i+stripH/2, r.Class%Colours
		fmt.Fprintf(&b, `<text class="y" x="%d" y="%d">%s</text><text x="%d" y="%d">%s</text>`, left-8, y+4, html.EscapeString(r.Name), right+8, y+4, html.EscapeString(r.Text))
		if r.Middle > 0 {
			fmt.Fprintf(&b, `<path class="l c%d" d="M%.1f %dv12"/>`, class, toX(r.Middle), y-6)
		}
		for _, v := range r.Samples {
			if v > 0 {
				fmt.Fprintf(&b, `<circle class="l c%d" cx="%.1f" cy="%d" r="3.5"/>`, class, toX(v), y)
			}
		}
	}
	b.WriteString("</svg>")
	return b.String()
}
