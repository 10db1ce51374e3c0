package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// strMethods are the methods of Python's str.
var strMethods map[string]*fn

func init() { // not in the declaration: format looks up methods
	strMethods = table("%()", map[string]fn{
		"capitalize": textFn(capitalize), "lower": textFn(strings.ToLower), "upper": textFn(upper),
		"casefold": textFn(caseFold), "swapcase": textFn(swapCase), "title": textFn(titleMethod),
		"strip":      {params: "chars", call: stripFn(strings.TrimFunc)},
		"lstrip":     {params: "chars", call: stripFn(strings.TrimLeftFunc)},
		"rstrip":     {params: "chars", call: stripFn(strings.TrimRightFunc)},
		"split":      {params: "sep maxsplit", call: strSplit(false)},
		"rsplit":     {params: "sep maxsplit", call: strSplit(true)},
		"splitlines": {params: "keepends", call: strSplitLines},
		"startswith": {params: "!prefix start end", call: strAffix(strings.HasPrefix)},
		"endswith":   {params: "!suffix start end", call: strAffix(strings.HasSuffix)},
		"replace":    {params: "!old !new count", call: strReplace},
		"find":       {params: "!sub start end", call: strFind(strings.Index, false)},
		"index":      {params: "!sub start end", call: strFind(strings.Index, true)},
		"rfind":      {params: "!sub start end", call: strFind(strings.LastIndex, false)},
		"rindex":     {params: "!sub start end", call: strFind(strings.LastIndex, true)},
		"count":      {params: "!sub start end", call: strCount},
		"join":       {params: "!iterable", call: strJoin}, "format": {params: "*", call: strFormat},
		"center": {params: "!width fillchar", call: strPad(center)},
		"ljust":  {params: "!width fillchar", call: strPad(left)},
		"rjust":  {params: "!width fillchar", call: strPad(right)},
		"zfill":  {params: "!width", call: strZfill},
		"removeprefix": {params: "!prefix", call: func(st *state, v value, a *args) value {
			return st.like(v, strings.TrimPrefix(self(v), a.text(0, "")))
		}},
		"removesuffix": {params: "!suffix", call: func(st *state, v value, a *args) value {
			return st.like(v, strings.TrimSuffix(self(v), a.text(0, "")))
		}},
		"partition":  {params: "!sep", call: strPartition(strings.Index, false)},
		"rpartition": {params: "!sep", call: strPartition(strings.LastIndex, true)},
		"isalpha":    strEach(unicode.IsLetter), "isdigit": strEach(unicode.IsDigit), "isdecimal": strEach(unicode.IsDigit),
		"isnumeric": strEach(unicode.IsNumber), "isspace": strEach(isPySpace),
		"isalnum": strEach(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isascii": strIs(isASCII), "islower": strIs(isLower), "isupper": strIs(isUpper),
	})
}

// self returns the string a method was called on.
func self(v value) string {
	s, _ := text(v)
	return s
}

// textFn makes a method, or filter without arguments, of a string function
// that at most triples the length.
func textFn(f func(string) string) fn {
	return fn{call: func(st *state, v value, _ *args) value {
		s := st.str(v)
		st.allocEach(len(s), 3)
		return st.like(v, f(s))
	}}
}

func strIs(f func(string) bool) fn {
	return fn{call: func(st *state, v value, _ *args) value {
		s := st.str(v)
		st.step(len(s) >> 6)
		return f(s)
	}}
}

// strEach is true of strings of one or more characters that all pass f.
func strEach(f func(rune) bool) fn {
	return strIs(func(s string) bool {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
	})
}

// stripFn serves the strip methods and the filter trim.
func stripFn(trim func(string, func(rune) bool) string) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		s, in := st.str(v), isPySpace
		if a.has(0) {
			chars := a.text(0, "")
			st.step(len(s) >> 6 * (1 + len(chars)))
			in = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		st.alloc(len(s))
		return st.like(v, trim(s, in))
	}
}

// texts makes a list of strings, parts of one that is counted already.
func (st *state) texts(v value, parts []string) value {
	st.alloc(len(parts) * itemBytes)
	out := make([]value, len(parts))
	for i, p := range parts {
		out[i] = st.like(v, p)
	}
	return &list{out}
}

