package grammar

import (
	"encoding/binary"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// Look-around. What a look-ahead says of the rest of a text is a deterministic
// automaton that reads the rest beside the expression, and what a look-behind
// says of the text so far is one that has read it. So the states of an expression
// with look-around are sets of threads, each an instruction and the states of
// the automata that the rest still has to satisfy. The set is finite, and a
// thread that asks for less makes one at the same instruction that asks for more
// superfluous.

// look is one look-around of an expression.
type look struct {
	body   string
	behind bool
	not    bool
}

// splitLooks returns expr with every look-around replaced by an empty group with
// a name of its own, and the look-arounds. Names that the expression gives to
// groups are left out. ok is false if a look-around has no end.
func splitLooks(expr string) (rest string, looks []look, ok bool) {
	var b strings.Builder
	flags := ""
	if end := strings.IndexByte(expr, ')'); strings.HasPrefix(expr, "(?") && end > 0 && strings.Trim(expr[2:end], "imsU") == "" {
		flags = expr[:end+1]
	}
	for i := 0; i < len(expr); {
		part := nextPart(expr[i:])
		if !strings.HasPrefix(part, "(?") {
			b.WriteString(part)
			i += len(part)
			continue
		}
		l, prefix := look{}, ""
		for _, p := range [...]struct {
			prefix      string
			behind, not bool
		}{{"(?=", false, false}, {"(?!", false, true}, {"(?<=", true, false}, {"(?<!", true, true}} {
			if strings.HasPrefix(expr[i:], p.prefix) {
				prefix, l.behind, l.not = p.prefix, p.behind, p.not
			}
		}
		if prefix == "" {
			n := 2
			if end := strings.IndexByte(expr[i:], '>'); end > 0 && (strings.HasPrefix(expr[i:], "(?<") || strings.HasPrefix(expr[i:], "(?P<")) {
				n = end + 1
				b.WriteByte('(')
			} else {
				b.WriteString("(?")
			}
			i += n
			continue
		}
		end := groupEnd(expr, i+len(prefix))
		if end < 0 {
			return "", nil, false
		}
		l.body = flags + expr[i+len(prefix):end]
		b.WriteString("(?P<" + lookName + strconv.Itoa(len(looks)) + ">)")
		looks = append(looks, l)
		i = end + 1
	}
	return b.String(), looks, true
}

const lookName = "look"

// nextPart returns what comes first in an expression as far as brackets are
// concerned: an escape, a class, "(?", or one byte.
func nextPart(expr string) string {
	switch {
	case expr[0] == '\\' && len(expr) > 1:
		return expr[:2]
	case expr[0] == '[':
		i := 1
		if strings.HasPrefix(expr[i:], "^") {
			i++
		}
		if strings.HasPrefix(expr[i:], "]") {
			i++
		}
		for i < len(expr) && expr[i] != ']' {
			if expr[i] == '\\' {
				i++
			}
			i++
		}
		return expr[:min(i+1, len(expr))]
	case strings.HasPrefix(expr, "(?"):
		return expr[:2]
	}
	return expr[:1]
}

// groupEnd returns the place of the bracket that closes the group whose inside
// begins at i, or -1.
func groupEnd(expr string, i int) int {
	for depth := 0; i < len(expr); {
		part := nextPart(expr[i:])
		switch part[0] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		}
		i += len(part)
	}
	return -1
}

// maxLooks bounds the look-arounds of an expression, and how deep they are in
// each other.
const maxLooks = 16

// lookDuty is an automaton that the rest of the text has to satisfy, and its
// state.
type lookDuty struct {
	dfa   int32
	state int32
}

// lookThread is a way to read on.
type lookThread struct {
	pc     uint32 // len(prog.Inst): the match is complete
	duties []lookDuty
}

type lookState struct {
	threads []lookThread
	behind  []int32 // states of the automata of look-behinds
	prev    rune    // as in regexState
}

// lookBuilder is the subset construction for an expression with look-around.
type lookBuilder struct {
	regexBuilder
	looks  []look
	group  map[uint32]int   // group → look-around
	dfas   []*RuneDFA       // of look-aheads
	start  [][4]int32       // look-ahead and kind of the character before it → dfa
	back   []*RuneDFA       // of look-behinds, nil for look-aheads
	states map[string]int32 // key → state
	list   []lookState
}

// withLooks compiles an expression with look-around, which prog is with its
// look-arounds as groups; r says how it begins and ends.
func (b *Builder) withLooks(re *syntax.Regexp, prog *syntax.Prog, looks []look, r regexBuilder, depth int) *RuneDFA {
	l := &lookBuilder{regexBuilder: r, looks: looks, group: map[uint32]int{}, states: map[string]int32{}}
	for i, name := range re.CapNames() {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, lookName)); err == nil && strings.HasPrefix(name, lookName) {
			l.group[uint32(i)] = n
		}
	}
	l.start, l.back = make([][4]int32, len(looks)), make([]*RuneDFA, len(looks))
	for i := range looks {
		if !l.compile(i, depth) {
			return NoText()
		}
	}
	return l.build()
}

