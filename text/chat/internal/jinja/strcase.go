package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// upper is strings.ToUpper with the one common character that becomes two.
func upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return ""
	}
	return upperRune(r) + strings.ToLower(s[n:])
}

func upperRune(r rune) string {
	if r == 'ß' {
		return "Ss"
	}
	return string(unicode.ToTitle(r))
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// titleMethod is str.title: a capital after anything that is not a letter.
func titleMethod(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		inWord = unicode.IsLetter(r)
		switch {
		case !inWord:
			return r
		case was:
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func isLower(s string) bool {
	return strings.IndexFunc(s, unicode.IsLower) >= 0 && strings.IndexFunc(s, unicode.IsUpper) < 0 &&
		strings.IndexFunc(s, unicode.IsTitle) < 0
}

func isUpper(s string) bool {
	return strings.IndexFunc(s, unicode.IsUpper) >= 0 && strings.IndexFunc(s, unicode.IsLower) < 0 &&
		strings.IndexFunc(s, unicode.IsTitle) < 0
}
