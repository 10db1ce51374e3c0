package hfjinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// jsonStyle are the options of Python's json.dumps that templates use.
type jsonStyle struct {
	item, key string // separators
	indent    string // per level, when lines is set
	lines     bool   // one item a line
	ascii     bool   // escape everything that is not ASCII
	sorted    bool   // keys in order
}

func filterToJSON(st *state, v value, a args) (value, error) {
	style := jsonStyle{item: ", ", key: ": ", ascii: a.truthy(0), sorted: a.truthy(3)}
	if a.has(1) {
		style.lines, style.item = true, ","
		var ok bool
		if style.indent, ok = st.text(a.vals[1]); !ok {
			n, err := a.int(1, 0)
			if err != nil {
				return value{}, err
			}
			if n > 1<<10 {
				return value{}, st.errorf("filter 'tojson': indent %d is too large", n)
			}
			style.indent = strings.Repeat(" ", max(n, 0))
		}
	}
	if a.has(2) {
		seps, err := st.items(a.vals[2])
		if err != nil {
			return value{}, err
		}
		ok := len(seps) == 2
		if ok {
			var ok1, ok2 bool
			style.item, ok1 = st.text(seps[0])
			style.key, ok2 = st.text(seps[1])
			ok = ok1 && ok2
		}
		if !ok {
			return value{}, st.errorf("filter 'tojson': separators must be two strings")
		}
	}
	var b strings.Builder
	if err := st.writeJSON(&b, v, &style, 0); err != nil {
		return value{}, err
	}
	return jinja.NewString(b.String()), nil
}

func (st *state) writeJSON(b *strings.Builder, v value, style *jsonStyle, depth int) error {
	if depth > maxValueDepth {
		return st.errorf("value nested deeper than %d", maxValueDepth)
	}
	if err := st.alloc(8); err != nil {
		return err
	}
	switch {
	case v.IsNone():
		b.WriteString("null")
		return nil
	case v.IsBool():
		b.WriteString(strconv.FormatBool(v.AsBool()))
		return nil
	case v.IsInt():
		b.WriteString(strconv.FormatInt(v.AsInt(), 10))
		return nil
	case v.IsFloat():
		b.WriteString(jsonFloat(v.AsFloat()))
		return nil
	case v.IsDict():
		return st.writeJSONDict(b, v.AsDict(), style, depth)
	}
	if s, ok := st.text(v); ok {
		return st.writeJSONString(b, s, style.ascii)
	}
	if items, ok := st.sequence(v); ok {
		return st.writeJSONList(b, items, style, depth)
	}
	switch o := st.object(v).(type) {
	case *bigInt:
		b.WriteString(o.n.String())
		return nil
	case *iterator: // an error in Python; other engines print a list
		return st.writeJSONList(b, o.items, style, depth)
	}
	return st.errorf("filter 'tojson': object of type %s is not JSON serializable", st.typeName(v))
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return pyFloat(f)
}

// newline starts a line at the given depth, if the style has lines.
func (st *state) newline(b *strings.Builder, style *jsonStyle, depth int) error {
	if !style.lines {
		return nil
	}
	if err := st.alloc(1 + depth*len(style.indent)); err != nil {
		return err
	}
	b.WriteByte('\n')
	for range depth {
		b.WriteString(style.indent)
	}
	return nil
}

func (st *state) writeJSONList(b *strings.Builder, items []value, style *jsonStyle, depth int) error {
	if len(items) == 0 {
		b.WriteString("[]")
		return nil
	}
	b.WriteByte('[')
	for i, v := range items {
		if i > 0 {
			b.WriteString(style.item)
		}
		if err := st.newline(b, style, depth+1); err != nil {
			return err
		}
		if err := st.alloc(len(style.item)); err != nil {
			return err
		}
		if err := st.writeJSON(b, v, style, depth+1); err != nil {
			return err
		}
	}
	if err := st.newline(b, style, depth); err != nil {
		return err
	}
	b.WriteByte(']')
	return nil
}

func (st *state) writeJSONDict(b *strings.Builder, d *jinja.Dict, style *jsonStyle, depth int) error {
	if d.Len() == 0 {
		b.WriteString("{}")
		return nil
	}
	keys := d.Keys
	if style.sorted {
		keys = slices.Clone(keys)
		slices.Sort(keys)
	}
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(style.item)
		}
		if err := st.newline(b, style, depth+1); err != nil {
			return err
		}
		if err := st.writeJSONString(b, keyJSON(k), style.ascii); err != nil {
			return err
		}
		if err := st.alloc(len(style.key) + len(style.item)); err != nil {
			return err
		}
		b.WriteString(style.key)
		if err := st.writeJSON(b, d.Data[k], style, depth+1); err != nil {
			return err
		}
	}
	if err := st.newline(b, style, depth); err != nil {
		return err
	}
	b.WriteByte('}')
	return nil
}

