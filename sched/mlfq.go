package sched

import (
	"math/bits"
	"time"
)

// mlfqLevels is the number of queues; the last has no end to its quantum.
const mlfqLevels = 12

type mlfq struct {
	quantum time.Duration
	starve  time.Duration
	cost    *CostModel
	step    int
}

// MLFQ is a multi-level feedback queue with skip-join (FastServe: Wu et al.,
// Fast Distributed Inference Serving for Large Language Models, 2023). Short
// answers finish first though nobody knows how long an answer will be: who has
// used up the quantum of its level goes to the next, where the quantum is
// twice as long, and a sequence of a better level is always served before.
// Because the first token of a long prompt takes longer than the first quanta,
// a sequence joins the level whose quantum is long enough for it, skipping
// those above. Who was not served for starve goes to the first level, and each
// time that happens its quanta become twice as long, so that it is finished
// after a number of such waits that is logarithmic in its work. It is meant for
// Config.Preemptive.
//
// quantum is that of the first level, 0 means 50 milliseconds; starve 0 means
// 10 seconds. cost predicts the time of prompts and may be nil; maxTokens is
// the budget of a step.
func MLFQ(quantum, starve time.Duration, cost *CostModel, maxTokens int) Policy {
	if quantum <= 0 {
		quantum = 50 * time.Millisecond
	}
	if starve <= 0 {
		starve = 10 * time.Second
	}
	return &mlfq{quantum, starve, cost, maxTokens}
}

// mlfqSeq is where a sequence is.
type mlfqSeq struct {
	level   int
	used    time.Duration // of the level's quantum
	entered time.Duration // when it came to the level
	served  time.Duration // when it was served last
	raised  int           // how often it had waited too long
}

func (p *mlfq) Lane(q *Seq) int   { return q.State.(*mlfqSeq).level }
func (p *mlfq) Rank(q *Seq) int64 { return int64(q.State.(*mlfqSeq).entered) }

func (p *mlfq) Level(q *Seq, now time.Duration) int64 {
	s := q.State.(*mlfqSeq)
	if p.starves(s, now) {
		return -1
	}
	return int64(s.level)
}

// starves says whether a sequence has waited too long. One enters its level when
// it was served last, so the first of a lane is the one that has waited longest.
func (p *mlfq) starves(s *mlfqSeq, now time.Duration) bool {
	return now-max(s.entered, s.served) > p.starve
}

func (p *mlfq) Arrive(q *Seq, now time.Duration) {
	s := &mlfqSeq{entered: now, served: now}
	if p.cost != nil {
		first := p.cost.Prompt(q.Prompt, q.Scored, p.step)
		s.level = min(bits.Len64(uint64(max(first-1, 0)/p.quantum)), mlfqLevels-1)
	}
	q.State = s
}

func (p *mlfq) Enqueue(*Seq)              {}
func (p *mlfq) Admit(*Seq, time.Duration) {}

func (p *mlfq) Serve(q *Seq, _ *Run, elapsed, now time.Duration) {
	s := q.State.(*mlfqSeq)
	if p.starves(s, now-elapsed) {
		s.level, s.used, s.entered = 0, 0, now
		s.raised = min(s.raised+1, mlfqLevels)
	}
	s.used += elapsed
	if s.used >= p.quantum<<(s.level+s.raised) && s.level < mlfqLevels-1 {
		s.level++
		s.used, s.entered = 0, now
	}
	s.served = now
}

func (p *mlfq) Leave(*Seq, time.Duration) {}
