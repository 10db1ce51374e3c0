package chart

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// letterW is about how wide a letter of a figure is, in pixels.
const letterW = 6

// labels are the places of a plot that are taken.
type labels []box

type box struct{ x0, y0, x1, y1 float64 }

func (l *labels) avoid(x, y, r float64) { *l = append(*l, box{x - r, y - r, x + r, y + r}) }

// avoidLine takes the places along a line.
func (l *labels) avoidLine(a *area, points [][2]float64) {
	for i := 1; i < len(points) && i < maxPoints; i++ {
		x0, y0, x1, y1 := a.x(points[i-1][0]), a.y(points[i-1][1]), a.x(points[i][0]), a.y(points[i][1])
		n := 1 + int(math.Hypot(x1-x0, y1-y0)/4)
		for k := range n + 1 {
			part := float64(k) / float64(n)
			l.avoid(x0+part*(x1-x0), y0+part*(y1-y0), 1)
		}
	}
}

// put writes a text near a point where nothing else is, or not at all: what a label
// says stands in a title, too.
func (l *labels) put(b *strings.Builder, x, y float64, text string) {
	w := letterW * float64(utf8.RuneCountInString(text))
	for _, dy := range []float64{4, -7, 15, -20, 28} {
		for _, at := range []struct {
			class  string
			dx, x0 float64
		}{{"", 8, 8}, {"y", -8, -8 - w}, {"x", 0, -w / 2}} {
			t := box{x + at.x0, y + dy - 9, x + at.x0 + w, y + dy + 2}
			if t.x0 < PadLeft || t.x1 > Width || t.y0 < PadTop-4 || t.y1 > Height-PadBottom {
				continue
			}
			if slices.ContainsFunc(*l, func(o box) bool { return t.x0 < o.x1 && o.x0 < t.x1 && t.y0 < o.y1 && o.y0 < t.y1 }) {
				continue
			}
			*l = append(*l, t)
			class := ""
			if at.class != "" {
				class = fmt.Sprintf(` class="%s"`, at.class)
			}
			fmt.Fprintf(b, `<text%s x="%.1f" y="%.1f">%s</text>`, class, x+at.dx, y+dy, html.EscapeString(text))
			return
		}
	}
}
