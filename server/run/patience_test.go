package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ridge/engine"
)

// slowly is a stream whose events come after pauses.
type slowly struct {
	pauses []time.Duration
	due    time.Time
}

func (s *slowly) Next(ctx context.Context) (engine.Event, bool) {
	if s.due.IsZero() {
		s.due = time.Now().Add(s.pauses[0])
	}
	select {
	case <-time.After(time.Until(s.due)):
		s.pauses, s.due = s.pauses[1:], time.Time{}
		return engine.Event{Choice: -1, Token: -1, Prompt: &engine.PromptInfo{}}, true
	case <-ctx.Done():
		return engine.Event{}, false
	}
}

func (s *slowly) Stop(int) {}
func (s *slowly) Close()   {}

// The patience of a wait begins anew with each event, and with each time that it
// was over.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 100 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		g := &generation{ctx: ctx, cancel: cancel, live: 1, stream: &slowly{pauses: []time.Duration{60e6, 70e6, 90e6, 20e6, 99e6, 250e6, 1e6}}}
		defer g.close()
		begin := time.Now()
		for i, want := range []struct {
			at   time.Duration
			wait bool
		}{{60e6, false}, {130e6, false}, {220e6, false}, {240e6, false}, {339e6, false}, {439e6, true}, {539e6, true}, {589e6, false}, {590e6, false}} {
			_, ok, err := g.next(patience)
			if at := time.Since(begin); at != want.at || errors.Is(err, errWait) != want.wait || ok == want.wait {
				t.Fatalf("call %d returned after %v: %v, %v; want %+v", i, at, ok, err, want)
			}
		}
	})
}
