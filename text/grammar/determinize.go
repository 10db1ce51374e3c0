package grammar

import (
	"encoding/binary"
	"slices"
)

// detRule is a rule after the subset construction, or, where that would grow
// too much, the rule as it was with its empty edges.
type detRule struct {
	states []detState // states[0] is the start
}

type detState struct {
	bytes  []byteEdge // ascending; disjoint if the rule is deterministic
	calls  []callEdge // by rule; to is a state of this detRule
	eps    []int32
	final  bool
	begins bool // as in graphState; the same for all states of a subset
}

// determinize returns r with at most one way to read each byte and each call.
// Calls are read as symbols here; what remains ambiguous (a call against a byte
// or another call) is for the machine.
func determinize(r *Rule) *detRule {
	d := &subsets{r: r, limit: 4*len(r.states) + 512, index: map[string]int32{}}
	d.mark = make([]bool, len(r.states))
	d.add([]int32{r.Start})
	for i := 0; i < len(d.sets) && r.b.err == nil; i++ {
		if len(d.sets) > d.limit || d.stored > maxSubsetCells {
			return undetermined(r)
		}
		d.expand(i)
	}
	return &detRule{d.out}
}

// undetermined returns r as it is, its start first.
func undetermined(r *Rule) *detRule {
	swap := func(s int32) int32 {
		switch s {
		case 0:
			return r.Start
		case r.Start:
			return 0
		}
		return s
	}
	out := make([]detState, len(r.states))
	for i := range r.states {
		s, o := &r.states[i], &out[swap(int32(i))]
		o.final, o.begins = int32(i) == r.End, s.begins
		for _, e := range s.bytes {
			o.bytes = append(o.bytes, byteEdge{e.lo, e.hi, swap(e.to)})
		}
		for _, c := range s.calls {
			o.calls = append(o.calls, callEdge{c.rule, swap(c.to)})
		}
		for _, to := range s.eps {
			o.eps = append(o.eps, swap(to))
		}
		slices.SortFunc(o.bytes, func(a, b byteEdge) int { return int(a.lo) - int(b.lo) })
	}
	return &detRule{out}
}

const maxSubsetCells = 2 << 20 // members of all subsets of a rule

type subsets struct {
	r      *Rule
	limit  int
	stored int
	index  map[string]int32
	sets   [][]int32
	out    []detState
	mark   []bool
	key    []byte
}

// add returns the state that stands for the closure of the given states.
func (d *subsets) add(states []int32) int32 {
	set := slices.Clone(states)
	for _, s := range set {
		d.mark[s] = true
	}
	n := 0
	for ; n < len(set); n++ {
		for _, to := range d.r.states[set[n]].eps {
			if !d.mark[to] {
				d.mark[to] = true
				set = append(set, to)
			}
		}
	}
	d.r.b.Spend(n + 1)
	slices.Sort(set)
	d.key = d.key[:0]
	kept := set[:0]
	final, begins := false, false
	for _, s := range set {
		d.mark[s] = false
		final = final || s == d.r.End
		st := &d.r.states[s]
		if len(st.bytes)+len(st.calls) > 0 { // the others add nothing
			kept, begins = append(kept, s), begins || st.begins
			d.key = binary.AppendUvarint(d.key, uint64(s))
		}
	}
	if final {
		d.key = append(d.key, 0xFF, 0xFF, 0xFF)
	}
	if id, ok := d.index[string(d.key)]; ok {
		return id
	}
	id := int32(len(d.sets))
	d.index[string(d.key)] = id
	d.stored += len(kept) + 8
	d.sets = append(d.sets, slices.Clone(kept))
	d.out = append(d.out, detState{final: final, begins: begins})
	return id
}

// expand finds the edges that leave subset i.
func (d *subsets) expand(i int) {
	var edges []byteEdge
	var calls []callEdge
	for _, s := range d.sets[i] {
		edges = append(edges, d.r.states[s].bytes...)
		calls = append(calls, d.r.states[s].calls...)
	}
	d.r.b.Spend(len(edges) + len(calls))

	var cuts [257]bool // where a range starts, or one has just ended
	for _, e := range edges {
		cuts[e.lo], cuts[int(e.hi)+1] = true, true
	}
	slices.SortFunc(edges, func(a, b byteEdge) int { return int(a.lo) - int(b.lo) })
	var out []byteEdge
	var to []int32
	for lo := 0; lo < 256; {
		hi := lo
		for hi < 255 && !cuts[hi+1] {
			hi++
		}
		to = to[:0]
		for n, e := range edges {
			if int(e.lo) > lo {
				d.r.b.Spend(n)
				break
			}
			if int(e.hi) >= lo {
				to = append(to, e.to)
			}
		}
		if len(to) > 0 {
			slices.Sort(to)
			id := d.add(slices.Compact(to))
			if n := len(out); n > 0 && out[n-1].to == id && int(out[n-1].hi)+1 == lo {
				out[n-1].hi = byte(hi)
			} else {
				out = append(out, byteEdge{byte(lo), byte(hi), id})
			}
		}
		lo = hi + 1
	}
	d.out[i].bytes = out
	if b := d.r.b; b.linked > maxEdges-len(out)-len(calls) {
		b.fail(tooLarge(b.Source, "", "more than %d edges after the subset construction", maxEdges))
	} else {
		b.linked += len(out) + len(calls)
	}

	slices.SortFunc(calls, func(a, b callEdge) int {
		if a.rule != b.rule {
			return int(a.rule - b.rule)
		}
		return int(a.to - b.to)
	})
	for j := 0; j < len(calls); {
		to = to[:0]
		rule := calls[j].rule
		for ; j < len(calls) && calls[j].rule == rule; j++ {
			to = append(to, calls[j].to)
		}
		d.out[i].calls = append(d.out[i].calls, callEdge{rule, d.add(slices.Compact(to))})
	}
}