func strSplit(fromRight bool) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		s, limit := self(v), a.int(1, -1)
		st.alloc(len(s))
		if !a.has(0) {
			st.allocEach(len(s)/2, 16)
			return st.texts(v, splitSpace(s, limit, fromRight))
		}
		sep := a.text(0, "")
		if sep == "" {
			panic(a.errorf("empty separator"))
		}
		st.allocEach(strings.Count(s, sep), itemBytes)
		switch {
		case limit < 0 || limit >= len(s):
			return st.texts(v, strings.Split(s, sep))
		case !fromRight:
			return st.texts(v, strings.SplitN(s, sep, limit+1))
		}
		var parts []string
		for ; limit > 0; limit-- {
			i := strings.LastIndex(s, sep)
			if i < 0 {
				break
			}
			parts = append(parts, s[i+len(sep):])
			s = s[:i]
		}
		parts = append(parts, s)
		slices.Reverse(parts)
		return st.texts(v, parts)
	}
}

// splitSpace splits at runs of white space, at most limit times if that is
// not negative.
func splitSpace(s string, limit int, fromRight bool) []string {
	if limit < 0 {
		return strings.FieldsFunc(s, isPySpace)
	}
	var parts []string
	if !fromRight {
		for s = strings.TrimLeftFunc(s, isPySpace); s != ""; s = strings.TrimLeftFunc(s, isPySpace) {
			i := strings.IndexFunc(s, isPySpace)
			if len(parts) == limit || i < 0 {
				return append(parts, s)
			}
			parts = append(parts, s[:i])
			s = s[i:]
		}
		return parts
	}
	for s = strings.TrimRightFunc(s, isPySpace); s != ""; s = strings.TrimRightFunc(s, isPySpace) {
		i := strings.LastIndexFunc(s, isPySpace)
		if len(parts) == limit || i < 0 {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		parts = append(parts, s[i+n:])
		s = s[:i]
	}
	slices.Reverse(parts)
	return parts
}

func isLineBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var out []string
	for s != "" {
		i := strings.IndexFunc(s, isLineBreak)
		if i < 0 {
			return append(out, s)
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\r' && strings.HasPrefix(s[i+1:], "\n") {
			n = 2
		}
		if keep {
			out = append(out, s[:i+n])
		} else {
			out = append(out, s[:i])
		}
		s = s[i+n:]
	}
	return out
}

func strSplitLines(st *state, v value, a *args) value {
	s := self(v)
	st.allocEach(len(s), 16)
	return st.texts(v, splitLines(s, a.truthy(0)))
}

// window applies the optional start and end arguments, 1 and 2, of a search.
// It returns the part of s, and the number of characters before it; ok is
// false when the part starts after the end, where not even "" is found.
func (a *args) window(s string) (part string, before int, ok bool) {
	a.st.step(1 + len(s)>>6)
	if !a.given(1) && !a.given(2) {
		return s, 0, true
	}
	n := utf8.RuneCountInString(s)
	lo, hi, _ := a.st.bounds(a.get(1, nil), a.get(2, nil), nil, n)
	start, _ := integer(a.get(1, nil))
	return runeSlice(s, lo, max(lo, hi)), lo, start <= n && lo <= hi
}

func strAffix(has func(s, affix string) bool) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		s, _, ok := a.window(self(v))
		affixes := a.vals[:1]
		if t, ok := a.vals[0].(*tuple); ok {
			affixes = t.items
		}
		st.step(len(affixes))
		return ok && slices.ContainsFunc(affixes, func(x value) bool {
			t, ok := text(x)
			if !ok {
				panic(a.errorf("expected a string or a tuple of strings, got %s", typeName(x)))
			}
			return has(s, t)
		})
	}
}

func strReplace(st *state, v value, a *args) value {
	a.text(1, "") // must be one
	repl := a.get(1, "")
	if isSafe(v) && repl != nil {
		repl = st.escaped(repl)
	}
	return st.replace(v, a.text(0, ""), repl, a.int(2, -1), isSafe(v))
}

