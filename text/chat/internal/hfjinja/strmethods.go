package hfjinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// strMethods are the methods of Python's str; v is the string.
var strMethods map[string]fn

func init() {
	strMethods = map[string]fn{
		"capitalize": textFn(capitalize), "lower": textFn(strings.ToLower), "upper": textFn(upper),
		"casefold": textFn(strings.ToLower), "swapcase": textFn(swapCase), "title": textFn(titleMethod),
		"strip":  {"chars", stripFn(strings.TrimFunc)},
		"lstrip": {"chars", stripFn(strings.TrimLeftFunc)},
		"rstrip": {"chars", stripFn(strings.TrimRightFunc)},
		"split":  {"sep maxsplit", strSplit(false)}, "rsplit": {"sep maxsplit", strSplit(true)},
		"splitlines": {"keepends", strSplitLines},
		"startswith": {"!prefix start end", strAffix(strings.HasPrefix)},
		"endswith":   {"!suffix start end", strAffix(strings.HasSuffix)},
		"replace":    {"!old !new count", strReplace},
		"find":       {"!sub start end", strFind(strings.Index, false)}, "index": {"!sub start end", strFind(strings.Index, true)},
		"rfind": {"!sub start end", strFind(strings.LastIndex, false)}, "rindex": {"!sub start end", strFind(strings.LastIndex, true)},
		"count": {"!sub", strCount}, "join": {"!iterable", strJoin}, "format": {"*", strFormat},
		"center": {"!width fillchar", strPad(0.5)}, "ljust": {"!width fillchar", strPad(0)}, "rjust": {"!width fillchar", strPad(1)},
		"zfill":        {"!width", strZfill},
		"removeprefix": {"!prefix", strRemove(strings.TrimPrefix)}, "removesuffix": {"!suffix", strRemove(strings.TrimSuffix)},
		"partition": {"!sep", strPartition(strings.Index, false)}, "rpartition": {"!sep", strPartition(strings.LastIndex, true)},
		"isalpha": strIs(unicode.IsLetter), "isdigit": strIs(unicode.IsDigit), "isdecimal": strIs(unicode.IsDigit),
		"isnumeric": strIs(unicode.IsNumber), "isspace": strIs(isPySpace),
		"isalnum": strIs(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isascii": {"", func(st *state, v value, _ args) (value, error) { return jinja.NewBool(isASCII(self(st, v))), nil }},
		"islower": {"", func(st *state, v value, _ args) (value, error) { return jinja.NewBool(isLower(self(st, v))), nil }},
		"isupper": {"", func(st *state, v value, _ args) (value, error) { return jinja.NewBool(isUpper(self(st, v))), nil }},
	}
}

// self returns the string a method was called on.
func self(st *state, v value) string {
	s, _ := st.text(v)
	return s
}

// textFn makes a method, or filter without arguments, of a string function
// that at most triples the length.
func textFn(f func(string) string) fn {
	return fn{"", func(st *state, v value, _ args) (value, error) {
		s, err := st.print(v)
		if err != nil {
			return value{}, err
		}
		if err := st.alloc(3 * len(s)); err != nil {
			return value{}, err
		}
		return st.likeNoAlloc(v, f(s)), nil
	}}
}

func strIs(f func(rune) bool) fn {
	return fn{"", func(st *state, v value, _ args) (value, error) {
		s := self(st, v)
		ok := s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0
		return jinja.NewBool(ok), st.step(len(s) >> 6)
	}}
}

// stripFn serves the strip methods and the filter trim.
func stripFn(trim func(string, func(rune) bool) string) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		s, err := st.print(v)
		if err != nil {
			return value{}, err
		}
		in := isPySpace
		if a.has(0) {
			chars, err := a.text(0, "")
			if err != nil {
				return value{}, err
			}
			if err := st.step(len(s) * (1 + len(chars)) >> 6); err != nil {
				return value{}, err
			}
			in = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		return st.like(v, trim(s, in))
	}
}

