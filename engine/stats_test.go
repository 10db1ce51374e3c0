package engine

import (
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
	if st := e.Stats(); st.Pool.Pages != 0 || time.Since(begin) < statsPatience {
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
