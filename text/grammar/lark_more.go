package grammar

import (
	"encoding/json"
	"strings"
	"unicode"

	"ridge/internal/diag"
)

// grammar parses @NAME, another grammar of the list.
func (p *larkParser) grammar() (*ebnfExpr, error) {
	at := p.at
	p.at++
	start := p.at
	for p.at < len(p.src) && isName(p.src[p.at]) {
		p.at++
	}
	name := p.src[start:p.at]
	g := p.set.named[name]
	switch {
	case p.terminal:
		return nil, p.fail(Invalid, at, "a terminal has the grammar %s in it", diag.Quote("@"+name))
	case g == nil:
		return nil, p.fail(Invalid, at, "expected the name of a grammar, found %s", diag.Quote("@"+name))
	}
	r, err := p.set.rule(g)
	return &ebnfExpr{op: ebnfOther, other: r, at: at}, err
}

// inline parses %json SCHEMA and %regex OBJECT.
func (p *larkParser) inline() (*ebnfExpr, error) {
	at := p.at
	switch p.at++; p.name() {
	case "json":
		if p.terminal {
			return nil, p.fail(Invalid, at, "a terminal has %%json in it")
		}
		raw, err := p.jsonValue()
		if err != nil {
			return nil, err
		}
		r, err := p.set.json(raw, p.where(at))
		return &ebnfExpr{op: ebnfOther, other: r, at: at}, err
	case "regex":
		raw, err := p.jsonValue()
		if err != nil {
			return nil, err
		}
		var o struct {
			Chunks []string `json:"substring_chunks"`
			Words  *string  `json:"substring_words"`
			Chars  *string  `json:"substring_chars"`
		}
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.DisallowUnknownFields()
		if err := d.Decode(&o); err != nil {
			return nil, p.fail(Unsupported, at, "expected substring_chunks, substring_words or substring_chars after %%regex")
		}
		e := &ebnfExpr{op: ebnfSubstring, chunks: o.Chunks, at: at}
		switch {
		case o.Words != nil && o.Chars == nil && o.Chunks == nil:
			e.chunks = wordChunks(*o.Words)
		case o.Chars != nil && o.Words == nil && o.Chunks == nil:
			e.chunks = strings.Split(*o.Chars, "")
		case o.Chunks == nil || o.Words != nil || o.Chars != nil:
			return nil, p.fail(Invalid, at, "expected one of substring_chunks, substring_words and substring_chars after %%regex")
		}
		return p.lexeme(e, true), nil
	}
	return nil, p.fail(Unsupported, at, "expected %%json or %%regex, found %s", diag.Quote(p.src[at:p.at]))
}

// wordChunks cuts a text into words, white space and what is neither.
func wordChunks(text string) (chunks []string) {
	kind := func(r rune) int {
		switch {
		case unicode.IsSpace(r):
			return 1
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return 2
		}
		return 3
	}
	last := 0
	for _, r := range text {
		if k := kind(r); k == last {
			chunks[len(chunks)-1] += string(r)
		} else {
			chunks, last = append(chunks, string(r)), k
		}
	}
	return chunks
}

// options parses [NAME, NAME=VALUE, ...] of a rule.
func (p *larkParser) options(l *larkLazy) error {
	p.at++
	for n := 0; ; n++ {
		p.space(true)
		if n > 0 && p.accept("]") {
			return nil
		}
		at := p.at
		name := p.name()
		p.space(true)
		var err error
		switch {
		case name == "lazy":
			l.set, l.shortest = true, true
		case name == "suffix" || name == "stop":
			err = p.suffix(name, l)
		case name == "capture" || name == "stop_capture": // of a result that nobody asks for
			if p.accept("=") {
				p.space(true)
				_, err = p.literal()
			}
		case name == "max_tokens" || name == "temperature":
			if !p.accept("=") {
				return p.fail(Invalid, p.at, "expected = after %s, found %s", name, p.found())
			}
			for p.at < len(p.src) && strings.IndexByte(" \t0123456789.eE+-", p.src[p.at]) >= 0 {
				p.at++
			}
			p.b.Note(Unenforced{Where: p.where(at), Keyword: name, Why: "left out: a grammar says which texts may come, not how they are drawn"})
		default:
			return p.fail(Unsupported, at, "expected capture, stop_capture, lazy, suffix, stop, max_tokens or temperature, found %s", diag.Quote(name))
		}
		if err != nil {
			return err
		}
		p.space(true)
		if p.accept("]") {
			p.space(false)
			return nil
		}
		if !p.accept(",") {
			return p.fail(Invalid, p.at, "expected , or ], found %s", p.found())
		}
	}
}

