package engine

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Who asks during a long step and gives up does the engine no harm.
func TestStatsGivesUp(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	busy, over := make(chan struct{}), make(chan struct{})
	go func() {
		_ = e.call(t.Context(), func() { close(busy); <-over })
	}()
	<-busy
	begin := time.Now()
	// What does not change is known all the same, though nobody had asked before.
	if st := e.Stats(); st.Pool.Pages != 64 || st.Usage.Slots != 64*16 || time.Since(begin) < statsPatience {
		t.Errorf("after %v: %+v", time.Since(begin), st)
	}
	close(over)
	if st := e.Stats(); st.Pool.Pages == 0 {
		t.Errorf("%+v", st)
	}
	if err := e.Healthy(); err != nil {
		t.Error(err)
	}
}

// If the loop fails, no request hangs, not even one that it had not looked at.
func TestLoopFails(t *testing.T) {
	e, err := New(openTiny(t, "llama", 64), Options{})
	if err != nil {
		t.Fatal(err)
	}
	busy, over := make(chan struct{}), make(chan struct{})
	go func() { _ = e.call(t.Context(), func() { close(busy); <-over }) }()
	<-busy
	go func() { _ = e.call(t.Context(), func() { panic("a defect") }) }()
	for { // until it is in the inbox, before the request
		e.mu.Lock()
		n := len(e.inbox)
		e.mu.Unlock()
		if n > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	s := submit(t, e, long(2))
	close(over)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		ev, ok := s.Next(ctx)
		if !ok {
			t.Fatal("the stream ended without an error")
		}
		if ev.Err != nil {
			if !strings.Contains(ev.Err.Error(), "a defect") {
				t.Errorf("got %v", ev.Err)
			}
			break
		}
	}
	if e.Healthy() == nil {
		t.Error("it is healthy")
	}
}
