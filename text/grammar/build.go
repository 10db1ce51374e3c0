package grammar

import "context"

// Builder collects the rules of a grammar as graphs: states joined by edges
// that are labelled with a range of bytes, with a call of another rule, or with
// nothing. A rule is what is spelled on the ways from its start to its end. It is
// what the languages of grammars have in common: GBNF, regular expressions,
// lists of texts and, in a package of their own, JSON schemas add their rules,
// and Compile makes a Grammar of them.
//
// The first error sticks: after it nothing is added any more, so callers may
// check Err once at the end, and memory stays bounded. A Builder is used by one
// goroutine and for one grammar.
type Builder struct {
	Source string // the language, for errors: see Error.Source
	// Context ends the compilation: its error is then that of the Builder. It may
	// be nil.
	Context context.Context

	rules  []*Rule
	states int
	edges  int
	linked int // edges of determinized rules
	work   int
	err    error

	where, keyword string // what errors of size are blamed on
	unenforced     []Unenforced
}

// Rule is a rule of a Builder: a graph of states, which are small numbers that
// mean something in this rule only. It spells nothing until edges lead from Start
// to End.
type Rule struct {
	Start, End int32

	b      *Builder
	id     int32
	name   string
	states []graphState
	// A counted repetition of another rule has no states of its own.
	loop     bool
	body     int32
	min, max int32 // max < 0: no upper bound
	measured bool  // see measured.go
	counted  bool  // it is the body of a measured rule
	unique   bool  // see unique.go
	between  int32 // of a unique repetition
	tracked  bool  // it is the body of a unique repetition
}

type graphState struct {
	bytes  []byteEdge
	calls  []callEdge
	eps    []int32
	begins bool // what is read here begins a character
}

type byteEdge struct {
	lo, hi byte
	to     int32
}

type callEdge struct{ rule, to int32 }

// Err returns the first error, or nil.
func (b *Builder) Err() error { return b.err }

// Blame makes a place and a keyword those of errors of size that name none,
// until the function that it returns is called.
func (b *Builder) Blame(where, keyword string) (end func()) {
	before, word := b.where, b.keyword
	b.where, b.keyword = where, keyword
	return func() { b.where, b.keyword = before, word }
}

func (b *Builder) fail(err error) {
	if b.err != nil {
		return
	}
	if e, ok := err.(*Error); ok && e.Kind == TooLarge && e.Where == "" {
		e.Where, e.Keyword = b.where, b.keyword
	}
	b.err = err
}

// Spend counts n elementary steps of compiling and reports whether work may go on.
func (b *Builder) Spend(n int) bool {
	before := b.work
	b.work += n
	if b.Context != nil && (before^b.work)>>16 != 0 {
		if err := b.Context.Err(); err != nil {
			b.fail(err)
		}
	}
	if b.work > maxCompileWork {
		b.fail(tooLarge(b.Source, "", "more than %d steps to compile", maxCompileWork))
	}
	return b.err == nil
}

// Spent returns the number of steps of compiling so far.
func (b *Builder) Spent() int { return b.work }

// Rule returns a new rule that spells nothing yet.
func (b *Builder) Rule(name string) *Rule {
	if len(b.rules) >= maxRules {
		b.fail(tooLarge(b.Source, "", "more than %d rules", maxRules))
	}
	r := &Rule{b: b, id: int32(len(b.rules)), name: name}
	b.rules = append(b.rules, r)
	r.states = make([]graphState, 2)
	b.states += 2
	r.End = 1
	return r
}

// Name returns the rule's name, as errors have it.
func (r *Rule) Name() string { return r.name }

// Loop returns a new rule that is body repeated at least lo and at most hi
// times; hi < 0 stands for no bound.
func (b *Builder) Loop(name string, body *Rule, lo, hi int) *Rule {
	r := b.Rule(name)
	r.loop, r.body, r.min, r.max = true, body.id, int32(lo), int32(hi)
	return r
}

// State returns a new state of r.
func (r *Rule) State() int32 {
	if r.b.states >= maxStates {
		r.b.fail(tooLarge(r.b.Source, "", "more than %d states", maxStates))
	}
	if r.b.err != nil {
		return r.End
	}
	r.b.states++
	r.states = append(r.states, graphState{})
	return int32(len(r.states) - 1)
}

func (r *Rule) edge() bool {
	if r.b.edges >= maxEdges {
		r.b.fail(tooLarge(r.b.Source, "", "more than %d edges", maxEdges))
	}
	r.b.edges++
	return r.b.err == nil
}

// Bytes adds an edge that reads one byte from lo to hi.
func (r *Rule) Bytes(from int32, lo, hi byte, to int32) {
	if r.edge() {
		r.states[from].bytes = append(r.states[from].bytes, byteEdge{lo, hi, to})
	}
}

// Call adds an edge that reads a text of callee, a rule of the same Builder.
func (r *Rule) Call(from int32, callee *Rule, to int32) {
	if r.edge() {
		r.states[from].calls = append(r.states[from].calls, callEdge{callee.id, to})
	}
}

// Skip adds an edge that reads nothing.
func (r *Rule) Skip(from, to int32) {
	if from != to && r.edge() {
		r.states[from].eps = append(r.states[from].eps, to)
	}
}

// Text adds the bytes of s between two states.
func (r *Rule) Text(from int32, s string, to int32) {
	if s == "" {
		r.Skip(from, to)
		return
	}
	for i := 0; i < len(s)-1 && r.b.err == nil; i++ {
		next := r.State()
		r.Bytes(from, s[i], s[i], next)
		from = next
	}
	r.Bytes(from, s[len(s)-1], s[len(s)-1], to)
}

// Tails remembers the states from which one range of bytes leads to a state, so
// that sequences that end alike share their tails. An empty map begins to
// remember; it belongs to one rule.
type Tails map[tail]int32

type tail struct {
	ByteRange
	to int32
}

// Runes adds the UTF-8 spellings of the code points of s between two states.
func (r *Rule) Runes(from int32, s RuneSet, to int32, shared Tails) {
	for _, seq := range utf8Sequences(nil, s) {
		r.Sequence(from, seq, to, shared)
	}
}

// Sequence adds a sequence of byte ranges, which is not empty, between two states.
func (r *Rule) Sequence(from int32, seq []ByteRange, to int32, shared Tails) {
	for i := len(seq) - 1; i > 0; i-- {
		key := tail{seq[i], to}
		s, ok := shared[key]
		if !ok {
			s = r.State()
			r.Bytes(s, seq[i].Lo, seq[i].Hi, to)
			shared[key] = s
		}
		to = s
	}
	r.Bytes(from, seq[0].Lo, seq[0].Hi, to)
}
