package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"ridge/hub"
)

// progress shows what takes long: bars on a terminal, plain lines elsewhere.
type progress struct {
	w    io.Writer
	tty  bool
	mu   sync.Mutex
	bars *mpb.Progress
	open map[*mpb.Bar]bool // bars that have not ended
	text hub.Progress
}

func newProgress(f *os.File) *progress {
	return &progress{w: f, tty: term.IsTerminal(int(f.Fd())), text: hub.TextProgress(f)}
}

// hub returns p as downloads want it.
func (p *progress) hub() hub.Progress { return hubProgress{p} }

// note prints a remark above the bars.
func (p *progress) note(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bars != nil {
		fmt.Fprintln(p.bars, s)
		return
	}
	fmt.Fprintln(p.w, s)
}

// container returns the group of bars, made with the first one so that quick
// work shows nothing.
func (p *progress) container() *mpb.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bars == nil {
		p.bars = mpb.New(mpb.WithOutput(p.w), mpb.WithWidth(64), mpb.WithRefreshRate(100*time.Millisecond))
	}
	return p.bars
}

// close ends what is still open and waits until the last state of all bars is
// on the screen.
func (p *progress) close() {
	p.mu.Lock()
	bars := p.bars
	for b := range p.open {
		b.Abort(false)
	}
	p.mu.Unlock()
	if bars == nil {
		return
	}
	bars.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bars = nil // it prints no more
}

// add starts a bar.
func (p *progress) add(total int64, options ...mpb.BarOption) *bar {
	b := p.container().AddBar(total, options...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[*mpb.Bar]bool{}
	}
	p.open[b] = true
	return &bar{p: p, b: b, last: time.Now()}
}

type hubProgress struct{ p *progress }

func (h hubProgress) Start(name string, total int64) hub.Bar {
	if !h.p.tty {
		return h.p.text.Start(name, total)
	}
	if r := []rune(name); len(r) > 40 {
		name = "…" + string(r[len(r)-39:])
	}
	return h.p.add(max(total, 0),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersKibiByte("% .1f / % .1f", decor.WCSyncSpace)),
		mpb.AppendDecorators(
			decor.OnAbort(decor.OnComplete(decor.EwmaSpeed(decor.SizeB1024(0), "% .1f", 30, decor.WCSyncSpace), "done"), "stopped"),
			decor.OnAbort(decor.OnComplete(decor.EwmaETA(decor.ET_STYLE_GO, 30, decor.WCSyncSpace), ""), ""),
		))
}

// bar adapts a bar of the library. The library wants the time that each
// increment took.
type bar struct {
	p    *progress
	mu   sync.Mutex
	b    *mpb.Bar
	last time.Time
}

func (b *bar) since() time.Duration {
	now := time.Now()
	d := now.Sub(b.last)
	b.last = now
	return d
}

func (b *bar) Add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.b.EwmaIncrInt64(n, b.since())
}

func (b *bar) Set(done int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.since()
	b.b.SetCurrent(done)
	b.b.SetRefill(done)
}

func (b *bar) Done(err error) {
	b.p.mu.Lock()
	delete(b.p.open, b.b)
	b.p.mu.Unlock()
	if err != nil {
		b.b.Abort(false)
		return
	}
	b.b.SetTotal(-1, true)
}

// slowLoad is when loading is worth a bar.
const slowLoad = 700 * time.Millisecond

// load returns a callback that shows the loading of a model's weights once it
// takes long.
func (p *progress) load(name string) func(done, total int64) { return p.work("loading " + name) }

// work returns a callback that shows the progress of something by its bytes, once
// it takes long.
func (p *progress) work(what string) func(done, total int64) {
	start := time.Now()
	var b hub.Bar
	return func(done, total int64) {
		if !p.tty || b == nil && time.Since(start) < slowLoad {
			return
		}
		if b == nil {
			b = p.hub().Start(what, total)
			b.Set(done)
			return
		}
		b.Set(done)
		if done >= total {
			b.Done(nil)
		}
	}
}

// count starts a bar that counts pieces of work.
func (p *progress) count(name string, total int) hub.Bar {
	return p.add(int64(total),
		mpb.PrependDecorators(decor.Name(name, decor.WCSyncSpaceR), decor.CountersNoUnit("%d / %d")),
		mpb.AppendDecorators(decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "done")),
	)
}
