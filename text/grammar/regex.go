package grammar

import (
	"encoding/binary"
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"

	"ridge/internal/diag"
)

// Regex compiles a regular expression in RE2's syntax, as Go's regexp package
// reads it, for the vocabulary v (nil: no masks). The whole text matches it, as
// if it stood between ^ and $.
func Regex(v *Vocabulary, expr string) (*Grammar, error) {
	b := &Builder{Source: "regex"}
	root, err := b.Regex(expr)
	if err != nil {
		return nil, err
	}
	return b.Compile(root, v, 0)
}

// Regex adds the rule of a regular expression, see the function of that name.
func (b *Builder) Regex(expr string) (*Rule, error) {
	d := b.Pattern("", "", expr, false)
	root := b.Rule("root")
	root.Spell(root.Start, d, root.End, root.Runes)
	return root, b.err
}

// Spell adds the texts that d accepts between two states. runes adds the
// spellings of the code points on between two states: Runes for UTF-8.
func (r *Rule) Spell(from int32, d *RuneDFA, to int32, runes func(from int32, on RuneSet, to int32, shared Tails)) {
	if r.b.err != nil {
		return
	}
	at := make([]int32, len(d.final))
	for q := range at {
		at[q] = r.State()
		r.states[at[q]].begins = r.b.err == nil
	}
	r.Skip(from, at[d.start])
	shared := Tails{}
	for q := range at {
		if r.b.err != nil {
			return
		}
		d.edges(int32(q), func(next int32, on RuneSet) { runes(at[q], on, at[next], shared) })
		if d.final[q] {
			r.Skip(at[q], to)
		}
	}
}

// Pattern returns the automaton of a regular expression: of the texts that
// match as a whole, or, if search is set, that have a match somewhere. Errors
// name the place and the keyword.
func (b *Builder) Pattern(where, keyword, expr string, search bool) *RuneDFA {
	defer b.Blame(where, keyword)()
	return b.pattern(expr, regexBuilder{b: b, restart: search, open: search, prev: -1}, search, 0)
}

// pattern is Pattern for a state to begin in, which r has; schema: expr stands in
// a schema.
func (b *Builder) pattern(expr string, r regexBuilder, schema bool, depth int) *RuneDFA {
	fail := func(k Kind, why string) *RuneDFA {
		b.fail(&Error{Kind: k, Source: b.Source, Where: b.where, Keyword: b.keyword, Why: why})
		return NoText()
	}
	if len(expr) > maxRegexSource {
		return fail(TooLarge, "regular expression longer than 16 KiB")
	}
	if what := unsupportedSyntax(expr); what != "" {
		return fail(Unsupported, what+" in a regular expression")
	}
	rest, looks, ok := splitLooks(expr)
	if !ok {
		return fail(Invalid, "regular expression: look-around without an end")
	}
	if len(looks) > maxLooks || depth > maxLooks {
		return fail(TooLarge, "too large: regular expression with more than 16 look-arounds")
	}
	re, err := syntax.Parse(rest, syntax.Perl)
	if err != nil {
		kind, why := Invalid, "not valid"
		var se *syntax.Error
		if errors.As(err, &se) {
			why = se.Code.String() + ": " + diag.Quote(se.Expr)
			if se.Code == syntax.ErrInvalidRepeatSize || se.Code == syntax.ErrLarge || se.Code == syntax.ErrNestingDepth {
				kind = TooLarge
			}
		}
		return fail(kind, "regular expression: "+why)
	}
	if schema { // "." as ECMAScript reads it, which is the narrower
		narrowDot(re)
	}
	if n := instructions(re); n > maxRuneStates {
		return fail(TooLarge, "too large: regular expression with more than 20000 instructions")
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return fail(Invalid, "regular expression: cannot be compiled")
	}
	r.prog, r.schema, r.index = prog, schema, map[string]int32{}
	if r.behind && looksAhead(prog) {
		return fail(Unsupported, "end of the text or of a word in a look-behind of a regular expression")
	}
	if len(looks) > 0 {
		return b.withLooks(re, prog, looks, r, depth)
	}
	return r.build()
}

// looksAhead reports whether a program asks what comes after a place.
func looksAhead(prog *syntax.Prog) bool {
	for i := range prog.Inst {
		if in := &prog.Inst[i]; in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&^(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0 {
			return true
		}
	}
	return false
}

// unsupportedSyntax names what RE2 leaves out on purpose and people use, before
// the parser calls it a mistake.
func unsupportedSyntax(expr string) string {
	class := false
	for i := 0; i < len(expr); i++ {
		switch c := expr[i]; {
		case c == '\\' && i+1 < len(expr):
			i++
			if n := expr[i]; n >= '1' && n <= '9' && !class || n == 'k' {
				return "back-reference"
			}
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(expr[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(expr[i+1:], "]") {
				i++
			}
		case c == '(':
			if strings.HasPrefix(expr[i:], "(?>") {
				return "atomic group (?>"
			}
		}
	}
	return ""
}

// narrowDot makes . leave out all line ends of ECMAScript.
func narrowDot(re *syntax.Regexp) {
	if re.Op == syntax.OpAnyCharNotNL {
		re.Op = syntax.OpCharClass
		re.Rune = []rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, 0x2027, 0x202A, maxRune}
	}
	for _, sub := range re.Sub {
		narrowDot(sub)
	}
}

// instructions bounds the size of the program of re, which repetitions multiply.
func instructions(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n += len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Max, re.Min, 1) + 1
	}
	return min(n, 1<<40)
}

