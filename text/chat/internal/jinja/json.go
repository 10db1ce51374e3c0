package jinja

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonWriter writes JSON as Python's json.dumps does, with the options of it
// that templates use.
type jsonWriter struct {
	weaver
	st        *state
	item, key string // separators
	indent    string // per level, when lines is set
	lines     bool   // one item a line
	ascii     bool   // escape everything that is not ASCII
	sorted    bool   // keys in order
}

func filterToJSON(st *state, v value, a *args) value {
	w := jsonWriter{st: st, item: ", ", key: ": ", ascii: a.truthy(0), sorted: a.truthy(3)}
	if a.has(1) {
		w.lines, w.item = true, ","
		var ok bool
		if w.indent, ok = text(a.vals[1]); !ok {
			n := a.int(1, 0)
			if n > 1<<10 {
				panic(a.errorf("indent %d is too large", n))
			}
			w.indent = strings.Repeat(" ", max(n, 0))
		}
	}
	if a.has(2) {
		seps := st.unpack(a.vals[2], 2)
		var ok1, ok2 bool
		w.item, ok1 = text(seps[0])
		w.key, ok2 = text(seps[1])
		if !ok1 || !ok2 {
			panic(a.errorf("separators must be two strings"))
		}
	}
	w.value(v, 0)
	return w.text(false)
}

func (w *jsonWriter) value(v value, depth int) {
	if depth > maxValueDepth {
		panic(w.st.errorf("value nested deeper than %d", maxValueDepth))
	}
	w.st.step(1)
	w.st.alloc(8)
	switch v := v.(type) {
	case nil:
		w.WriteString("null")
	case bool:
		w.WriteString(strconv.FormatBool(v))
	case int:
		w.WriteString(strconv.Itoa(v))
	case float64:
		w.WriteString(jsonFloat(v))
	case *bigInt:
		w.WriteString(v.n.String())
	case string:
		w.string(v)
	case markup:
		w.string(string(v))
	case *traced:
		from := w.Len()
		w.string(v.s)
		w.mark(from, 1)
	case *dict:
		w.dict(v, depth)
	case *list:
		w.list(v.items, depth)
	case *tuple:
		w.list(v.items, depth)
	case *iterator: // an error in Python; other engines print a list
		w.list(v.items, depth)
	default:
		panic(w.st.errorf("filter 'tojson': object of type %s is not JSON serializable", typeName(v)))
	}
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

// newline starts a line at the given depth, if there are lines.
func (w *jsonWriter) newline(depth int) {
	if w.lines {
		w.st.alloc(1 + depth*len(w.indent))
		w.WriteByte('\n')
		for range depth {
			w.WriteString(w.indent)
		}
	}
}

// next starts item i of a list or dict at the given depth.
func (w *jsonWriter) next(i, depth int) {
	if i > 0 {
		w.st.alloc(len(w.item))
		w.WriteString(w.item)
	}
	w.newline(depth)
}

func (w *jsonWriter) list(items []value, depth int) {
	if len(items) == 0 {
		w.WriteString("[]")
		return
	}
	w.WriteByte('[')
	for i, v := range items {
		w.next(i, depth+1)
		w.value(v, depth+1)
	}
	w.newline(depth)
	w.WriteByte(']')
}

func (w *jsonWriter) dict(d *dict, depth int) {
	if len(d.entries) == 0 {
		w.WriteString("{}")
		return
	}
	entries := d.entries
	if w.sorted {
		w.st.alloc(len(entries) * itemBytes)
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, func(x, y entry) int { return w.st.order(x.key, y.key, "<") })
	}
	w.WriteByte('{')
	for i, e := range entries {
		w.next(i, depth+1)
		w.entryKey(e.key)
		w.st.alloc(len(w.key))
		w.WriteString(w.key)
		w.value(e.val, depth+1)
	}
	w.newline(depth)
	w.WriteByte('}')
}

func (w *jsonWriter) entryKey(k value) {
	switch k := k.(type) {
	case string:
		w.string(k)
	case markup:
		w.string(string(k))
	case *traced:
		from := w.Len()
		w.string(k.s)
		w.mark(from, 1)
	case nil, bool, int, float64, *bigInt: // as they are, in quotes
		w.WriteByte('"')
		w.value(k, 0)
		w.WriteByte('"')
	default:
		panic(w.st.errorf("filter 'tojson': keys must be strings, numbers, booleans or none, not %s", typeName(k)))
	}
}

