package grammar

import (
	"math"
	"sort"
	"strings"

	"ridge/internal/diag"
)

// program is the compiled automaton of a grammar. It does not change.
//
// States below len(states) are real. The states of a counted repetition are
// numbers only: loop.base+i stands for "i times done", calls the body and may
// finish when i is at least min, so a repetition costs no memory whatever its
// counts.
type program struct {
	states []pstate
	bytes  []pedge
	calls  []pcall
	eps    []uint32
	loops  []ploop // by base
	rules  []prule
	root   uint32 // start state of the whole
	led    uint32 // the same after optional white space

	class  [256]uint8 // byte → class; classes are intervals, ascending
	first  []byte     // class → its first byte
	single []bool     // class → it has one byte only

	// For a state, the least number of bytes to the end of its rule, and the
	// least height of stack that needs.
	cost, height []int32
	least        []int32 // see measured.go; nil without measured rules
	texts        []int64 // see unique.go; nil without unique repetitions

	keys []ruleKey // rule → what identifies its language and states
}

type pstate struct {
	bytes0, bytes1 uint32
	calls0, calls1 uint32
	eps0, eps1     uint32
	rule           int32
	final          bool
	last           bool // final, and nothing leaves it
	// Of a rule that measured ones call, and what is read here begins a character.
	counted, begins bool
	tracked         bool // of the body of a unique repetition
}

type pedge struct {
	lo, hi uint8 // classes
	to     uint32
}

type pcall struct {
	start uint32 // of the callee
	to    uint32
	rule  int32
}

type ploop struct {
	base     uint32
	min, max int32 // max < 0: no bound
	body     uint32
	bodyRule int32
	rule     int32
	measured bool
	unique   bool
	between  uint32 // of a unique repetition
	widest   int32  // of a measured rule: the largest number of characters that an end needs
}

type prule struct {
	name           string
	start          uint32
	lo, hi         uint32 // its real states
	loop           int32  // the repetition that it is, or -1
	counted, known bool   // measured rules call it, and least is set for its states
	tracked        bool   // unique repetitions call it
}

const never = math.MaxInt32 // cost or height of what cannot be finished

// loopAt returns the repetition that the virtual state q belongs to and the
// number of times done.
func (p *program) loopAt(q uint32) (*ploop, int32) {
	i := sort.Search(len(p.loops), func(i int) bool { return p.loops[i].base > q }) - 1
	return &p.loops[i], int32(q - p.loops[i].base)
}

// next returns the state after one more time.
func (l *ploop) next(i int32) uint32 {
	if l.max < 0 && i >= l.min {
		return l.base + uint32(l.min)
	}
	return l.base + uint32(i) + 1
}

// link compiles the rules that root needs into a program.
func link(b *Builder, root *Rule) (*program, error) {
	led := leadRule(b, root)
	order, index := reachableRules(b, led)
	p := &program{}
	p.rules = make([]prule, len(order))
	det := make([]*detRule, len(order))
	total := 0
	for i, r := range order {
		if !r.loop {
			det[i] = determinize(r)
			total += len(det[i].states)
		}
		if b.err == nil && total > maxStates {
			b.fail(tooLarge(b.Source, "", "more than %d states", maxStates))
		}
		if b.err != nil {
			return nil, b.err
		}
	}
	if !p.place(order, det) {
		return nil, tooLarge(b.Source, "", "counts of repetitions add up to more than %d", maxVirtual)
	}
	p.setClasses(det)
	for i, r := range order {
		if !r.loop {
			p.addStates(int32(i), det[i], index)
		}
	}
	for i := range p.loops {
		l := &p.loops[i]
		l.bodyRule = index[order[l.rule].body]
		l.body = p.rules[l.bodyRule].start
		if l.unique {
			l.between = p.rules[index[order[l.rule].between]].start
		}
	}
	p.root, p.led = p.rules[index[root.id]].start, p.rules[index[led.id]].start
	p.measure()
	p.dropDead()
	p.setLeast()
	p.setTexts()
	if err := p.check(b, root.name); err != nil {
		return nil, err
	}
	p.identify()
	return p, nil
}

// maxLead is how much white space may stand between the end of a reasoning
// section and the text.
const maxLead = 8

// leadRule returns root after optional white space.
func leadRule(b *Builder, root *Rule) *Rule {
	r := b.Rule("lead")
	at := r.Start
	for range maxLead {
		r.Call(at, root, r.End)
		next := r.State()
		for _, c := range "\t\n\r " {
			r.Bytes(at, byte(c), byte(c), next)
		}
		at = next
	}
	r.Call(at, root, r.End)
	return r
}

// reachableRules returns the rules that from needs, itself first, and their
// numbers in that order by identifier.
func reachableRules(b *Builder, from *Rule) ([]*Rule, map[int32]int32) {
	index := map[int32]int32{from.id: 0}
	order := []*Rule{from}
	visit := func(id int32) {
		if _, ok := index[id]; !ok {
			index[id] = int32(len(order))
			order = append(order, b.rules[id])
		}
	}
	for i := 0; i < len(order); i++ {
		if order[i].loop {
			if visit(order[i].body); order[i].unique {
				visit(order[i].between)
			}
		}
		for j := range order[i].states {
			for _, c := range order[i].states[j].calls {
				visit(c.rule)
			}
		}
	}
	return order, index
}