// regexBuilder is the subset construction over the instructions of a program. A
// state is the set of instructions that wait for the next character, before
// empty instructions have been followed: what \b, ^ and $ say depends on the
// characters on both sides, so they are followed once the next one is known.
type regexBuilder struct {
	b       *Builder
	prog    *syntax.Prog
	schema  bool // it stands in a schema
	restart bool // a match may begin anywhere
	open    bool // anything may follow a match
	behind  bool // it is a look-behind
	prev    rune // before the text, as regexState has it

	asserts bool // it looks at neighbouring characters
	index   map[string]int32
	sets    []regexState
	reps    []rune // class → a character of it
	mark    []bool
	read    []uint32 // result of follow
}

type regexState struct {
	pcs  []uint32
	prev rune // a character with the same properties as the last, -1 at the start
	done bool // a match has been seen: everything may follow
}

func (r *regexBuilder) build() *RuneDFA {
	d := &RuneDFA{}
	d.cuts, d.class, r.reps = r.alphabet(nil)
	if r.b.err != nil {
		return NoText()
	}
	d.k = len(r.reps)
	r.mark = make([]bool, len(r.prog.Inst))
	r.add(regexState{pcs: []uint32{uint32(r.prog.Start)}, prev: r.prev})
	var next []uint32
	for i := 0; i < len(r.sets); i++ {
		s := r.sets[i]
		d.final = append(d.final, s.done || r.follow(s.pcs, s.prev, -1))
		if !d.room(r.b, len(r.sets)) {
			return NoText()
		}
		for _, ch := range r.reps {
			if s.done {
				d.next = append(d.next, int32(i))
				continue
			}
			matched := r.follow(s.pcs, s.prev, ch)
			if matched && r.open {
				d.next = append(d.next, r.add(regexState{done: true}))
				continue
			}
			next = next[:0]
			for _, pc := range r.read {
				in := &r.prog.Inst[pc]
				if in.MatchRunePos(ch) != -1 {
					next = append(next, in.Out)
				}
			}
			if r.restart {
				next = append(next, uint32(r.prog.Start))
			}
			if len(next) == 0 {
				d.next = append(d.next, -1)
				continue
			}
			slices.Sort(next)
			next = slices.Compact(next)
			d.next = append(d.next, r.add(regexState{pcs: next, prev: r.kindOf(ch)}))
		}
	}
	return d.Minimize(r.b)
}

// kindOf returns a character with the properties of ch that assertions look at.
func (r *regexBuilder) kindOf(ch rune) rune {
	switch {
	case !r.asserts:
		return ' '
	case ch == '\n':
		return '\n'
	case syntax.IsWordChar(ch):
		return 'a'
	}
	return ' '
}

func (r *regexBuilder) add(s regexState) int32 {
	key := make([]byte, 0, 4*len(s.pcs)+8)
	key = binary.AppendVarint(key, int64(s.prev))
	if s.done {
		key = append(key, 'd')
	}
	for _, pc := range s.pcs {
		key = binary.AppendUvarint(key, uint64(pc))
	}
	id, ok := r.index[string(key)]
	if !ok {
		id = int32(len(r.sets))
		r.index[string(key)] = id
		s.pcs = slices.Clone(s.pcs)
		r.sets = append(r.sets, s)
		r.b.Spend(8 * len(s.pcs))
	}
	return id
}

// follow leaves in r.read the instructions that read a character when the text
// goes on with next (-1: ends), and reports whether a match ends here.
func (r *regexBuilder) follow(pcs []uint32, prev, next rune) bool {
	flags := syntax.EmptyOpContext(prev, next)
	matched := false
	r.read = r.read[:0]
	work := slices.Clone(pcs)
	var seen []uint32
	for len(work) > 0 {
		pc := work[len(work)-1]
		work = work[:len(work)-1]
		if r.mark[pc] {
			continue
		}
		r.mark[pc] = true
		seen = append(seen, pc)
		in := &r.prog.Inst[pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			work = append(work, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			work = append(work, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				work = append(work, in.Out)
			}
		case syntax.InstMatch:
			matched = true
		case syntax.InstFail:
		default:
			r.read = append(r.read, pc)
		}
	}
	for _, pc := range seen {
		r.mark[pc] = false
	}
	r.b.Spend(len(seen))
	return matched
}

// alphabet returns the classes of characters that no instruction tells apart,
// with a character of each; more are sets that are told apart too.
func (r *regexBuilder) alphabet(more []RuneSet) (cuts []rune, class []int32, reps []rune) {
	sets := more
	known := map[string]bool{}
	for i := range r.prog.Inst {
		in := &r.prog.Inst[i]
		var s RuneSet
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1:
			s = slices.Clone(in.Rune)
			if len(s) == 1 {
				s = append(s, s[0])
				if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
					for f := unicode.SimpleFold(s[0]); f != s[0]; f = unicode.SimpleFold(f) {
						s = append(s, f, f)
					}
				}
			}
		case syntax.InstRuneAnyNotNL:
			s = RuneSet{'\n', '\n'}
		case syntax.InstEmptyWidth:
			r.asserts = true
			continue
		default:
			continue
		}
		s = s.normalize()
		var key []byte
		for _, x := range s {
			key = binary.AppendUvarint(key, uint64(x))
		}
		r.b.Spend(len(s))
		if !known[string(key)] {
			known[string(key)] = true
			sets = append(sets, s)
		}
	}
	if r.asserts {
		sets = append(sets, RuneSet{'\n', '\n'}, RuneSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'})
	}
	for _, s := range sets {
		r.b.Spend(len(s) * 4)
	}
	if r.b.err != nil {
		return nil, nil, nil
	}
	cuts, class, member := partition(sets)
	reps = make([]rune, len(member))
	for i := len(cuts) - 1; i >= 0; i-- {
		reps[class[i]] = cuts[i]
	}
	return cuts, class, reps
}
