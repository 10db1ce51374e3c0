package hub

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress is told about each long piece of work: a download, an unpacking, a
// check of a large file. Its methods may be called from several goroutines.
type Progress interface {
	// Start begins a piece of work of total bytes; total is -1 if unknown.
	Start(name string, total int64) Bar
}

// Bar follows one piece of work.
type Bar interface {
	Add(n int64)    // n more bytes are done
	Set(done int64) // done bytes are done, of which some may be from an earlier run
	Done(err error) // the end; err is nil on success
}

type nopBar struct{}

func (nopBar) Add(int64)  {}
func (nopBar) Set(int64)  {}
func (nopBar) Done(error) {}

func (o Options) start(name string, total int64) Bar {
	if o.Progress == nil {
		return nopBar{}
	}
	return o.Progress.Start(name, total)
}

// TextProgress writes plain lines, for output that is no terminal: one when a
// piece of work has taken a few seconds, one every few seconds after that, and
// one at its end if it took a second or more.
func TextProgress(w io.Writer) Progress {
	return &textProgress{w: w, every: 3 * time.Second, quiet: time.Second, now: time.Now}
}

type textProgress struct {
	mu           sync.Mutex
	w            io.Writer
	every, quiet time.Duration
	now          func() time.Time
}

func (p *textProgress) Start(name string, total int64) Bar {
	t := p.now()
	return &textBar{p: p, name: name, total: total, begin: t, last: t}
}

type textBar struct {
	p           *textProgress
	name        string
	total, done int64
	base        int64 // done when the first byte of this run came
	begin, last time.Time
}

func (b *textBar) Add(n int64) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.done += n
	if t := b.p.now(); t.Sub(b.last) >= b.p.every {
		b.last = t
		fmt.Fprintln(b.p.w, b.line(t))
	}
}

func (b *textBar) Set(done int64) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.done, b.base = done, done
}

func (b *textBar) Done(err error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	t := b.p.now()
	switch {
	case err != nil:
		fmt.Fprintf(b.p.w, "%s: stopped at %s\n", b.name, b.amount())
	case t.Sub(b.begin) >= b.p.quiet:
		fmt.Fprintf(b.p.w, "%s: %s done in %s\n", b.name, FormatBytes(b.done), roundTime(t.Sub(b.begin)))
	}
}

func (b *textBar) amount() string {
	if b.total < 0 {
		return FormatBytes(b.done)
	}
	pct := 100.0
	if b.total > 0 {
		pct = 100 * float64(b.done) / float64(b.total)
	}
	return fmt.Sprintf("%s of %s (%.0f%%)", FormatBytes(b.done), FormatBytes(b.total), pct)
}

func (b *textBar) line(t time.Time) string {
	s := b.name + ": " + b.amount()
	speed := float64(b.done-b.base) / max(t.Sub(b.begin).Seconds(), 1e-3)
	s += ", " + FormatBytes(int64(speed)) + "/s"
	if b.total >= 0 && speed > 0 {
		s += ", " + roundTime(time.Duration(float64(b.total-b.done)/speed*float64(time.Second))).String() + " left"
	}
	return s
}

func roundTime(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// FormatBytes prints a size with a decimal unit, e.g. "98.4 MB".
func FormatBytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n) / 1000
	i := 0
	for v >= 999.95 && i < len(units)-1 {
		v /= 1000
		i++
	}
	return fmt.Sprintf("%.1f %cB", v, units[i])
}

// meter lets several pieces of one file share a bar.
type meter struct {
	bar  Bar
	base int64 // bytes of the pieces before
}

func (m meter) add(n int64) { m.bar.Add(n) }
func (m meter) set(n int64) { m.bar.Set(m.base + n) }
