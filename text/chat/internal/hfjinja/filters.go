package hfjinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
)

// filters are jinja2's filters, with tojson as Hugging Face defines it, and
// fromjson, which other engines have. Not provided: random, urlize, wordwrap,
// xmlattr, filesizeformat, pprint, striptags, which no prompt needs.
var filters map[string]fn

func init() {
	filters = map[string]fn{
		"abs": {"", filterAbs}, "round": {"precision method", filterRound},
		"int": {"default base", filterInt}, "float": {"default", filterFloat},
		"string": {"", filterString}, "safe": {"", filterSafe},
		"escape": {"", filterEscape}, "e": {"", filterEscape}, "forceescape": {"", filterForceEscape},
		"upper": textFn(upper), "lower": textFn(strings.ToLower),
		"capitalize": textFn(capitalize), "title": textFn(titleFilter),
		"trim":    {"chars", stripFn(strings.TrimFunc)},
		"replace": {"!old !new count", filterReplace}, "indent": {"width first blank", filterIndent},
		"center": {"width", filterCenter}, "truncate": {"length killwords end leeway", filterTruncate},
		"wordcount": {"", filterWordCount}, "format": {"*", filterFormat}, "urlencode": {"", filterURLEncode},
		"default": {"default_value boolean", filterDefault}, "d": {"default_value boolean", filterDefault},
		"tojson":   {"ensure_ascii indent separators sort_keys", filterToJSON},
		"fromjson": {"", filterFromJSON}, "from_json": {"", filterFromJSON},

		"length": {"", filterLength}, "count": {"", filterLength},
		"first": {"", filterFirst}, "last": {"", filterLast}, "list": {"", filterList},
		"reverse": {"", filterReverse}, "join": {"d attribute", filterJoin},
		"items": {"", filterItems}, "dictsort": {"case_sensitive by reverse", filterDictSort},
		"sort":   {"reverse case_sensitive attribute", filterSort},
		"unique": {"case_sensitive attribute", filterUnique},
		"min":    {"case_sensitive attribute", filterMinMax(-1)}, "max": {"case_sensitive attribute", filterMinMax(1)},
		"sum":     {"attribute start", filterSum},
		"groupby": {"!attribute default case_sensitive", filterGroupBy},
		"batch":   {"!linecount fill_with", filterBatch}, "slice": {"!slices fill_with", filterSlice},
		"map": {"*", filterMap}, "attr": {"!name", filterAttr},
		"select": {"*", filterSelect(false, true)}, "reject": {"*", filterSelect(false, false)},
		"selectattr": {"*", filterSelect(true, true)}, "rejectattr": {"*", filterSelect(true, false)},
	}
}

func filterAbs(st *state, v value, _ args) (value, error) {
	if n, ok := integer(v); ok && n != math.MinInt64 {
		return jinja.NewInt(max(n, -n)), nil
	}
	if v.IsFloat() {
		return jinja.NewFloat(math.Abs(v.AsFloat())), nil
	}
	return value{}, st.errorf("bad operand type for abs(): '%s'", st.typeName(v))
}

func filterRound(st *state, v value, a args) (value, error) {
	precision, err := a.int(0, 0)
	if err != nil {
		return value{}, err
	}
	method, err := a.text(1, "common")
	if err != nil {
		return value{}, err
	}
	f, ok := number(v)
	if !ok || precision < -400 || precision > 400 {
		return value{}, st.errorf("round: expected a number and a precision in [-400, 400]")
	}
	scale := math.Pow(10, float64(precision))
	switch method {
	case "common":
		if n, ok := integer(v); ok && precision >= 0 {
			return jinja.NewInt(n), nil // Python rounds an int to an int
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return jinja.NewFloat(f), nil
		}
		if precision < 0 {
			return jinja.NewFloat(math.RoundToEven(f*scale) / scale), nil
		}
		// Correctly rounded decimal, half to even, as Python's round.
		r, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
		return jinja.NewFloat(r), nil
	case "ceil":
		return jinja.NewFloat(math.Ceil(f*scale) / scale), nil
	case "floor":
		return jinja.NewFloat(math.Floor(f*scale) / scale), nil
	}
	return value{}, st.errorf("round: method must be common, ceil or floor, got '%s'", method)
}

// parsePyInt reads what Python's int(s, base) accepts.
func parsePyInt(s string, base int) (int64, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isPySpace))
	sign := ""
	if s != "" && (s[0] == '+' || s[0] == '-') {
		sign, s = s[:1], s[1:]
	}
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix != "" {
		s = strings.TrimPrefix(s, prefix)
	}
	if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") || strings.HasPrefix(s, "_") ||
		strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	n, err := strconv.ParseInt(sign+strings.ReplaceAll(s, "_", ""), base, 64)
	return n, err == nil
}

