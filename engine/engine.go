package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ridge/model"
)

// Engine runs requests on one model. Its methods may be called from any
// goroutine.
type Engine struct {
	m      *model.Model
	o      Options
	limits limits
	queue  int // requests that may wait, 0 for any number
	start  time.Time

	mu      sync.Mutex // of the inbox
	inbox   []command
	refuse  error // why no request is taken any more
	wake    chan struct{}
	done    chan struct{} // closed when the loop has ended
	waiting atomic.Int64  // requests that were not admitted yet
	stepAt  atomic.Int64  // when the step at hand began, 0 between steps
	pace    atomic.Int64  // mean time between ends of requests, nanoseconds
	last    atomic.Pointer[Stats]
	asked   atomic.Int64 // when somebody last asked for Stats, 0 for never
	mapped  atomic.Pointer[pageMap]
	noted   atomic.Bool // last is of the beginning of the step that the model computes, or younger

	computing atomic.Bool // the model is at a step
	broken    atomic.Bool // it computes no more: the model's files were changed, or the loop failed

	loop // everything else belongs to the loop
}

// command is what others ask of the loop.
type command struct {
	kind   commandKind
	g      *group
	choice int
	call   func()
}

type commandKind uint8

const (
	submitGroup commandKind = iota
	abortGroup
	stopChoice
	callFunc
	closeEngine
)

// New starts an engine on m, which it owns until Close has returned: nobody
// else may compute with m or use its pool. Drafters of o are closed with it, or if it
// cannot be started.
func New(m *model.Model, o Options) (*Engine, error) {
	e, err := newEngine(m, o)
	if d := o.Draft; err != nil && d != nil && d.Close != nil {
		err = errors.Join(err, d.Close())
	}
	return e, err
}

func newEngine(m *model.Model, o Options) (*Engine, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	e := &Engine{
		m: m, o: o, start: time.Now(),
		limits: limits{vocab: m.Config().Vocab, context: m.Context()},
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
	}
	e.limits.reads, e.limits.scores = m.Config().Encoder.Both, m.Net().Classes != nil
	if e.limits.reads {
		e.wholePrompts()
	}
	cfg := *e.o.Sched
	e.queue, cfg.MaxQueue = cfg.MaxQueue, 0
	if err := e.init(cfg); err != nil {
		return nil, err
	}
	// Here and not on the loop, which could not answer meanwhile: an engine that
	// is there is ready.
	if e.o.Calibrate || cfg.ITLTarget > 0 {
		if err := e.calibrate(); err != nil {
			return nil, fmt.Errorf("engine: first steps: %w", err)
		}
	}
	if d := o.Draft; d != nil && !d.Always && d.Patience > 0 {
		if err := e.calibrateDrafts(d.Patience); err != nil {
			return nil, fmt.Errorf("engine: first steps: %w", err)
		}
	}
	first := e.stats() // for who asks during a step that is longer than they wait
	e.keep(&first)
	go e.run()
	return e, nil
}

// Model returns the engine's model, for its accessors.
func (e *Engine) Model() *model.Model { return e.m }

// Pages returns the number of pages that the model's pool can have for sure.
func (e *Engine) Pages() int { return e.m.Pool().Sure() }

// Slots returns the number of sequences that can run at one time.
func (e *Engine) Slots() int { return e.limits.seqs }

// now is the scheduler's clock.
func (e *Engine) now() time.Duration { return time.Since(e.start) }

// Submit queues a request. It fails with a *[RequestError], a *[ContextError],
// a *[QueueFullError], [ErrDraining] or [ErrClosed]. When ctx ends, the request is
// aborted before the next step.
func (e *Engine) Submit(ctx context.Context, r Request) (*Stream, error) {
	if err := r.complete(e.limits); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	if err := e.refused(); err != nil {
		return nil, err
	}
	if n := e.waiting.Add(1); e.queue > 0 && n > int64(e.queue) {
		e.waiting.Add(-1)
		// n may count others that are being refused at this moment.
		return nil, &QueueFullError{Position: e.queue, RetryAfter: e.retryAfter()}
	}
	g, err := e.newGroup(&r)
	if err != nil {
		e.waiting.Add(-1)
		return nil, err
	}
	// Before the request is known to the loop, which ends the watch.
	g.unwatch = context.AfterFunc(ctx, func() { e.post(command{kind: abortGroup, g: g}) })
	if err := e.post(command{kind: submitGroup, g: g}); err != nil {
		g.unwatch()
		e.waiting.Add(-1)
		return nil, err
	}
	return g.stream, nil
}