// kinds are characters of each kind that assertions tell apart, as kindOf has
// them, and the begin of the text.
var kinds = [4]rune{-1, ' ', '\n', 'a'}

// lookingBack matches expressions that may ask what comes before them.
var lookingBack = regexp.MustCompile(`\^|\\[bBA]`)

// compile finds the automata of a look-around.
func (l *lookBuilder) compile(i, depth int) bool {
	k := &l.looks[i]
	if k.behind && depth > 0 || !k.behind && l.regexBuilder.behind {
		l.b.fail(&Error{Kind: Unsupported, Source: l.b.Source, Where: l.b.where, Keyword: l.b.keyword, Why: "look-behind inside a look-around, or a look-ahead inside a look-behind, of a regular expression"})
		return false
	}
	if k.behind {
		l.back[i] = l.b.pattern(k.body, regexBuilder{b: l.b, restart: true, behind: true, prev: -1}, l.schema, depth+1)
		return l.b.err == nil
	}
	for n, prev := range kinds {
		d := l.b.pattern(k.body, regexBuilder{b: l.b, open: true, prev: prev}, l.schema, depth+1)
		if l.b.err != nil {
			return false
		}
		if k.not {
			d = d.Complement().Minimize(l.b)
		}
		l.start[i][n] = int32(len(l.dfas))
		l.dfas = append(l.dfas, d)
		if n == 0 && !lookingBack.MatchString(k.body) {
			l.start[i] = [4]int32{l.start[i][0], l.start[i][0], l.start[i][0], l.start[i][0]}
			break
		}
	}
	l.asserts = l.asserts || l.start[i][0] != l.start[i][1]
	return true
}

func (l *lookBuilder) build() *RuneDFA {
	d := &RuneDFA{}
	var more []RuneSet
	for _, list := range [...][]*RuneDFA{l.dfas, l.back} {
		for _, x := range list {
			if x != nil {
				more = append(more, x.alphabet()...)
			}
		}
	}
	d.cuts, d.class, l.reps = l.alphabet(more)
	if l.b.err != nil {
		return NoText()
	}
	d.k = len(l.reps)
	first := lookState{threads: []lookThread{{pc: uint32(l.prog.Start)}}, prev: l.prev}
	for _, x := range l.back {
		if x != nil {
			first.behind = append(first.behind, x.start)
		} else {
			first.behind = append(first.behind, 0)
		}
	}
	l.add(first)
	for i := 0; i < len(l.list) && l.b.err == nil; i++ {
		s := l.list[i]
		d.final = append(d.final, l.final(s))
		if !d.room(l.b, len(l.list)) {
			return NoText()
		}
		for _, ch := range l.reps {
			if l.complete(s) {
				d.next = append(d.next, int32(i))
				continue
			}
			next := l.after(s, ch)
			if len(next.threads) == 0 {
				d.next = append(d.next, -1)
				continue
			}
			d.next = append(d.next, l.add(next))
		}
	}
	if l.b.err != nil {
		return NoText()
	}
	return d.Minimize(l.b)
}

// complete reports whether anything may follow in s.
func (l *lookBuilder) complete(s lookState) bool {
	return l.open && len(s.threads) == 1 && int(s.threads[0].pc) == len(l.prog.Inst) && len(s.threads[0].duties) == 0
}

func (l *lookBuilder) final(s lookState) bool {
	for _, t := range l.follow(s, -1) {
		if int(t.pc) != len(l.prog.Inst) {
			continue
		}
		met := true
		for _, d := range t.duties {
			met = met && l.dfas[d.dfa].final[d.state]
		}
		if met {
			return true
		}
	}
	return false
}

// after returns the state after a character.
func (l *lookBuilder) after(s lookState, ch rune) lookState {
	next := lookState{prev: l.kindOf(ch), behind: slices.Clone(s.behind)}
	for i, x := range l.back {
		if x != nil && s.behind[i] >= 0 {
			next.behind[i] = x.next[int(s.behind[i])*x.k+int(x.classOf(ch))]
		}
	}
	for _, t := range l.follow(s, ch) {
		to := t.pc
		switch {
		case int(t.pc) == len(l.prog.Inst):
			if !l.open {
				continue
			}
		default:
			in := &l.prog.Inst[t.pc]
			if in.MatchRunePos(ch) == -1 {
				continue
			}
			to = in.Out
		}
		if duties, ok := l.read(t.duties, ch); ok {
			next.threads = append(next.threads, lookThread{to, duties})
		}
	}
	if l.restart {
		next.threads = append(next.threads, lookThread{pc: uint32(l.prog.Start)})
	}
	next.threads = l.reduce(next.threads)
	return next
}

// read returns the duties that are left after a character; ok is false if one
// of them cannot be met any more.
func (l *lookBuilder) read(duties []lookDuty, ch rune) (left []lookDuty, ok bool) {
	for _, d := range duties {
		x := l.dfas[d.dfa]
		to := x.next[int(d.state)*x.k+int(x.classOf(ch))]
		if to < 0 {
			return nil, false
		}
		if !x.all(to) {
			left = withDuty(left, lookDuty{d.dfa, to})
		}
	}
	return left, true
}

