package jinja

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokKind is the kind of a template token.
type tokKind uint8

const (
	tokEOF tokKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// token is one piece of a template: text for tokData, the unescaped value for
// tokString, the spelling for the rest.
type token struct {
	kind tokKind
	text string
	line int
}

// lexer splits a template into tokens as jinja2's does with trim_blocks and
// lstrip_blocks on and keep_trailing_newline off: white space around tags is
// settled here, so that nothing later has to know of it.
type lexer struct {
	src       string
	pos, line int
	lineStart bool // the last tag ended with a newline (or nothing came yet)
	toks      []token
}

var (
	rawBeginRE = regexp.MustCompile(`^\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})`)
	rawEndRE   = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)`)
	floatRE    = regexp.MustCompile(`^(?i:(?:[0-9]+_)*[0-9]+(?:(?:\.(?:[0-9]+_)*[0-9]+)?e[+\-]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+))`)
	intRE      = regexp.MustCompile(`^(?i:0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[0-9a-f])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
	operators  = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~",
		"[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}
)

// lex returns the tokens of src, the last of kind tokEOF.
func lex(src string) []token {
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	src = strings.TrimSuffix(src, "\n")
	l := &lexer{src: src, line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.root()
	}
	l.emit(tokEOF, "")
	return l.toks
}

func (l *lexer) emit(k tokKind, text string) {
	l.toks = append(l.toks, token{k, text, l.line})
}

func (l *lexer) errorf(format string, args ...any) *Error { return errorAt(l.line, format, args...) }

// take moves over the next n bytes and returns them.
func (l *lexer) take(n int) string {
	s := l.src[l.pos : l.pos+n]
	l.pos += n
	l.line += strings.Count(s, "\n")
	return s
}

// root reads text up to the next tag, and the tag.
func (l *lexer) root() {
	rest := l.src[l.pos:]
	at := -1
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == '{' && (rest[i+1] == '{' || rest[i+1] == '%' || rest[i+1] == '#') {
			at = i
			break
		}
	}
	if at < 0 {
		l.emit(tokData, rest)
		l.take(len(rest))
		return
	}
	kind := rest[at+1]
	raw := ""
	if kind == '%' {
		raw = rawBeginRE.FindString(rest[at:])
	}
	sign := byte(0)
	if at+2 < len(rest) && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	l.data(rest[:at], sign, kind != '{')
	if raw != "" {
		l.take(len(raw))
		l.lineStart = strings.HasSuffix(raw, "\n")
		l.raw()
		return
	}
	n := 2
	if sign != 0 {
		n = 3
	}
	switch kind {
	case '#':
		l.take(n)
		l.comment()
	case '%':
		l.emit(tokBlockBegin, "{%")
		l.take(n)
		l.code("%}", tokBlockEnd)
	default:
		l.emit(tokVarBegin, "{{")
		l.take(n)
		l.code("}}", tokVarEnd)
	}
}

// data emits the text before a tag that starts with sign ('-', '+' or 0);
// strip says that the tag is one lstrip_blocks applies to.
func (l *lexer) data(text string, sign byte, strip bool) {
	kept := text
	switch {
	case sign == '-':
		kept = strings.TrimRightFunc(text, isPySpace)
	case sign != '+' && strip:
		i := strings.LastIndexByte(text, '\n') + 1
		if (i > 0 || l.lineStart) && strings.TrimFunc(text[i:], isPySpace) == "" {
			kept = text[:i]
		}
	}
	if kept != "" {
		l.emit(tokData, kept)
	}
	l.take(len(text))
}

// tagEnd returns the length of the tag end closing at rest[i:], a sign before
// it and white space after it included, or 0 where there is none.
func tagEnd(rest, closing string, i int) int {
	signed := i < len(rest) && (rest[i] == '-' || rest[i] == '+' && closing != "}}")
	n := i
	if signed {
		n++
	}
	if !strings.HasPrefix(rest[n:], closing) {
		return 0
	}
	n += len(closing)
	switch {
	case signed && rest[i] == '-':
		n = len(rest) - len(strings.TrimLeftFunc(rest[n:], isPySpace))
	case !signed && closing != "}}" && strings.HasPrefix(rest[n:], "\n"):
		n++
	}
	return n
}

func (l *lexer) comment() {
	rest := l.src[l.pos:]
	i := strings.Index(rest, "#}")
	if i < 0 {
		panic(l.errorf("missing end of comment tag"))
	}
	if i > 0 && (rest[i-1] == '-' || rest[i-1] == '+') {
		i--
	}
	l.lineStart = strings.HasSuffix(l.take(tagEnd(rest, "#}", i)), "\n")
}

