package hfjinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ardanlabs/jinja"
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

// percent is "template % values".
func (st *state) percent(tmpl, vals value) (value, error) {
	s, _ := st.text(tmpl)
	args := []value{vals}
	named := vals.IsDict()
	mapping := named || vals.IsList() // Python lets both be unused
	if t, ok := st.object(vals).(*tuple); ok {
		args = t.items
	}
	var b strings.Builder
	next := 0
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i+1:]
		if strings.HasPrefix(s, "%") {
			b.WriteByte('%')
			s = s[1:]
			continue
		}
		var v value
		if strings.HasPrefix(s, "(") && named {
			j := strings.IndexByte(s, ')')
			if j < 0 {
				return value{}, st.errorf("incomplete format key")
			}
			var ok bool
			if v, ok = vals.AsDict().Get(stringKey(s[1:j])); !ok {
				return value{}, st.errorf("format key '%s' is missing", s[1:j])
			}
			s, next = s[j+1:], len(args)
		} else if next < len(args) {
			v = args[next]
			next++
		} else {
			return value{}, st.errorf("not enough arguments for format string")
		}
		sp, n, err := st.parsePercent(s)
		if err != nil {
			return value{}, err
		}
		s = s[n:]
		out, err := st.format(v, sp, true)
		if err != nil {
			return value{}, err
		}
		if err := st.alloc(len(out)); err != nil {
			return value{}, err
		}
		b.WriteString(out)
	}
	b.WriteString(s)
	if next < len(args) && !mapping {
		return value{}, st.errorf("not all arguments converted during string formatting")
	}
	return st.like(tmpl, b.String())
}

// parsePercent reads what follows a % and its key.
func (st *state) parsePercent(s string) (spec, int, error) {
	sp := spec{fill: " ", align: '>', prec: -1}
	i := 0
	for ; i < len(s) && strings.IndexByte("-+ #0", s[i]) >= 0; i++ {
		switch s[i] {
		case '-':
			sp.align, sp.fill = '<', " "
		case '+', ' ':
			sp.sign = s[i]
		case '#':
			sp.alt = true
		case '0':
			if sp.align != '<' {
				sp.align, sp.fill = '=', "0"
			}
		}
	}
	var err error
	if sp.width, i, err = st.digits(s, i); err != nil {
		return sp, 0, err
	}
	if i < len(s) && s[i] == '.' {
		if sp.prec, i, err = st.digits(s, i+1); err != nil {
			return sp, 0, err
		}
	}
	if i >= len(s) || strings.IndexByte("sradiufFeEgGxXoc", s[i]) < 0 {
		return sp, 0, st.errorf("unsupported or incomplete format in '%%%s'", s[:min(len(s), i+1)])
	}
	sp.verb = s[i]
	if (sp.verb == 's' || sp.verb == 'r' || sp.verb == 'a' || sp.verb == 'c') && sp.align == '=' {
		sp.align, sp.fill = '>', " "
	}
	return sp, i + 1, nil
}

// digits reads a width or precision at s[i:].
func (st *state) digits(s string, i int) (n, next int, err error) {
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if n = n*10 + int(s[i]-'0'); n > maxField {
			return 0, i, st.errorf("format width or precision above %d", maxField)
		}
	}
	return n, i, nil
}

// parseSpec reads a format specification: [[fill]align][sign][#][0][width][,][.prec][type].
func (st *state) parseSpec(s string) (spec, error) {
	sp := spec{fill: " ", prec: -1}
	whole := s
	if r, n := utf8.DecodeRuneInString(s); n > 0 && len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		sp.fill, sp.align, s = string(r), s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	i := 0
	if i < len(s) && strings.IndexByte("+- ", s[i]) >= 0 {
		if s[i] != '-' {
			sp.sign = s[i]
		}
		i++
	}
	if i < len(s) && s[i] == '#' {
		sp.alt = true
		i++
	}
	if i < len(s) && s[i] == '0' {
		if sp.align == 0 {
			sp.fill, sp.align = "0", '='
		}
		i++
	}
	var err error
	if sp.width, i, err = st.digits(s, i); err != nil {
		return sp, err
	}
	if i < len(s) && s[i] == ',' {
		sp.comma = true
		i++
	}
	if i < len(s) && s[i] == '.' {
		if sp.prec, i, err = st.digits(s, i+1); err != nil {
			return sp, err
		}
	}
	if i < len(s) && strings.IndexByte("sdfFeEgGxXobc%", s[i]) >= 0 {
		sp.verb = s[i]
		i++
	}
	if i != len(s) {
		return sp, st.errorf("unsupported format specification '%s'", whole)
	}
	return sp, nil
}

