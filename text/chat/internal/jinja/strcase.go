package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// upper is strings.ToUpper with the one common character that becomes two.
func upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

// caseFold is lower case, with that character too.
func caseFold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "ß", "ss") }

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
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteString(upper(string(r)))
		}
	}
	return b.String()
}

// titleMethod is str.title: a capital after anything that is not a letter.
func titleMethod(s string) string {
	var b strings.Builder
	inWord := false
	for _, r := range s {
		if inWord {
			b.WriteRune(unicode.ToLower(r))
		} else {
			b.WriteString(upperRune(r))
		}
		inWord = unicode.IsLetter(r)
	}
	return b.String()
}

func isLower(s string) bool {
	return strings.IndexFunc(s, unicode.IsLower) >= 0 && strings.IndexFunc(s, unicode.IsUpper) < 0 &&
		strings.IndexFunc(s, unicode.IsTitle) < 0
}

func isUpper(s string) bool {
	return strings.IndexFunc(s, unicode.IsUpper) >= 0 && strings.IndexFunc(s, unicode.IsLower) < 0 &&
		strings.IndexFunc(s, unicode.IsTitle) < 0
}
