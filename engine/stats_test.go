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
	release := hold(t, e)
	begin := time.Now()
	// What does not change is known all the same, though nobody had asked before.
	if st := e.Stats(); st.Pool.Pages != 64 || st.Usage.Slots != 64*16 || time.Since(begin) < statsPatience {
		t.Errorf("after %v: %+v", time.Since(begin), st)
	}
	release()
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
	release := hold(t, e)
	go func() { _ = e.call(t.Context(), func() { panic("a defect") }) }()
	until(t, "it is in the inbox, before the request", func() bool { return inbox(e) > 0 })
	s := submit(t, e, long(2))
	release()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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
