package engine

import (
	"context"
	"sync"
	"time"

	"ridge/sample"
)

// Finish says why a choice ended.
type Finish string

// The reasons.
const (
	FinishStop   Finish = "stop"   // a stop token, a complete grammar, or Stream.Stop
	FinishLength Finish = "length" // MaxTokens, the context or the page pool
	FinishLoop   Finish = "loop"   // it only repeated itself, see Request.EndLoops
	FinishAbort  Finish = "abort"  // the request's context ended, or the stream or engine was closed
	FinishError  Finish = "error"  // Event.Err says what happened
)

// Event is something that happened to a choice. One event may carry a token,
// what is known of the prompt, and the end of the choice.
type Event struct {
	Choice    int
	Token     int32 // -1 if the event brings no token
	Forced    bool  // the token was not drawn, see Request.JumpAhead
	Drafted   bool  // the token was guessed, see Options.Draft
	Guessed   int   // tokens that were guessed and computed so far
	Right     int   // of these, those that became part of the answer
	Verified  int   // steps that computed guesses so far
	Places    int   // places of the text that such a step had a guess of: right guesses, and one for each step that came to a wrong one
	StopToken int32 // that ended the choice, else -1
	LogProb   float32
	Top       []sample.TokenProb // see sample.Params.LogProbs
	Trace     *sample.Trace      // see sample.Params.Trace
	Prompt    *PromptInfo        // in the first event of a stream, those with Progress not counted
	// Progress is in events of their own, without a token, before all others, if the
	// request asked for them: one when its computation begins, then one for each step
	// of the prompt, or for several whose events were not read.
	Progress  *Progress
	Finish    Finish    // in the last event of each choice, else ""
	Embedding []float32 // in the last event, if it was asked for
	Err       error     // with FinishError
}

// Progress says how far a prompt is.
type Progress struct {
	Tokens   int // of the prompt
	Cached   int // of these, how many did not have to be computed
	Computed int // tokens whose keys and values are there, the cached ones too
}

// PromptInfo is what is known once a prompt has been computed.
type PromptInfo struct {
	Tokens   int           // of the prompt
	Cached   int           // of these, how many did not have to be computed
	Known    int           // of these, how many another sequence begins with, too: Cached, or more where layers cannot be continued; the next one is the first that differs
	Instead  []int32       // the next few of that sequence
	Queued   time.Duration // from Submit until its computation began
	Computed time.Duration // from there until the first token
	// LogProbs has an entry for each token of the prompt, if they were asked
	// for: its log-probability and the most probable ones in its place. The
	// first token has none.
	LogProbs []sample.Result
}

// result is a complete answer that was kept back.
type result struct {
	tokens []int32
	probs  []float32            // log-probabilities of tokens, or nil
	tops   [][]sample.TokenProb // or nil
	traces []*sample.Trace      // or nil
	forced []bool               // tokens that were not drawn, or nil
	last   Event                // ends the choice
	score  float64              // what answers are ranked by
}

// Stream delivers the events of a request. It is read by one goroutine. The
// events that it holds are bounded: when they are not read, the request pauses,
// and no other.
type Stream struct {
	e *Engine
	g *group

	notify chan struct{}
	limit  int // events held before the request pauses

	mu     sync.Mutex
	ring   []Event
	head   int
	n      int
	rest   []result // delivered after the ring
	at     int      // next token of rest[0]
	first  *PromptInfo
	paused bool // the loop waits for the ring to be read
	ended  bool // nothing will be added
	closed bool
}

func newStream(e *Engine, g *group, limit int) *Stream {
	return &Stream{e: e, g: g, limit: limit, notify: make(chan struct{}, 1)}
}

// Next returns the next event. It returns false after the last one, when ctx
// has ended (the request goes on then), and after Close.
func (s *Stream) Next(ctx context.Context) (Event, bool) {
	for {
		ev, ok, wait := s.pop()
		if !wait {
			return ev, ok
		}
		select {
		case <-s.notify:
		case <-ctx.Done():
			return Event{}, false
		}
	}
}

