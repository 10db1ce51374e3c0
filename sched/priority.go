package sched

import "time"

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