// format formats v; percent says that the rules of % apply, where d takes a
// float and s takes anything.
func (st *state) format(v value, sp spec, percent bool) (string, error) {
	num := ""
	var err error
	switch sp.verb {
	case 's', 'r', 'a', 0:
		_, isNum := number(v)
		if sp.verb == 0 && isNum && !v.IsBool() {
			if v.IsFloat() && sp.prec >= 0 {
				if num = formatFloat(v.AsFloat(), 'g', sp.prec); !strings.ContainsAny(num, ".en") {
					num += ".0"
				}
			} else if num, err = st.repr(v); err != nil {
				return "", err
			}
			break
		}
		if sp.verb == 's' && !percent {
			if _, ok := st.text(v); !ok {
				return "", st.errorf("unknown format code 's' for object of type '%s'", st.typeName(v))
			}
		}
		s, err := st.print(v)
		if sp.verb == 'r' || sp.verb == 'a' {
			s, err = st.repr(v)
		}
		if err != nil {
			return "", err
		}
		if sp.prec >= 0 && utf8.RuneCountInString(s) > sp.prec {
			s = runeSlice(s, 0, sp.prec)
		}
		if sp.align == 0 || sp.align == '=' {
			sp.align = '<'
		}
		return st.fieldOf(s, sp)
	case 'c':
		n, ok := integer(v)
		if s, isText := st.text(v); isText && percent && utf8.RuneCountInString(s) == 1 {
			return st.fieldOf(s, sp)
		}
		if !ok || n < 0 || n > utf8.MaxRune {
			return "", st.errorf("%%c requires a character")
		}
		return st.fieldOf(string(rune(n)), sp)
	default:
		if num, err = st.formatNumber(v, sp, percent); err != nil {
			return "", err
		}
	}
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

func (st *state) formatNumber(v value, sp spec, percent bool) (string, error) {
	n, isInt := integer(v)
	f, isNum := number(v)
	if !isNum {
		return "", st.errorf("format '%c' requires a number, not %s", sp.verb, st.typeName(v))
	}
	switch sp.verb {
	case 'f', 'F', 'e', 'E', 'g', 'G', '%':
		prec := sp.prec
		if prec < 0 {
			prec = 6
		}
		if sp.verb == '%' {
			return formatFloat(f*100, 'f', prec) + "%", nil
		}
		s := formatFloat(f, lowerASCII(sp.verb), prec)
		if sp.verb < 'a' {
			s = strings.ToUpper(s)
		}
		return s, nil
	}
	if !isInt {
		if !percent || sp.verb == 'x' || sp.verb == 'X' || sp.verb == 'o' || math.IsNaN(f) || math.Abs(f) >= 1<<63 {
			return "", st.errorf("format '%c' requires an integer, not float", sp.verb)
		}
		n = int64(f)
	}
	base := map[byte]int{'x': 16, 'X': 16, 'o': 8, 'b': 2}[sp.verb]
	if base == 0 {
		base = 10
	}
	s := strconv.FormatInt(n, base)
	if sp.alt && base != 10 {
		neg := strings.HasPrefix(s, "-")
		s = "0" + string(lowerASCII(sp.verb)) + strings.TrimPrefix(s, "-")
		if neg {
			s = "-" + s
		}
	}
	if sp.verb == 'X' {
		s = strings.ToUpper(s)
	}
	return s, nil
}

// formatFloat is C's formatting of f with verb f, e or g.
func formatFloat(f float64, verb byte, prec int) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return pyFloat(f)
	}
	if verb != 'g' {
		return strconv.FormatFloat(f, verb, prec, 64)
	}
	if prec == 0 {
		prec = 1
	}
	// Go's 'g' switches to an exponent from 1e21, C's from 10^prec.
	e := strconv.FormatFloat(f, 'e', prec-1, 64)
	exp, _ := strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	s := e
	if exp >= -4 && exp < prec {
		s = strconv.FormatFloat(f, 'f', prec-1-exp, 64)
	}
	mant, tail, hasExp := strings.Cut(s, "e")
	if strings.Contains(mant, ".") {
		mant = strings.TrimRight(strings.TrimRight(mant, "0"), ".")
	}
	if hasExp {
		return mant + "e" + tail
	}
	return mant
}