// string writes s as json.dumps does: without HTML escapes, and beyond ASCII
// as it is unless ascii is set.
func (w *jsonWriter) string(s string) {
	size := 1
	if w.ascii {
		size = 6
	}
	w.st.allocEach(len(s)+2, size)
	w.WriteByte('"')
	from := 0
	for i, r := range s {
		if r >= 0x20 && r < 0x7f && r != '"' && r != '\\' || r >= 0x7f && !w.ascii {
			continue
		}
		w.WriteString(s[from:i])
		_, n := utf8.DecodeRuneInString(s[i:]) // not RuneLen: an invalid byte is one
		from = i + n
		switch {
		case r == '"' || r == '\\':
			w.WriteString(`\` + string(r))
		case strings.ContainsRune("\n\r\t\b\f", r):
			w.WriteByte('\\')
			w.WriteByte("nrtbf"[strings.IndexRune("\n\r\t\b\f", r)])
		case r < 0x10000:
			w.WriteString(`\u` + hex(r, 4))
		default:
			w.WriteString(`\u` + hex(0xd800+(r-0x10000)>>10, 4) + `\u` + hex(0xdc00+(r-0x10000)&0x3ff, 4))
		}
	}
	w.WriteString(s[from:])
	w.WriteByte('"')
}

func filterFromJSON(st *state, v value, a *args) value {
	s, ok := text(v)
	if !ok {
		panic(a.errorf("expected a string, got %s", typeName(v)))
	}
	st.allocEach(len(s), itemBytes/2) // "[[[[" and "0,0,0,"
	out, err := decodeJSON([]byte(s))
	if err != nil {
		panic(a.errorf("%v", err))
	}
	if spansOf(v) != nil {
		return give(out)
	}
	return out
}

// decodeJSON reads one JSON value, keeping the order of keys and whether a
// number was written as an integer.
func decodeJSON(data []byte) (value, error) {
	if !json.Valid(data) {
		err := json.Unmarshal(data, new(any)) // says what is wrong
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	r := jsonReader{text: string(data)}
	return r.value(0)
}

// jsonReader makes values of valid JSON; pos is where in the text.
type jsonReader struct {
	text string
	pos  int
}

// next moves over white space and returns the byte there.
func (r *jsonReader) next() byte {
	for strings.IndexByte(" \t\r\n", r.text[r.pos]) >= 0 {
		r.pos++
	}
	return r.text[r.pos]
}

func (r *jsonReader) value(depth int) (value, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("JSON nested deeper than %d", maxValueDepth)
	}
	switch c := r.next(); c {
	case '{', '[':
		return r.container(c == '{', depth)
	case '"':
		return r.string(), nil
	case 'n':
		r.pos += len("null")
		return nil, nil
	case 't':
		r.pos += len("true")
		return true, nil
	case 'f':
		r.pos += len("false")
		return false, nil
	}
	from := r.pos
	for r.pos < len(r.text) && strings.IndexByte("+-.0123456789eE", r.text[r.pos]) >= 0 {
		r.pos++
	}
	return decodeNumber(r.text[from:r.pos]), nil
}

func (r *jsonReader) container(isDict bool, depth int) (value, error) {
	d, l := &dict{}, &list{}
	for r.pos++; ; {
		switch r.next() {
		case ',':
			r.pos++
			continue
		case '}':
			r.pos++
			return d, nil
		case ']':
			r.pos++
			return l, nil
		}
		var key value
		if isDict {
			key = r.string()
			r.next()
			r.pos++ // the colon
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if isDict {
			d.set(key, key, v)
		} else {
			l.items = append(l.items, v)
		}
	}
}

func (r *jsonReader) string() string {
	r.next()
	end, escaped := r.pos+1, false
	for ; r.text[end] != '"'; end++ {
		if r.text[end] == '\\' {
			end++
			escaped = true
		}
	}
	s := r.text[r.pos+1 : end]
	if escaped || !utf8.ValidString(s) {
		s = ""
		_ = json.Unmarshal([]byte(r.text[r.pos:end+1]), &s) // valid, as a part of what is
	}
	r.pos = end + 1
	return s
}

func decodeNumber(s string) value {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		if n, ok := new(big.Int).SetString(s, 10); ok && len(s) <= maxDigits {
			return newInteger(n)
		}
	}
	f, _ := strconv.ParseFloat(s, 64)
	return f
}