// Admit returns the error that Submit would return now whatever the request.
func (e *Engine) Admit() error {
	if err := e.refused(); err != nil {
		return err
	}
	if e.queue > 0 && e.waiting.Load() >= int64(e.queue) {
		return &QueueFullError{Position: e.queue, RetryAfter: e.retryAfter()}
	}
	return nil
}

func (e *Engine) refused() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refuse
}

// retryAfter guesses when a request that waits will have left the queue.
func (e *Engine) retryAfter() time.Duration {
	return max(time.Duration(e.pace.Load()), time.Second).Round(time.Second)
}

// post puts a command into the inbox. Commands that are of no use once no
// request is taken are refused.
func (e *Engine) post(c command) error {
	e.mu.Lock()
	if e.refuse != nil && (c.kind == submitGroup || e.refuse == ErrClosed) {
		err := e.refuse
		e.mu.Unlock()
		return err
	}
	e.inbox = append(e.inbox, c)
	e.mu.Unlock()
	e.wakeUp()
	return nil
}

func (e *Engine) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// call runs f on the loop, between two steps.
func (e *Engine) call(ctx context.Context, f func()) error {
	ran := make(chan struct{})
	if err := e.post(command{kind: callFunc, call: func() { f(); close(ran) }}); err != nil {
		return err
	}
	select {
	case <-ran:
		return nil
	case <-e.done:
		select {
		case <-ran:
			return nil
		default:
			return ErrClosed
		}
	case <-ctx.Done():
		return fmt.Errorf("engine: %w", ctx.Err())
	}
}

// Drain refuses new requests and returns when all others are complete, or with
// an error when ctx ends before.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	if e.refuse == nil {
		e.refuse = ErrDraining
	}
	e.mu.Unlock()
	idle := make(chan struct{})
	err := e.call(ctx, func() {
		if len(e.groups) == 0 {
			close(idle)
			return
		}
		e.onIdle = append(e.onIdle, idle)
	})
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if err != nil {
		return err
	}
	select {
	case <-idle:
	case <-e.done:
	case <-ctx.Done():
		return fmt.Errorf("engine: drain: %w", ctx.Err())
	}
	return nil
}

// Close aborts all requests, gives their memory back and ends the loop. The
// model stays open and is the caller's again. The error is what [Engine.Check]
// finds at the end.
func (e *Engine) Close() error {
	e.mu.Lock()
	closed := e.refuse == ErrClosed
	if !closed {
		e.inbox = append(e.inbox, command{kind: closeEngine})
		e.refuse = ErrClosed
	}
	e.mu.Unlock()
	e.wakeUp()
	<-e.done
	if d := e.o.Draft; d != nil && d.Close != nil && !closed {
		return errors.Join(e.endErr, d.Close())
	}
	return e.endErr
}

// Healthy says whether steps come to an end: it returns an error if the one at
// hand takes longer than Options.StepLimit, if the loop has ended, or
// model.ErrChanged if the model's files were changed.
func (e *Engine) Healthy() error {
	select {
	case <-e.done:
		return ErrClosed
	default:
	}
	if e.broken.Load() {
		return fmt.Errorf("engine: %w", model.ErrChanged)
	}
	if at := e.stepAt.Load(); at != 0 {
		if took := e.now() - time.Duration(at); took > e.o.StepLimit {
			return fmt.Errorf("engine: a step takes %v, more than %v", took.Round(time.Millisecond), e.o.StepLimit)
		}
	}
	return nil
}

// Check verifies the books of pool, tree and scheduler between two steps, and
// that an idle engine holds no pages but those of the prefix tree. What is being
// read of files is read to its end before.
func (e *Engine) Check(ctx context.Context) error {
	var err error
	check := func() {
		for e.readSnapshots() {
		}
		err = e.check()
	}
	if e := e.call(ctx, check); e != nil {
		return e
	}
	return err
}

func (l *loop) check() error {
	if err := l.pool.Check(l.holders()...); err != nil {
		return err
	}
	if err := l.sched.Check(); err != nil {
		return err
	}
	if len(l.groups) > 0 {
		return nil
	}
	if n := len(l.seqs); n > 0 || !l.sched.Idle() {
		return fmt.Errorf("engine: no request is left, but %d sequences are; scheduler idle: %v", n, l.sched.Idle())
	}
	if st := l.pool.Stats(); st.InUse != 0 {
		return fmt.Errorf("engine: no request is left, but %d pages are in use", st.InUse)
	}
	return nil
}
