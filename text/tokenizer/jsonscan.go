package tokenizer

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonScanner reads JSON where encoding/json would build too much: the
// vocabulary and merges of a tokenizer.json may be tens of megabytes. Errors
// name the offset.
type jsonScanner struct {
	b     []byte
	i     int
	depth int
	buf   []byte // strings with escapes
}

// maxDepth is how deep arrays and objects may nest.
const maxDepth = 64

func (s *jsonScanner) errorf(format string, args ...any) error {
	return fmt.Errorf("offset %d: %s", s.i, fmt.Sprintf(format, args...))
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *jsonScanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *jsonScanner) expect(c byte) error {
	if got := s.peek(); got != c {
		return s.errorf("expected %q, found %s", c, s.found())
	}
	s.i++
	return nil
}

func (s *jsonScanner) found() string {
	if s.i >= len(s.b) {
		return "the end"
	}
	r, _ := utf8.DecodeRune(s.b[s.i:])
	return strconv.QuoteRune(r)
}

// object reads an object; fn must read the value of each key. The key is valid
// until fn reads a string.
func (s *jsonScanner) object(fn func(key []byte) error) error {
	return s.sequence('{', '}', func(int) error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return fn(key)
	})
}

// array reads an array; fn must read each element.
func (s *jsonScanner) array(fn func(i int) error) error { return s.sequence('[', ']', fn) }

func (s *jsonScanner) sequence(open, end byte, fn func(i int) error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.depth++; s.depth > maxDepth {
		return s.errorf("nested deeper than %d", maxDepth)
	}
	defer func() { s.depth-- }()
	if s.peek() == end {
		s.i++
		return nil
	}
	for i := 0; ; i++ {
		s.peek()
		if err := fn(i); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.i++
		case end:
			s.i++
			return nil
		default:
			return s.errorf("expected ',' or %q, found %s", end, s.found())
		}
	}
}

// str reads a string. The result is valid until the next one is read.
func (s *jsonScanner) str() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[start : s.i-1], nil
		case c == '\\':
			s.buf = append(s.buf[:0], s.b[start:s.i]...)
			return s.escaped()
		case c < 0x20:
			return nil, s.errorf("a control character in a string")
		}
		s.i++
	}
	return nil, s.errorf("a string does not end")
}

// escaped reads the rest of a string with escapes, after what is in s.buf.
func (s *jsonScanner) escaped() ([]byte, error) {
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			return s.buf, nil
		case c < 0x20:
			return nil, s.errorf("a control character in a string")
		case c != '\\':
			s.buf = append(s.buf, c)
			continue
		}
		if s.i >= len(s.b) {
			break
		}
		c = s.b[s.i]
		s.i++
		switch c {
		case '"', '\\', '/':
			s.buf = append(s.buf, c)
		case 'b':
			s.buf = append(s.buf, '\b')
		case 'f':
			s.buf = append(s.buf, '\f')
		case 'n':
			s.buf = append(s.buf, '\n')
		case 'r':
			s.buf = append(s.buf, '\r')
		case 't':
			s.buf = append(s.buf, '\t')
		case 'u':
			r, err := s.hex4()
			if err != nil {
				return nil, err
			}
			if utf16.IsSurrogate(r) && s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u' {
				at := s.i
				s.i += 2
				low, err := s.hex4()
				if err != nil {
					return nil, err
				}
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					s.i = at // the other one stands for itself
				}
			}
			s.buf = utf8.AppendRune(s.buf, r)
		default:
			return nil, s.errorf("an unknown escape %q", c)
		}
	}
	return nil, s.errorf("a string does not end")
}

func (s *jsonScanner) hex4() (rune, error) {
	if s.i+4 > len(s.b) {
		return 0, s.errorf("a string does not end")
	}
	var r rune
	for _, c := range s.b[s.i : s.i+4] {
		h := unhex(c)
		if h < 0 {
			return 0, s.errorf("expected four hexadecimal digits, found %q", s.b[s.i:s.i+4])
		}
		r = r<<4 | rune(h)
	}
	s.i += 4
	return r, nil
}

// number reads a number.
func (s *jsonScanner) number() (float64, error) {
	s.peek()
	start := s.i
	for s.i < len(s.b) {
		c := s.b[s.i]
		if !isDigit(c) && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		s.i++
	}
	f, err := strconv.ParseFloat(string(s.b[start:s.i]), 64)
	if err != nil {
		s.i = start
		return 0, s.errorf("expected a number, found %s", s.found())
	}
	return f, nil
}

// id reads a number that is a token id.
func (s *jsonScanner) id() (int32, error) {
	s.peek()
	start := s.i
	n := 0
	for s.i < len(s.b) && isDigit(s.b[s.i]) && n <= maxTokens {
		n = n*10 + int(s.b[s.i]-'0')
		s.i++
	}
	if s.i == start {
		return 0, s.errorf("expected a token id, found %s", s.found())
	}
	if n >= maxTokens {
		s.i = start
		return 0, s.errorf("a token id of %d or more", maxTokens)
	}
	return int32(n), nil
}

// raw reads any value and returns its text.
func (s *jsonScanner) raw() ([]byte, error) {
	c := s.peek()
	start := s.i
	var err error
	switch {
	case c == '{':
		err = s.object(func([]byte) error { _, err := s.raw(); return err })
	case c == '[':
		err = s.array(func(int) error { _, err := s.raw(); return err })
	case c == '"':
		_, err = s.str()
	case c == '-' || isDigit(c):
		_, err = s.number()
	default:
		for _, word := range [...]string{"true", "false", "null"} {
			if n := len(word); s.i+n <= len(s.b) && string(s.b[s.i:s.i+n]) == word {
				s.i += n
				return s.b[start:s.i], nil
			}
		}
		err = s.errorf("expected a value, found %s", s.found())
	}
	return s.b[start:s.i], err
}

// arena keeps many short strings in few blocks of memory.
type arena struct{ block []byte }

func (a *arena) add(b []byte) string {
	if len(b) > cap(a.block)-len(a.block) {
		a.block = make([]byte, 0, max(len(b), 1<<16))
	}
	n := len(a.block)
	a.block = append(a.block, b...)
	return view(a.block[n:])
}
