package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"ridge/text/grammar"
)

// decimal is a number that is not negative, written out.
type decimal struct {
	whole string // no leading zeros; "0" for zero
	frac  string // no trailing zeros
}

// decimalOf returns the magnitude of x, which has a finite decimal expansion.
func decimalOf(x *big.Rat) decimal {
	abs := new(big.Rat).Abs(x)
	digits := 0
	if !abs.IsInt() {
		digits = abs.Denom().BitLen() // 2^n needs n digits, 5^n fewer
	}
	whole, frac, _ := strings.Cut(abs.FloatString(digits), ".")
	return decimal{whole, strings.TrimRight(frac, "0")}
}

// below reports whether hi < lo, or hi = lo where one of them is excluded.
func below(hi, lo *big.Rat, open bool) bool {
	if hi == nil || lo == nil {
		return false
	}
	cmp := hi.Cmp(lo)
	return cmp < 0 || cmp == 0 && open
}

const maxModulus = 500

// multipleParts writes m as p/10^scale with whole p; ok is false if p is too
// large for an automaton that counts modulo p.
func multipleParts(m *big.Rat) (p, scale int, ok bool) {
	d := decimalOf(m)
	n, ok := new(big.Int).SetString(d.whole+d.frac, 10)
	if !ok || !n.IsInt64() || n.Int64() > maxModulus {
		return 0, 0, false
	}
	return int(n.Int64()), len(d.frac), len(d.frac) <= 17
}

