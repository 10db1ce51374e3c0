// Package load puts servers of language models under load and measures what
// their clients see: time to the first token, between tokens and to the end,
// throughput, and what fails. It speaks OpenAI's protocol and knows nothing of
// the server behind it, except that it reads the counters of a ridge.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what a run does. Either Clients, or Arrivals, or a trace say when
// sessions come.
type Options struct {
	Target   *Target
	Workload Workload

	Clients    int           // closed loop: each takes the next session when its last one is over
	Arrivals   *Arrivals     // open loop
	MaxClients int           // of an open loop: sessions at one time, the others wait; 0 for any number
	Sessions   int           // at most; 0 for as many as Duration or the trace have
	Duration   time.Duration // in which sessions begin; 0 for any
	Timeout    time.Duration // of a request; 0 for none
	Warmup     int           // requests before, which do not count

	SLO      []Objective
	Progress func(Progress) // called a few times a second, and at the end
}

// Progress is how far a run is.
type Progress struct {
	Elapsed      time.Duration
	Done, Failed int // requests
	Sessions     int // over
	Of           int // sessions of the run, 0 if nobody knows
	Running      int // requests
	Pieces       int // of text, so far
}

func (o *Options) complete() error {
	if err := o.Workload.Complete(); err != nil {
		return err
	}
	if o.Target == nil {
		return errors.New("load: target: expected a server, found none")
	}
	w := &o.Workload
	if o.Clients < 0 || o.MaxClients < 0 || o.Sessions < 0 || o.Duration < 0 || o.Timeout < 0 || o.Warmup < 0 {
		return errors.New("load: options: expected no negative limits")
	}
	if n := w.Len(); n > 0 && (o.Sessions == 0 || o.Sessions > n) && (o.Clients == 0 || o.Duration == 0) {
		o.Sessions = n
	}
	if w.Kind == Intruder || w.Kind == Agents {
		return nil
	}
	if o.Arrivals != nil {
		if err := o.Arrivals.check(); err != nil {
			return err
		}
		if o.Clients > 0 {
			return errors.New("load: options: expected a number of clients or a rate of arrivals, found both")
		}
	}
	if o.Clients == 0 && o.Arrivals == nil && w.Kind != Trace {
		return errors.New("load: options: expected a number of clients or a rate of arrivals, found neither")
	}
	if o.Sessions == 0 && o.Duration == 0 {
		return errors.New("load: options: expected a number of requests or a duration, found neither")
	}
	return nil
}

// runner is a run under way.
type runner struct {
	o     *Options
	start time.Time

	mu      sync.Mutex
	records []Record

	done, failed, sessions, running, pieces atomic.Int64
}

// Run puts the load on the server. If ctx ends, the report has what there is
// until then, and Interrupted is set.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &runner{o: &o}
	if err := r.warm(ctx); err != nil {
		return nil, err
	}
	if o.Workload.Kind == Agents {
		if err := o.Workload.fit(o.Target.context(ctx)); err != nil {
			return nil, err
		}
	}
	watch := watchServer(ctx, o.Target)
	r.start = time.Now()
	stop := r.report()
	switch {
	case o.Workload.Kind == Intruder:
		r.intrude(ctx)
	case o.Workload.Kind == Agents:
		r.agents(ctx)
	case o.Clients > 0:
		r.closed(ctx)
	default:
		r.open(ctx)
	}
	took := r.now()
	stop()
	rep := r.summary(took)
	rep.Interrupted = ctx.Err() != nil
	rep.Server = watch.end()
	return rep, nil
}

func (r *runner) now() time.Duration { return time.Since(r.start) }