func (l *lexer) raw() {
	rest := l.src[l.pos:]
	m := rawEndRE.FindStringSubmatchIndex(rest)
	if m == nil {
		panic(l.errorf("missing end of raw directive"))
	}
	sign := byte(0)
	if m[2] < m[3] {
		sign = rest[m[2]]
	}
	l.data(rest[:m[0]], sign, true)
	s := l.take(m[1] - m[0])
	l.lineStart = strings.HasSuffix(s, "\n")
}

// code reads the tokens of a tag up to and with its end. An end inside
// brackets is not one: {{ {'a': {}} }}.
func (l *lexer) code(closing string, endKind tokKind) {
	var open []byte
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if len(open) == 0 {
			if n := tagEnd(rest, closing, 0); n > 0 {
				l.emit(endKind, closing)
				l.lineStart = strings.HasSuffix(l.take(n), "\n")
				return
			}
		}
		r, size := utf8.DecodeRuneInString(rest)
		if isPySpace(r) {
			l.take(size)
			continue
		}
		if l.number(rest) || l.word(rest, r) || l.str(rest) {
			continue
		}
		open = l.operator(rest, open)
	}
	panic(l.errorf("unexpected end of template, expected '%s'", closing))
}

func (l *lexer) number(rest string) bool {
	if rest[0] < '0' || rest[0] > '9' {
		return false
	}
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		if m := floatRE.FindString(rest); m != "" {
			l.emit(tokFloat, strings.ReplaceAll(m, "_", ""))
			l.take(len(m))
			return true
		}
	}
	m := intRE.FindString(rest)
	l.emit(tokInt, strings.ReplaceAll(m, "_", ""))
	l.take(len(m))
	return true
}

func (l *lexer) word(rest string, r rune) bool {
	if r != '_' && !unicode.IsLetter(r) {
		return false
	}
	n := len(rest)
	for i, c := range rest {
		if c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.Is(unicode.Mn, c) && !unicode.Is(unicode.Mc, c) {
			n = i
			break
		}
	}
	l.emit(tokName, rest[:n])
	l.take(n)
	return true
}

func (l *lexer) str(rest string) bool {
	q := rest[0]
	if q != '\'' && q != '"' {
		return false
	}
	for i := 1; i < len(rest); i++ {
		if rest[i] == '\\' {
			i++
			continue
		}
		if rest[i] == q {
			s, err := unescape(rest[1:i])
			if err != "" {
				panic(l.errorf("string literal: %s", err))
			}
			l.emit(tokString, s)
			l.take(i + 1)
			return true
		}
	}
	panic(l.errorf("unterminated string literal"))
}

func (l *lexer) operator(rest string, open []byte) []byte {
	for _, op := range operators {
		if !strings.HasPrefix(rest, op) {
			continue
		}
		switch op {
		case "{":
			open = append(open, '}')
		case "(":
			open = append(open, ')')
		case "[":
			open = append(open, ']')
		case "}", ")", "]":
			if len(open) == 0 {
				panic(l.errorf("unexpected %q", op))
			}
			if want := open[len(open)-1]; want != op[0] {
				panic(l.errorf("unexpected %q, expected %q", op, string(want)))
			}
			open = open[:len(open)-1]
		}
		l.emit(tokOp, op)
		l.take(len(op))
		return open
	}
	r, _ := utf8.DecodeRuneInString(rest)
	panic(l.errorf("unexpected character %q", r))
}

// unescape resolves the backslash sequences of a Python string literal; the
// second result says what is wrong with it.
func unescape(s string) (string, string) {
	if !strings.Contains(s, `\`) {
		return s, ""
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case '\n':
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", c)])
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			v, ok := parseDigits(s[i+1:], n, 16)
			if !ok || v > unicode.MaxRune {
				return "", "truncated \\" + string(c) + " escape"
			}
			b.WriteRune(rune(v))
			i += n
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n := 1
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				n++
			}
			v, _ := parseDigits(s[i:], n, 8)
			b.WriteRune(rune(v))
			i += n - 1
		case 'N':
			return "", "\\N escapes are not supported"
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// parseDigits reads exactly n digits of base 8 or 16 from the start of s.
func parseDigits(s string, n, base int) (int, bool) {
	if len(s) < n {
		return 0, false
	}
	v := 0
	for i := range n {
		d := strings.IndexByte("0123456789abcdef", lowerASCII(s[i]))
		if d < 0 || d >= base {
			return 0, false
		}
		v = v*base + d
	}
	return v, true
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
