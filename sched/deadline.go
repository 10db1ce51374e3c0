package sched

import "time"

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

// deadlineSeq is when a sequence must start.
type deadlineSeq struct{ start time.Duration }

func (p deadline) Rank(q *Seq) int64 { return int64(q.State.(*deadlineSeq).start) }

func (p deadline) Arrive(q *Seq, _ time.Duration) {
	due := q.Deadline
	if due == 0 {
		due = q.Arrived + p.slack
	}
	if p.cost != nil {
		due -= p.cost.Prompt(q.Prompt, q.Scored, p.step)
	}
	q.State = &deadlineSeq{due}
}
