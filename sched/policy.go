package sched

import "time"

// Policy says which sequence comes first. Waiting sequences are in lanes; of
// each lane the one with the lowest Rank competes, and among those the one with
// the lowest Level, then Rank, wins. Running sequences are ordered by the same
// two. Whoever is last loses its memory first.
type Policy interface {
	Lane(q *Seq) int // a small number, fixed while q waits
	// Rank is fixed while q waits.
	Rank(q *Seq) int64
	// Level may change with time, but may not change who is first in a lane.
	Level(q *Seq, now time.Duration) int64

	Arrive(q *Seq, now time.Duration) // q is new
	Wait(q *Seq)                      // q enters the queue, new or preempted
	Admit(q *Seq, now time.Duration)  // q got memory, for the first time or again
	Serve(q *Seq, r *Row, elapsed, now time.Duration)
	Leave(q *Seq, now time.Duration) // q is finished or removed
}

// oneLane is what policies have in common that order by a fixed number.
type oneLane struct{}

func (oneLane) Lane(*Seq) int                                  { return 0 }
func (oneLane) Level(*Seq, time.Duration) int64                { return 0 }
func (oneLane) Arrive(*Seq, time.Duration)                     {}
func (oneLane) Wait(*Seq)                                      {}
func (oneLane) Admit(*Seq, time.Duration)                      {}
func (oneLane) Serve(*Seq, *Row, time.Duration, time.Duration) {}
func (oneLane) Leave(*Seq, time.Duration)                      {}

type fcfs struct{ oneLane }

// FCFS serves in the order of arrival.
func FCFS() Policy { return fcfs{} }

func (fcfs) Rank(q *Seq) int64 { return q.order }

type priority struct {
	oneLane
	age time.Duration
}

// Priority serves by class, lower first. A sequence that has waited for age
// counts as one of the next better class, and so on, so that every sequence is
// served in the end: one of class p is overtaken only by those that come within
// p·age. 0 means 10 seconds.
func Priority(age time.Duration) Policy {
	if age <= 0 {
		age = 10 * time.Second
	}
	return priority{age: age}
}

func (p priority) Rank(q *Seq) int64 { return int64(q.Arrived) + int64(q.Priority)*int64(p.age) }

type deadline struct {
	oneLane
	slack time.Duration
	cost  *CostModel
	step  int
}

// Deadline serves who must start first to have its first token when it is due:
// the deadline, less the time that its prompt takes. A sequence without a
// deadline is due slack after its arrival, so that it is not overtaken for
// ever; 0 means 10 seconds. cost predicts and may be nil; maxTokens is the
// budget of a step. With Config.Shed sequences that cannot make it are dropped.
func Deadline(slack time.Duration, cost *CostModel, maxTokens int) Policy {
	if slack <= 0 {
		slack = 10 * time.Second
	}
	return deadline{slack: slack, cost: cost, step: maxTokens}
}

func (p deadline) Rank(q *Seq) int64 { return q.estimate }

func (p deadline) Arrive(q *Seq, _ time.Duration) {
	due := q.Deadline
	if due == 0 {
		due = q.Arrived + p.slack
	}
	if p.cost != nil {
		due -= p.cost.Prompt(q.Prompt, p.step)
	}
	q.estimate = int64(due)
}

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

func (p shortest) Rank(q *Seq) int64 {
	left := max(q.estimate-int64(q.Generated()), 1)
	work := left + int64(q.Prompt)/16
	return int64(q.Arrived) + p.stretch*work*int64(p.token)
}

func (p shortest) Arrive(q *Seq, _ time.Duration) { q.estimate = int64(p.expect(q)) }

func (p shortest) Serve(q *Seq, _ *Row, _, _ time.Duration) {
	if int64(q.Generated()) >= q.estimate { // it is longer than was expected
		q.estimate = int64(p.expect(q))
	}
}
