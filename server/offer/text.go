package offer

import (
	"encoding/json"
	"ridge/server/wire"
	"strings"
	"unicode/utf8"
)

// Text takes the arguments of a call of a function with one text argument,
// "input", as a model writes them, and gives the text of that argument.
type Text struct {
	raw   strings.Builder // all that the model wrote
	rest  string          // of it, not yet looked at
	state int
	said  strings.Builder // the text that was given out
}

// What comes next in arguments that are as expected.
const (
	beforeObject = iota
	beforeKey
	beforeColon
	beforeText
	inText
	notStreamed // after the text, or the arguments are not as expected
)

// Add takes more of the arguments and returns the text that is known by it.
func (a *Text) Add(piece string) string {
	a.raw.WriteString(piece)
	a.rest += piece
	for a.state < inText {
		a.rest = strings.TrimLeft(a.rest, " \t\r\n")
		want := [...]string{"{", `"input"`, ":", `"`}[a.state]
		if len(a.rest) < len(want) && strings.HasPrefix(want, a.rest) {
			return ""
		}
		if !strings.HasPrefix(a.rest, want) {
			a.state = notStreamed
			break
		}
		a.rest = a.rest[len(want):]
		a.state++
	}
	if a.state == notStreamed {
		a.rest = ""
		return ""
	}
	n, closed := wholeCharacters(a.rest)
	text := ""
	if json.Unmarshal([]byte(`"`+a.rest[:n]+`"`), &text) != nil {
		a.state = notStreamed
		return ""
	}
	if a.rest = a.rest[n:]; closed {
		a.state, a.rest = notStreamed, ""
	}
	a.said.WriteString(text)
	return text
}

// End returns the whole text, and what of it was not yet given out.
func (a *Text) End() (text, rest string) {
	said := a.said.String()
	text = textOf(a.raw.String(), said)
	rest, ok := strings.CutPrefix(text, said)
	if !ok {
		return text, ""
	}
	return text, rest
}

// textOf is the text that arguments mean: that of "input", of the only argument that
// is a text, or all of them. said is what was found of arguments that were cut off.
func textOf(raw, said string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &args) != nil {
		var text string
		switch {
		case said != "":
			return said
		case json.Unmarshal([]byte(raw), &text) == nil:
			return text
		}
		return raw
	}
	var text string
	if json.Unmarshal(args["input"], &text) == nil && wire.Present(args["input"]) {
		return text
	}
	if len(args) == 1 {
		for _, v := range args {
			if wire.Present(v) && json.Unmarshal(v, &text) == nil {
				return text
			}
		}
	}
	if len(args) == 0 {
		return ""
	}
	return raw
}

// wholeCharacters is how many bytes of the inside of a JSON string can be decoded by
// themselves, and whether its end was reached.
func wholeCharacters(s string) (n int, closed bool) {
	for n < len(s) {
		switch c := s[n]; {
		case c == '"':
			return n, true
		case c != '\\':
			if !utf8.FullRuneInString(s[n:]) {
				return n, false
			}
			_, size := utf8.DecodeRuneInString(s[n:])
			n += size
		default:
			size := escapeSize(s[n:])
			if size == 0 {
				return n, false
			}
			n += size
		}
	}
	return n, false
}

// escapeSize is the length of the escape that s begins with, a pair of surrogates
// counted as one; 0 if s may have only a part of it.
func escapeSize(s string) int {
	const unit = len(`\uXXXX`)
	if len(s) < 2 {
		return 0
	}
	if s[1] != 'u' {
		return 2
	}
	if len(s) < unit {
		return 0
	}
	if high := strings.ToLower(s[2:4]); high < "d8" || high > "db" {
		return unit
	}
	switch {
	case len(s) < unit+2 && strings.HasPrefix(`\u`, s[unit:]):
		return 0
	case !strings.HasPrefix(s[unit:], `\u`):
		return unit // a half of a pair, alone
	case len(s) < 2*unit:
		return 0
	}
	return 2 * unit
}