const maxVirtual = 1 << 30 // states of repetitions

// place gives every rule its range of states and every repetition its virtual
// ones, and reports whether there are numbers enough.
func (p *program) place(order []*Rule, det []*detRule) bool {
	n := uint32(0)
	for i, r := range order {
		p.rules[i] = prule{name: r.name, start: n, lo: n, hi: n, loop: -1, counted: r.counted, tracked: r.tracked}
		if !r.loop {
			n += uint32(len(det[i].states))
			p.rules[i].hi = n
		}
	}
	p.states = make([]pstate, 0, n)
	for i, r := range order {
		if !r.loop {
			continue
		}
		p.rules[i].start, p.rules[i].loop = n, int32(len(p.loops))
		p.loops = append(p.loops, ploop{base: n, min: r.min, max: r.max, rule: int32(i), measured: r.measured, unique: r.unique})
		if n += uint32(max(r.min, r.max)) + 1; r.unique {
			n += uniqueStates
		}
		if n > maxVirtual {
			return false
		}
	}
	return true
}

// setClasses joins the bytes that no edge tells apart.
func (p *program) setClasses(det []*detRule) {
	var cut [257]bool
	apart := false // what comes is remembered, byte by byte
	for i := range p.rules {
		apart = apart || p.rules[i].tracked
	}
	for _, d := range det {
		if d == nil {
			continue
		}
		for i := range d.states {
			for _, e := range d.states[i].bytes {
				cut[e.lo], cut[int(e.hi)+1] = true, true
			}
		}
	}
	for b := range 256 {
		if b == 0 || cut[b] || apart {
			p.first = append(p.first, byte(b))
			p.single = append(p.single, b == 255 || cut[b+1] || apart)
		}
		p.class[b] = uint8(len(p.first) - 1)
	}
}

func (p *program) addStates(rule int32, d *detRule, index map[int32]int32) {
	base := p.rules[rule].lo
	for i := range d.states {
		s := &d.states[i]
		st := pstate{rule: rule, final: s.final, counted: p.rules[rule].counted, begins: s.begins && p.rules[rule].counted, tracked: p.rules[rule].tracked}
		st.bytes0, st.calls0, st.eps0 = uint32(len(p.bytes)), uint32(len(p.calls)), uint32(len(p.eps))
		for _, e := range s.bytes {
			p.bytes = append(p.bytes, pedge{p.class[e.lo], p.class[e.hi], base + uint32(e.to)})
		}
		for _, c := range s.calls {
			callee := index[c.rule]
			p.calls = append(p.calls, pcall{p.rules[callee].start, base + uint32(c.to), callee})
		}
		for _, to := range s.eps {
			p.eps = append(p.eps, base+uint32(to))
		}
		st.bytes1, st.calls1, st.eps1 = uint32(len(p.bytes)), uint32(len(p.calls)), uint32(len(p.eps))
		p.states = append(p.states, st)
	}
}

// dropDead removes the edges that cannot lead to the end of their rule, so that
// whatever the machine enters can be finished.
func (p *program) dropDead() {
	for i := range p.states {
		s := &p.states[i]
		keepB := p.bytes[s.bytes0:s.bytes0]
		for _, e := range p.bytes[s.bytes0:s.bytes1] {
			if p.cost[e.to] < never {
				keepB = append(keepB, e)
			}
		}
		s.bytes1 = s.bytes0 + uint32(len(keepB))
		keepC := p.calls[s.calls0:s.calls0]
		for _, c := range p.calls[s.calls0:s.calls1] {
			if p.cost[c.to] < never && p.costOf(c.start) < never {
				keepC = append(keepC, c)
			}
		}
		s.calls1 = s.calls0 + uint32(len(keepC))
		keepE := p.eps[s.eps0:s.eps0]
		for _, to := range p.eps[s.eps0:s.eps1] {
			if p.cost[to] < never {
				keepE = append(keepE, to)
			}
		}
		s.eps1 = s.eps0 + uint32(len(keepE))
		s.last = s.final && s.bytes0 == s.bytes1 && s.calls0 == s.calls1 && s.eps0 == s.eps1
	}
	for i := range p.loops {
		if l := &p.loops[i]; p.costOf(l.body) == never {
			l.min, l.max = 0, 0 // if min were positive, nothing would lead here
		}
	}
}

// check refuses what the machine could not run.
func (p *program) check(b *Builder, root string) error {
	fail := func(k Kind, name, why string) error {
		return &Error{Kind: k, Source: b.Source, Keyword: name, Why: why}
	}
	if p.costOf(p.root) == never {
		return fail(Unmatchable, root, "no finite text conforms to it")
	}
	for i := range p.loops {
		if l := &p.loops[i]; l.unique && p.texts[l.body] < int64(l.min) {
			return fail(Unmatchable, p.rules[l.rule].name, "there are fewer different items than it needs")
		}
		if l := &p.loops[i]; l.max != 0 && !l.measured && p.costOf(l.body) == 0 {
			return fail(Unsupported, p.rules[l.bodyRule].name, "counted repetition of something that may be empty")
		}
	}
	if cycle := p.leftRecursion(); cycle != nil {
		for i := range cycle {
			cycle[i] = diag.Path(cycle[i])
		}
		return fail(Unsupported, cycle[0], "left recursion: "+strings.Join(cycle, " → "))
	}
	return nil
}