// suffix parses the value of suffix= or stop=: what a text of the rule ends with.
func (p *larkParser) suffix(name string, l *larkLazy) error {
	if !p.accept("=") {
		return p.fail(Invalid, p.at, "expected = after %s, found %s", name, p.found())
	}
	p.space(true)
	at := p.at
	p.terminal = true
	e, err := p.operand()
	if err == nil && e == nil || l.suffix != nil {
		err = p.fail(Invalid, at, "expected one text, regular expression or terminal for suffix or stop")
	}
	l.set, l.suffix = true, e
	l.shortest = l.shortest || e != nil && !(e.op == ebnfSeq && len(e.sub) == 0) // stop="" is the end of the text
	return err
}

// imports parses %import common.NAME [-> NAME] and %import common (NAME, ...).
func (p *larkParser) imports() error {
	p.space(false)
	at := p.at
	if p.name() != "common" {
		return p.fail(Unsupported, at, "expected names of common, found another grammar")
	}
	p.space(false)
	if p.accept(".") {
		at := p.at
		name := p.name()
		as := name
		p.space(false)
		if p.accept("->") {
			p.space(false)
			as = p.name()
			p.space(false)
		}
		return p.imported(name, as, at)
	}
	if !p.accept("(") {
		return p.fail(Invalid, p.at, "expected . or ( after common, found %s", p.found())
	}
	for {
		p.space(true)
		at := p.at
		name := p.name()
		if err := p.imported(name, name, at); err != nil {
			return err
		}
		p.space(true)
		if p.accept(")") {
			p.space(false)
			return nil
		}
		if !p.accept(",") {
			return p.fail(Invalid, p.at, "expected , or ), found %s", p.found())
		}
	}
}

// imported defines a terminal of common.
func (p *larkParser) imported(name, as string, at int) error {
	expr, ok := larkCommon[name]
	if !ok {
		return p.fail(Invalid, at, "expected a terminal of common, found %s", diag.Quote(name))
	}
	r, err := p.define(as, at)
	if err != nil {
		return err
	}
	if !r.terminal {
		return p.fail(Invalid, at, "expected a name in capitals, found %s", diag.Quote(as))
	}
	r.body, r.defined = p.pattern(expr, at), true
	return nil
}

// Numbers of common.
const (
	larkExp     = `(?:[eE][+-]?[0-9]+)`
	larkDecimal = `(?:[0-9]+\.[0-9]*|\.[0-9]+)`
	larkFloat   = `(?:[0-9]+` + larkExp + `|` + larkDecimal + larkExp + `?)`
)

// larkCommon are the terminals of Lark's common grammar.
var larkCommon = map[string]string{
	"DIGIT": `[0-9]`, "HEXDIGIT": `[a-fA-F0-9]`,
	"INT": `[0-9]+`, "SIGNED_INT": `[+-]?[0-9]+`,
	"DECIMAL": larkDecimal, "_EXP": larkExp, "FLOAT": larkFloat, "SIGNED_FLOAT": `[+-]?` + larkFloat,
	"NUMBER": `(?:` + larkFloat + `|[0-9]+)`, "SIGNED_NUMBER": `[+-]?(?:` + larkFloat + `|[0-9]+)`,
	"ESCAPED_STRING": `"(?:[^"\\]|\\.)*"`,
	"LCASE_LETTER":   `[a-z]`, "UCASE_LETTER": `[A-Z]`, "LETTER": `[A-Za-z]`, "WORD": `[A-Za-z]+`, "CNAME": `[_A-Za-z][_A-Za-z0-9]*`,
	"WS_INLINE": `[ \t]+`, "WS": `[ \t\f\r\n]+`, "CR": `\r`, "LF": `\n`, "NEWLINE": `(?:\r?\n)+`,
	"SH_COMMENT": `#[^\n]*`, "CPP_COMMENT": `//[^\n]*`, "C_COMMENT": `/\*(?:[^*]|\*+[^*/])*\*+/`, "SQL_COMMENT": `--[^\n]*`,
}
