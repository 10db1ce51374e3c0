package sched

import (
	"time"
)

// queue holds the sequences that wait, in lanes. The order within a lane is
// fixed, so a lane is a heap, and only the first of each competes.
type queue struct {
	policy Policy
	lanes  [][]*Seq
	busy   []int // lanes that are not empty
	at     []int // per lane, its place in busy
	n      int
}

func (q *queue) len() int { return q.n }

// inLane says whether a comes before b in their lane.
func inLane(a, b *Seq) bool {
	return a.rank < b.rank || a.rank == b.rank && (a.order < b.order || a.order == b.order && a.ID < b.ID)
}

func (q *queue) push(s *Seq) {
	q.policy.Enqueue(s)
	s.place, s.lane, s.rank = isWaiting, q.policy.Lane(s), q.policy.Rank(s)
	for s.lane >= len(q.lanes) {
		q.lanes, q.at = append(q.lanes, nil), append(q.at, 0)
	}
	if len(q.lanes[s.lane]) == 0 {
		q.at[s.lane] = len(q.busy)
		q.busy = append(q.busy, s.lane)
	}
	q.lanes[s.lane] = append(q.lanes[s.lane], s)
	q.up(s.lane, len(q.lanes[s.lane])-1)
	q.n++
}

func (q *queue) remove(s *Seq) {
	h := q.lanes[s.lane]
	last := len(h) - 1
	i := s.pos
	h[i] = h[last]
	h[i].pos = i
	h[last] = nil
	q.lanes[s.lane] = h[:last]
	if i < last {
		q.down(s.lane, i)
		q.up(s.lane, i)
	}
	if last == 0 {
		at, moved := q.at[s.lane], q.busy[len(q.busy)-1]
		q.busy[at], q.at[moved] = moved, at
		q.busy = q.busy[:len(q.busy)-1]
	}
	q.n--
}

func (q *queue) up(lane, i int) {
	h := q.lanes[lane]
	for i > 0 && inLane(h[i], h[(i-1)/2]) {
		q.swap(h, i, (i-1)/2)
		i = (i - 1) / 2
	}
	h[i].pos = i
}

func (q *queue) down(lane, i int) {
	h := q.lanes[lane]
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && inLane(h[c+1], h[c]) {
			c++
		}
		if !inLane(h[c], h[i]) {
			return
		}
		q.swap(h, i, c)
		i = c
	}
}

func (q *queue) swap(h []*Seq, i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

// best returns the sequence to admit first, nil if none waits.
func (q *queue) best(now time.Duration) *Seq {
	var best *Seq
	for _, lane := range q.busy {
		s := q.lanes[lane][0]
		s.level = q.policy.Level(s, now)
		if best == nil || compare(s, best) < 0 {
			best = s
		}
	}
	return best
}

// before returns how many sequences come before s.
func (q *queue) before(s *Seq, now time.Duration) int {
	n := 0
	s.level = q.policy.Level(s, now)
	for _, lane := range q.busy {
		for _, x := range q.lanes[lane] {
			if x.level = q.policy.Level(x, now); compare(x, s) < 0 {
				n++
			}
		}
	}
	return n
}
