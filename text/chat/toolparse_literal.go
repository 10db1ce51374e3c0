package chat

import (
	"encoding/json"
	"strings"
)

// pythonArguments reads, after "NAME(", KEY=VALUE, ... ")" with Python's
// literals, and gives out the call.
func (p *Parser) pythonArguments(name string) bool {
	args := objectWriter{}
	var b []byte
	done := false
	defer func() {
		if !done && p.cutWithin() && p.nameFits(name, true) {
			p.whole(name, "", b) // as far as it came
		}
	}()
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept(")") {
			break
		}
		if n > 0 && !p.accept(",") {
			return false
		}
		p.skipSpace()
		key, _, ok := p.until(maxName, func(c byte) bool {
			return c == '_' || c >= '0' && c <= '9' || c|32 >= 'a' && c|32 <= 'z' || c == ' ' || c >= 0x80
		}, "=")
		if !ok {
			return false
		}
		v, ok := p.literal(nil, 0)
		if !ok {
			return false
		}
		b = append(b, args.member(strings.TrimSpace(key), v)...)
	}
	done = true
	p.whole(name, "", append(b, args.close()...))
	return true
}

// literal appends a literal of Python, or JSON, as JSON.
func (p *Parser) literal(b []byte, depth int) ([]byte, bool) {
	p.skipSpace()
	c := p.peek()
	switch {
	case depth > maxJSONDepth:
		return b, false
	case c == '"' || c == '\'':
		s, ok := p.pythonString(byte(c))
		return append(b, quoteJSON(s)...), ok
	case c == '[' || c == '(' || c == '{':
		p.pos++
		closing := map[int]string{'[': "]", '(': ")", '{': "}"}[c]
		open, end := byte('['), byte(']')
		if c == '{' {
			open, end = '{', '}'
		}
		b = append(b, open)
		for n := 0; ; n++ {
			p.skipSpace()
			if p.accept(closing) {
				return append(b, end), true
			}
			if n > 0 {
				if !p.accept(",") {
					return b, false
				}
				if p.skipSpace(); p.accept(closing) {
					return append(b, end), true
				}
				b = append(b, ", "...)
			}
			var ok bool
			if c == '{' {
				if p.skipSpace(); p.peek() != '"' && p.peek() != '\'' {
					return b, false
				}
				if b, ok = p.literal(b, depth+1); !ok {
					return b, false
				}
				if p.skipSpace(); !p.accept(":") {
					return b, false
				}
				b = append(b, ": "...)
			}
			if b, ok = p.literal(b, depth+1); !ok {
				return b, false
			}
		}
	}
	return p.word(b, ",)]}: \n\r\t")
}

// word appends a number or a word of Python or JSON that ends before one of
// the given bytes.
func (p *Parser) word(b []byte, ends string) ([]byte, bool) {
	var w []byte
	for {
		c := p.peek()
		if c < 0 || strings.IndexByte(ends, byte(c)) >= 0 || len(w) > maxName {
			break
		}
		w = append(w, byte(c))
		p.pos++
	}
	switch s := string(w); s {
	case "True":
		return append(b, "true"...), true
	case "False":
		return append(b, "false"...), true
	case "None":
		return append(b, "null"...), true
	}
	return append(b, w...), json.Valid(w)
}

func (p *Parser) pythonString(quote byte) (string, bool) {
	p.pos++
	var s []byte
	for {
		c := p.peek()
		if c < 0 {
			return "", false
		}
		p.pos++
		switch {
		case byte(c) == quote:
			return string(s), true
		case c == '\\':
			e := p.peek()
			if e < 0 {
				return "", false
			}
			p.pos++
			if i := strings.IndexByte("ntr0", byte(e)); i >= 0 {
				s = append(s, "\n\t\r\x00"[i])
				continue
			}
			if e == 'u' {
				if r, ok := p.hexRune(); ok {
					s = append(s, r...)
					continue
				}
			}
			if strings.IndexByte("\\'\"/\n", byte(e)) < 0 {
				s = append(s, '\\')
			}
			if e != '\n' {
				s = append(s, byte(e))
			}
		default:
			s = append(s, byte(c))
		}
	}
}

// hexRune reads four hexadecimal digits.
func (p *Parser) hexRune() (string, bool) {
	var h []byte
	for n := range 4 {
		c := p.ahead(n)
		if c < 0 {
			return "", false
		}
		h = append(h, byte(c))
	}
	var s string
	if json.Unmarshal([]byte(`"\u`+string(h)+`"`), &s) != nil {
		return "", false
	}
	p.pos += 4
	return s, true
}

// colonCalls reads call:NAME{KEY:VALUE,...} with strings between marks, as
// FunctionGemma and Gemma 4 write it.
func (p *Parser) colonCalls(closing string) bool {
	for n := 0; ; n++ {
		p.skipSpace()
		if !p.accept("call:") {
			return n > 0
		}
		name, _, ok := p.until(maxName, nil, "{")
		if !ok || !validName(name) {
			return n > 0
		}
		args, ok := p.colonObject(nil, 0)
		if !ok {
			return n > 0
		}
		p.whole(name, "", args)
		p.closing([]string{closing})
		if !p.hasAt(0, "call:") {
			return true
		}
	}
}

// colonObject reads KEY:VALUE,...} and appends the object as JSON.
func (p *Parser) colonObject(b []byte, depth int) ([]byte, bool) {
	w := objectWriter{}
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept("}") {
			return append(b, w.close()...), true
		}
		if n > 0 && !p.accept(",") {
			return b, false
		}
		p.skipSpace()
		key, ok := p.colonString()
		if ok {
			ok = p.accept(":")
		} else {
			key, _, ok = p.until(maxName, nil, ":")
		}
		if !ok {
			return b, false
		}
		var v []byte
		if v, ok = p.colonValue(nil, depth+1); !ok {
			return b, false
		}
		b = append(b, w.member(strings.Trim(strings.TrimSpace(key), `"`), v)...)
	}
}

func (p *Parser) colonValue(b []byte, depth int) ([]byte, bool) {
	p.skipSpace()
	if s, ok := p.colonString(); ok {
		return append(b, quoteJSON(s)...), true
	}
	switch c := p.peek(); {
	case depth > maxJSONDepth:
		return b, false
	case c == '"':
		s, ok := p.pythonString('"')
		return append(b, quoteJSON(s)...), ok
	case c == '{':
		p.pos++
		return p.colonObject(b, depth)
	case c == '[':
		p.pos++
		b = append(b, '[')
		for n := 0; ; n++ {
			p.skipSpace()
			if p.accept("]") {
				return append(b, ']'), true
			}
			if n > 0 {
				if !p.accept(",") {
					return b, false
				}
				b = append(b, ", "...)
			}
			var ok bool
			if b, ok = p.colonValue(b, depth+1); !ok {
				return b, false
			}
		}
	}
	return p.word(b, ",]}\n")
}

// colonString reads a string between two marks.
func (p *Parser) colonString() (string, bool) {
	for _, mark := range []string{"<|\"|>", "<escape>"} {
		if p.accept(mark) {
			s, _, ok := p.until(1<<30, nil, mark)
			return s, ok
		}
	}
	return "", false
}
