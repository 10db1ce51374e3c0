package jinja

import (
	"strings"
	"unsafe"

	"ridge/internal/spans"
)

// Span is the part of a text from byte Lo up to byte Hi.
type Span = spans.Span

// Given marks a variable whose texts, however deep in it, come from outside the
// template: what a user wrote, or a document. Program.Trace says where in the
// output they are.
type Given struct{ Value any }

// traced is a text of which parts were given. It behaves as the text does; what
// is made of it knows which of its bytes were given. Where that is too much to
// tell (changes of case, characters in another order) all of the result is.
type traced struct {
	s     string
	given []Span // in order, none empty, none touching another
	safe  bool   // as markup is
}

const spanBytes = 16

// spansOf returns the given parts of a text.
func spansOf(v value) []Span {
	if t, ok := v.(*traced); ok {
		return t.given
	}
	return nil
}

// isSafe reports whether v is text marked safe.
func isSafe(v value) bool {
	switch v := v.(type) {
	case markup:
		return true
	case *traced:
		return v.safe
	}
	return false
}

// newText makes a text of its characters and its given parts.
func newText(s string, given []Span, safe bool) value {
	switch {
	case len(given) > 0:
		return &traced{s, given, safe}
	case safe:
		return markup(s)
	}
	return s
}

// allGiven makes a text that was given.
func allGiven(s string, safe bool) value {
	if s == "" {
		return newText(s, nil, safe)
	}
	return newText(s, []Span{{Lo: 0, Hi: len(s)}}, safe)
}

// like makes a text of s, which was made from the text v: safe if v is, with
// the given parts of v if it is a part of v, and given as a whole if it is
// something else made of a text with given parts.
func (st *state) like(v value, s string) value {
	switch v := v.(type) {
	case markup:
		return markup(s)
	case *traced:
		if lo, ok := within(v.s, s); ok {
			given := spans.Cut(v.given, lo, lo+len(s))
			st.alloc(len(given) * spanBytes)
			return newText(s, given, v.safe)
		}
		return allGiven(s, v.safe)
	}
	return s
}

// within returns where part is in whole, if it shares its memory.
func within(whole, part string) (at int, ok bool) {
	if len(part) > len(whole) {
		return 0, false
	}
	if part == "" {
		return 0, true
	}
	off := uintptr(unsafe.Pointer(unsafe.StringData(part))) - uintptr(unsafe.Pointer(unsafe.StringData(whole)))
	return int(off), off <= uintptr(len(whole)-len(part))
}

// give marks the texts in v as given. It changes lists and dicts in place.
func give(v value) value {
	switch v := v.(type) {
	case string:
		return allGiven(v, false)
	case *list:
		for i := range v.items {
			v.items[i] = give(v.items[i])
		}
	case *dict:
		for i := range v.entries {
			v.entries[i].key = give(v.entries[i].key)
			v.entries[i].val = give(v.entries[i].val)
		}
	}
	return v
}

// weaver builds a text of parts that were given and parts that were not. What
// is written to the Builder was not.
type weaver struct {
	strings.Builder
	given []Span
}

// add writes a text with its given parts.
func (w *weaver) add(st *state, v value) {
	s, _ := text(v)
	given := spansOf(v)
	st.alloc(len(given) * spanBytes)
	w.given = spans.Append(w.given, given, w.Len())
	w.WriteString(s)
}

// mark says that what was written since the length from was given, but for the
// quote bytes at both its ends.
func (w *weaver) mark(from, quote int) {
	if lo, hi := from+quote, w.Len()-quote; lo < hi {
		w.given = spans.Append(w.given, []Span{{Lo: lo, Hi: hi}}, 0)
	}
}

// text returns what was written.
func (w *weaver) text(safe bool) value { return newText(w.String(), w.given, safe) }

// textOf is str(v) with its given parts.
func (st *state) textOf(v value) value {
	switch v.(type) {
	case string, markup, *traced:
		return v
	case undefined:
		return ""
	}
	var w weaver
	st.writeRepr(&w, v, 0)
	return w.text(false)
}

// hasGiven reports whether there is given text in v, for operations that make
// a text of it in a way that is not followed.
func (st *state) hasGiven(v value) bool {
	switch v.(type) {
	case nil, bool, int, float64, string, markup:
		return false
	}
	return len(spansOf(st.textOf(v))) > 0
}