// warm sends requests that do not count: the server gets to know its weights,
// and without a tokenizer here, texts get to know their length.
func (r *runner) warm(ctx context.Context) error {
	r.start = time.Now()
	w := r.o.Workload
	w.Seed ^= 0x5eed
	for i := range r.o.Warmup {
		const words = 64
		t := Turn{Text: w.Text.Text(newRand(w.Seed, uint64(i)), words, false), Tokens: words, Max: 8}
		rec := r.o.Target.do(ctx, r.now, &said{}, &t, r.o.Timeout, func() {})
		if rec.Stopped {
			return ctx.Err()
		}
		if rec.Failure != "" {
			return fmt.Errorf("load: %s: the first request failed: %s: %s", r.o.Target.Name, rec.Failure, rec.Detail)
		}
		if i == 0 && !w.Text.counted && !rec.Guessed && !r.o.Target.Chat {
			w.Text.Fit(words, rec.Prompt)
		}
	}
	return nil
}

// report calls Progress until stop.
func (r *runner) report() (stop func()) {
	if r.o.Progress == nil {
		return func() {}
	}
	quit, over := make(chan struct{}), make(chan struct{})
	tick := func() {
		r.o.Progress(Progress{r.now(), int(r.done.Load()), int(r.failed.Load()), int(r.sessions.Load()), r.o.Sessions, int(r.running.Load()), int(r.pieces.Load())})
	}
	go func() {
		defer close(over)
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				tick()
			case <-quit:
				tick()
				return
			}
		}
	}()
	return func() { close(quit); <-over }
}

// closed lets clients take sessions until there are no more.
func (r *runner) closed(ctx context.Context) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range r.o.Clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if r.o.Sessions > 0 && i >= r.o.Sessions || r.o.Duration > 0 && r.now() >= r.o.Duration {
					return
				}
				r.session(ctx, r.o.Workload.Session(i), r.now(), false)
			}
		})
	}
	wg.Wait()
}

// open lets sessions begin when they are due.
func (r *runner) open(ctx context.Context) {
	var times func() time.Duration
	if r.o.Arrivals != nil {
		times = r.o.Arrivals.Times()
	}
	var slots chan struct{}
	if r.o.MaxClients > 0 {
		slots = make(chan struct{}, r.o.MaxClients)
	}
	var wg sync.WaitGroup
	for i := 0; r.o.Sessions == 0 || i < r.o.Sessions; i++ {
		s := r.o.Workload.Session(i)
		if times != nil {
			s.At = times()
		}
		if r.o.Duration > 0 && s.At >= r.o.Duration || !sleep(ctx, s.At-r.now()) {
			break
		}
		wg.Go(func() {
			if slots != nil {
				select {
				case slots <- struct{}{}:
					defer func() { <-slots }()
				case <-ctx.Done():
					return
				}
			}
			r.session(ctx, s, s.At, false)
		})
	}
	wg.Wait()
}

// sleep waits, and says whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// session has a session's requests answered, which may be an intruder's.
func (r *runner) session(ctx context.Context, s Session, due time.Duration, intruder bool) {
	var h said
	for k := range s.Turns {
		t := &s.Turns[k]
		if t.Pause > 0 {
			if !sleep(ctx, t.Pause) {
				return
			}
			due = r.now()
		}
		rec := r.ask(ctx, &h, t)
		rec.Session, rec.Turn, rec.Group, rec.Due, rec.Intruder = s.ID, k, s.Group, due, intruder
		r.keep(rec)
		if !rec.OK() {
			break
		}
		h.prompts, h.answers = append(h.prompts, t.Text), append(h.answers, rec.text)
		due = r.now()
	}
	r.sessions.Add(1)
}

func (r *runner) ask(ctx context.Context, h *said, t *Turn) Record {
	r.running.Add(1)
	defer r.running.Add(-1)
	return r.o.Target.do(ctx, r.now, h, t, r.o.Timeout, func() { r.pieces.Add(1) })
}

func (r *runner) keep(rec Record) {
	rec.text = ""
	r.mu.Lock()
	r.records = append(r.records, rec)
	r.mu.Unlock()
	switch {
	case rec.Stopped:
	case rec.Failure != "":
		r.failed.Add(1)
	default:
		r.done.Add(1)
	}
}
