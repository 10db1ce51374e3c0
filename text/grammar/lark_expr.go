package grammar

import (
	"encoding/json"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ridge/internal/diag"
)

// space skips blanks and comments; line ends only if lines is set.
func (p *larkParser) space(lines bool) { p.at = skipSpace(p.src, p.at, lines, "#", "//") }

func (p *larkParser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func (p *larkParser) accept(text string) bool {
	if !strings.HasPrefix(p.src[p.at:], text) {
		return false
	}
	p.at += len(text)
	return true
}

func (p *larkParser) found() string {
	if p.at >= len(p.src) {
		return "the end of the grammar"
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.at:])
	return strconv.QuoteRune(r)
}

func (p *larkParser) name() string {
	start := p.at
	for p.at < len(p.src) && isName(p.src[p.at]) && (p.at > start || p.src[p.at] > '9') {
		p.at++
	}
	return p.src[start:p.at]
}

// alternatives parses PARTS | PARTS ...
func (p *larkParser) alternatives(nested bool) (*ebnfExpr, error) {
	alt := &ebnfExpr{op: ebnfAlt, at: p.at}
	for {
		e, err := p.parts(nested)
		if err != nil {
			return nil, err
		}
		alt.sub = append(alt.sub, e)
		end := p.at
		p.space(true)
		if p.peek() != '|' {
			p.at = end
			break
		}
		p.at++
	}
	if len(alt.sub) == 1 {
		return alt.sub[0], nil
	}
	return alt, nil
}

// parts parses SEQUENCE & SEQUENCE ... and the name of a tree behind it.
func (p *larkParser) parts(nested bool) (*ebnfExpr, error) {
	and := &ebnfExpr{op: ebnfAnd, at: p.at}
	for {
		e, err := p.sequence(nested)
		if err != nil {
			return nil, err
		}
		and.sub = append(and.sub, e)
		if p.peek() != '&' {
			break
		}
		if !p.terminal {
			return nil, p.fail(Invalid, p.at, "& stands in terminals only, whose names are in capitals")
		}
		p.at++
	}
	if p.accept("->") {
		p.space(false)
		p.name()
		p.space(nested)
	}
	if len(and.sub) == 1 {
		return and.sub[0], nil
	}
	return and, nil
}

func (p *larkParser) sequence(nested bool) (*ebnfExpr, error) {
	seq := &ebnfExpr{op: ebnfSeq, at: p.at}
	for {
		p.space(nested)
		e, err := p.operand()
		if err != nil {
			return nil, err
		}
		if e == nil {
			return seq, nil
		}
		if e, err = p.repeated(e); err != nil {
			return nil, err
		}
		seq.sub = append(seq.sub, e)
	}
}

// operand parses what a repetition can follow; nil if there is none.
func (p *larkParser) operand() (*ebnfExpr, error) {
	at := p.at
	switch c := p.peek(); {
	case c == '~':
		if !p.terminal {
			return nil, p.fail(Invalid, at, "~ stands before parts of terminals only, whose names are in capitals")
		}
		p.at++
		p.space(false)
		if p.depth++; p.depth > MaxNesting {
			return nil, p.fail(TooLarge, at, "too large: nested deeper than %d", MaxNesting)
		}
		e, err := p.operand()
		p.depth--
		if err == nil && e == nil {
			err = p.fail(Invalid, p.at, "expected an operand after ~, found %s", p.found())
		}
		return &ebnfExpr{op: ebnfNot, sub: []*ebnfExpr{e}, at: at}, err
	case c == '(' || c == '[':
		return p.group(c)
	case c == '"':
		return p.text()
	case c == '/':
		return p.regex()
	case c == '<':
		return nil, p.fail(Unsupported, at, "tokens in grammars are not supported")
	case c == '@':
		return p.grammar()
	case c == '%':
		return p.inline()
	case isName(c) && c != '-' && c > '9':
		name := p.name()
		r := p.rule(name, at)
		if p.terminal && !r.terminal {
			return nil, p.fail(Invalid, at, "a terminal has the rule %s in it", diag.Quote(name))
		}
		return p.lexeme(&ebnfExpr{op: ebnfRef, rule: r, at: at}, r.terminal), nil
	}
	return nil, nil
}

