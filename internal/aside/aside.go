// Package aside keeps work that single requests ask for from taking the
// processors from all others. Such work runs a few pieces at a time, on threads
// of its own, which give way to the others of the process; and while there is
// some, Go may use more processors than the machine has: a goroutine that is to
// run need not wait until a long one has had its time, the system decides.
package aside

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"ridge/internal/pool"
)

// Lane lets a number of pieces of work run at the same time.
type Lane struct{ places chan struct{} }

// NewLane returns a lane with the given number of places, at least one; 0 is half
// as many as there are processors.
func NewLane(places int) *Lane {
	if places <= 0 {
		places = pool.Procs() / 2
	}
	return &Lane{places: make(chan struct{}, max(places, 1))}
}

// Do calls f on a thread that gives way, once the lane has a place, and returns
// when f does. If ctx ends before there is one, f is not called, and its cause is
// returned. What runs aside already stays on its thread.
func (l *Lane) Do(ctx context.Context, f func(context.Context)) error {
	if of(ctx) != nil {
		if err := l.take(ctx); err != nil {
			return err
		}
		defer l.give()
		f(ctx)
		return nil
	}
	return l.Run(ctx, func(ctx context.Context) error {
		if err := Wait(ctx); err != nil {
			return err
		}
		defer Leave(ctx)
		f(ctx)
		return nil
	})
}

func (l *Lane) take(ctx context.Context) error {
	select {
	case l.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *Lane) give() { <-l.places }

type key struct{}

// turn is a place that is taken, or will be, by what runs on a thread aside.
type turn struct {
	lane *Lane
	mu   sync.Mutex // of the others
	held bool
	over bool // what ran aside has ended: its context may live on
}

// of returns the turn of what runs aside with ctx, nil for none.
func of(ctx context.Context) *turn {
	t, _ := ctx.Value(key{}).(*turn)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return nil
	}
	return t
}

// Run calls f on a thread that gives way. It has a place only between Wait and Leave
// with its context: what waits for others, a client or an answer, needs none.
func (l *Lane) Run(ctx context.Context, f func(context.Context) error) (err error) {
	t := &turn{lane: l}
	defer t.leave(true)
	thread(func() {
		giveWay()
		err = f(context.WithValue(ctx, key{}, t))
	}, true)
	return err
}

// Wait waits for the place of what runs aside with ctx, until ctx ends: then it
// returns the cause. What runs elsewhere, or has its place, does not wait.
func Wait(ctx context.Context) error {
	t := of(ctx)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		return nil
	}
	if err := t.lane.take(ctx); err != nil {
		return err
	}
	t.held = true
	room.enter()
	return nil
}

// Leave gives back the place of what runs aside with ctx, if it has one.
func Leave(ctx context.Context) {
	if t := of(ctx); t != nil {
		t.leave(false)
	}
}

func (t *turn) leave(over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = over
	if t.held {
		t.held = false
		room.leave()
		t.lane.give()
	}
}

// Back calls f, which may take long and waits for others, on a thread like any
// other, without the place that ctx had.
func Back(ctx context.Context, f func() error) (err error) {
	if of(ctx) == nil {
		return f()
	}
	Leave(ctx)
	thread(func() { err = f() }, false)
	return err
}

// thread calls f in a goroutine of its own, locked to a thread that ends with it,
// and waits for its end. It panics as f does.
func thread(f func(), locked bool) {
	var fault *Fault
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				fault = &Fault{p, debug.Stack()}
			}
		}()
		if locked {
			runtime.LockOSThread() // and never unlocked: who gives way stays so
		}
		f()
	}()
	<-done
	if fault != nil {
		panic(fault)
	}
}

// Fault is what a panic of work aside is for who waits for it.
type Fault struct {
	Value any
	Stack []byte
}

func (f *Fault) Error() string { return fmt.Sprintf("%v\n%s", f.Value, f.Stack) }

// Unwrap returns the value of the panic, if that is an error.
func (f *Fault) Unwrap() error {
	err, _ := f.Value.(error)
	return err
}
