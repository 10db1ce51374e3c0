package grammar

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCache(t *testing.T) {
	c := NewCache(2)
	var calls atomic.Int32
	get := func(key string) *Grammar {
		g, err := c.Get(key, func() (*Grammar, error) {
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
		if _, err := c.Get("x", func() (*Grammar, error) { calls.Add(1); return nil, failed }); err != failed {
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
