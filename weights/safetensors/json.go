package safetensors

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"
)

// scanner reads JSON from front to back without building a tree of it: headers
// list tens of thousands of tensors, repeated keys must be seen, and a hostile
// header must not cost more memory than its own size.
type scanner struct {
	file string
	what string // of the file is being read: "header" or "index"
	b    []byte
	off  int
}

// maxDepth is how deep values that are skipped may be nested.
const maxDepth = 32

func (s *scanner) fault(expected string) error {
	found := "the end of it"
	if s.off < len(s.b) {
		r, _ := utf8.DecodeRune(s.b[s.off:])
		found = fmt.Sprintf("%q at byte %d of it", r, s.off)
	}
	return fault(s.file, s.what, expected, found)
}

// space skips white space and returns the byte after it, 0 at the end.
func (s *scanner) space() byte {
	for ; s.off < len(s.b); s.off++ {
		switch c := s.b[s.off]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// token skips c, which must be next after white space.
func (s *scanner) token(c byte) error {
	if s.space() != c || s.off == len(s.b) {
		return s.fault(fmt.Sprintf("%q", c))
	}
	s.off++
	return nil
}

// object calls member with each key of an object, which must read the value.
func (s *scanner) object(member func(key string) error) error {
	return s.list('{', '}', func() error {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.token(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// list calls element for each part of what lies between open and shut.
func (s *scanner) list(open, shut byte, element func() error) error {
	if err := s.token(open); err != nil {
		return err
	}
	if s.space() == shut {
		s.off++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch s.space() {
		case ',':
			s.off++
		case shut:
			s.off++
			return nil
		default:
			return s.fault(fmt.Sprintf("',' or %q", shut))
		}
	}
}

// str reads a string.
func (s *scanner) str() (string, error) {
	if s.space() != '"' {
		return "", s.fault("a string")
	}
	start := s.off
	plain := true
	for s.off++; s.off < len(s.b); s.off++ {
		switch c := s.b[s.off]; {
		case c == '"':
			s.off++
			if plain {
				return string(s.b[start+1 : s.off-1]), nil
			}
			var out string
			if err := json.Unmarshal(s.b[start:s.off], &out); err != nil {
				s.off = start
				return "", s.fault("a string with valid escapes")
			}
			return out, nil
		case c == '\\':
			plain = false
			s.off++
		case c < ' ':
			return "", s.fault("no control character in a string")
		}
	}
	s.off = len(s.b)
	return "", s.fault("the end of a string")
}

// uint reads an integer that is not negative.
func (s *scanner) uint() (uint64, error) {
	s.space()
	start, n := s.off, uint64(0)
	for ; s.off < len(s.b) && s.b[s.off] >= '0' && s.b[s.off] <= '9'; s.off++ {
		d := uint64(s.b[s.off] - '0')
		if n > (math.MaxUint64-d)/10 {
			s.off = start
			return 0, s.fault("an integer below 2^64")
		}
		n = n*10 + d
	}
	if s.off == start || s.off-start > 1 && s.b[start] == '0' {
		s.off = start
		return 0, s.fault("an integer of at least 0")
	}
	return n, nil
}

// skip reads a value of any kind, depth values deep.
func (s *scanner) skip(depth int) error {
	if depth > maxDepth {
		return s.fault(fmt.Sprintf("values nested at most %d deep", maxDepth))
	}
	switch c := s.space(); c {
	case '{':
		return s.object(func(string) error { return s.skip(depth + 1) })
	case '[':
		return s.list('[', ']', func() error { return s.skip(depth + 1) })
	case '"':
		_, err := s.str()
		return err
	}
	// A number or a word: whether it is one JSON knows does not matter here.
	start := s.off
	for ; s.off < len(s.b); s.off++ {
		c := s.b[s.off]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && c != 'E' && c != '-' && c != '+' && c != '.' {
			break
		}
	}
	if s.off == start {
		return s.fault("a value")
	}
	return nil
}

// end checks that nothing but white space is left.
func (s *scanner) end() error {
	s.space()
	if s.off < len(s.b) {
		return s.fault("nothing after the closing brace")
	}
	return nil
}
