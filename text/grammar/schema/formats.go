package schema

import (
	"math/big"
	"strings"
	"sync"

	"ridge/text/grammar"
)

// Formats of strings, as regular expressions over the whole string. They are
// chosen to be parts of what the specifications of the formats allow: nothing
// unusual is written, everything written is valid.
var formatExprs = func() map[string]string {
	const (
		leapYear = `([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)`
		date     = `([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|` + leapYear + `-02-29)`
		clock    = `([01][0-9]|2[0-3]):[0-5][0-9]`
		time     = clock + `:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]` + clock + `)`
		n        = `[0-9]{1,9}`
		days     = `(` + n + `Y(` + n + `M(` + n + `D)?)?|` + n + `M(` + n + `D)?|` + n + `D)`
		times    = `T(` + n + `H(` + n + `M(` + n + `S)?)?|` + n + `M(` + n + `S)?|` + n + `S)`
		label    = `[A-Za-z0-9]([A-Za-z0-9]|-[A-Za-z0-9]){0,20}`
		host     = label + `(\.` + label + `){0,3}`
		atom     = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
		email    = `(?=[^@]{1,64}@)` + atom + `(\.` + atom + `)*@` + host
		octet    = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
		ipv4     = octet + `(\.` + octet + `){3}`
		h        = `[0-9A-Fa-f]{1,4}`
		hex      = `[0-9A-Fa-f]`
		uchar    = `([A-Za-z0-9._~!$&'()*+,;=:@-]|%` + hex + hex + `)`
		path     = `(/` + uchar + `*)*`
		query    = `(\?(` + uchar + `|[/?])*)?(#(` + uchar + `|[/?])*)?`
		user     = `([A-Za-z0-9._~-]+(:[A-Za-z0-9._~!$&*+;=-]*)?@)?`
		scheme   = `[A-Za-z][A-Za-z0-9+.-]{0,30}:`
		uri      = scheme + `(//` + user + host + `(:[0-9]{1,4})?` + path + `|[A-Za-z0-9]` + uchar + `*` + path + `)` + query
		// Of IRIs, characters beyond ASCII are in paths and queries only.
		ichar  = `([A-Za-z0-9._~!$&'()*+,;=:@\x{a0}-\x{d7ff}\x{f900}-\x{fdcf}\x{fdf0}-\x{ffef}-]|%` + hex + hex + `)`
		ipath  = `(/` + ichar + `*)*`
		iquery = `(\?(` + ichar + `|[/?])*)?(#(` + ichar + `|[/?])*)?`
		iri    = scheme + `//` + user + host + `(:[0-9]{1,4})?` + ipath + iquery
		base64 = `([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?`
		// Regular expressions of what all dialects have, with groups that are not
		// in each other.
		special = `\\[dDwWsS.\\()\[\]{}*+?|^$/nrt-]`
		literal = `[^\x00-\x1f\\()\[\]{}*+?|^$]`
		class   = `\[\^?(a-z|A-Z|0-9|a-f|A-F|[A-Za-z0-9_ .,:;@#%=!/'"<>]|` + special + `)+\]`
		often   = `([*+?]\??|\{[0-9]{1,3},?\})?`
		piece   = `(` + literal + `|` + special + `|` + class + `)` + often
		regex   = `\^?(` + piece + `|\((\?:)?(` + piece + `)*(\|(` + piece + `)*)*\)` + often + `|\|)*\$?`
	)
	ipv6 := []string{`(` + h + `:){7}` + h, `(` + h + `:){1,7}:`, `:(:` + h + `){1,7}`, `::`}
	for i := 1; i <= 6; i++ { // i groups before the gap, at most 7-i after it
		ipv6 = append(ipv6, `(`+h+`:){`+string(rune('0'+i))+`}(:`+h+`){1,`+string(rune('0'+7-i))+`}`)
	}
	return map[string]string{
		"date":                  date,
		"time":                  time,
		"date-time":             date + `T` + time,
		"duration":              `P(` + n + `W|` + days + `(` + times + `)?|` + times + `)`,
		"email":                 email,
		"hostname":              host,
		"ipv4":                  ipv4,
		"ipv6":                  strings.Join(ipv6, "|"),
		"uuid":                  hex + `{8}-` + hex + `{4}-` + hex + `{4}-` + hex + `{4}-` + hex + `{12}`,
		"uri":                   uri,
		"uri-reference":         uri + `|(/` + uchar + `+)+` + query,
		"json-pointer":          `(/([^~/]|~[01])*)*`,
		"relative-json-pointer": `(0|[1-9][0-9]{0,8})(#|(/([^~/]|~[01])*)*)`,
		"byte":                  base64,
		"base64":                base64,
		"base64url":             `([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2}(==)?|[A-Za-z0-9_-]{3}=?)?`,
		"regex":                 regex,
		"iri":                   iri,
		"iri-reference":         iri + `|(/` + ichar + `+)+` + iquery,
		"idn-email":             email,
		"idn-hostname":          host,
		"uri-template":          uri,
		// Of pydantic.
		"multi-host-uri": uri,
		"ipv4network":    ipv4 + `/32`,
		"ipv4interface":  ipv4 + `(/([0-9]|[12][0-9]|3[0-2]))?`,
		"ipv6network":    `(` + strings.Join(ipv6, "|") + `)/128`,
		"ipv6interface":  `(` + strings.Join(ipv6, "|") + `)(/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))?`,
		"ipvanyaddress":  ipv4,
	}
}()

