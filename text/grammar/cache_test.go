package grammar

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"ridge/internal/pool"
)

func TestCache(t *testing.T) {
	c := NewCache(2)
	var calls atomic.Int32
	get := func(key string) *Grammar {
		g, err := c.Get(t.Context(), key, func(context.Context) (*Grammar, error) {
			calls.Add(1)
			return Regex(nil, key)
		})
		if err != nil {
			t.Error(err)
		}
		return g
	}
	a := get("a")
	if get("a") != a || calls.Load() != 1 {
		t.Error("compiled twice")
	}
	get("b")
	get("a")
	get("c") // b goes
	if get("a") != a || calls.Load() != 3 {
		t.Errorf("%d compilations", calls.Load())
	}
	if get("b"); calls.Load() != 4 {
		t.Errorf("%d compilations", calls.Load())
	}
	failed := errors.New("failed")
	for range 2 {
		if _, err := c.Get(t.Context(), "x", func(context.Context) (*Grammar, error) { calls.Add(1); return nil, failed }); err != failed {
			t.Error(err)
		}
	}
	if calls.Load() != 6 {
		t.Errorf("%d compilations: an error was kept", calls.Load())
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() { get(fmt.Sprint(i % 4)) })
	}
	wg.Wait()
}

// Who waits for a compilation waits no longer than it wants to, and compiles
// itself if the one who did has left.
func TestCacheContext(t *testing.T) {
	c := NewCache(2)
	first, leave := context.WithCancel(t.Context())
	begun := make(chan struct{})
	gone := make(chan error)
	go func() {
		_, err := c.Get(first, "a", func(ctx context.Context) (*Grammar, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		gone <- err
	}()
	<-begun
	over, end := context.WithCancel(t.Context())
	end()
	if _, err := c.Get(over, "a", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that has left: %v", err)
	}
	got := make(chan *Grammar)
	go func() {
		g, err := c.Get(t.Context(), "a", func(context.Context) (*Grammar, error) { return Regex(nil, "a") })
		if err != nil {
			t.Error(err)
		}
		got <- g
	}()
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if g := <-got; g == nil {
		t.Error("no grammar")
	}
}

// No more than a few compile at the same time, whatever the cache.
func TestCacheCompilations(t *testing.T) {
	var now, most atomic.Int32
	var wg sync.WaitGroup
	for i := range 30 {
		c := NewCache(4)
		wg.Go(func() {
			_, err := c.Get(t.Context(), fmt.Sprint(i), func(context.Context) (*Grammar, error) {
				defer now.Add(-1)
				for n := now.Add(1); n > most.Load(); {
					most.Store(n)
				}
				return Regex(nil, "[a-z]{40}")
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, places := int(most.Load()), max(1, pool.Procs()/2); n > places {
		t.Errorf("%d compile at once, want at most %d", n, places)
	}
}

// A cache holds no more memory than it may, but for the grammar used last.
func TestCacheBytes(t *testing.T) {
	c := NewCache(100)
	one, err := Regex(nil, "[a-z]{40}")
	if err != nil {
		t.Fatal(err)
	}
	c.bytes = 3*one.Bytes() + 10
	for i := range 9 {
		if _, err := c.Get(t.Context(), fmt.Sprint(i), func(context.Context) (*Grammar, error) { return Regex(nil, "[a-z]{40}") }); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.entries); n != 3 || c.held > c.bytes {
		t.Errorf("%d grammars of %d bytes, want 3", n, c.held)
	}
}

// Compiling ends soon after its context, counted in steps.
func TestBuilderContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &Builder{Source: "test", Context: ctx}
	if !b.Spend(100_000) {
		t.Fatal(b.Err())
	}
	cancel()
	n := 0
	for b.Spend(1) {
		n++
	}
	if n > 1<<16 || !errors.Is(b.Err(), context.Canceled) {
		t.Errorf("%d steps more, %v", n, b.Err())
	}
}
