package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxField bounds the width and precision of one formatted field.
const maxField = 1 << 16

// spec is how one value is formatted: the common part of Python's % fields
// and format specifications.
type spec struct {
	fill        string
	align       byte // '<' '>' '^' '=' or 0
	sign        byte // '+' ' ' or 0
	alt, comma  bool
	width, prec int // prec < 0: none
	verb        byte
}

// percent is tmpl % vals.
func (st *state) percent(tmpl, vals value, safe bool) value {
	s, pos, next := self(tmpl), []value{vals}, 0
	named, isDict := vals.(*dict)
	_, isList := vals.(*list)
	if t, ok := vals.(*tuple); ok {
		pos = t.items
	}
	var b weaver
	for {
		before, rest, found := strings.Cut(s, "%")
		st.alloc(len(before))
		b.add(st, st.like(tmpl, before))
		if !found {
			break
		}
		if strings.HasPrefix(rest, "%") {
			b.WriteByte('%')
			s = rest[1:]
			continue
		}
		var v value
		if strings.HasPrefix(rest, "(") && isDict {
			key, after, ok := strings.Cut(rest[1:], ")")
			if !ok {
				panic(st.errorf("incomplete format key"))
			}
			if v, ok = named.get(key); !ok {
				panic(st.errorf("format key '%s' is missing", key))
			}
			rest, next = after, len(pos)
		} else if next < len(pos) {
			v = pos[next]
			next++
		} else {
			panic(st.errorf("not enough arguments for format string"))
		}
		sp, n := st.parsePercent(rest)
		s = rest[n:]
		b.add(st, st.formatted(v, st.format(v, sp, true)))
	}
	if next < len(pos) && !isDict && !isList { // Python lets both be unused
		panic(st.errorf("not all arguments converted during string formatting"))
	}
	return b.text(safe)
}

// formatted is s, to which v was formatted: given if there is given text in v.
func (st *state) formatted(v value, s string) value {
	st.alloc(len(s))
	if st.hasGiven(v) {
		return allGiven(s, false)
	}
	return s
}

// parsePercent reads what follows a % and its key, and returns its length.
func (st *state) parsePercent(s string) (spec, int) {
	sp := spec{fill: " ", align: '>', prec: -1}
	i := 0
	for ; i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0; i++ {
		switch s[i] {
		case '-':
			sp.align, sp.fill = '<', " "
		case '+':
			sp.sign = '+'
		case ' ':
			if sp.sign == 0 {
				sp.sign = ' '
			}
		case '#':
			sp.alt = true
		case '0':
			if sp.align != '<' {
				sp.align, sp.fill = '=', "0"
			}
		}
	}
	sp.width, i = st.digits(s, i)
	if i < len(s) && s[i] == '.' {
		sp.prec, i = st.digits(s, i+1)
	}
	if i >= len(s) || strings.IndexByte("sradiufFeEgGxXoc", s[i]) < 0 {
		panic(st.errorf("unsupported or incomplete format in '%%%s'", s[:min(len(s), i+1)]))
	}
	sp.verb = s[i]
	if strings.IndexByte("srac", sp.verb) >= 0 && sp.align == '=' {
		sp.align, sp.fill = '>', " "
	}
	return sp, i + 1
}

// digits reads a width or precision at s[i:].
func (st *state) digits(s string, i int) (n, next int) {
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if n = n*10 + int(s[i]-'0'); n > maxField {
			panic(st.errorf("format width or precision above %d", maxField))
		}
	}
	return n, i
}

// parseSpec reads a format specification: [[fill]align][sign][#][0][width][,][.prec][type].
func (st *state) parseSpec(s string) spec {
	sp := spec{fill: " ", prec: -1}
	i := 0
	if _, n := utf8.DecodeRuneInString(s); len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		sp.fill, sp.align, i = s[:n], s[n], n+1
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.align, i = s[0], 1
	}
	accept := func(set string) byte {
		if i < len(s) && strings.IndexByte(set, s[i]) >= 0 {
			i++
			return s[i-1]
		}
		return 0
	}
	if c := accept("+- "); c != '-' {
		sp.sign = c
	}
	sp.alt = accept("#") != 0
	if accept("0") != 0 && sp.align == 0 {
		sp.fill, sp.align = "0", '='
	}
	sp.width, i = st.digits(s, i)
	sp.comma = accept(",") != 0
	if accept(".") != 0 {
		sp.prec, i = st.digits(s, i)
	}
	sp.verb = accept("sdfFeEgGxXobcn%")
	if i != len(s) {
		panic(st.errorf("unsupported format specification '%s'", s))
	}
	return sp
}

