package console

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Printer writes text to a terminal as it comes: between words where a line is
// full, and without control characters.
type Printer struct {
	out     io.Writer
	width   func() int
	text    wrapper
	printed int // bytes of the line that is not complete
}

// NewPrinter returns a printer for a terminal, and nil for a file that is none.
func NewPrinter(f *os.File) *Printer {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Printer{out: f, width: func() int {
		w, _, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 0
		}
		return w
	}}
}

// Write prints all but the last word, which can grow.
func (p *Printer) Write(b []byte) (int, error) {
	var out strings.Builder
	for _, line := range p.text.add(string(b), p.width()) {
		out.WriteString(line[min(p.printed, len(line)):] + "\n")
		p.printed = 0
	}
	last := p.text.last()
	if n := lastBreak(last); n > p.printed {
		out.WriteString(strings.TrimRight(last[p.printed:n], " "))
		p.printed += len(strings.TrimRight(last[p.printed:n], " "))
	}
	if _, err := io.WriteString(p.out, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush prints the last word.
func (p *Printer) Flush() error {
	last := p.text.last()
	_, err := io.WriteString(p.out, last[min(p.printed, len(last)):])
	p.printed = len(last)
	return err
}
