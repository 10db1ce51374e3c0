package hfjinja

import (
	"math"
	"strconv"
	"strings"

	"github.com/ardanlabs/jinja"
)

// The library's dicts have string keys. Other keys are spelled with a leading
// NUL and a letter for their type; a string that starts with a NUL gets one
// more, and an 's'.

// dictKey returns the library's key for v.
func (st *state) dictKey(v value) (string, error) {
	if s, ok := st.text(v); ok {
		return stringKey(s), nil
	}
	if n, ok := integer(v); ok {
		return "\x00i" + strconv.FormatInt(n, 10), nil
	}
	switch {
	case v.IsFloat():
		f := v.AsFloat()
		if f == math.Trunc(f) && math.Abs(f) < 1<<62 { // 1.0 and 1 are one key
			return "\x00i" + strconv.FormatInt(int64(f), 10), nil
		}
		return "\x00f" + pyFloat(f), nil
	case v.IsNone():
		return "\x00n", nil
	}
	return "", st.errorf("a dict key must be a string, a number or none, got %s", st.typeName(v))
}

func stringKey(s string) string {
	if strings.HasPrefix(s, "\x00") {
		return "\x00s" + s
	}
	return s
}

// keyValue is the value that dictKey made the key of.
func keyValue(k string) value {
	if len(k) < 2 || k[0] != 0 {
		return jinja.NewString(k)
	}
	switch k[1] {
	case 'i':
		n, _ := strconv.ParseInt(k[2:], 10, 64)
		return jinja.NewInt(n)
	case 'f':
		f, _ := strconv.ParseFloat(k[2:], 64)
		return jinja.NewFloat(f)
	case 'n':
		return jinja.None()
	}
	return jinja.NewString(k[2:])
}

// keyJSON is how a key is spelled in JSON.
func keyJSON(k string) string {
	switch v := keyValue(k); {
	case v.IsInt():
		return strconv.FormatInt(v.AsInt(), 10)
	case v.IsFloat():
		return jsonFloat(v.AsFloat())
	case v.IsNone():
		return "null"
	default:
		return v.AsString()
	}
}
