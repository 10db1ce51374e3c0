package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filters are jinja2's filters, with tojson as Hugging Face defines it, and
// fromjson, which other engines have. Not provided: random, urlize, wordwrap,
// xmlattr, filesizeformat, pprint, striptags, which no prompt needs.
var filters map[string]*fn

func init() { // not in the declaration: map refers to it
	filters = table("filter '%'", map[string]fn{
		"abs": {call: filterAbs}, "round": {params: "precision method", call: filterRound},
		"int": {params: "default base", call: filterInt}, "float": {params: "default", call: filterFloat},
		"string": {call: filterString}, "safe": {call: filterSafe},
		"escape": {call: filterEscape}, "e": {call: filterEscape},
		"forceescape": {call: filterForceEscape},
		"upper":       textFn(upper), "lower": textFn(strings.ToLower),
		"capitalize": textFn(capitalize), "title": {call: filterTitle},
		"trim":    {params: "chars", call: stripFn(strings.TrimFunc)},
		"replace": {params: "!old !new count", call: filterReplace},
		"indent":  {params: "width first blank", call: filterIndent},
		"center":  {params: "width", call: filterCenter}, "urlencode": {call: filterURLEncode},
		"truncate":  {params: "length killwords end leeway", call: filterTruncate},
		"wordcount": {call: filterWordCount}, "format": {params: "*", call: filterFormat},
		"default":  {params: "default_value boolean", call: filterDefault},
		"d":        {params: "default_value boolean", call: filterDefault},
		"tojson":   {params: "ensure_ascii indent separators sort_keys", call: filterToJSON},
		"fromjson": {call: filterFromJSON}, "from_json": {call: filterFromJSON},

		"length": {call: filterLength}, "count": {call: filterLength},
		"first": {call: filterFirst}, "last": {call: filterLast},
		"list": {call: filterList}, "reverse": {call: filterReverse},
		"join":  {params: "d attribute", call: filterJoin},
		"items": {call: filterItems}, "dictsort": {params: "case_sensitive by reverse", call: filterDictSort},
		"sort":    {params: "reverse case_sensitive attribute", call: filterSort},
		"unique":  {params: "case_sensitive attribute", call: filterUnique},
		"min":     {params: "case_sensitive attribute", call: filterMinMax(-1)},
		"max":     {params: "case_sensitive attribute", call: filterMinMax(1)},
		"sum":     {params: "attribute start", call: filterSum},
		"groupby": {params: "!attribute default case_sensitive", call: filterGroupBy},
		"batch":   {params: "!linecount fill_with", call: filterBatch},
		"slice":   {params: "!slices fill_with", call: filterSlice},
		"map":     {params: "*", call: filterMap}, "attr": {params: "!name", call: filterAttr},
		"select": {params: "*", call: filterSelect(false, true)}, "reject": {params: "*", call: filterSelect(false, false)},
		"selectattr": {params: "*", call: filterSelect(true, true)}, "rejectattr": {params: "*", call: filterSelect(true, false)},
	})
}

func filterAbs(st *state, v value, _ *args) value {
	if n, ok := integer(v); ok && n != math.MinInt {
		return max(n, -n)
	}
	if f, ok := v.(float64); ok {
		return math.Abs(f)
	}
	panic(st.errorf("bad operand type for abs(): '%s'", typeName(v)))
}

func filterRound(st *state, v value, a *args) value {
	precision := a.int(0, 0)
	if _, ok := v.(*bigInt); ok && precision >= 0 && !a.has(1) {
		return v
	}
	f, ok := number(v)
	if !ok || precision < -400 || precision > 400 {
		panic(a.errorf("expected a number and a precision in [-400, 400]"))
	}
	scale := math.Pow(10, float64(precision))
	switch method := a.text(1, "common"); method {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	case "common":
	default:
		panic(a.errorf("method must be common, ceil or floor, got '%s'", method))
	}
	n, isInt := integer(v)
	switch {
	case isInt && precision >= 0:
		return n // Python rounds an int to an int
	case math.IsInf(f, 0) || math.IsNaN(f):
		return f
	case precision < 0:
		r := math.RoundToEven(f*scale) / scale
		if isInt && math.Abs(r) < 1<<62 {
			return int(r)
		}
		return r
	}
	// Correctly rounded decimal, half to even, as Python's round.
	r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
	return r
}

// parsePyInt reads what Python's int(s, base) accepts.
func parsePyInt(s string, base int) (value, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isPySpace))
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	if prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]; prefix != "" {
		s = strings.TrimPrefix(s, prefix)
	}
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "_") ||
		strings.HasSuffix(s, "_") || strings.Contains(s, "__") || len(s) > maxDigits {
		return nil, false
	}
	n, ok := new(big.Int).SetString(sign+strings.ReplaceAll(s, "_", ""), base)
	return newInteger(n), ok
}

// maxDigits is how long an integer Python reads.
const maxDigits = 4300

// newInteger returns n as an int if it fits.
func newInteger(n *big.Int) value {
	if n != nil && n.IsInt64() && int64(int(n.Int64())) == n.Int64() {
		return int(n.Int64())
	}
	return &bigInt{n}
}