// texts makes a list of strings, parts of one that is counted already.
func (st *state) texts(parts []string) (value, error) {
	if err := st.alloc(len(parts) * itemBytes); err != nil {
		return value{}, err
	}
	out := make([]value, len(parts))
	for i, p := range parts {
		out[i] = jinja.NewString(p)
	}
	return jinja.NewList(out), nil
}

func strSplit(fromRight bool) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		s := self(st, v)
		limit, err := a.int(1, -1)
		if err != nil {
			return value{}, err
		}
		if err := st.alloc(len(s)); err != nil {
			return value{}, err
		}
		if !a.has(0) {
			return st.texts(splitSpace(s, limit, fromRight))
		}
		sep, err := a.text(0, "")
		if err != nil {
			return value{}, err
		}
		if sep == "" {
			return value{}, st.errorf("split(): empty separator")
		}
		if err := st.alloc(strings.Count(s, sep) * itemBytes); err != nil {
			return value{}, err
		}
		if limit < 0 || limit >= len(s) {
			return st.texts(strings.Split(s, sep))
		}
		if !fromRight {
			return st.texts(strings.SplitN(s, sep, limit+1))
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
		for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
			parts[i], parts[j] = parts[j], parts[i]
		}
		return st.texts(parts)
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
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
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

func strSplitLines(st *state, v value, a args) (value, error) {
	s := self(st, v)
	if err := st.alloc(len(s) * 2); err != nil {
		return value{}, err
	}
	return st.texts(splitLines(s, a.truthy(0)))
}

// window applies the optional start and end arguments i and i+1 of a search.
// It returns the part of s, and the number of characters before it.
func (a args) window(s string, i int) (string, int, error) {
	if !a.has(i) && !a.has(i+1) {
		return s, 0, nil
	}
	lo, hi, _, err := a.st.bounds(a.get(i, jinja.None()), a.get(i+1, jinja.None()), jinja.None(), utf8.RuneCountInString(s))
	if err != nil {
		return "", 0, err
	}
	return runeSlice(s, lo, max(lo, hi)), lo, nil
}

func strAffix(has func(s, affix string) bool) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		s, _, err := a.window(self(st, v), 1)
		if err != nil {
			return value{}, err
		}
		affixes := []value{a.vals[0]}
		if t, ok := st.object(a.vals[0]).(*tuple); ok {
			affixes = t.items
		}
		for _, x := range affixes {
			t, ok := st.text(x)
			if !ok {
				return value{}, st.errorf("%s: expected a string or a tuple of strings, got %s", a.what, st.typeName(x))
			}
			if has(s, t) {
				return jinja.NewBool(true), nil
			}
		}
		return jinja.NewBool(false), st.step(len(affixes))
	}
}

func strReplace(st *state, v value, a args) (value, error) {
	old, err := a.text(0, "")
	if err != nil {
		return value{}, err
	}
	repl, err := a.text(1, "")
	if err != nil {
		return value{}, err
	}
	limit, err := a.int(2, -1)
	if err != nil {
		return value{}, err
	}
	s := self(st, v)
	if _, ok := st.object(v).(*markup); ok {
		repl = escapeHTML(repl)
	}
	out, err := st.replace(s, old, repl, limit)
	if err != nil {
		return value{}, err
	}
	return st.likeNoAlloc(v, out), nil
}

// replace is strings.Replace with the size of the result counted first.
func (st *state) replace(s, old, repl string, limit int) (string, error) {
	n := strings.Count(s, old)
	if limit >= 0 {
		n = min(n, limit)
	}
	size := len(s)
	if grow := len(repl) - len(old); grow > 0 {
		if n > st.bytes/grow {
			return "", st.alloc(st.bytes + 1)
		}
		size += n * grow
	}
	if err := st.alloc(size); err != nil {
		return "", err
	}
	return strings.Replace(s, old, repl, limit), nil
}

func strFind(find func(s, sub string) int, must bool) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		sub, err := a.text(0, "")
		if err != nil {
			return value{}, err
		}
		s, before, err := a.window(self(st, v), 1)
		if err != nil {
			return value{}, err
		}
		i := find(s, sub)
		if i < 0 {
			if must {
				return value{}, st.errorf("%s: substring not found", a.what)
			}
			return jinja.NewInt(-1), nil
		}
		return jinja.NewInt(int64(before + utf8.RuneCountInString(s[:i]))), st.step(len(s) >> 6)
	}
}