// plainFormats say nothing that restricts a text.
var plainFormats = map[string]bool{"binary": true, "password": true, "float": true, "double": true}

// numberFormats are ranges of integers.
var numberFormats = func() map[string]*[2]*big.Rat {
	power := func(n uint, minus int64) *big.Rat {
		x := new(big.Int).Lsh(big.NewInt(1), n)
		return new(big.Rat).SetInt(x.Sub(x, big.NewInt(minus)))
	}
	signed := func(bits uint) *[2]*big.Rat {
		lo := power(bits-1, 0)
		return &[2]*big.Rat{lo.Neg(lo), power(bits-1, 1)}
	}
	unsigned := func(bits uint) *[2]*big.Rat { return &[2]*big.Rat{new(big.Rat), power(bits, 1)} }
	return map[string]*[2]*big.Rat{
		"int8": signed(8), "int16": signed(16), "int32": signed(32), "int64": signed(64),
		"uint8": unsigned(8), "uint16": unsigned(16), "uint32": unsigned(32), "uint64": unsigned(64),
	}
}()

// fixed holds the automata of this package's own expressions, by expression.
var fixed sync.Map

// fixedDFA returns the automaton of an expression of this package.
func fixedDFA(expr string) *grammar.RuneDFA {
	if d, ok := fixed.Load(expr); ok {
		return d.(*grammar.RuneDFA)
	}
	b := &grammar.Builder{Source: "regex"}
	d := b.Pattern("", "", expr, false)
	if b.Err() != nil {
		panic(b.Err()) // a mistake in this package
	}
	got, _ := fixed.LoadOrStore(expr, d)
	return got.(*grammar.RuneDFA)
}

// formatDFA returns the automaton of a format of strings, nil if there is none.
func formatDFA(name string) *grammar.RuneDFA {
	if expr, ok := formatExprs[name]; ok {
		return fixedDFA(expr)
	}
	if v := strings.TrimPrefix(name, "uuid"); len(v) == 1 && v >= "1" && v <= "8" {
		const hex = `[0-9A-Fa-f]`
		return fixedDFA(hex + `{8}-` + hex + `{4}-` + v + hex + `{3}-[89ABab]` + hex + `{3}-` + hex + `{12}`)
	}
	return nil
}