// thousands puts commas between groups of three digits before the point.
func thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	end := strings.IndexAny(s, ".e%")
	if end < 0 {
		end = len(s)
	}
	for i := end - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// fieldOf pads s to the width of sp.
func (st *state) fieldOf(s string, sp spec) (string, error) {
	n := sp.width - utf8.RuneCountInString(s)
	if n <= 0 {
		return s, nil
	}
	if err := st.alloc(n*len(sp.fill) + len(s)); err != nil {
		return "", err
	}
	pad := strings.Repeat(sp.fill, n)
	switch sp.align {
	case '<':
		return s + pad, nil
	case '^':
		left := n / 2 * len(sp.fill)
		return pad[:left] + s + pad[left:], nil
	case '=':
		if s != "" && (s[0] == '-' || s[0] == '+' || s[0] == ' ') {
			return s[:1] + pad + s[1:], nil
		}
	}
	return pad + s, nil
}

func filterFormat(st *state, v value, a args) (value, error) {
	s, err := st.print(v)
	if err != nil {
		return value{}, err
	}
	tmpl := jinja.NewString(s)
	if len(a.kw) == 0 {
		return st.percent(tmpl, st.tuple(a.pos...))
	}
	if len(a.pos) > 0 {
		return value{}, st.errorf("filter 'format': positional and keyword arguments at the same time")
	}
	d := jinja.NewDict()
	for _, k := range a.kw {
		d.AsDict().Set(stringKey(k.name), k.val)
	}
	return st.percent(tmpl, d)
}

// strFormat is str.format.
func strFormat(st *state, v value, a args) (value, error) {
	s := self(st, v)
	var b strings.Builder
	next := 0
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		if i+1 < len(s) && s[i+1] == s[i] {
			b.WriteByte(s[i])
			s = s[i+2:]
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 0 {
			return value{}, st.errorf("format(): single '%c' encountered in format string", s[i])
		}
		field := s[i+1 : i+end]
		s = s[i+end+1:]
		out, err := st.formatField(field, a, &next)
		if err != nil {
			return value{}, err
		}
		if err := st.alloc(len(out)); err != nil {
			return value{}, err
		}
		b.WriteString(out)
	}
	b.WriteString(s)
	return st.like(v, b.String())
}

// formatField formats one {name!conversion:spec}; next counts automatic
// positions.
func (st *state) formatField(field string, a args, next *int) (string, error) {
	name, specText, _ := strings.Cut(field, ":")
	name, conv, hasConv := strings.Cut(name, "!")
	if strings.Contains(specText, "{") {
		return "", st.errorf("format(): nested fields are not supported")
	}
	i := strings.IndexAny(name, ".[")
	if i < 0 {
		i = len(name)
	}
	first, rest := name[:i], name[i:]
	var v value
	found := false
	n, err := strconv.Atoi(first)
	switch {
	case first == "":
		n, err = *next, nil
		*next++
		fallthrough
	case err == nil:
		if found = n >= 0 && n < len(a.pos); found {
			v = a.pos[n]
		}
	default:
		for _, k := range a.kw {
			if k.name == first {
				v, found = k.val, true
			}
		}
	}
	if !found {
		return "", st.errorf("format(): no argument for field '%s'", field)
	}
	for rest != "" {
		var key string
		if rest[0] == '.' {
			j := strings.IndexAny(rest[1:], ".[")
			if j < 0 {
				j = len(rest) - 1
			}
			key, rest = rest[1:j+1], rest[j+1:]
		} else {
			j := strings.IndexByte(rest, ']')
			if j < 0 {
				return "", st.errorf("format(): missing ']' in field '%s'", field)
			}
			key, rest = rest[1:j], rest[j+1:]
		}
		k := jinja.NewString(key)
		if n, err := strconv.ParseInt(key, 10, 64); err == nil {
			k = jinja.NewInt(n)
		}
		if v, err = st.item(v, k); err != nil {
			return "", err
		}
	}
	sp, err := st.parseSpec(specText)
	if err != nil {
		return "", err
	}
	if hasConv {
		s, err := st.print(v)
		if conv == "r" || conv == "a" {
			s, err = st.repr(v)
		} else if conv != "s" {
			err = st.errorf("format(): unknown conversion '!%s'", conv)
		}
		if err != nil {
			return "", err
		}
		v = jinja.NewString(s)
	}
	return st.format(v, sp, false)
}
