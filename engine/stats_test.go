package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ridge/sched"
)

// Who asks during a long step and gives up does the engine no harm.
func TestStatsGivesUp(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	release := hold(t, e)
	// What does not change is known all the same, though nobody had asked before.
	if st := e.Stats(); st.Pool.Pages != 64 || st.Usage.Slots != 64*16 {
		t.Errorf("%+v", st)
	}
	release()
	if st := e.Stats(); st.Pool.Pages == 0 {
		t.Errorf("%+v", st)
	}
	if err := e.Healthy(); err != nil {
		t.Error(err)
	}
}

// While somebody asks, a step of few rows that takes long has figures of its beginning
// too, once a second.
func TestStatsOfShortStep(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{})
	e.Stats()
	begun, goOn := make(chan struct{}), make(chan struct{})
	if err := e.call(t.Context(), func() {
		e.kept -= statsEach
		e.inject = func() { begun <- struct{}{}; <-goOn }
	}); err != nil {
		t.Fatal(err)
	}
	s := submit(t, e, long(1))
	<-begun
	if st := e.Stats(); len(st.Sequences) != 1 || st.Sequences[0].State != "running" {
		t.Errorf("%+v", st.Sequences)
	}
	goOn <- struct{}{}
	s.Close()
}

// Who has read an answer to its end finds no trace of it, though its step was a long one.
func TestStatsAfterAnswer(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{Sched: &sched.Config{Split: true, MaxTokens: 128, MaxSeqs: 4}})
	for i := range 30 {
		r := long(1)
		for len(r.Tokens) < longStep+4 {
			r.Tokens = append(r.Tokens, int32((len(r.Tokens)+i)%50))
		}
		s := submit(t, e, r)
		for _, ok := s.Next(t.Context()); ok; _, ok = s.Next(t.Context()) {
		}
		if st := e.Stats(); st.Requests != 0 || len(st.Sequences) != 0 || st.Tokens != int64(i+1) {
			t.Fatalf("answer %d: %d requests, %d tokens, sequences %+v", i, st.Requests, st.Tokens, st.Sequences)
		}
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

// Who asks during a long step gets at once what held at its beginning, and a request
// that asked for it is told how far its prompt is, step by step, before its first token.
func TestProgress(t *testing.T) {
	e := start(t, openTiny(t, "llama", 64), Options{Sched: &sched.Config{Split: true, MaxTokens: 64, MaxSeqs: 4}})
	begun, goOn := make(chan struct{}), make(chan struct{})
	steps := 0
	if err := e.call(t.Context(), func() {
		e.inject = func() {
			if steps++; steps <= 2 {
				begun <- struct{}{}
				<-goOn
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	r := long(2)
	for len(r.Tokens) < 100 {
		r.Tokens = append(r.Tokens, int32(len(r.Tokens)%50))
	}
	r.Progress = true
	s := submit(t, e, r)
	var got []int
	next := func() Event {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ev, ok := s.Next(ctx)
		if !ok {
			t.Fatal("no event came")
		}
		return ev
	}
	for want := 0; want < 100; want += 64 {
		<-begun // the step with the tokens from want on
		ev := next()
		if ev.Progress == nil || ev.Token != -1 || ev.Prompt != nil {
			t.Fatalf("got %+v before the prompt is there", ev)
		}
		got = append(got, ev.Progress.Computed)
		begin := time.Now()
		if want > 0 { // a short step
			goOn <- struct{}{}
			break
		}
		if st := e.Stats(); len(st.Sequences) != 1 || st.Sequences[0].State != "running" {
			t.Errorf("after %v: %+v", time.Since(begin), st.Sequences)
		}
		goOn <- struct{}{}
	}
	if !slices.Equal(got, []int{0, 64}) {
		t.Errorf("progress: got %v", got)
	}
	if ev := next(); ev.Progress != nil || ev.Prompt == nil || ev.Prompt.Tokens != 100 {
		t.Errorf("got %+v, want the first token with what is known of the prompt", ev)
	}
	s.Close()
}

// The experts that rows chose are counted: as many as the router takes for each
// row that was computed.
func TestStatsOfExperts(t *testing.T) {
	e := start(t, openTiny(t, "qwen3moe", 64), Options{})
	before := e.Stats().Experts
	s := submit(t, e, Request{Tokens: []int32{5, 6, 7, 8}, MaxTokens: 4})
	read(t, s, 1)
	after := e.Stats().Experts
	if len(after) != 2 || len(before) != 2 {
		t.Fatalf("%d layers with experts", len(after))
	}
	for i := range after {
		// The last layer computes the rows that give an output.
		rows := []int64{7, 4}[i]
		if n := after[i].Chosen - before[i].Chosen; n != 3*rows || after[i].Experts != 8 || after[i].Layer != i {
			t.Errorf("%+v after %+v: %d experts chosen, expected %d", after[i], before[i], n, 3*rows)
		}
	}
}