// replace is strings.Replace with the size of the result counted first.
func (st *state) replace(v value, old string, repl value, limit int, safe bool) value {
	s, by := self(v), self(repl)
	st.alloc(len(s))
	n := strings.Count(s, old)
	if limit >= 0 {
		n = min(n, limit)
	}
	st.allocEach(n, max(0, len(by)-len(old)))
	if spansOf(v) == nil && spansOf(repl) == nil {
		return newText(strings.Replace(s, old, by, limit), nil, safe)
	}
	var w weaver
	for from := 0; ; n-- {
		i := strings.Index(s[from:], old)
		if old == "" && from > 0 || old == "" && w.Len() > 0 { // between characters
			_, i = utf8.DecodeRuneInString(s[from:])
		}
		if n <= 0 || i < 0 {
			w.add(st, st.like(v, s[from:]))
			return w.text(safe)
		}
		w.add(st, st.like(v, s[from:from+i]))
		w.add(st, repl)
		from += i + len(old)
	}
}

func strFind(find func(s, sub string) int, must bool) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		sub := a.text(0, "")
		s, before, ok := a.window(self(v))
		i := find(s, sub)
		switch {
		case ok && i >= 0:
			return before + utf8.RuneCountInString(s[:i])
		case must:
			panic(a.errorf("substring not found"))
		}
		return -1
	}
}

func strCount(st *state, v value, a *args) value {
	s, _, ok := a.window(self(v))
	if !ok {
		return 0
	}
	return strings.Count(s, a.text(0, ""))
}

func strJoin(st *state, v value, a *args) value {
	items := st.items(a.vals[0])
	st.allocEach(len(items), 16)
	for i, x := range items {
		if _, ok := text(x); !ok {
			panic(a.errorf("item %d: expected str instance, %s found", i, typeName(x)))
		}
	}
	return st.joined(items, v, isSafe(v))
}

// joined is strings.Join of texts with the size counted first.
func (st *state) joined(parts []value, sep value, safe bool) value {
	size := 0
	st.allocEach(len(parts), len(self(sep)))
	for _, p := range parts {
		st.alloc(len(self(p)))
		size += len(self(p)) + len(self(sep))
	}
	var w weaver
	w.Grow(size)
	for i, p := range parts {
		if i > 0 {
			w.add(st, sep)
		}
		w.add(st, p)
	}
	return w.text(safe)
}

// side is where the text stands in a padded field.
type side uint8

const (
	left side = iota
	center
	right
)

// strPad pads to a width in characters.
func strPad(at side) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		fill := a.text(1, " ")
		if utf8.RuneCountInString(fill) != 1 {
			panic(a.errorf("the fill character must be exactly one character long"))
		}
		return st.like(v, st.pad(self(v), a.int(0, 0), fill, at))
	}
}

func (st *state) pad(s string, width int, fill string, at side) string {
	st.alloc(len(s))
	n := width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	st.allocEach(n, len(fill))
	before := 0
	switch at {
	case right:
		before = n
	case center: // Python puts the odd one left when the width is odd
		before = n/2 + n&width&1
	}
	return strings.Repeat(fill, before) + s + strings.Repeat(fill, n-before)
}

func strZfill(st *state, v value, a *args) value {
	s, sign := self(v), ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return st.like(v, sign+st.pad(s, a.int(0, 0)-len(sign), "0", right))
}

func strPartition(find func(s, sub string) int, fromRight bool) func(*state, value, *args) value {
	return func(st *state, v value, a *args) value {
		s, sep := self(v), a.text(0, "")
		if sep == "" {
			panic(a.errorf("empty separator"))
		}
		st.alloc(len(s))
		i := find(s, sep)
		switch {
		case i >= 0:
			return newTuple(st.like(v, s[:i]), st.like(v, s[i:i+len(sep)]), st.like(v, s[i+len(sep):]))
		case fromRight:
			return newTuple(st.like(v, ""), st.like(v, ""), v)
		}
		return newTuple(v, st.like(v, ""), st.like(v, ""))
	}
}