// format formats v; percent says that the rules of % apply, where d takes a
// float and s takes anything.
func (st *state) format(v value, sp spec, percent bool) string {
	_, isNum := number(v)
	_, isBool := v.(bool)
	if sp.verb == 'n' && isNum { // as d or g, in the C locale
		sp.verb = 'g'
		if _, isInt := integer(v); isInt {
			sp.verb = 'd'
		}
	}
	switch {
	case sp.verb == 'c':
		n, ok := integer(v)
		if s, isText := text(v); isText && percent && utf8.RuneCountInString(s) == 1 {
			return st.fieldOf(s, sp)
		}
		if !ok || n < 0 || n > utf8.MaxRune {
			panic(st.errorf("%%c requires a character"))
		}
		return st.fieldOf(string(rune(n)), sp)
	case sp.verb == 0 && (!isNum || isBool && sp == (spec{fill: " ", prec: -1})) || sp.verb == 's' || sp.verb == 'r' || sp.verb == 'a':
		return st.formatText(v, sp, percent)
	}
	num := st.formatNumber(v, sp, percent)
	if sp.comma {
		num = thousands(num)
	}
	if sp.sign != 0 && !strings.HasPrefix(num, "-") {
		num = string(sp.sign) + num
	}
	if sp.align == 0 {
		sp.align = '>'
	}
	return st.fieldOf(num, sp)
}

func (st *state) formatText(v value, sp spec, percent bool) string {
	if _, ok := text(v); !ok && !percent && (sp.verb == 's' || sp != spec{fill: " ", prec: -1}) {
		panic(st.errorf("unsupported format for object of type '%s'", typeName(v)))
	}
	s := st.str(v)
	if sp.verb == 'r' || sp.verb == 'a' {
		s = st.repr(v)
	}
	if !percent && sp.align == '=' {
		if sp.fill != "0" {
			panic(st.errorf("'=' alignment not allowed in string format specifier"))
		}
		sp.align = '<' // of {:05}
	}
	if sp.prec >= 0 && utf8.RuneCountInString(s) > sp.prec {
		s = runeSlice(s, 0, sp.prec)
	}
	if sp.align == 0 {
		sp.align = '<'
	}
	return st.fieldOf(s, sp)
}

func (st *state) formatNumber(v value, sp spec, percent bool) string {
	n, isInt := integer(v)
	f, isNum := number(v)
	if !isNum {
		panic(st.errorf("format '%c' requires a number, not %s", sp.verb, typeName(v)))
	}
	if isInt && !percent && sp.prec >= 0 && strings.IndexByte("\x00dxXob", sp.verb) >= 0 {
		panic(st.errorf("precision not allowed in integer format specifier"))
	}
	prec := sp.prec
	if prec < 0 {
		prec = 6
	}
	switch sp.verb {
	case 0:
		if isInt {
			return strconv.Itoa(n)
		}
		if sp.prec < 0 {
			return pyFloat(f)
		}
		// As g, but with a point, and with an exponent one digit earlier.
		s := formatFloat(f, 'g', prec)
		if e := strconv.FormatFloat(f, 'e', max(prec, 1)-1, 64); !math.IsInf(f, 0) && !math.IsNaN(f) && strings.HasSuffix(e, expOf(max(prec, 1)-1)) {
			mant, exp, _ := strings.Cut(e, "e")
			return trimZeros(mant) + "e" + exp
		}
		if !strings.ContainsAny(s, ".en") {
			s += ".0"
		}
		return s
	case '%':
		return formatFloat(f*100, 'f', prec) + "%"
	case 'f', 'F', 'e', 'E', 'g', 'G':
		s := formatFloat(f, lowerASCII(sp.verb), prec)
		if sp.verb < 'a' {
			s = strings.ToUpper(s)
		}
		return s
	}
	if !isInt {
		if !percent || sp.verb == 'x' || sp.verb == 'X' || sp.verb == 'o' || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
			panic(st.errorf("format '%c' requires an integer, not float", sp.verb))
		}
		n = int(f)
	}
	base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'b': 2}[sp.verb]
	if base == 0 {
		base = 10
	}
	s := strconv.FormatInt(int64(n), base)
	if sp.alt && base != 10 {
		digits, negative := strings.CutPrefix(s, "-")
		s = "0" + string(lowerASCII(sp.verb)) + digits
		if negative {
			s = "-" + s
		}
	}
	if sp.verb == 'X' {
		s = strings.ToUpper(s)
	}
	return s
}

// expOf spells a positive exponent.
func expOf(n int) string {
	if n < 10 {
		return "e+0" + strconv.Itoa(n)
	}
	return "e+" + strconv.Itoa(n)
}

