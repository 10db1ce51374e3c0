package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"ridge/hub"
)

// longestFirst is how long a first answer may wait for a model that nobody asked
// for by name. What would take longer is left, and a smaller one taken.
const longestFirst = 2 * time.Minute

// A download is judged by what came in measureFor after its beginning, or, as
// long as nothing has come, in one of the measureTries periods after that.
var measureFor = 3 * time.Second

const measureTries = 3

// slowError says that a download would take too long.
type slowError struct {
	left int64
	rate float64 // bytes a second
}

func (e *slowError) Error() string {
	if e.rate <= 0 {
		return fmt.Sprintf("the network sends nothing of its %s", bytesText(e.left))
	}
	return fmt.Sprintf("at %s/s its %s would take %s", bytesText(int64(e.rate)), bytesText(e.left), waitText(e.time()))
}

// time is how long the rest takes at that rate.
func (e *slowError) time() time.Duration {
	return time.Duration(float64(e.left) / max(e.rate, 1) * float64(time.Second))
}

// waitText prints a time to wait, roughly.
func waitText(d time.Duration) string {
	switch {
	case d > 100*time.Hour:
		return "days"
	case d > 90*time.Minute:
		return fmt.Sprintf("about %.0f hours", d.Hours())
	case d > 90*time.Second:
		return fmt.Sprintf("about %.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("about %d seconds", max(1, int(d.Round(time.Second).Seconds())))
}

// slowWatch predicts from the first seconds of each download how long it takes.
// It stops what would take longer than most, and tells the time of what stays.
type slowWatch struct {
	hub.Progress
	most time.Duration // 0 for no bound
	stop context.CancelCauseFunc
	tell func(text string)
}

// Start begins to measure, if it is the network that is waited for.
func (w *slowWatch) Start(name string, total int64) hub.Bar {
	if strings.HasPrefix(name, "unpacking ") || strings.HasPrefix(name, "checking ") {
		return w.Progress.Start(name, total)
	}
	b := &watchedBar{Bar: w.Progress.Start(name, total), w: w, total: total, begin: time.Now()}
	if total > 0 {
		b.mu.Lock() // judge waits until the timer is known
		b.timer = time.AfterFunc(measureFor, b.judge)
		b.mu.Unlock()
	}
	return b
}

type watchedBar struct {
	hub.Bar
	w     *slowWatch
	total int64

	mu         sync.Mutex
	base, done int64 // base was there when the download began
	begin      time.Time
	tries      int
	timer      *time.Timer
}

func (b *watchedBar) Add(n int64) {
	b.mu.Lock()
	b.done += n
	b.mu.Unlock()
	b.Bar.Add(n)
}

func (b *watchedBar) Set(done int64) {
	b.mu.Lock()
	b.base, b.done, b.begin = done, done, time.Now()
	b.mu.Unlock()
	b.Bar.Set(done)
}

func (b *watchedBar) Done(err error) {
	if b.timer != nil {
		b.timer.Stop()
	}
	b.Bar.Done(err)
}

func (b *watchedBar) judge() {
	b.mu.Lock()
	got := b.done - b.base
	e := &slowError{left: b.total - b.done, rate: float64(got) / max(time.Since(b.begin).Seconds(), 1e-3)}
	b.tries++
	again := got <= 0 && b.tries < measureTries
	if again {
		b.timer.Reset(measureFor)
	}
	b.mu.Unlock()
	switch {
	case again || e.left <= 0:
	case b.w.most > 0 && e.time() > b.w.most:
		b.w.stop(e)
	case e.rate > 0:
		b.w.tell(fmt.Sprintf("%s to come at %s/s: %s", bytesText(e.left), bytesText(int64(e.rate)), waitText(e.time())))
	}
}