func filterInt(st *state, v value, a args) (value, error) {
	base, err := a.int(1, 10)
	if err != nil {
		return value{}, err
	}
	if base < 2 || base > 36 {
		return value{}, st.errorf("int: base must be in [2, 36], got %d", base)
	}
	if v.IsUndefined() {
		return value{}, st.undefined("")
	}
	def := a.get(0, jinja.NewInt(0))
	if n, ok := integer(v); ok {
		return jinja.NewInt(n), nil
	}
	if _, ok := st.object(v).(*bigInt); ok {
		return v, nil
	}
	f := math.NaN()
	if s, ok := st.text(v); ok {
		if n, ok := parsePyInt(s, base); ok {
			return jinja.NewInt(n), nil
		}
		f, ok = parsePyFloat(s)
		if !ok {
			return def, nil
		}
	} else if v.IsFloat() {
		f = v.AsFloat()
	}
	if math.IsNaN(f) || math.Abs(f) >= 1<<63 {
		return def, nil
	}
	return jinja.NewInt(int64(f)), nil
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

func filterFloat(st *state, v value, a args) (value, error) {
	if v.IsUndefined() {
		return value{}, st.undefined("")
	}
	if f, ok := number(v); ok {
		return jinja.NewFloat(f), nil
	}
	if s, ok := st.text(v); ok {
		if f, ok := parsePyFloat(s); ok {
			return jinja.NewFloat(f), nil
		}
	}
	if b, ok := st.object(v).(*bigInt); ok {
		f, _ := new(big.Float).SetInt(b.n).Float64()
		return jinja.NewFloat(f), nil
	}
	return a.get(0, jinja.NewFloat(0)), nil
}

func filterString(st *state, v value, _ args) (value, error) {
	if _, ok := st.text(v); ok {
		return v, nil
	}
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	return st.str(s)
}

func filterSafe(st *state, v value, _ args) (value, error) {
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	return st.markup(s), nil
}

func filterEscape(st *state, v value, a args) (value, error) {
	if _, ok := st.object(v).(*markup); ok {
		return v, nil
	}
	return filterForceEscape(st, v, a)
}

func filterForceEscape(st *state, v value, _ args) (value, error) {
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	if err := st.alloc(5 * len(s)); err != nil {
		return value{}, err
	}
	return st.markup(escapeHTML(s)), nil
}

// titleFilter capitalizes words; unlike str.title, only white space, hyphens
// and opening brackets start one.
func titleFilter(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		was := start
		start = isPySpace(r) || strings.ContainsRune("-({[<", r)
		if was && !start {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func filterReplace(st *state, v value, a args) (value, error) {
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	old, err := st.print(a.vals[0])
	if err != nil {
		return value{}, err
	}
	repl, err := st.print(a.vals[1])
	if err != nil {
		return value{}, err
	}
	limit, err := a.int(2, -1)
	if err != nil {
		return value{}, err
	}
	out, err := st.replace(s, old, repl, limit)
	return jinja.NewString(out), err
}

func filterIndent(st *state, v value, a args) (value, error) {
	s, ok := st.text(v)
	if !ok {
		return value{}, st.errorf("filter 'indent': expected a string, got %s", st.typeName(v))
	}
	pad, ok := "", false
	if a.has(0) {
		pad, ok = st.text(a.vals[0])
	}
	if !ok {
		n, err := a.int(0, 4)
		if err != nil {
			return value{}, err
		}
		if n > 1<<20 {
			return value{}, st.errorf("filter 'indent': width %d is too large", n)
		}
		pad = strings.Repeat(" ", max(n, 0))
	}
	lines := splitLines(s+"\n", false)
	if len(pad) > 0 && len(lines) > st.bytes/len(pad) {
		return value{}, st.alloc(st.bytes + 1)
	}
	if err := st.alloc(len(s) + len(lines)*(len(pad)+itemBytes)); err != nil {
		return value{}, err
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		// Without blank, empty lines stay empty, but first indents even an
		// empty first line.
		if i == 0 && a.truthy(1) || i > 0 && (line != "" || a.truthy(2)) {
			b.WriteString(pad)
		}
		b.WriteString(line)
	}
	return st.likeNoAlloc(v, b.String()), nil
}

func filterCenter(st *state, v value, a args) (value, error) {
	width, err := a.int(0, 80)
	if err != nil {
		return value{}, err
	}
	return st.pad(v, width, " ", 0.5)
}

func filterTruncate(st *state, v value, a args) (value, error) {
	s, ok := st.text(v)
	if !ok {
		return value{}, st.errorf("filter 'truncate': expected a string, got %s", st.typeName(v))
	}
	length, err := a.int(0, 255)
	if err != nil {
		return value{}, err
	}
	end, err := a.text(2, "...")
	if err != nil {
		return value{}, err
	}
	leeway, err := a.int(3, 5)
	if err != nil {
		return value{}, err
	}
	keep := length - utf8.RuneCountInString(end)
	if keep < 0 || leeway < 0 {
		return value{}, st.errorf("filter 'truncate': length %d is shorter than the end mark, or leeway %d is negative", length, leeway)
	}
	if utf8.RuneCountInString(s) <= length+leeway {
		return v, nil
	}
	s = runeSlice(s, 0, keep)
	if !a.truthy(1) {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	return st.like(v, s+end)
}

func filterWordCount(st *state, v value, _ args) (value, error) {
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	n := len(strings.FieldsFunc(s, func(r rune) bool {
		return r != '_' && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}))
	return jinja.NewInt(int64(n)), st.alloc(n * 16)
}

func filterURLEncode(st *state, v value, _ args) (value, error) {
	if _, ok := st.sequence(v); ok || v.IsDict() {
		return value{}, st.errorf("filter 'urlencode': expected a string, got %s", st.typeName(v))
	}
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	if err := st.alloc(3 * len(s)); err != nil {
		return value{}, err
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_.-~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex(rune(c), 2)))
		}
	}
	return jinja.NewString(b.String()), nil
}

func filterDefault(_ *state, v value, a args) (value, error) {
	if v.IsUndefined() || a.truthy(1) && !v.IsTruthy() {
		return a.get(0, jinja.NewString("")), nil
	}
	return v, nil
}
