package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ridge/internal/diag"
	"ridge/text/grammar"
)

// jsonValue is a parsed JSON value that keeps the order of members and the
// spelling of numbers.
type jsonValue struct {
	kind    jsonKind
	truth   bool
	text    string // of a string, or of a number as written
	items   []*jsonValue
	keys    []string
	members map[string]*jsonValue
	rat     *big.Rat // value of a number
	id      string   // see key
}

type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

func (k jsonKind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// parseJSON parses a whole text: one value, no member twice, bounded nesting.
func parseJSON(text []byte) (*jsonValue, error) {
	if len(text) > grammar.MaxSource {
		return nil, fmt.Errorf("longer than %d bytes", grammar.MaxSource)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := readJSON(dec, 0)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("unexpected end of the text")
		}
		return nil, fmt.Errorf("not JSON: at byte %d: %s", dec.InputOffset(), strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("not JSON: at byte %d: text after the value", dec.InputOffset())
	}
	return v, nil
}

func readJSON(dec *json.Decoder, depth int) (*jsonValue, error) {
	if depth > grammar.MaxNesting {
		return nil, fmt.Errorf("nested deeper than %d", grammar.MaxNesting)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case nil:
		return &jsonValue{kind: jsonNull}, nil
	case bool:
		return &jsonValue{kind: jsonBool, truth: t}, nil
	case string:
		return &jsonValue{kind: jsonString, text: t}, nil
	case json.Number:
		r, err := parseRat(t.String())
		return &jsonValue{kind: jsonNumber, text: t.String(), rat: r}, err
	case json.Delim:
		if t == '[' {
			return readArray(dec, depth)
		}
		return readObject(dec, depth)
	}
	return nil, fmt.Errorf("unexpected %v", tok)
}

func readArray(dec *json.Decoder, depth int) (*jsonValue, error) {
	v := &jsonValue{kind: jsonArray}
	for dec.More() {
		x, err := readJSON(dec, depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, x)
	}
	_, err := dec.Token()
	return v, err
}

func readObject(dec *json.Decoder, depth int) (*jsonValue, error) {
	v := &jsonValue{kind: jsonObject, members: map[string]*jsonValue{}}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		key, _ := tok.(string)
		if _, twice := v.members[key]; twice {
			return nil, fmt.Errorf("member %s twice", diag.Quote(key))
		}
		x, err := readJSON(dec, depth+1)
		if err != nil {
			return nil, err
		}
		v.keys = append(v.keys, key)
		v.members[key] = x
	}
	_, err := dec.Token()
	return v, err
}

// parseRat returns the exact value of a JSON number of moderate size: a
// thousand-digit exponent must not be written out.
func parseRat(s string) (*big.Rat, error) {
	if len(s) > 400 {
		return nil, errors.New("number with more than 400 characters")
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if exp, err := strconv.Atoi(s[i+1:]); err != nil || exp > 400 || exp < -400 {
			return nil, fmt.Errorf("number %s: exponent beyond 400", s)
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil, fmt.Errorf("number %s", s)
	}
	return r, nil
}

// equal reports whether two values are the same as JSON Schema sees them: 1 and
// 1.0 are, and the order of members does not matter.
func (v *jsonValue) equal(w *jsonValue) bool {
	if v.kind != w.kind {
		return false
	}
	switch v.kind {
	case jsonBool:
		return v.truth == w.truth
	case jsonNumber:
		return v.rat.Cmp(w.rat) == 0
	case jsonString:
		return v.text == w.text
	case jsonArray:
		if len(v.items) != len(w.items) {
			return false
		}
		for i := range v.items {
			if !v.items[i].equal(w.items[i]) {
				return false
			}
		}
	case jsonObject:
		if len(v.keys) != len(w.keys) {
			return false
		}
		for k, x := range v.members {
			if y := w.members[k]; y == nil || !x.equal(y) {
				return false
			}
		}
	}
	return true
}

// key returns a text that equal values have in common, and no others.
func (v *jsonValue) key() string {
	if v.id != "" {
		return v.id
	}
	var b strings.Builder
	b.WriteByte(byte('0' + v.kind))
	switch v.kind {
	case jsonBool:
		b.WriteString(strconv.FormatBool(v.truth))
	case jsonNumber:
		b.WriteString(v.rat.RatString() + ".")
	case jsonString:
		b.WriteString(strconv.Itoa(len(v.text)) + ":" + v.text)
	case jsonArray:
		for _, x := range v.items {
			b.WriteString("," + x.key())
		}
		b.WriteByte('.')
	case jsonObject:
		for _, k := range slices.Sorted(maps.Keys(v.members)) {
			b.WriteString("," + strconv.Itoa(len(k)) + ":" + k + v.members[k].key())
		}
		b.WriteByte('.')
	}
	v.id = b.String()
	return v.id
}

// common returns the values of x that equal one of y.
func common(x, y []*jsonValue) []*jsonValue {
	known := make(map[string]bool, len(y))
	for _, v := range y {
		known[v.key()] = true
	}
	both := []*jsonValue{}
	for _, v := range x {
		if known[v.key()] {
			both = append(both, v)
		}
	}
	return both
}

// literal adds the one spelling of v, but for white space, between two states.
func (j *jsonText) literal(r *grammar.Rule, from int32, v *jsonValue, to int32) {
	switch v.kind {
	case jsonArray:
		j.list(r, from, "[]", len(v.items), to, func(i int, from, to int32) {
			j.literal(r, from, v.items[i], to)
		})
	case jsonObject:
		j.list(r, from, "{}", len(v.keys), to, func(i int, from, to int32) {
			colon, value := r.State(), r.State()
			r.Text(from, quote(v.keys[i])+":", colon)
			j.gap(r, colon, afterColon, value)
			j.literal(r, value, v.members[v.keys[i]], to)
		})
	default:
		r.Text(from, v.scalar(), to)
	}
}

// scalar returns the one spelling of v, which is no array or object.
func (v *jsonValue) scalar() string {
	switch v.kind {
	case jsonNull:
		return "null"
	case jsonBool:
		return strconv.FormatBool(v.truth)
	case jsonString:
		return quote(v.text)
	}
	return v.text
}

// list adds brackets around n elements.
func (j *jsonText) list(r *grammar.Rule, from int32, brackets string, n int, to int32, element func(i int, from, to int32)) {
	if n == 0 {
		r.Text(from, brackets, to)
		return
	}
	at := r.State()
	r.Bytes(from, brackets[0], brackets[0], at)
	for i := range n {
		begin, end := r.State(), r.State()
		if i == 0 {
			j.gap(r, at, afterOpen, begin)
		} else {
			comma := r.State()
			r.Bytes(at, ',', ',', comma)
			j.gap(r, comma, afterComma, begin)
		}
		element(i, begin, end)
		at = end
	}
	closing := r.State()
	j.gap(r, at, beforeClose, closing)
	r.Bytes(closing, brackets[1], brackets[1], to)
}
