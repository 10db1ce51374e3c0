package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"ridge/internal/diag"
)

// GBNF compiles a grammar in GBNF, the EBNF of llama.cpp, for the vocabulary v
// (nil: no masks). The rule "root" is the whole text. See docs/grammars.md for
// the syntax. Left recursion is refused.
func GBNF(v *Vocabulary, source string) (*Grammar, error) {
	b := &Builder{Source: "gbnf"}
	root, err := b.GBNF(source)
	if err != nil {
		return nil, err
	}
	return b.Compile(root, v, 0)
}

// GBNF adds the rule of a grammar in GBNF, see the function of that name.
func (b *Builder) GBNF(source string) (*Rule, error) {
	p := &gbnfParser{b: b, src: source, rules: map[string]*ebnfRule{}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	root := p.rules["root"]
	if root == nil || !root.defined {
		return nil, &Error{Kind: Invalid, Source: "gbnf", Keyword: "root", Why: "rule not defined"}
	}
	return b.ebnf(root)
}

type gbnfParser struct {
	b     *Builder
	src   string
	at    int
	depth int
	rules map[string]*ebnfRule
	order []*ebnfRule
}

func (p *gbnfParser) fail(kind Kind, at int, format string, args ...any) error {
	line := 1 + strings.Count(p.src[:at], "\n")
	column := at - strings.LastIndex(p.src[:at], "\n")
	return &Error{Kind: kind, Source: "gbnf", Where: fmt.Sprintf("line %d, column %d", line, column), Why: fmt.Sprintf(format, args...)}
}

func (p *gbnfParser) parse() error {
	if len(p.src) > MaxSource {
		return tooLarge("gbnf", "", "longer than %d bytes", MaxSource)
	}
	if !utf8.ValidString(p.src) {
		return &Error{Kind: Invalid, Source: "gbnf", Why: "not valid UTF-8"}
	}
	for p.space(true); p.at < len(p.src); p.space(true) {
		if err := p.definition(); err != nil {
			return err
		}
	}
	for _, r := range p.order {
		if !r.defined {
			return p.fail(Invalid, r.where, "rule %s not defined", diag.Quote(r.name))
		}
	}
	for _, r := range p.order {
		r.findSmall()
	}
	return nil
}

// space skips white space and comments; line ends only if lines is set.
func (p *gbnfParser) space(lines bool) { p.at = skipSpace(p.src, p.at, lines, "#") }

func (p *gbnfParser) peek() byte {
	if p.at < len(p.src) {
		return p.src[p.at]
	}
	return 0
}

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func (p *gbnfParser) name() string {
	start := p.at
	for p.at < len(p.src) && isName(p.src[p.at]) {
		p.at++
	}
	return p.src[start:p.at]
}

func (p *gbnfParser) rule(name string, at int) *ebnfRule {
	r := p.rules[name]
	if r == nil {
		r = &ebnfRule{name: name, where: at}
		p.rules[name] = r
		p.order = append(p.order, r)
	}
	return r
}

// definition parses NAME ::= ALTERNATIVES and the end of the line.
func (p *gbnfParser) definition() error {
	at := p.at
	name := p.name()
	if name == "" {
		return p.fail(Invalid, at, "expected the name of a rule, found %s", p.found())
	}
	if len(p.order) >= maxRules {
		return tooLarge("gbnf", "", "more than %d rules", maxRules)
	}
	r := p.rule(name, at)
	if r.defined {
		return p.fail(Invalid, at, "rule %s defined twice", diag.Quote(name))
	}
	p.space(false)
	if !strings.HasPrefix(p.src[p.at:], "::=") {
		return p.fail(Invalid, p.at, "expected ::= after %s, found %s", diag.Quote(name), p.found())
	}
	p.at += 3
	p.space(true)
	body, err := p.alternatives(false)
	if err != nil {
		return err
	}
	r.body, r.defined = body, true
	if c := p.peek(); p.at < len(p.src) && c != '\n' && c != '\r' {
		return p.fail(Invalid, p.at, "expected an operand, | or the end of the line, found %s", p.found())
	}
	return nil
}

func (p *gbnfParser) found() string {
	if p.at >= len(p.src) {
		return "the end of the grammar"
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.at:])
	return strconv.QuoteRune(r)
}