// trimZeros drops the zeros at the end of a fraction.
func trimZeros(s string) string {
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// formatFloat is C's formatting of f with verb f, e or g.
func formatFloat(f float64, verb byte, prec int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return pyFloat(f)
	}
	if verb != 'g' {
		return strconv.FormatFloat(f, verb, prec, 64)
	}
	prec = max(prec, 1)
	// Go's 'g' switches to an exponent from 1e21, C's from 10^prec.
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	mant, tail, _ := strings.Cut(e, "e")
	exp, _ := strconv.Atoi(tail)
	if exp >= -4 && exp < prec {
		return trimZeros(strconv.FormatFloat(f, 'f', prec-1-exp, 64))
	}
	return trimZeros(mant) + "e" + tail
}

// thousands puts commas between groups of three digits before the point.
func thousands(s string) string {
	s, negative := strings.CutPrefix(s, "-")
	end := strings.IndexAny(s, ".e%")
	if end < 0 {
		end = len(s)
	}
	for i := end - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if negative {
		s = "-" + s
	}
	return s
}

// fieldOf pads s to the width of sp.
func (st *state) fieldOf(s string, sp spec) string {
	n := sp.width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s
	}
	st.alloc(n*len(sp.fill) + len(s))
	pad := strings.Repeat(sp.fill, n)
	switch sp.align {
	case '<':
		return s + pad
	case '^':
		left := n / 2 * len(sp.fill)
		return pad[:left] + s + pad[left:]
	case '=':
		i := 0
		if strings.IndexAny(s, "-+ ") == 0 {
			i = 1
		}
		if len(s) > i+1 && s[i] == '0' && strings.IndexByte("xXbo", s[i+1]) >= 0 { // 0x of an alternate form
			i += 2
		}
		return s[:i] + pad + s[i:]
	}
	return pad + s
}

func filterFormat(st *state, v value, a *args) value {
	switch {
	case len(a.kw) == 0:
		return st.percent(st.textOf(v), newTuple(a.vals...), false)
	case len(a.vals) > 0:
		panic(a.errorf("positional and keyword arguments at the same time"))
	}
	return st.percent(st.textOf(v), keywordDict(a.kw), false)
}

// strFormat is str.format.
func strFormat(st *state, v value, a *args) value {
	s := self(v)
	st.alloc(len(s))
	var b weaver
	next := 0
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		b.add(st, st.like(v, s[:i]))
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		field, rest, ok := strings.Cut(s[i+1:], "}")
		if s[i] == '}' || !ok {
			panic(a.errorf("single '%c' encountered in format string", s[i]))
		}
		s = rest
		out := a.formatField(field, &next)
		if isSafe(v) {
			out = st.escaped(out)
		}
		b.add(st, out)
	}
	b.add(st, st.like(v, s))
	return b.text(isSafe(v))
}

// formatField formats one {name!conversion:spec}; next counts automatic
// positions.
func (a *args) formatField(field string, next *int) value {
	name, specText, _ := strings.Cut(field, ":")
	name, conv, hasConv := strings.Cut(name, "!")
	if strings.Contains(specText, "{") {
		panic(a.errorf("nested fields are not supported"))
	}
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v := a.field(name[:end], next)
	for rest := name[end:]; rest != ""; {
		var key string
		switch rest[0] {
		case '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			key, rest = rest[1:end+1], rest[end+1:]
		default:
			var ok bool
			if key, rest, ok = strings.Cut(rest[1:], "]"); !ok {
				panic(a.errorf("missing ']' in field '%s'", field))
			}
		}
		if n, err := strconv.Atoi(key); err == nil {
			v = a.st.getItem(v, n)
		} else {
			v = a.st.getItem(v, key)
		}
	}
	switch {
	case conv == "s" || conv == "" && hasConv:
		v = a.st.textOf(v)
	case conv == "r" || conv == "a":
		v = a.st.formatted(v, a.st.repr(v))
	case hasConv:
		panic(a.errorf("unknown conversion '!%s'", conv))
	}
	return a.st.formatted(v, a.st.format(v, a.st.parseSpec(specText), false))
}

// field returns the argument that a field of str.format starts with.
func (a *args) field(name string, next *int) value {
	n, err := strconv.Atoi(name)
	if name == "" {
		n, err = *next, nil
		*next++
	}
	if err == nil && n >= 0 && n < len(a.vals) {
		return a.vals[n]
	}
	for _, k := range a.kw {
		if err != nil && k.name == name {
			return k.val
		}
	}
	panic(a.errorf("no argument for field '%s'", name))
}