// numberRule returns the rule of the numbers of an alternative.
func (c *schemaCompiler) numberRule(a *alternative, t types, at *schema) *grammar.Rule {
	fractions, whole := t&typeFraction != 0, t&typeInteger != 0
	gaps := a.excludedNumbers()
	if a.lo == nil && a.hi == nil && len(a.multiples)+len(a.notMultiples)+len(gaps) == 0 && whole {
		if fractions {
			return c.j.anyNumber()
		}
		return c.j.anyInteger()
	}
	show := func(x *big.Rat) string {
		if x == nil {
			return "-"
		}
		return x.RatString()
	}
	key := fmt.Sprintf("n %t %t %s %t %s %t", fractions, whole, show(a.lo), a.openLo, show(a.hi), a.openHi)
	for i, list := range [...][]*big.Rat{a.multiples, a.notMultiples, gaps} {
		for _, m := range list {
			key += fmt.Sprintf(" %d %s", i, show(m))
		}
	}
	if r := c.leafRules[key]; r != nil {
		return r
	}
	r := c.b.Rule("number of " + at.at)
	c.leafRules[key] = r
	defer c.blame(a.owner(at, "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "const", "format"))()
	for _, d := range c.numberParts(a, t) {
		r.Spell(r.Start, d, r.End, r.Runes)
	}
	return r
}

// numberParts returns automata whose texts are, together, the numbers of an
// alternative; one that is nil stands for all of the type.
func (c *schemaCompiler) numberParts(a *alternative, t types) (parts []*grammar.RuneDFA) {
	fractions, whole := t&typeFraction != 0, t&typeInteger != 0
	gaps := a.excludedNumbers()
	if a.lo == nil && a.hi == nil && len(a.multiples)+len(a.notMultiples)+len(gaps) == 0 && whole {
		return []*grammar.RuneDFA{nil}
	}
	spec := numberSpec{fractions: fractions, lo: a.lo, hi: a.hi, openLo: a.openLo, openHi: a.openHi}
	var rest *grammar.RuneDFA // what the bounds do not say
	and := func(s numberSpec) {
		if d := numberDFA(c.b, s); rest == nil {
			rest = d
		} else {
			rest = rest.Intersect(c.b, d)
		}
	}
	for i, m := range a.multiples {
		if i == 0 {
			spec.multiple = m
		} else {
			and(numberSpec{fractions: fractions, multiple: m})
		}
	}
	for _, m := range a.notMultiples {
		and(numberSpec{fractions: fractions, not: m})
	}
	if !whole {
		and(numberSpec{fractions: true, not: big.NewRat(1, 1)})
	}
	// Numbers that are left out cut the range in pieces.
	piece := func(s numberSpec) {
		if s.lo != nil && s.hi != nil && below(s.hi, s.lo, s.openHi || s.openLo) {
			return
		}
		d := numberDFA(c.b, s)
		if rest != nil {
			d = d.Intersect(c.b, rest)
		}
		parts = append(parts, d)
	}
	for _, x := range gaps {
		left := spec
		lower(&left.hi, &left.openHi, x, true)
		raise(&spec.lo, &spec.openLo, x, true)
		piece(left)
	}
	piece(spec)
	return parts
}

// excludedNumbers returns the numbers that are left out, ascending.
func (a *alternative) excludedNumbers() []*big.Rat {
	var list []*big.Rat
	for _, v := range a.excluded {
		if v.kind == jsonNumber {
			list = append(list, v.rat)
		}
	}
	slices.SortFunc(list, (*big.Rat).Cmp)
	return slices.CompactFunc(list, func(x, y *big.Rat) bool { return x.Cmp(y) == 0 })
}

// numberSpec is what a schema says of numbers.
type numberSpec struct {
	fractions      bool
	lo, hi         *big.Rat
	openLo, openHi bool
	multiple       *big.Rat // nil: any
	not            *big.Rat // whose multiples are left out; nil: none. Not together with multiple
}

// numberState is how far a number has been read. The value is compared with the
// bounds digit by digit: as long as the digits are equal the comparison is open,
// and the number of digits before the point decides over the rest.
type numberState struct {
	phase    uint8 // 0 start, 1 after the sign, 2 before the point, 3 at the point, 4 after it
	negative bool
	zero     bool // the part before the point is 0
	whole    int8 // digits before the point
	frac     int8
	low, top int8 // comparison of the digits with the bounds of the magnitude
	rest     int16
}

type numberWalk struct {
	spec numberSpec
	// Bounds of the magnitude of positive [0] and negative [1] numbers.
	bound      [2]struct{ low, top *magnitude }
	possible   [2]bool
	p, scale   int
	maxW, maxF int8
}

type magnitude struct {
	decimal
	open bool
}

const (
	pointClass = 10
	minusClass = 11
)

// numberDFA returns the automaton of the numbers of a specification, written
// without exponent, with at most 18 digits before and 17 after the point or as
// many as the bounds have.
func numberDFA(b *grammar.Builder, spec numberSpec) *grammar.RuneDFA {
	w := &numberWalk{spec: spec, maxW: 18, maxF: 17}
	w.p = 1
	if spec.multiple != nil {
		w.p, w.scale, _ = multipleParts(spec.multiple)
		w.maxF = int8(w.scale)
	} else if spec.not != nil {
		w.p, w.scale, _ = multipleParts(spec.not)
	}
	mag := func(x *big.Rat, open bool) *magnitude {
		m := &magnitude{decimalOf(x), open}
		w.maxW = max(w.maxW, int8(len(m.whole)))
		if spec.multiple == nil {
			w.maxF = max(w.maxF, int8(len(m.frac)))
		}
		return m
	}
	zero := new(big.Rat)
	w.possible[0] = !below(spec.hi, zero, false)
	w.possible[1] = below(spec.lo, zero, false) || spec.lo == nil
	if spec.lo != nil && w.possible[0] && !below(spec.lo, zero, false) {
		w.bound[0].low = mag(spec.lo, spec.openLo)
	}
	if spec.hi != nil && w.possible[0] {
		w.bound[0].top = mag(spec.hi, spec.openHi)
	}
	if spec.hi != nil && w.possible[1] && !below(zero, spec.hi, false) {
		w.bound[1].low = mag(spec.hi, spec.openHi)
	}
	if spec.lo != nil && w.possible[1] {
		w.bound[1].top = mag(spec.lo, spec.openLo)
	}
	alphabet := make([]grammar.RuneSet, 12)
	for i := range 10 {
		alphabet[i] = grammar.RuneSet{rune('0' + i), rune('0' + i)}
	}
	alphabet[pointClass] = grammar.RuneSet{'.', '.'}
	alphabet[minusClass] = grammar.RuneSet{'-', '-'}
	return grammar.Explore(b, alphabet, numberState{}, w.next, w.final)
}

func (w *numberWalk) sign(s numberState) int {
	if s.negative {
		return 1
	}
	return 0
}

func (w *numberWalk) next(s numberState, class int) (numberState, bool) {
	switch class {
	case minusClass:
		if s.phase != 0 || !w.possible[1] {
			return s, false
		}
		s.phase, s.negative = 1, true
		return s, true
	case pointClass:
		if s.phase != 2 || !w.spec.fractions || w.maxF == 0 {
			return s, false
		}
		s.phase = 3
		bound := &w.bound[w.sign(s)]
		s.low, s.top = wholeCompare(s.low, s.whole, bound.low), wholeCompare(s.top, s.whole, bound.top)
		s.whole, s.zero = 0, false
		return s, true
	}
	sign := w.sign(s)
	bound := &w.bound[sign]
	if s.phase < 3 {
		if s.phase == 0 && !w.possible[0] || s.zero || s.whole == w.maxW {
			return s, false
		}
		s.zero = s.phase < 2 && class == 0
		s.phase = 2
		s.low = digitCompare(s.low, class, int(s.whole), bound.low, false)
		s.top = digitCompare(s.top, class, int(s.whole), bound.top, false)
		s.whole++
	} else {
		if s.frac == w.maxF {
			return s, false
		}
		s.phase = 4
		s.low = digitCompare(s.low, class, int(s.frac), bound.low, true)
		s.top = digitCompare(s.top, class, int(s.frac), bound.top, true)
		s.frac++
		if w.spec.not != nil && int(s.frac) > w.scale { // digits that multiples have as zeros; of the rest only one thing matters
			if class != 0 || s.rest != 0 {
				s.rest = noMultiple
			}
			return s, true
		}
	}
	s.rest = int16((int(s.rest)*10 + class) % w.p)
	return s, true
}

const noMultiple = -1 // the rest of a number that is none, however it goes on

// digitCompare goes on with a comparison by the digit at a place before or
// after the point.
func digitCompare(cmp int8, digit, place int, m *magnitude, frac bool) int8 {
	if cmp != 0 || m == nil {
		return cmp
	}
	digits := m.whole
	if frac {
		digits = m.frac
	}
	other := 0
	if place < len(digits) {
		other = int(digits[place] - '0')
	} else if !frac {
		return 0 // decided by the number of digits
	}
	switch {
	case digit < other:
		return -1
	case digit > other:
		return 1
	}
	return 0
}

// wholeCompare ends the comparison of the parts before the point.
func wholeCompare(cmp, n int8, m *magnitude) int8 {
	switch {
	case m == nil:
		return 0
	case int(n) < len(m.whole):
		return -1
	case int(n) > len(m.whole):
		return 1
	}
	return cmp
}

func (w *numberWalk) final(s numberState) bool {
	if s.phase != 2 && s.phase != 4 {
		return false
	}
	rest := int(s.rest)
	for i := int(s.frac); i < w.scale; i++ {
		rest = rest * 10 % w.p
	}
	if (rest != 0) != (w.spec.not != nil) {
		return false
	}
	bound := &w.bound[w.sign(s)]
	end := func(cmp int8, m *magnitude) int8 {
		if s.phase == 2 {
			cmp = wholeCompare(cmp, s.whole, m)
		}
		if cmp == 0 && m != nil && int(s.frac) < len(m.frac) {
			return -1 // the rest of the bound is not zero
		}
		return cmp
	}
	if m := bound.low; m != nil {
		if cmp := end(s.low, m); cmp < 0 || cmp == 0 && m.open {
			return false
		}
	}
	if m := bound.top; m != nil {
		if cmp := end(s.top, m); cmp > 0 || cmp == 0 && m.open {
			return false
		}
	}
	return true
}