// pop takes an event out, or says that there is none yet.
func (s *Stream) pop() (ev Event, ok, wait bool) {
	s.mu.Lock()
	resume := false
	switch {
	case s.closed:
	case s.n > 0:
		ev, ok = s.ring[s.head], true
		s.ring[s.head] = Event{}
		if s.head++; s.head == len(s.ring) {
			s.head = 0
		}
		s.n--
		if resume = s.paused && s.n <= s.limit/2; resume {
			s.paused = false
		}
	case len(s.rest) > 0:
		ev, ok = s.unfold(), true
	default:
		wait = !s.ended
	}
	s.mu.Unlock()
	if resume {
		s.e.wakeUp()
	}
	return ev, ok, wait
}

// unfold returns the next event of an answer that was kept back.
func (s *Stream) unfold() Event {
	r := &s.rest[0]
	ev := r.last
	if s.at < len(r.tokens) {
		ev = Event{Choice: r.last.Choice, Token: r.tokens[s.at], StopToken: -1}
		if r.probs != nil {
			ev.LogProb = r.probs[s.at]
		}
		if r.forced != nil {
			ev.Forced = r.forced[s.at]
		}
		if r.tops != nil {
			ev.Top = r.tops[s.at]
		}
		if r.traces != nil {
			ev.Trace = r.traces[s.at]
		}
		s.at++
	} else {
		s.rest, s.at = s.rest[1:], 0
	}
	ev.Prompt, s.first = s.first, nil
	return ev
}

// Stop ends one choice as if a stop token had come. Events that are in the
// stream already are still delivered.
func (s *Stream) Stop(choice int) { s.e.post(command{kind: stopChoice, g: s.g, choice: choice}) }

// Close ends the request if it is not complete, and drops its events. It may
// be called more than once and from any goroutine.
func (s *Stream) Close() {
	s.mu.Lock()
	again, ended := s.closed, s.ended
	s.closed = true
	s.ring, s.n, s.rest = nil, 0, nil
	s.mu.Unlock()
	if again {
		return
	}
	s.signal()
	if !ended {
		s.e.post(command{kind: abortGroup, g: s.g})
	}
}

func (s *Stream) signal() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// push adds an event and reports whether the stream is full now: then the loop
// should add no more until it is resumed.
func (s *Stream) push(ev *Event) (full bool) {
	s.mu.Lock()
	if !s.closed {
		if s.n == len(s.ring) {
			s.grow()
		}
		i := s.head + s.n
		if i >= len(s.ring) {
			i -= len(s.ring)
		}
		s.ring[i] = *ev
		s.n++
		full = s.n >= s.limit
		s.paused = full
	}
	s.mu.Unlock()
	s.signal()
	return full
}

// progress adds an event that says how far the prompt is, or brings the last one up to
// date if it was not read yet. It never pauses the request.
func (s *Stream) progress(p Progress) {
	s.mu.Lock()
	switch {
	case s.closed:
	case s.n > 0:
		s.ring[s.head].Progress = &p // there are no others yet
	default:
		s.mu.Unlock()
		s.push(&Event{Token: -1, StopToken: -1, Progress: &p})
		return
	}
	s.mu.Unlock()
}

func (s *Stream) grow() {
	ring := make([]Event, max(8, 2*len(s.ring)))
	n := copy(ring, s.ring[s.head:])
	copy(ring[n:], s.ring[:s.head])
	s.ring, s.head = ring, 0
}

// isPaused says whether the reader still has to catch up.
func (s *Stream) isPaused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.paused && !s.closed
}

// end says that nothing will be added after rest.
func (s *Stream) end(first *PromptInfo, rest []result) {
	s.mu.Lock()
	if !s.closed {
		s.first, s.rest = first, rest
	}
	s.ended = true
	s.mu.Unlock()
	s.signal()
}