// writeJSONString writes s as json.dumps does: without HTML escapes, and
// beyond ASCII as it is unless ascii is set.
func (st *state) writeJSONString(b *strings.Builder, s string, ascii bool) error {
	size := len(s) + 2
	if ascii {
		size += 5 * len(s)
	}
	if err := st.alloc(size); err != nil {
		return err
	}
	b.WriteByte('"')
	from := 0
	for i, r := range s {
		esc := ""
		switch {
		case r == '"' || r == '\\':
			esc = `\` + string(r)
		case r == '\n':
			esc = `\n`
		case r == '\r':
			esc = `\r`
		case r == '\t':
			esc = `\t`
		case r == '\b':
			esc = `\b`
		case r == '\f':
			esc = `\f`
		case r < 0x20 || ascii && r > 0x7e && r < 0x10000:
			esc = `\u` + hex(r, 4)
		case ascii && r >= 0x10000:
			esc = `\u` + hex(0xd800+(r-0x10000)>>10, 4) + `\u` + hex(0xdc00+(r-0x10000)&0x3ff, 4)
		default:
			continue
		}
		b.WriteString(s[from:i])
		b.WriteString(esc)
		from = i + max(1, utf8.RuneLen(r))
		if r == utf8.RuneError { // an invalid byte, or the character itself
			_, n := utf8.DecodeRuneInString(s[i:])
			from = i + n
		}
	}
	b.WriteString(s[from:])
	b.WriteByte('"')
	return nil
}

func filterFromJSON(st *state, v value, _ args) (value, error) {
	s, ok := st.text(v)
	if !ok {
		return value{}, st.errorf("filter 'fromjson': expected a string, got %s", st.typeName(v))
	}
	if err := st.alloc(len(s) * itemBytes / 2); err != nil { // "[[[[" and "0,0,0,"
		return value{}, err
	}
	out, err := st.decodeJSON([]byte(s))
	if err != nil {
		return value{}, st.errorf("filter 'fromjson': %v", err)
	}
	return out, nil
}

// decodeJSON reads one JSON value, keeping the order of keys and whether a
// number was written as an integer.
func (st *state) decodeJSON(data []byte) (value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := st.decodeValue(dec, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return value{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return value{}, errors.New("more than one JSON value")
	}
	return v, nil
}

func (st *state) decodeValue(dec *json.Decoder, depth int) (value, error) {
	if depth > maxValueDepth {
		return value{}, errors.New("JSON nested deeper than " + strconv.Itoa(maxValueDepth))
	}
	t, err := dec.Token()
	if err != nil {
		return value{}, err
	}
	switch t := t.(type) {
	case bool:
		return jinja.NewBool(t), nil
	case string:
		return jinja.NewString(t), nil
	case json.Number:
		return st.decodeNumber(string(t)), nil
	case json.Delim:
		if t == '[' {
			return st.decodeList(dec, depth)
		}
		return st.decodeDict(dec, depth)
	}
	return jinja.None(), nil
}

func (st *state) decodeNumber(s string) value {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return jinja.NewInt(n)
		}
		if n, ok := new(big.Int).SetString(s, 10); ok && len(s) <= 4300 {
			return st.carry(&bigInt{n})
		}
	}
	f, _ := strconv.ParseFloat(s, 64)
	return jinja.NewFloat(f)
}

func (st *state) decodeList(dec *json.Decoder, depth int) (value, error) {
	var items []value
	for dec.More() {
		v, err := st.decodeValue(dec, depth+1)
		if err != nil {
			return value{}, err
		}
		items = append(items, v)
	}
	_, err := dec.Token()
	return jinja.NewList(items), err
}

func (st *state) decodeDict(dec *json.Decoder, depth int) (value, error) {
	out := jinja.NewDict()
	for dec.More() {
		k, err := dec.Token()
		if err != nil {
			return value{}, err
		}
		v, err := st.decodeValue(dec, depth+1)
		if err != nil {
			return value{}, err
		}
		key, _ := k.(string)
		out.AsDict().Set(stringKey(key), v)
	}
	_, err := dec.Token()
	return out, err
}