// all reports whether everything is accepted from q on.
func (d *RuneDFA) all(q int32) bool {
	for _, to := range d.next[int(q)*d.k : (int(q)+1)*d.k] {
		if to != q {
			return false
		}
	}
	return d.final[q]
}

// alphabet returns the sets of characters that d tells apart.
func (d *RuneDFA) alphabet() []RuneSet {
	sets := make([]RuneSet, d.k)
	for i, lo := range d.cuts {
		hi := rune(maxRune)
		if i+1 < len(d.cuts) {
			hi = d.cuts[i+1] - 1
		}
		sets[d.class[i]] = append(sets[d.class[i]], lo, hi)
	}
	for i := range sets {
		sets[i] = sets[i].normalize()
	}
	return sets
}

// withDuty returns duties, which is sorted, with another one.
func withDuty(duties []lookDuty, d lookDuty) []lookDuty {
	i, found := slices.BinarySearchFunc(duties, d, compareDuty)
	if found {
		return duties
	}
	return slices.Insert(slices.Clone(duties), i, d)
}

func compareDuty(a, b lookDuty) int {
	if a.dfa != b.dfa {
		return int(a.dfa - b.dfa)
	}
	return int(a.state - b.state)
}

// follow returns the threads that read a character or have matched when the text
// goes on with next (-1: ends).
func (l *lookBuilder) follow(s lookState, next rune) []lookThread {
	flags := syntax.EmptyOpContext(s.prev, next)
	var out []lookThread
	seen := map[string]bool{}
	work := slices.Clone(s.threads)
	for len(work) > 0 {
		t := work[len(work)-1]
		work = work[:len(work)-1]
		key := string(t.key(nil))
		if seen[key] || !l.b.Spend(4+len(t.duties)) {
			continue
		}
		seen[key] = true
		if int(t.pc) == len(l.prog.Inst) {
			out = append(out, t)
			continue
		}
		in := &l.prog.Inst[t.pc]
		on := func(pc uint32) { work = append(work, lookThread{pc, t.duties}) }
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			on(in.Out)
			on(in.Arg)
		case syntax.InstCapture:
			if k, ok := l.group[in.Arg/2]; ok && in.Arg&1 == 0 {
				if !l.look(k, s, &t) {
					continue
				}
			}
			on(in.Out)
		case syntax.InstNop:
			on(in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				on(in.Out)
			}
		case syntax.InstMatch:
			out = append(out, lookThread{uint32(len(l.prog.Inst)), t.duties})
		case syntax.InstFail:
		default:
			out = append(out, t)
		}
	}
	return out
}

// look applies a look-around to a thread, and reports whether it may go on.
func (l *lookBuilder) look(k int, s lookState, t *lookThread) bool {
	if l.looks[k].behind {
		q := s.behind[k]
		return (q >= 0 && l.back[k].final[q]) != l.looks[k].not
	}
	kind := slices.Index(kinds[:], s.prev)
	d := lookDuty{dfa: l.start[k][max(kind, 0)]}
	x := l.dfas[d.dfa]
	if d.state = x.start; x.Empty() {
		return false
	}
	if !x.all(d.state) {
		t.duties = withDuty(t.duties, d)
	}
	return true
}

// reduce sorts threads and leaves out those that ask for more than another one
// at the same instruction.
func (l *lookBuilder) reduce(threads []lookThread) []lookThread {
	slices.SortFunc(threads, func(a, b lookThread) int {
		if a.pc != b.pc {
			return int(a.pc) - int(b.pc)
		}
		if len(a.duties) != len(b.duties) {
			return len(a.duties) - len(b.duties)
		}
		return slices.CompareFunc(a.duties, b.duties, compareDuty)
	})
	var out []lookThread
	for _, t := range threads {
		more := slices.ContainsFunc(out, func(u lookThread) bool {
			return u.pc == t.pc && !slices.ContainsFunc(u.duties, func(d lookDuty) bool { return !slices.Contains(t.duties, d) })
		})
		l.b.Spend(1 + len(out)/8)
		if !more {
			out = append(out, t)
		}
	}
	// Of what has matched with nothing left to ask, nothing else matters.
	for _, t := range out {
		if l.open && int(t.pc) == len(l.prog.Inst) && len(t.duties) == 0 {
			return []lookThread{t}
		}
	}
	return out
}

func (t *lookThread) key(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(t.pc))
	b = binary.AppendUvarint(b, uint64(len(t.duties)))
	for _, d := range t.duties {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(d.dfa)), uint64(d.state))
	}
	return b
}

func (l *lookBuilder) add(s lookState) int32 {
	key := binary.AppendVarint(nil, int64(s.prev))
	for _, q := range s.behind {
		key = binary.AppendVarint(key, int64(q))
	}
	for i := range s.threads {
		key = s.threads[i].key(key)
	}
	id, ok := l.states[string(key)]
	if !ok {
		id = int32(len(l.list))
		l.states[string(key)] = id
		l.list = append(l.list, s)
		l.b.Spend(8 * len(key))
	}
	return id
}
