package console

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// tabWidth is the distance of a terminal's tab stops.
const tabWidth = 8

// wrapper breaks text that comes in pieces into lines for a terminal, between
// words where it can.
type wrapper struct {
	rest  string // the last line, which can still grow, without tabs
	begin int    // its column in the text's own line
}

// add takes a piece of text and returns the lines of at most width columns that
// are complete by it.
func (w *wrapper) add(text string, width int) (lines []string) {
	for i, part := range strings.Split(clean(text), "\n") {
		if i > 0 {
			lines = append(lines, wrap(w.rest, width)...)
			w.rest, w.begin = "", 0
		}
		w.rest += expand(part, w.begin+ansi.StringWidth(w.rest))
	}
	// A line that follows begins with the word that did not fit: what is before it
	// is complete. Blanks at the end may become anything.
	body := strings.TrimRight(w.rest, " ")
	if all := wrap(body, width); len(all) > 1 {
		end := len(all) - 1
		lines = append(lines, all[:end]...)
		rest := all[end] + w.rest[len(body):]
		w.begin += ansi.StringWidth(w.rest) - ansi.StringWidth(rest)
		w.rest = rest
	}
	return lines
}

// last is the line that is not complete, as it is shown.
func (w *wrapper) last() string { return strings.TrimRight(w.rest, " ") }

// lastBreak returns where the last word of a line begins: after a blank or a
// character of two columns, as those that are written without blanks are.
func lastBreak(line string) int {
	for i := len(line); i > 0; {
		r, n := utf8.DecodeLastRuneInString(line[:i])
		if r == ' ' || ansi.StringWidth(line[i-n:i]) == 2 {
			return i
		}
		i -= n
	}
	return 0
}

// wrap breaks a line, between words or else where it is full. Blanks at the ends
// of what comes out are dropped.
func wrap(line string, width int) (lines []string) {
	line = strings.TrimRight(line, " ")
	for width > 0 && ansi.StringWidth(line) > width {
		fits := ansi.Truncate(line, width, "")
		if fits == "" { // a character wider than the terminal
			fits, _ = ansi.FirstGraphemeCluster(line, ansi.GraphemeWidth)
		}
		if rest := line[len(fits):]; !strings.HasPrefix(rest, " ") {
			if i := lastBreak(fits); strings.TrimLeft(fits[:i], " ") != "" {
				fits = fits[:i]
			}
		}
		lines = append(lines, strings.TrimRight(fits, " "))
		line = strings.TrimLeft(line[len(fits):], " ")
	}
	return append(lines, line)
}

// clean replaces what could do something to a terminal: the text comes from a
// model, and that from strangers.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return '\ufffd'
		}
		return r
	}, text)
}

// expand replaces tabs by blanks up to the next stop. The text begins at column.
func expand(text string, column int) string {
	if !strings.Contains(text, "\t") {
		return text
	}
	var b strings.Builder
	for i, part := range strings.Split(text, "\t") {
		if i > 0 {
			n := tabWidth - column%tabWidth
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		b.WriteString(part)
		column += ansi.StringWidth(part)
	}
	return b.String()
}
