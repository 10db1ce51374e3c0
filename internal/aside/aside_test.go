package aside

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// So many run as there are places, also where work begins within other work, and
// what waits for others has none.
func TestLane(t *testing.T) {
	l, other := NewLane(2), NewLane(1)
	var now, most atomic.Int32
	work := func(context.Context) {
		n := now.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		now.Add(-1)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := l.Do(t.Context(), work); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			err := other.Run(t.Context(), func(ctx context.Context) error {
				if err := Wait(ctx); err != nil {
					return err
				}
				if err := Wait(ctx); err != nil { // it has its place
					return err
				}
				return l.Do(ctx, work)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := most.Load(); n != 2 {
		t.Errorf("%d worked at once, want 2", n)
	}
	if len(l.places)+len(other.places) != 0 {
		t.Error("places were not given back")
	}
}

// Who waits for a place leaves with its context, and who runs without one is in
// nobody's way.
func TestWait(t *testing.T) {
	l := NewLane(1)
	gone := errors.New("gone")
	err := l.Run(t.Context(), func(first context.Context) error {
		if err := Wait(first); err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if err := l.Do(ctx, func(context.Context) { t.Error("there was no place") }); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		return Back(first, func() error { return l.Do(t.Context(), func(context.Context) {}) })
	})
	if err != nil {
		t.Error(err)
	}
	var after context.Context
	_ = l.Run(t.Context(), func(ctx context.Context) error { after = ctx; return nil })
	if err := Wait(after); err != nil || len(l.places) != 0 {
		t.Errorf("a context that outlives its work takes a place: %v", err)
	}
}

// A panic comes out where the work was begun, and says where it arose.
func TestPanic(t *testing.T) {
	l := NewLane(1)
	defer func() {
		f, ok := recover().(*Fault)
		if !ok || f.Unwrap() == nil || !strings.Contains(f.Error(), "TestPanic") {
			t.Errorf("got %v", f)
		}
		if len(l.places) != 0 {
			t.Error("its place was not given back")
		}
	}()
	_ = l.Do(t.Context(), func(context.Context) { panic(errors.New("no")) })
}

// While there is work, Go has a processor for each piece more, and none after.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p processors
		before := runtime.GOMAXPROCS(0)
		p.enter()
		if n := runtime.GOMAXPROCS(0); n != before {
			t.Errorf("%d processors, though nobody allowed more than %d", n, before)
		}
		p.leave()
		p.allow = true
		for _, c := range []struct {
			do   func()
			want int
		}{{p.enter, 1}, {p.enter, 2}, {p.leave, 2}, {func() { time.Sleep(2 * calm) }, 1}, {p.leave, 1}, {p.enter, 1}, {p.leave, 1}, {func() { time.Sleep(2 * calm) }, 0}} {
			c.do()
			synctest.Wait()
			if n := runtime.GOMAXPROCS(0); n != before+c.want {
				t.Errorf("%d processors, want %d and %d", n, before, c.want)
			}
		}
	})
}
