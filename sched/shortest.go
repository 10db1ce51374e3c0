package sched

import "time"

type shortest struct {
	oneLane
	expect  func(*Seq) int
	token   time.Duration
	stretch int64
}

// ShortestFirst serves who should finish first: the one with the least work
// left, where expect says how many tokens an answer will have in all (see
// LengthModel.Expect), and a token of an answer counts as much time as token
// says, one of a prompt a sixteenth. A sequence with a second more of work is
// overtaken by those that come up to stretch seconds later and by no others, so
// that long ones are served in the end. 0 means 20 milliseconds, and 4.
func ShortestFirst(expect func(*Seq) int, token time.Duration, stretch int) Policy {
	if token <= 0 {
		token = 20 * time.Millisecond
	}
	if stretch <= 0 {
		stretch = 4
	}
	return shortest{expect: expect, token: token, stretch: int64(stretch)}
}

// shortestSeq is how long the answer of a sequence is expected to be, in tokens.
type shortestSeq struct{ expected int64 }

func (p shortest) Rank(q *Seq) int64 {
	left := max(q.State.(*shortestSeq).expected-int64(q.Generated()), 1)
	work := left + int64(q.Prompt)/16
	return int64(q.Arrived) + p.stretch*work*int64(p.token)
}

func (p shortest) Arrive(q *Seq, _ time.Duration) { q.State = &shortestSeq{int64(p.expect(q))} }

func (p shortest) Serve(q *Seq, _ *Run, _, _ time.Duration) {
	if s := q.State.(*shortestSeq); int64(q.Generated()) >= s.expected { // it is longer than was expected
		s.expected = int64(p.expect(q))
	}
}
