package grammar

// Minimize returns the smallest automaton that accepts what d does, without
// states from which nothing is accepted (J. Hopcroft, An n log n algorithm for
// minimizing states in a finite automaton, 1971). The result has at least a
// start state.
func (d *RuneDFA) Minimize(b *Builder) *RuneDFA {
	if b.err != nil {
		return d
	}
	n := len(d.final)
	live := d.alive()
	// State n stands for "nothing any more".
	to := func(q, c int) int32 {
		if q == n {
			return int32(n)
		}
		if t := d.next[q*d.k+c]; t >= 0 && live[t] {
			return t
		}
		return int32(n)
	}
	// before[c] lists, by target, the states that lead there on class c.
	m := &refiner{member: make([]int32, n+1), place: make([]int32, n+1), block: make([]int32, n+1)}
	heads := make([]int32, d.k*(n+2))
	lists := make([]int32, d.k*(n+1))
	for c := range d.k {
		h := heads[c*(n+2) : (c+1)*(n+2)]
		for q := range n + 1 {
			h[to(q, c)+1]++
		}
		for i := range n + 1 {
			h[i+1] += h[i]
		}
		l := lists[c*(n+1) : (c+1)*(n+1)]
		fill := append([]int32(nil), h...)
		for q := range n + 1 {
			t := to(q, c)
			l[fill[t]] = int32(q)
			fill[t]++
		}
	}
	m.start(func(q int) bool { return q < n && d.final[q] && live[q] })
	var states []int32
	for len(m.work) > 0 {
		blk := m.work[len(m.work)-1]
		m.work = m.work[:len(m.work)-1]
		m.queued[blk] = false
		states = append(states[:0], m.member[m.first[blk]:m.end[blk]]...)
		for c := range d.k {
			h, l := heads[c*(n+2):], lists[c*(n+1):]
			for _, q := range states {
				for _, from := range l[h[q]:h[q+1]] {
					m.touch(from)
				}
			}
			if !b.Spend(len(states)/4 + 1) {
				return d
			}
			m.split()
		}
	}
	return d.quotient(m, to)
}

// alive returns the states from which something is accepted.
func (d *RuneDFA) alive() []bool {
	n := len(d.final)
	live := make([]bool, n)
	heads := make([]int32, n+1)
	for _, t := range d.next {
		if t >= 0 {
			heads[t+1]++
		}
	}
	for i := range n {
		heads[i+1] += heads[i]
	}
	lists := make([]int32, heads[n])
	fill := append([]int32(nil), heads...)
	for i, t := range d.next {
		if t >= 0 {
			lists[fill[t]] = int32(i / d.k)
			fill[t]++
		}
	}
	var work []int32
	for q, f := range d.final {
		if f {
			live[q] = true
			work = append(work, int32(q))
		}
	}
	for len(work) > 0 {
		q := work[len(work)-1]
		work = work[:len(work)-1]
		for _, from := range lists[heads[q]:heads[q+1]] {
			if !live[from] {
				live[from] = true
				work = append(work, from)
			}
		}
	}
	return live
}

// quotient returns the automaton of the blocks of m that the start reaches.
func (d *RuneDFA) quotient(m *refiner, to func(q, c int) int32) *RuneDFA {
	n := len(d.final)
	sink := m.block[n]
	out := &RuneDFA{cuts: d.cuts, class: d.class, k: d.k}
	index := map[int32]int32{m.block[d.start]: 0}
	reps := []int32{d.start}
	for i := 0; i < len(reps); i++ {
		q := int(reps[i])
		out.final = append(out.final, d.final[q])
		for c := range d.k {
			t := to(q, c)
			if m.block[t] == sink {
				out.next = append(out.next, -1)
				continue
			}
			id, ok := index[m.block[t]]
			if !ok {
				id = int32(len(reps))
				index[m.block[t]] = id
				reps = append(reps, t)
			}
			out.next = append(out.next, id)
		}
	}
	return out
}

// refiner is a partition of states that is split further and further. Block i
// holds member[first[i]:end[i]]; the touched ones come first.
type refiner struct {
	member, place, block []int32
	first, end, marked   []int32
	queued               []bool
	work                 []int32
	hit                  []int32 // blocks with touched states
}

// start makes two blocks: the states with the property, and the others.
func (m *refiner) start(in func(q int) bool) {
	n := len(m.member)
	lo, hi := 0, n
	for q := range n {
		i := lo
		if in(q) {
			lo++
		} else {
			hi--
			i = hi
		}
		m.member[i], m.place[q] = int32(q), int32(i)
	}
	m.newBlock(0, int32(n))
	if lo > 0 && lo < n {
		m.end[0] = int32(lo)
		m.newBlock(int32(lo), int32(n))
	}
}

func (m *refiner) newBlock(first, end int32) int32 {
	id := int32(len(m.first))
	m.first, m.end, m.marked = append(m.first, first), append(m.end, end), append(m.marked, 0)
	m.queued = append(m.queued, true)
	m.work = append(m.work, id)
	for _, q := range m.member[first:end] {
		m.block[q] = id
	}
	return id
}

// touch moves q among the touched states of its block.
func (m *refiner) touch(q int32) {
	b := m.block[q]
	i, j := m.place[q], m.first[b]+m.marked[b]
	if i < j {
		return
	}
	if m.marked[b] == 0 {
		m.hit = append(m.hit, b)
	}
	other := m.member[j]
	m.member[i], m.member[j] = other, q
	m.place[other], m.place[q] = i, j
	m.marked[b]++
}

// split separates touched from untouched states and queues the smaller part.
func (m *refiner) split() {
	for _, b := range m.hit {
		mid := m.first[b] + m.marked[b]
		m.marked[b] = 0
		if mid == m.end[b] {
			continue
		}
		first, end := m.first[b], m.end[b]
		if m.queued[b] || mid-first <= end-mid {
			m.first[b] = mid
			m.newBlock(first, mid)
		} else {
			m.end[b] = mid
			m.newBlock(mid, end)
		}
	}
	m.hit = m.hit[:0]
}
