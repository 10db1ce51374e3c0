package grammar

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"ridge/internal/diag"
)

// alternatives parses SEQUENCE | SEQUENCE ...
func (p *gbnfParser) alternatives(nested bool) (*ebnfExpr, error) {
	alt := &ebnfExpr{op: ebnfAlt}
	for {
		e, err := p.sequence(nested)
		if err != nil {
			return nil, err
		}
		alt.sub = append(alt.sub, e)
		end := p.at
		p.space(true) // the next alternative may stand on a line of its own
		if p.peek() != '|' {
			p.at = end
			break
		}
		p.at++
		p.space(true)
	}
	if len(alt.sub) == 1 {
		return alt.sub[0], nil
	}
	return alt, nil
}

func (p *gbnfParser) sequence(nested bool) (*ebnfExpr, error) {
	seq := &ebnfExpr{op: ebnfSeq}
	for {
		e, err := p.operand()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return seq, nil
		}
		p.space(nested)
		for strings.IndexByte("*+?{", p.peek()) >= 0 && p.at < len(p.src) {
			if e, err = p.repetition(e); err != nil {
				return nil, err
			}
			p.space(nested)
		}
		seq.sub = append(seq.sub, e)
	}
}

// operand parses what a repetition can follow; nil if there is none.
func (p *gbnfParser) operand() (*ebnfExpr, error) {
	at := p.at
	switch c := p.peek(); {
	case c == '"' || c == '\'':
		return p.literal(c)
	case c == '[':
		return p.class()
	case c == '.':
		p.at++
		return &ebnfExpr{op: ebnfSet, set: RuneSet{0, maxRune}}, nil
	case c == '(':
		if p.depth++; p.depth > MaxNesting {
			return nil, p.fail(TooLarge, at, "too large: groups nested deeper than %d", MaxNesting)
		}
		p.at++
		p.space(true)
		e, err := p.alternatives(true)
		if err != nil {
			return nil, err
		}
		if p.peek() != ')' {
			return nil, p.fail(Invalid, p.at, "expected ), found %s", p.found())
		}
		p.at++
		p.depth--
		return &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{e}}, nil
	case c == '<' || c == '!':
		return nil, p.fail(Unsupported, at, "tokens in grammars are not supported")
	case isName(c):
		name := p.name()
		return &ebnfExpr{op: ebnfRef, rule: p.rule(name, at)}, nil
	}
	return nil, nil
}

// repetition parses * + ? {m} {m,} {m,n} {,n} after e.
func (p *gbnfParser) repetition(e *ebnfExpr) (*ebnfExpr, error) {
	at := p.at
	r := &ebnfExpr{op: ebnfRepeat, sub: []*ebnfExpr{e}, hi: -1}
	p.at++
	switch p.src[at] {
	case '+':
		r.lo = 1
	case '?':
		r.hi = 1
	case '{':
		end := strings.IndexByte(p.src[p.at:], '}')
		if end < 0 {
			return nil, p.fail(Invalid, at, "expected } after {")
		}
		text := p.src[p.at : p.at+end]
		p.at += end + 1
		first, second, two := strings.Cut(text, ",")
		number := func(s string, none int) (int, error) {
			if s = strings.TrimSpace(s); s == "" && two {
				return none, nil
			}
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				return 0, p.fail(Invalid, at, "expected {m}, {m,} or {m,n} with whole numbers, found {%s}", strings.Trim(diag.Quote(text), `"`))
			}
			if n > MaxRepeat {
				return 0, p.fail(TooLarge, at, "too large: repetition of more than %d times", MaxRepeat)
			}
			return int(n), nil
		}
		var err error
		if r.lo, err = number(first, 0); err != nil {
			return nil, err
		}
		r.hi = r.lo
		if two {
			if r.hi, err = number(second, -1); err != nil {
				return nil, err
			}
		}
		if r.hi >= 0 && r.hi < r.lo {
			return nil, p.fail(Invalid, at, "expected {m,n} with m at most n")
		}
	}
	return r, nil
}

// literal parses text between quotes.
func (p *gbnfParser) literal(quote byte) (*ebnfExpr, error) {
	at := p.at
	p.at++
	seq := &ebnfExpr{op: ebnfSeq}
	for p.at < len(p.src) && p.src[p.at] != quote {
		r, err := p.char()
		if err != nil {
			return nil, err
		}
		seq.sub = append(seq.sub, &ebnfExpr{op: ebnfSet, set: RuneSet{r, r}})
	}
	if p.at >= len(p.src) {
		return nil, p.fail(Invalid, at, "literal without an end")
	}
	p.at++
	return seq, nil
}

// class parses [a-z...] and [^a-z...].
func (p *gbnfParser) class() (*ebnfExpr, error) {
	at := p.at
	p.at++
	not := p.peek() == '^'
	if not {
		p.at++
	}
	var set RuneSet
	for p.at < len(p.src) && p.src[p.at] != ']' {
		lo, err := p.char()
		if err != nil {
			return nil, err
		}
		hi := lo
		if p.peek() == '-' && p.at+1 < len(p.src) && p.src[p.at+1] != ']' {
			p.at++
			if hi, err = p.char(); err != nil {
				return nil, err
			}
			if hi < lo {
				return nil, p.fail(Invalid, at, "range of characters in descending order")
			}
		}
		set = append(set, lo, hi)
	}
	if p.at >= len(p.src) {
		return nil, p.fail(Invalid, at, "class of characters without an end")
	}
	p.at++
	set = set.normalize()
	if not {
		set = set.Complement()
	}
	if len(set) == 0 {
		return nil, p.fail(Invalid, at, "empty class of characters")
	}
	return &ebnfExpr{op: ebnfSet, set: set}, nil
}

// char parses one character or escape of a literal or class.
func (p *gbnfParser) char() (rune, error) {
	at := p.at
	r, n := utf8.DecodeRuneInString(p.src[p.at:])
	if p.at += n; r != '\\' {
		return r, nil
	}
	c := p.peek()
	p.at++
	digits := 0
	switch c {
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '\\', '"', '\'', '[', ']', '-', '^', '?':
		return rune(c), nil
	case '0', 'a', 'b', 'e', 'f', 'v': // of XGrammar's EBNF
		return rune("\x00\a\b\x1b\f\v"[strings.IndexByte("0abefv", c)]), nil
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return 0, p.fail(Invalid, at, "unknown escape")
	}
	if p.at+digits > len(p.src) {
		return 0, p.fail(Invalid, at, "expected %d hexadecimal digits", digits)
	}
	x, err := strconv.ParseUint(p.src[p.at:p.at+digits], 16, 32)
	if err != nil {
		return 0, p.fail(Invalid, at, "expected %d hexadecimal digits", digits)
	}
	p.at += digits
	if x > maxRune || x >= surrogateMin && x <= surrogateMax {
		return 0, p.fail(Invalid, at, "U+%X is not a character", x)
	}
	return rune(x), nil
}