func strCount(st *state, v value, a args) (value, error) {
	sub, err := a.text(0, "")
	if err != nil {
		return value{}, err
	}
	s := self(st, v)
	return jinja.NewInt(int64(strings.Count(s, sub))), st.step(len(s) >> 6)
}

func strJoin(st *state, v value, a args) (value, error) {
	items, err := st.items(a.vals[0])
	if err != nil {
		return value{}, err
	}
	parts := make([]string, len(items))
	for i, x := range items {
		s, ok := st.text(x)
		if !ok {
			return value{}, st.errorf("join(): item %d: expected str instance, %s found", i, st.typeName(x))
		}
		parts[i] = s
	}
	return st.joined(parts, self(st, v))
}

// joined is strings.Join with the size counted first.
func (st *state) joined(parts []string, sep string) (value, error) {
	if len(sep) > 0 && len(parts) > st.bytes/len(sep) {
		return value{}, st.alloc(st.bytes + 1)
	}
	n := len(parts) * len(sep)
	for _, p := range parts {
		n += len(p)
	}
	if err := st.alloc(n); err != nil {
		return value{}, err
	}
	return jinja.NewString(strings.Join(parts, sep)), nil
}

// strPad pads to a width in characters; left is the share of the padding that
// goes to the left.
func strPad(left float64) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		width, err := a.int(0, 0)
		if err != nil {
			return value{}, err
		}
		fill, err := a.text(1, " ")
		if err != nil {
			return value{}, err
		}
		if utf8.RuneCountInString(fill) != 1 {
			return value{}, st.errorf("%s: the fill character must be exactly one character long", a.what)
		}
		return st.pad(v, width, fill, left)
	}
}

func (st *state) pad(v value, width int, fill string, left float64) (value, error) {
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	n := width - utf8.RuneCountInString(s)
	if n <= 0 {
		return st.likeNoAlloc(v, s), nil
	}
	if n > st.bytes/len(fill) {
		return value{}, st.alloc(st.bytes + 1)
	}
	if err := st.alloc(len(s) + n*len(fill)); err != nil {
		return value{}, err
	}
	before := 0
	switch left {
	case 1:
		before = n
	case 0.5: // Python puts the odd one left when the width is odd
		before = n/2 + n&width&1
	}
	return st.likeNoAlloc(v, strings.Repeat(fill, before)+s+strings.Repeat(fill, n-before)), nil
}

func strZfill(st *state, v value, a args) (value, error) {
	width, err := a.int(0, 0)
	if err != nil {
		return value{}, err
	}
	s := self(st, v)
	signed := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		signed, s = s[:1], s[1:]
	}
	out, err := st.pad(jinja.NewString(s), width-len(signed), "0", 1)
	if err != nil {
		return value{}, err
	}
	return st.like(v, signed+out.AsString())
}

func strRemove(trim func(s, affix string) string) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		affix, err := a.text(0, "")
		if err != nil {
			return value{}, err
		}
		return st.like(v, trim(self(st, v), affix))
	}
}

func strPartition(find func(s, sub string) int, right bool) func(*state, value, args) (value, error) {
	return func(st *state, v value, a args) (value, error) {
		sep, err := a.text(0, "")
		if err != nil {
			return value{}, err
		}
		if sep == "" {
			return value{}, st.errorf("%s: empty separator", a.what)
		}
		s := self(st, v)
		if err := st.alloc(len(s)); err != nil {
			return value{}, err
		}
		i := find(s, sep)
		switch {
		case i >= 0:
			return st.tuple(jinja.NewString(s[:i]), jinja.NewString(sep), jinja.NewString(s[i+len(sep):])), nil
		case right:
			return st.tuple(jinja.NewString(""), jinja.NewString(""), jinja.NewString(s)), nil
		}
		return st.tuple(jinja.NewString(s), jinja.NewString(""), jinja.NewString("")), nil
	}
}
