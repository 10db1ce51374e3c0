package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"ridge/server/fault"
)

// Bounds of what a body is made of: a value takes up to a hundred times the bytes
// in memory that it has in a body.
const (
	maxContainers = 1 << 18 // objects and lists
	maxMembers    = 1 << 18 // of all objects
	maxTexts      = 1 << 20 // strings that are values
	maxValues     = 1 << 21 // of all lists and objects, about
)

// promptKeys are the keys of texts that are in the prompt whole, in any API.
var promptKeys = []string{"prompt", "content", "text", "input"}

// members walks over a JSON text and looks at the keys of its objects. It takes
// any text: what is wrong with one that is no JSON is for the decoder to say.
type members struct {
	text       []byte
	open       []container
	keys       [][]byte // of the objects that are open
	wantsKey   bool
	containers int
	count      int
	texts      int
	values     int
	top        []topKey // of the body itself
	key        []byte   // the last one
	longest    []byte   // of the strings under promptKeys
}

// topKey is a key of the body itself.
type topKey struct {
	name  string
	value int // where its value begins
}

// container is an object or a list that is open.
type container struct {
	object bool
	first  int                 // of its keys
	seen   map[string]struct{} // its keys, if they are many
}

// manyKeys is the number of keys up to which comparing all is faster than a map.
const manyKeys = 32

// checkMembers refuses a body in which an object has a key twice, which readers
// of JSON take differently, and one of too many values. The decoder ignores the
// case of the body's own keys, so those must differ in more than that.
func checkMembers(text []byte) (m members, err error) {
	err = m.walk(text)
	return m, err
}

// walk looks at all of a text.
func (m *members) walk(text []byte) error {
	m.text = text
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := stringEnd(text, i)
			if err := m.str(text[i:end]); err != nil {
				return err
			}
			if n := len(m.top); n > 0 && m.top[n-1].value < 0 {
				m.top[n-1].value = valueAt(text, end)
			}
			i = end - 1
		case '{', '[':
			if m.containers++; m.containers > maxContainers {
				return fault.BadRequest("", "expected a body of at most %d objects and lists, found more", maxContainers)
			}
			m.wantsKey = text[i] == '{'
			m.open = append(m.open, container{object: m.wantsKey, first: len(m.keys)})
		case '}', ']':
			if n := len(m.open); n > 0 {
				m.keys = m.keys[:m.open[n-1].first]
				m.open = m.open[:n-1]
			}
			m.wantsKey = false
		case ',':
			if m.values++; m.values > maxValues {
				return fault.BadRequest("", "expected a body of at most %d values, found more", maxValues)
			}
			n := len(m.open)
			m.wantsKey = n > 0 && m.open[n-1].object
		}
	}
	return nil
}

// valueAt is where the value begins whose key ends at i.
func valueAt(text []byte, i int) int {
	for i < len(text) && strings.IndexByte(" \t\r\n:", text[i]) >= 0 {
		i++
	}
	return i
}

// stringEnd is where the string that begins at i ends.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); {
		end := bytes.IndexByte(text[i:], '"')
		if end < 0 {
			return len(text)
		}
		for end += i; i < end; { // over what is escaped before it
			escape := bytes.IndexByte(text[i:end], '\\')
			if escape < 0 {
				i = end
				break
			}
			i += escape + 2
		}
		if i == end {
			return end + 1
		}
	}
	return len(text)
}

// str takes a string: a key or a value.
func (m *members) str(quoted []byte) error {
	if !m.wantsKey {
		if m.texts++; m.texts > maxTexts {
			return fault.BadRequest("", "expected a body of at most %d strings, found more", maxTexts)
		}
		if len(quoted) > len(m.longest) && slices.Contains(promptKeys, string(m.key)) {
			m.longest = quoted
		}
		return nil
	}
	m.wantsKey = false
	if m.count++; m.count > maxMembers {
		return fault.BadRequest("", "expected a body of at most %d keys, found more", maxMembers)
	}
	key := quoted
	if len(quoted) >= 2 {
		key = quoted[1 : len(quoted)-1]
	}
	if bytes.IndexByte(key, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			key = []byte(s)
		}
	}
	m.key = key
	top := &m.open[len(m.open)-1]
	if m.has(top, key) {
		return fault.BadRequest("", "expected each key once in an object, found %s twice", fault.Excerpt(quoted))
	}
	m.keys = append(m.keys, key)
	if len(m.open) == 1 {
		m.top = append(m.top, topKey{string(key), -1})
	}
	if top.seen != nil {
		top.seen[m.form(key)] = struct{}{}
	} else if own := m.keys[top.first:]; len(own) > manyKeys {
		top.seen = make(map[string]struct{}, 2*len(own))
		for _, k := range own {
			top.seen[m.form(k)] = struct{}{}
		}
	}
	return nil
}

// form is a key as it must differ from the others of its object.
func (m *members) form(key []byte) string {
	if len(m.open) == 1 {
		return string(bytes.ToLower(key))
	}
	return string(key)
}

// has reports whether an object has a key already.
func (m *members) has(c *container, key []byte) bool {
	if c.seen != nil {
		_, ok := c.seen[m.form(key)]
		return ok
	}
	for _, k := range m.keys[c.first:] {
		if bytes.Equal(k, key) || len(m.open) == 1 && bytes.EqualFold(k, key) {
			return true
		}
	}
	return false
}
