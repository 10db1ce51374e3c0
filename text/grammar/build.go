package grammar

// builder collects the rules of a grammar as graphs: states joined by edges
// that are labelled with a range of bytes, with a call of another rule, or with
// nothing. A rule is what is spelled on the ways from its start to its end.
//
// The first error sticks: after it nothing is added any more, so callers may
// check it once at the end, and memory stays bounded.
type builder struct {
	source string
	rules  []*ruleGraph
	states int
	edges  int
	linked int // edges of determinized rules
	work   int
	err    error

	where, keyword string // what errors of size are blamed on
}

type ruleGraph struct {
	b          *builder
	id         int32
	name       string
	states     []graphState
	start, end int32
	// A counted repetition of another rule has no states of its own.
	loop     bool
	body     int32
	min, max int32 // max < 0: no upper bound
}

type graphState struct {
	bytes []byteEdge
	calls []callEdge
	eps   []int32
}

type byteEdge struct {
	lo, hi byte
	to     int32
}

type callEdge struct{ rule, to int32 }

func (b *builder) fail(err error) {
	if b.err != nil {
		return
	}
	if e, ok := err.(*Error); ok && e.Kind == TooLarge && e.Where == "" {
		e.Where, e.Keyword = b.where, b.keyword
	}
	b.err = err
}

// spend counts n elementary steps and reports whether work may go on.
func (b *builder) spend(n int) bool {
	b.work += n
	if b.work > maxCompileWork {
		b.fail(tooLarge(b.source, "", "more than %d steps to compile", maxCompileWork))
	}
	return b.err == nil
}

// rule returns a new rule that spells nothing yet.
func (b *builder) rule(name string) *ruleGraph {
	if len(b.rules) >= maxRules {
		b.fail(tooLarge(b.source, "", "more than %d rules", maxRules))
	}
	r := &ruleGraph{b: b, id: int32(len(b.rules)), name: name}
	b.rules = append(b.rules, r)
	r.states = make([]graphState, 2)
	b.states += 2
	r.end = 1
	return r
}

// loop returns a new rule that is body repeated at least lo and at most hi
// times; hi < 0 stands for no bound.
func (b *builder) loop(name string, body *ruleGraph, lo, hi int) *ruleGraph {
	r := b.rule(name)
	r.loop, r.body, r.min, r.max = true, body.id, int32(lo), int32(hi)
	return r
}

// state returns a new state of r.
func (r *ruleGraph) state() int32 {
	if r.b.states >= maxStates {
		r.b.fail(tooLarge(r.b.source, "", "more than %d states", maxStates))
	}
	if r.b.err != nil {
		return r.end
	}
	r.b.states++
	r.states = append(r.states, graphState{})
	return int32(len(r.states) - 1)
}

func (r *ruleGraph) edge() bool {
	if r.b.edges >= maxEdges {
		r.b.fail(tooLarge(r.b.source, "", "more than %d edges", maxEdges))
	}
	r.b.edges++
	return r.b.err == nil
}

func (r *ruleGraph) bytes(from int32, lo, hi byte, to int32) {
	if r.edge() {
		r.states[from].bytes = append(r.states[from].bytes, byteEdge{lo, hi, to})
	}
}

func (r *ruleGraph) call(from int32, callee *ruleGraph, to int32) {
	if r.edge() {
		r.states[from].calls = append(r.states[from].calls, callEdge{callee.id, to})
	}
}

func (r *ruleGraph) skip(from, to int32) {
	if from != to && r.edge() {
		r.states[from].eps = append(r.states[from].eps, to)
	}
}

// text adds the bytes of s between two states.
func (r *ruleGraph) text(from int32, s string, to int32) {
	if s == "" {
		r.skip(from, to)
		return
	}
	for i := 0; i < len(s)-1 && r.b.err == nil; i++ {
		next := r.state()
		r.bytes(from, s[i], s[i], next)
		from = next
	}
	r.bytes(from, s[len(s)-1], s[len(s)-1], to)
}

// suffixes remembers the states from which one range of bytes leads to a
// state, so that sequences that end alike share their tails.
type suffixes map[suffix]int32

type suffix struct {
	byteRange
	to int32
}

// runes adds the UTF-8 spellings of the code points of s between two states.
func (r *ruleGraph) runes(from int32, s runeSet, to int32, shared suffixes) {
	for _, seq := range utf8Sequences(nil, s) {
		r.sequence(from, seq, to, shared)
	}
}

func (r *ruleGraph) sequence(from int32, seq []byteRange, to int32, shared suffixes) {
	for i := len(seq) - 1; i > 0; i-- {
		key := suffix{seq[i], to}
		s, ok := shared[key]
		if !ok {
			s = r.state()
			r.bytes(s, seq[i].lo, seq[i].hi, to)
			shared[key] = s
		}
		to = s
	}
	r.bytes(from, seq[0].lo, seq[0].hi, to)
}
