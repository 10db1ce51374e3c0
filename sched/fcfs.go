package sched

type fcfs struct{ oneLane }

// FCFS serves in the order of arrival.
func FCFS() Policy { return fcfs{} }

func (fcfs) Rank(q *Seq) int64 { return q.order }