// lexeme is e as a part of a rule or terminal.
func (p *larkParser) lexeme(e *ebnfExpr, is bool) *ebnfExpr {
	if p.terminal || !is {
		return e
	}
	return &ebnfExpr{op: ebnfLexeme, sub: []*ebnfExpr{e}, at: e.at}
}

// group parses ( ALTERNATIVES ) or [ ALTERNATIVES ], which may be left out.
func (p *larkParser) group(open byte) (*ebnfExpr, error) {
	at := p.at
	if p.depth++; p.depth > MaxNesting {
		return nil, p.fail(TooLarge, at, "too large: groups nested deeper than %d", MaxNesting)
	}
	p.at++
	e, err := p.alternatives(true)
	if err != nil {
		return nil, err
	}
	p.space(true)
	closing := map[byte]string{'(': ")", '[': "]"}[open]
	if !p.accept(closing) {
		return nil, p.fail(Invalid, p.at, "expected %s, found %s", closing, p.found())
	}
	p.depth--
	if open == '[' {
		return &ebnfExpr{op: ebnfRepeat, sub: []*ebnfExpr{e}, hi: 1, at: at}, nil
	}
	return &ebnfExpr{op: ebnfSeq, sub: []*ebnfExpr{e}, at: at}, nil
}

// repeated parses what may stand behind an operand: * + ? ~N ~N..M {N,M}.
func (p *larkParser) repeated(e *ebnfExpr) (*ebnfExpr, error) {
	for {
		at := p.at
		p.space(false)
		r := &ebnfExpr{op: ebnfRepeat, sub: []*ebnfExpr{e}, hi: -1, at: at}
		var err error
		switch c := p.peek(); {
		case c == '*':
			p.at++
		case c == '+':
			p.at++
			r.lo = 1
		case c == '?':
			p.at++
			r.hi = 1
		case c == '{':
			err = p.counts(r)
		case c == '~' && larkDigit(strings.TrimLeft(p.src[p.at+1:], " \t")):
			p.at++
			p.space(false)
			err = p.range2(r)
		default:
			return e, nil
		}
		if err == nil && r.hi >= 0 && r.hi < r.lo {
			err = p.fail(Invalid, at, "expected a range of counts, the smaller first")
		}
		if err != nil {
			return nil, err
		}
		e = r
	}
}

func larkDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// number parses a count, none if there is none.
func (p *larkParser) number(none int) (int, error) {
	p.space(false)
	start := p.at
	for larkDigit(p.src[p.at:]) {
		p.at++
	}
	text := p.src[start:p.at]
	p.space(false)
	if text == "" {
		return none, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > MaxRepeat {
		return 0, p.fail(TooLarge, start, "too large: repetition of more than %d times", MaxRepeat)
	}
	return int(n), nil
}

// range2 parses N or N..M.
func (p *larkParser) range2(r *ebnfExpr) (err error) {
	if r.lo, err = p.number(0); err != nil {
		return err
	}
	r.hi = r.lo
	if p.accept("..") {
		r.hi, err = p.number(-2)
		if r.hi == -2 {
			return p.fail(Invalid, p.at, "expected a number after .., found %s", p.found())
		}
	}
	return err
}

// counts parses {N}, {N,}, {N,M} and {,M}.
func (p *larkParser) counts(r *ebnfExpr) (err error) {
	at := p.at
	p.at++
	if r.lo, err = p.number(-1); err != nil {
		return err
	}
	r.hi = r.lo
	two := p.accept(",")
	if two {
		if r.hi, err = p.number(-1); err != nil {
			return err
		}
	}
	if r.lo < 0 && !two || !p.accept("}") {
		return p.fail(Invalid, at, "expected {m}, {m,}, {m,n} or {,n} with whole numbers")
	}
	r.lo = max(r.lo, 0)
	return nil
}

// text parses "TEXT", "TEXT"i and "A".."Z".
func (p *larkParser) text() (*ebnfExpr, error) {
	at := p.at
	s, err := p.literal()
	if err != nil {
		return nil, err
	}
	if p.accept("..") {
		to, err := p.literal()
		if err != nil {
			return nil, err
		}
		lo, n := utf8.DecodeRuneInString(s)
		hi, m := utf8.DecodeRuneInString(to)
		if n != len(s) || m != len(to) || n == 0 || m == 0 || hi < lo {
			return nil, p.fail(Invalid, at, "expected a range of two characters, the smaller first")
		}
		return p.lexeme(&ebnfExpr{op: ebnfSet, set: RuneSet{lo, hi}, at: at}, true), nil
	}
	fold := p.peek() == 'i' && (p.at+1 == len(p.src) || !isName(p.src[p.at+1]))
	if fold {
		p.at++
	}
	seq := &ebnfExpr{op: ebnfSeq, at: at}
	for _, r := range s {
		set := RuneSet{r, r}
		for f := unicode.SimpleFold(r); fold && f != r; f = unicode.SimpleFold(f) {
			set = append(set, f, f)
		}
		seq.sub = append(seq.sub, &ebnfExpr{op: ebnfSet, set: set.normalize(), at: at})
	}
	return p.lexeme(seq, s != ""), nil
}

// literal parses a text between quotes.
func (p *larkParser) literal() (string, error) {
	at := p.at
	if !p.accept(`"`) {
		return "", p.fail(Invalid, at, `expected a text in ", found %s`, p.found())
	}
	g := gbnfParser{b: p.b, src: p.src, at: p.at}
	var text strings.Builder
	for {
		switch c := g.peek(); {
		case g.at >= len(p.src) || c == '\n' || c == '\r':
			return "", p.fail(Invalid, at, "text without an end")
		case c == '"':
			p.at = g.at + 1
			return text.String(), nil
		case c == '\\' && strings.HasPrefix(p.src[g.at+1:], "/"):
			g.at++
			continue
		case c == '\\' && g.at+1 < len(p.src) && strings.IndexByte("bfu", p.src[g.at+1]) >= 0: // as in JSON
			n := 2
			for n < 12 && g.at+n < len(p.src) && (p.src[g.at+1] == 'u' && (n < 6 || p.src[g.at+6] == '\\')) {
				n++
			}
			var s string
			for _, n := range []int{n, 6, 2} { // two halves of a character, or one
				if g.at+n <= len(p.src) && json.Unmarshal([]byte(`"`+p.src[g.at:g.at+n]+`"`), &s) == nil && utf8.RuneCountInString(s) == 1 {
					text.WriteString(s)
					g.at += n
					break
				}
				s = ""
			}
			if s == "" {
				return "", p.fail(Invalid, g.at, "unknown escape")
			}
		default:
			from := g.at
			r, err := g.char()
			if err != nil {
				return "", p.fail(Invalid, from, "unknown escape")
			}
			text.WriteRune(r)
		}
	}
}

// regex parses /EXPRESSION/FLAGS.
func (p *larkParser) regex() (*ebnfExpr, error) {
	at := p.at
	end := at + 1
	for ; end < len(p.src) && p.src[end] != '\n' && p.src[end] != '/'; end++ {
		if p.src[end] == '\\' && end+1 < len(p.src) {
			end++
		}
	}
	if end >= len(p.src) || p.src[end] != '/' {
		return nil, p.fail(Invalid, at, "regular expression without an end")
	}
	expr := p.src[at+1 : end]
	flags := ""
	for p.at = end + 1; p.at < len(p.src) && p.src[p.at] >= 'a' && p.src[p.at] <= 'z'; p.at++ {
		switch c := p.src[p.at]; {
		case strings.IndexByte("ims", c) >= 0:
			flags += string(c)
		case c != 'u':
			return nil, p.fail(Unsupported, p.at, "expected flags of i, m, s and u, found %s", strconv.QuoteRune(rune(c)))
		}
	}
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	if _, err := syntax.Parse(expr, syntax.Perl); err == nil && lazyPart(expr) {
		return nil, p.fail(Unsupported, at, "lazy repetitions in a regular expression; [lazy] makes a whole rule lazy")
	}
	return p.lexeme(p.pattern(expr, at), true), nil
}

// lazyPart reports whether a repetition in expr asks for the shortest text.
func lazyPart(expr string) bool {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return false
	}
	todo := []*syntax.Regexp{re}
	for len(todo) > 0 {
		re = todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], re.Sub...)
		switch re.Op {
		case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
			if re.Flags&syntax.NonGreedy != 0 {
				return true
			}
		}
	}
	return false
}

// pattern is the expression of a regular expression.
func (p *larkParser) pattern(expr string, at int) *ebnfExpr {
	return &ebnfExpr{op: ebnfPattern, expr: expr, dfa: p.b.Pattern(p.where(at), "", expr, false), at: at}
}
