package sched

import "time"

// vtcScale is a token's weight for a tenant of weight 1.
const vtcScale = 1 << 16

type vtc struct {
	in, out int64
	tenants map[string]*tenant
	lanes   []*tenant
	spare   []int
	busy    int   // tenants that wait
	floor   int64 // no tenant that waits has a lower counter
}

// tenant is a client and what it was served.
type tenant struct {
	name    string
	lane    int
	counter int64 // weighted tokens, raised when it comes back from a pause
	seqs    int
	waiting int
}

// vtcSeq is a sequence of a tenant.
type vtcSeq struct {
	tenant  *tenant
	waits   bool // it counts among its tenant's waiting sequences
	charged int  // prompt tokens that were paid for
}

// VTC is fair to tenants by a virtual token counter (Sheng et al., Fairness in
// Serving Large Language Models, 2024): the next sequence to be admitted is one
// of the tenant that was served least. A token of a prompt counts in, one of an
// answer out; 0 means 1 and 2. A tenant that comes back after a pause has not
// saved up: its counter is raised to the lowest of those that wait. While two
// tenants both have sequences waiting, what they are served differs by at most
// twice the largest of in·(longest prompt) and out·(tokens that the running
// sequences can hold). Sequences of the same tenant come in order of arrival,
// and Seq.Weight gives a tenant a larger share.
func VTC(in, out int) Policy {
	if in <= 0 && out <= 0 {
		in, out = 1, 2
	}
	return &vtc{in: int64(max(in, 0)) * vtcScale, out: int64(max(out, 0)) * vtcScale, tenants: map[string]*tenant{}}
}

func (p *vtc) Lane(q *Seq) int { return q.State.(*vtcSeq).tenant.lane }

func (p *vtc) Enqueue(q *Seq) {
	s := q.State.(*vtcSeq)
	t := s.tenant
	if s.waits {
		return
	}
	s.waits = true
	if t.waiting == 0 {
		p.raise(t)
		p.busy++
	}
	t.waiting++
}

func (p *vtc) Rank(q *Seq) int64                   { return q.order }
func (p *vtc) Level(q *Seq, _ time.Duration) int64 { return q.State.(*vtcSeq).tenant.counter }

// raise lifts the counter of a tenant that begins to wait to the lowest of
// those that do.
func (p *vtc) raise(t *tenant) {
	low, any := int64(0), false
	for _, x := range p.lanes {
		if x != nil && x != t && x.waiting > 0 && (!any || x.counter < low) {
			low, any = x.counter, true
		}
	}
	if any {
		p.floor = low
	}
	t.counter = max(t.counter, p.floor)
}

func (p *vtc) Arrive(q *Seq, _ time.Duration) {
	t := p.tenants[q.Tenant]
	if t == nil {
		t = &tenant{name: q.Tenant, counter: p.floor}
		if n := len(p.spare); n > 0 {
			t.lane, p.spare = p.spare[n-1], p.spare[:n-1]
		} else {
			t.lane = len(p.lanes)
			p.lanes = append(p.lanes, nil)
		}
		p.lanes[t.lane] = t
		p.tenants[q.Tenant] = t
	}
	t.seqs++
	q.State = &vtcSeq{tenant: t}
}

func (p *vtc) Admit(q *Seq, _ time.Duration) {
	s := q.State.(*vtcSeq)
	p.dequeue(s)
	if due := q.Prompt - s.charged; due > 0 {
		p.charge(q, int64(due)*p.in)
		s.charged = q.Prompt
	}
}

// dequeue says that a sequence waits no more. When nobody does, who comes next
// starts where the last one left.
func (p *vtc) dequeue(s *vtcSeq) {
	if !s.waits {
		return
	}
	s.waits = false
	t := s.tenant
	if t.waiting--; t.waiting > 0 {
		return
	}
	if p.busy--; p.busy == 0 {
		p.floor = max(p.floor, t.counter)
	}
}

func (p *vtc) Serve(q *Seq, r *Run, _, _ time.Duration) {
	if r.New > 0 {
		p.charge(q, int64(r.New)*p.out)
	}
}

func (p *vtc) charge(q *Seq, cost int64) {
	q.State.(*vtcSeq).tenant.counter += cost / int64(max(q.Weight, 1))
}

func (p *vtc) Leave(q *Seq, _ time.Duration) {
	s := q.State.(*vtcSeq)
	t := s.tenant
	p.dequeue(s)
	// A tenant that is gone and has no more than the floor may be forgotten: a
	// new one starts there.
	if t.seqs--; t.seqs == 0 && (t.counter <= p.floor || len(p.tenants) > 1<<14) {
		p.lanes[t.lane] = nil
		p.spare = append(p.spare, t.lane)
		delete(p.tenants, t.name)
	}
}
