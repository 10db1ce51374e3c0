package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ridge/sample"
	"ridge/sched"
)

// long is a request with an answer that takes some time.
func long(n int) Request {
	return Request{Tokens: []int32{9, 8, 7}, MaxTokens: n}
}

// waitFor polls until what ok looks for is so.
func waitFor(t testing.TB, e *Engine, what string, ok func(Stats) bool) Stats {
	t.Helper()
	var st Stats
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if st = e.Stats(); ok(st) {
			return st
		}
		if time.Now().After(end) {
			t.Fatalf("it does not happen that %s: %+v", what, st)
		}
	}
}

// inbox returns how many commands wait for the end of the step.
func inbox(e *Engine) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.inbox)
}

// slowMask lets each step take some time, and counts them.
type slowMask struct {
	gate  chan struct{} // a step may go on for each value
	steps *atomic.Int32
}

func newSlowMask() slowMask { return slowMask{make(chan struct{}), new(atomic.Int32)} }

func (m slowMask) Mask([]float32) {
	m.steps.Add(1)
	<-m.gate
}
func (m slowMask) Accept(int32) error { return nil }

func TestAbortWithinOneStep(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	for name, end := range map[string]func(context.CancelFunc, *Stream){
		"context": func(cancel context.CancelFunc, _ *Stream) { cancel() },
		"close":   func(_ context.CancelFunc, s *Stream) { s.Close() },
	} {
		slow := newSlowMask()
		r := long(100)
		r.NewMasker = func() Masker { return slow }
		ctx, cancel := context.WithCancel(context.Background())
		s, err := e.Submit(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			slow.gate <- struct{}{}
		}
		until(t, "the fourth step begins", func() bool { return slow.steps.Load() == 4 })
		end(cancel, s)
		until(t, "the loop is told", func() bool { return inbox(e) > 0 })
		close(slow.gate)
		waitFor(t, e, "the request ends", func(st Stats) bool { return st.Requests == 0 })
		if n := slow.steps.Load(); n != 4 {
			t.Errorf("%s: %d steps after the fourth", name, n-4)
		}
		a := answer{}
		for ev, ok := s.Next(context.Background()); ok; ev, ok = s.Next(context.Background()) {
			a.add(&ev)
		}
		if name == "context" && a.last.Finish != FinishAbort || name == "close" && (a.ended || len(a.tokens) > 0) {
			t.Errorf("%s: %+v", name, a)
		}
		cancel()
	}
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAbortEverywhere(t *testing.T) {
	cfg := sched.Config{Split: true, MaxTokens: 16, MaxSeqs: 4, Recovery: sched.Swap}
	e := start(t, openTiny(t, "llama", 9), Options{Sched: &cfg, Swap: &sched.RAM{Limit: 1 << 20}, Events: 4})
	r := rand.New(rand.NewPCG(4, 4))
	var wg sync.WaitGroup
	for i := range 200 {
		q := Request{Tokens: randomTokens(r, 1+r.IntN(50), 128), MaxTokens: 1 + r.IntN(30), N: 1 + r.IntN(3), Sampling: sample.Params{Temperature: 1, Seed: uint64(i)}}
		if i%5 == 0 {
			q.Beam, q.N, q.Sampling = &Beam{Width: 3}, 1, sample.Params{}
		}
		ctx, cancel := context.WithCancel(context.Background())
		s, err := e.Submit(ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		events, how := r.IntN(30), r.IntN(3)
		wg.Go(func() {
			defer cancel()
			for range events {
				if _, ok := s.Next(ctx); !ok {
					return
				}
			}
			switch how {
			case 0:
				cancel()
			case 1:
				s.Close()
			case 2:
				s.Stop(0)
				s.Close()
			}
		})
	}
	wg.Wait()
	waitFor(t, e, "all requests end", func(st Stats) bool { return st.Requests == 0 })
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStop(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{Events: 4})
	r := long(60)
	r.N, r.Sampling = 3, sample.Params{Temperature: 1, Seed: 3}
	s := submit(t, e, r)
	out := make([]answer, 3)
	for {
		ev, ok := s.Next(t.Context())
		if !ok {
			break
		}
		out[ev.Choice].add(&ev)
		if ev.Choice == 1 && len(out[1].tokens) == 5 {
			s.Stop(1)
			s.Stop(1)
			s.Stop(7)
		}
	}
	if out[1].last.Finish != FinishStop || len(out[1].tokens) > 40 {
		t.Errorf("stopped choice: %d tokens, %+v", len(out[1].tokens), out[1].last)
	}
	for _, i := range []int{0, 2} {
		if len(out[i].tokens) != 60 || out[i].last.Finish != FinishLength {
			t.Errorf("choice %d: %d tokens, %+v", i, len(out[i].tokens), out[i].last)
		}
	}
}

// A reader that does not read pauses its own request and no other, which goes
// on where it was.
func TestSlowReader(t *testing.T) {
	m := openTiny(t, "llama", 12)
	want := alone(t, m, long(60))
	e := start(t, m, Options{Events: 8, NoPrefixCache: true})
	slow := submit(t, e, long(60))
	st := waitFor(t, e, "the request pauses", func(st Stats) bool { return st.Paused == 1 })
	if q := st.Sequences; len(q) != 1 || q[0].State != "paused" || q[0].Tokens > 9 {
		t.Errorf("sequences: %+v", q)
	}
	// Others get all of the memory, and the slots.
	for range 3 {
		big := long(12*16 - 3)
		big.N = 2
		if got, _ := ask(t, e, big); !slices.Equal(got[0].tokens[:60], want.tokens) {
			t.Errorf("another request: got %v, want %v", got[0].tokens, want.tokens)
		}
	}
	if st := e.Stats(); st.Sched.Recomputes+st.Sched.SwapOuts == 0 {
		t.Errorf("the request that was paused has kept its memory: %+v", st.Sched)
	}
	if got, _ := read(t, slow, 1); !same(&got[0], &want) {
		t.Errorf("slow reader: got %v, want %v", got[0].tokens, want.tokens)
	}
}

func TestSlowReaderIsDropped(t *testing.T) {
	for _, o := range []Options{{SlowReader: DropReader, Events: 8}, {DropAfter: 10 * time.Millisecond, Events: 8}} {
		e := start(t, openTiny(t, "llama", 12), o)
		s := submit(t, e, long(60))
		waitFor(t, e, "the request ends", func(st Stats) bool { return st.Submitted == 1 && st.Requests == 0 })
		got, _ := read(t, s, 1)
		if n := len(got[0].tokens); n < 8 || n > 10 || !errors.Is(got[0].last.Err, ErrSlowReader) {
			t.Errorf("%d tokens, %+v", n, got[0].last)
		}
	}
}

func TestQueueAndDrain(t *testing.T) {
	cfg := sched.Config{MaxSeqs: 1, MaxQueue: 2}
	e := start(t, openTiny(t, "llama", 64), Options{Sched: &cfg})
	slow := newSlowMask()
	r := long(3)
	r.NewMasker = func() Masker { return slow }
	running := submit(t, e, r)
	slow.gate <- struct{}{} // it has been admitted
	var queued []*Stream
	for range 2 {
		queued = append(queued, submit(t, e, long(3)))
	}
	var full *QueueFullError
	if _, err := e.Submit(t.Context(), long(3)); !errors.As(err, &full) || full.Position != 2 || full.RetryAfter < time.Second {
		t.Errorf("third in the queue: %v", err)
	}
	drained := make(chan error)
	go func() { drained <- e.Drain(context.Background()) }()
	for {
		_, err := e.Submit(t.Context(), long(3))
		if errors.Is(err, ErrDraining) {
			break
		}
		if !errors.As(err, &full) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := e.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drain before the end: %v", err)
	}
	close(slow.gate)
	if err := <-drained; err != nil {
		t.Error(err)
	}
	for _, s := range append(queued, running) {
		if got, _ := read(t, s, 1); len(got[0].tokens) != 3 {
			t.Errorf("%d tokens, %+v", len(got[0].tokens), got[0].last)
		}
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	var streams []*Stream
	for range 5 {
		streams = append(streams, submit(t, e, long(100)))
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for _, s := range streams {
		if got, _ := read(t, s, 1); got[0].last.Finish != FinishAbort && got[0].last.Finish != FinishLength {
			t.Errorf("%+v", got[0].last)
		}
	}
	if _, err := e.Submit(t.Context(), long(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("submit: %v", err)
	}
	if err := e.Check(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("check: %v", err)
	}
	if err := e.Healthy(); !errors.Is(err, ErrClosed) {
		t.Errorf("healthy: %v", err)
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Errorf("drain: %v", err)
	}
	streams[0].Close()
}

// A step that does not end makes the engine unhealthy, and Stats do not wait
// for it.
func TestWatchdog(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{StepLimit: 30 * time.Millisecond})
	if err := e.Healthy(); err != nil {
		t.Error(err)
	}
	slow := newSlowMask()
	r := long(2)
	r.NewMasker = func() Masker { return slow }
	s := submit(t, e, r)
	slow.gate <- struct{}{} // the first step
	until(t, "the second step takes too long", func() bool { return e.Healthy() != nil })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := e.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("check: %v", err)
	}
	close(slow.gate)
	read(t, s, 1)
	// The last token can be read before its step is over.
	if err := e.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Healthy(); err != nil {
		t.Error(err)
	}
}

// panicMask fails at its third token.
type panicMask struct{ left int }

func (m *panicMask) Mask([]float32) {
	if m.left--; m.left < 0 {
		panic("a defect")
	}
}
func (m *panicMask) Accept(int32) error { return nil }

// failMask refuses its third token.
type failMask struct{ left int }

func (m *failMask) Mask([]float32) {}
func (m *failMask) Accept(int32) error {
	if m.left--; m.left < 0 {
		return errors.New("refused")
	}
	return nil
}

// forbidMask allows nothing.
type forbidMask struct{}

func (forbidMask) Mask(l []float32) {
	for i := range l {
		l[i] = negInf
	}
}
func (forbidMask) Accept(int32) error { return nil }
func (forbidMask) Err() error         { return errors.New("the grammar failed") }

// A request that fails ends with an error, and the others do not notice.
func TestFailuresStayWithTheirRequest(t *testing.T) {
	m := openTiny(t, "llama", 64)
	want := alone(t, m, long(20))
	e := start(t, m, Options{})
	good := submit(t, e, long(20))
	for name, c := range map[string]struct {
		mask   func() Masker
		tokens int
		err    string
	}{
		"panic":  {func() Masker { return &panicMask{2} }, 2, "engine: sampling failed: a defect"},
		"accept": {func() Masker { return &failMask{2} }, 2, "refused"},
		"mask":   {func() Masker { return forbidMask{} }, 0, ErrNoToken.Error() + ": the grammar failed"},
	} {
		r := long(20)
		r.NewMasker = c.mask
		got, _ := ask(t, e, r)
		a := got[0]
		if a.last.Finish != FinishError || len(a.tokens) != c.tokens || a.last.Err.Error()[:len(c.err)] != c.err {
			t.Errorf("%s: %d tokens, %+v", name, len(a.tokens), a.last)
		}
	}
	if got, _ := read(t, good, 1); !same(&got[0], &want) {
		t.Errorf("got %v, want %v", got[0].tokens, want.tokens)
	}
}

// A step that fails ends the requests in it; the engine goes on.
func TestStepFails(t *testing.T) {
	m := openTiny(t, "llama", 64)
	want := alone(t, m, long(20))
	e := start(t, m, Options{})
	for _, how := range []func(){
		func() { panic("a defect") },
		func() { e.batch.Runs[0].Outputs = 1000 }, // an error of the model
	} {
		steps := 0
		inject := func() {
			if steps++; steps == 5 {
				e.inject = nil
				how()
			}
		}
		if err := e.call(t.Context(), func() { e.inject = inject }); err != nil {
			t.Fatal(err)
		}
		s := submit(t, e, long(100))
		if got, _ := read(t, s, 1); got[0].last.Finish != FinishError {
			t.Errorf("%+v", got[0].last)
		}
		if err := e.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if got, _ := ask(t, e, long(20)); !same(&got[0], &want) {
			t.Errorf("got %v, want %v", got[0].tokens, want.tokens)
		}
	}
}

// doneMask forbids all but one token, and is complete after three.
type doneMask struct{ n int }

func (m *doneMask) Mask(l []float32) {
	for i := range l {
		if i != 42 {
			l[i] = negInf
		}
	}
}
func (m *doneMask) Accept(int32) error { m.n++; return nil }
func (m *doneMask) Done() bool         { return m.n == 3 }

func TestMaskers(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	r := long(20)
	r.N = 2
	made := 0
	r.NewMasker = func() Masker { made++; return &doneMask{} }
	got, _ := ask(t, e, r)
	for _, a := range got {
		if !slices.Equal(a.tokens, []int32{42, 42, 42}) || a.last.Finish != FinishStop || a.last.StopToken != -1 {
			t.Errorf("%v %+v", a.tokens, a.last)
		}
	}
	if made != 2 {
		t.Errorf("%d maskers for 2 choices", made)
	}
}

func TestMinTokens(t *testing.T) {
	m := openTiny(t, "llama", 64)
	e := start(t, m, Options{})
	r := long(30)
	for i := range int32(127) {
		r.StopTokens = append(r.StopTokens, i)
	}
	for _, least := range []int{0, 1, 7} {
		r.MinTokens = least
		got, _ := ask(t, e, r)
		a := got[0]
		if len(a.tokens) < least || a.last.Finish == FinishStop && len(a.tokens) > 29 {
			t.Errorf("at least %d: %v %+v", least, a.tokens, a.last)
		}
		for i, id := range a.tokens {
			if i < least && id != 127 {
				t.Errorf("token %d is %d, which ends an answer", i, id)
			}
		}
	}
}

// Of a request whose deadline has passed nothing is computed, if the scheduler
// may drop it.
func TestShed(t *testing.T) {
	cfg := sched.Config{Policy: sched.Deadline(0, nil, 64), Shed: true}
	e := start(t, openTiny(t, "llama", 64), Options{Sched: &cfg})
	r := long(5)
	r.Deadline = time.Now().Add(-time.Second)
	if got, _ := ask(t, e, r); !errors.Is(got[0].last.Err, ErrDeadline) || len(got[0].tokens) > 0 {
		t.Errorf("%v %+v", got[0].tokens, got[0].last)
	}
}