func filterInt(st *state, v value, a *args) value {
	base := a.int(1, 10)
	if base < 2 || base > 36 {
		panic(a.errorf("base must be in [2, 36], got %d", base))
	}
	f := math.NaN()
	switch v := v.(type) {
	case undefined:
		panic(st.undefinedError(""))
	case *bigInt:
		return v
	case float64:
		if f = v; math.IsInf(f, 0) {
			panic(a.errorf("cannot convert float infinity to integer"))
		}
	}
	if n, ok := integer(v); ok {
		return n
	}
	if s, ok := text(v); ok {
		st.step(len(s) >> 6)
		if n, ok := parsePyInt(s, base); ok {
			return n
		}
		if x, ok := parsePyFloat(s); ok {
			f = x
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return a.get(0, 0)
	}
	n, _ := big.NewFloat(f).Int(nil)
	return newInteger(n)
}

// parsePyFloat reads what Python's float(s) accepts.
func parsePyFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isPySpace)
	if strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || math.IsInf(f, 0)
}

func filterFloat(st *state, v value, a *args) value {
	if isUndefined(v) {
		panic(st.undefinedError(""))
	}
	if f, ok := number(v); ok {
		return f
	}
	if s, ok := text(v); ok {
		st.step(len(s) >> 6)
		if f, ok := parsePyFloat(s); ok {
			return f
		}
	}
	if b, ok := v.(*bigInt); ok {
		f, _ := new(big.Float).SetInt(b.n).Float64()
		return f
	}
	return a.get(0, 0.0)
}

func filterString(st *state, v value, _ *args) value {
	if _, ok := text(v); ok {
		return v
	}
	return st.textOf(v)
}

func filterSafe(st *state, v value, _ *args) value {
	v = st.textOf(v)
	return newText(self(v), spansOf(v), true)
}

func filterEscape(st *state, v value, a *args) value {
	if isSafe(v) {
		return v
	}
	return filterForceEscape(st, v, a)
}

func filterForceEscape(st *state, v value, _ *args) value {
	v = st.escaped(st.textOf(v))
	return newText(self(v), spansOf(v), true)
}

// filterTitle capitalizes words; unlike str.title, only white space, hyphens
// and opening brackets start one.
func filterTitle(st *state, v value, _ *args) value {
	v = st.textOf(v)
	start, s := true, self(v)
	st.allocEach(len(s), 3)
	out := strings.Map(func(r rune) rune {
		was := start
		start = isPySpace(r) || strings.ContainsRune("-({[<", r)
		if was && !start {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
	return newText(out, spansOf(st.like(v, out)), false)
}

func filterReplace(st *state, v value, a *args) value {
	return st.replace(st.textOf(v), st.str(a.vals[0]), st.textOf(a.vals[1]), a.int(2, -1), false)
}

func filterIndent(st *state, v value, a *args) value {
	s, ok := text(v)
	if !ok {
		panic(a.errorf("expected a string, got %s", typeName(v)))
	}
	pad := a.get(0, nil)
	if _, ok := text(pad); !ok {
		n := a.int(0, 4)
		if n > 1<<20 {
			panic(a.errorf("width %d is too large", n))
		}
		pad = strings.Repeat(" ", max(n, 0))
	}
	st.allocEach(len(s), 2)
	lines := splitLines(s, false)
	if r, _ := utf8.DecodeLastRuneInString(s); s == "" || r != '\r' && isLineBreak(r) {
		lines = append(lines, s[len(s):]) // after the last line break
	}
	st.allocEach(len(lines), len(self(pad))+itemBytes)
	var b weaver
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		// Without blank, empty lines stay empty, but first indents even an
		// empty first line.
		if i == 0 && a.truthy(1) || i > 0 && (line != "" || a.truthy(2)) {
			b.add(st, pad)
		}
		b.add(st, st.like(v, line))
	}
	return b.text(isSafe(v))
}

func filterCenter(st *state, v value, a *args) value {
	v = st.textOf(v)
	return st.like(v, st.pad(self(v), a.int(0, 80), " ", center))
}

func filterTruncate(st *state, v value, a *args) value {
	s, ok := text(v)
	if !ok {
		panic(a.errorf("expected a string, got %s", typeName(v)))
	}
	length, end, leeway := a.int(0, 255), a.text(2, "..."), a.int(3, 5)
	st.step(len(s) >> 6)
	keep := length - utf8.RuneCountInString(end)
	if keep < 0 || leeway < 0 {
		panic(a.errorf("length %d is shorter than the end mark, or leeway %d is negative", length, leeway))
	}
	if utf8.RuneCountInString(s) <= length+leeway {
		return v
	}
	s = runeSlice(s, 0, keep)
	if !a.truthy(1) {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	st.alloc(len(s) + len(end))
	return st.like(v, s+end)
}

func filterWordCount(st *state, v value, _ *args) value {
	s := st.str(v)
	st.allocEach(len(s), 8)
	return len(strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}))
}

func filterURLEncode(st *state, v value, a *args) value {
	if _, ok := sequence(v); ok || typeName(v) == "dict" {
		panic(a.errorf("expected a string, got %s", typeName(v)))
	}
	v = st.textOf(v)
	s := self(v)
	st.allocEach(len(s), 3)
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex(rune(c), 2)))
		}
	}
	out := b.String()
	return newText(out, spansOf(st.like(v, out)), false)
}

func filterDefault(_ *state, v value, a *args) value {
	if isUndefined(v) || a.truthy(1) && !truthy(v) {
		return a.get(0, "")
	}
	return v
}
