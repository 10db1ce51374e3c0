package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// isHan reports whether the character of s at i is in the script Han.
func isHan(s string, i int) bool {
	r, _ := utf8.DecodeRuneInString(s[i:])
	return r >= 0x2E80 && (unicode.Is(unicode.Han, r) || 0x2EBF0 <= r && r <= 0x2EE5D)
}

func skipHan(s string, i int) int {
	for i < len(s) && isHan(s, i) {
		_, n := class(s, i)
		i += n
	}
	return i
}

// deepseek3 is the third pattern of DeepSeek V3, after those for numbers and
// for Chinese and Japanese; it leaves gaps:
//
//	[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|
//	[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|
//	\s*[\r\n]+|\s+(?!\S)|\s+
func deepseek3(s string, i int) int {
	b, n := class(s, i)
	j := i + n
	if s[i] < utf8.RuneSelf && b&(clP|clS) != 0 {
		if end := asciiLetters(s, j); end > j {
			return end
		}
	}
	if b&(clL|clM) != 0 {
		return skipClass(s, j, clL|clM)
	}
	var b2 uint8
	if j < len(s) {
		b2, _ = class(s, j)
	}
	if b&(clP|clS) == 0 && s[i] != '\r' && s[i] != '\n' && b2&(clL|clM) != 0 {
		return skipClass(s, j, clL|clM)
	}
	switch {
	case b&(clP|clS) != 0:
		return newlines(s, skipClass(s, j, clP|clS), false)
	case s[i] == ' ' && b2&(clP|clS) != 0:
		return newlines(s, skipClass(s, j, clP|clS), false)
	case b&clSpace != 0:
		return breaks(s, i)
	}
	return i
}

func asciiLetters(s string, i int) int {
	for i < len(s) && 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z' {
		i++
	}
	return i
}

// lineBreak is [\r\n].
func lineBreak(s string, i int) int {
	if s[i] == '\r' || s[i] == '\n' {
		return i + 1
	}
	return i
}

// classRun matches a run of characters with one of the bits: \p{L}+ and so on.
func classRun(bits uint8) matcher {
	return func(s string, i int) int { return skipClass(s, i, bits) }
}

// spaceClassRun is classRun with \s? before it.
func spaceClassRun(bits uint8) matcher {
	return func(s string, i int) int {
		j := i
		if b, n := class(s, i); b&clSpace != 0 {
			j += n
		}
		if end := skipClass(s, j, bits); end > j {
			return end
		}
		return i
	}
}

// classOne matches one character with one of the bits: \p{N} and so on.
func classOne(bits uint8) matcher {
	return func(s string, i int) int {
		if b, n := class(s, i); b&bits != 0 {
			return i + n
		}
		return i
	}
}

// numberUpTo matches \p{N}{1,most}.
func numberUpTo(most int) matcher {
	return func(s string, i int) int {
		if b, n := class(s, i); b&clN != 0 {
			return number(s, i+n, most)
		}
		return i
	}
}

// digits3 is [0-9][0-9][0-9].
func digits3(s string, i int) int {
	if i+3 <= len(s) && isDigit(s[i]) && isDigit(s[i+1]) && isDigit(s[i+2]) {
		return i + 3
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// punctuationRun matches a run of punctuation: \p{P} and the ASCII characters
// that are neither letters, digits, spaces nor controls.
func punctuationRun(s string, i int) int {
	for i < len(s) && isPunctuation(s, i) {
		_, n := class(s, i)
		i += n
	}
	return i
}

// punctuationOne matches one character of punctuation.
func punctuationOne(s string, i int) int {
	if isPunctuation(s, i) {
		_, n := class(s, i)
		return i + n
	}
	return i
}

// defaultPunctuation is [\p{P}\$\+<=>\^~\|]+.
func defaultPunctuation(s string, i int) int {
	for i < len(s) {
		b, n := class(s, i)
		if b&clP == 0 && (b&clS == 0 || s[i] >= utf8.RuneSelf || s[i] == '`') {
			break
		}
		i += n
	}
	return i
}

// newlineRuns is [^\n]+|[\n]+.
func newlineRuns(s string, i int) int {
	is := s[i] == '\n'
	for i < len(s) && (s[i] == '\n') == is {
		i++
	}
	return i
}

// isPunctuation reports whether the character of s at i is punctuation as Bert
// and the pre-tokenizer Punctuation see it: by the tables of Unicode 8.
func isPunctuation(s string, i int) bool {
	c := s[i]
	if c < utf8.RuneSelf {
		return asciiClass[c]&(clP|clS) != 0
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	switch {
	case r == 0x166D || r == 0x111C9: // punctuation then, not any more
		return true
	case classTable[r]&clP == 0:
		return false
	}
	return r < newPunctuation[0] || !inRanges(newPunctuation, r)
}

// newPunctuation are the ranges of punctuation that came after Unicode 8.
var newPunctuation = []rune{
	0x61D, 0x61D, 0x9FD, 0x9FD, 0xA76, 0xA76, 0xC77, 0xC77, 0xC84, 0xC84, 0x1B4E, 0x1B4F, 0x1B7D, 0x1B7E,
	0x1B7F, 0x1B7F, 0x2E43, 0x2E4F, 0x2E52, 0x2E5D, 0x10D6E, 0x10D6E, 0x10EAD, 0x10EAD, 0x10F55, 0x10F59,
	0x10F86, 0x10F89, 0x113D4, 0x113D5, 0x113D7, 0x113D8, 0x1144B, 0x1144F, 0x1145A, 0x1145B, 0x1145D, 0x1145D,
	0x11660, 0x1166C, 0x116B9, 0x116B9, 0x1183B, 0x1183B, 0x11944, 0x11946, 0x119E2, 0x119E2, 0x11A3F, 0x11A46,
	0x11A9A, 0x11A9C, 0x11A9E, 0x11AA2, 0x11B00, 0x11B09, 0x11BE1, 0x11BE1, 0x11C41, 0x11C45, 0x11C70, 0x11C71,
	0x11EF7, 0x11EF8, 0x11F43, 0x11F4F, 0x11FFF, 0x11FFF, 0x12FF1, 0x12FF2, 0x16D6D, 0x16D6F, 0x16E97, 0x16E9A,
	0x16FE2, 0x16FE2, 0x1E5FF, 0x1E5FF, 0x1E95E, 0x1E95F,
}

// byteNumber matches one digit of byteNumbers.
func byteNumber(s string, i int) int { return min(byteNumbers(s[:i+1], i), i+1) }

// byteNumbers matches a run of digits as a byte-level text has them: the
// bytes B2, B3, B9 and BC to BE are written as superscripts and fractions.
func byteNumbers(s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case isDigit(c), c == 0xB2, c == 0xB3, c == 0xB9, 0xBC <= c && c <= 0xBE:
			i++
			continue
		}
		break
	}
	return i
}

// runeRun matches a run of characters of a set, given as sorted pairs of the
// first and the last of a range.
func runeRun(set []rune) matcher {
	return func(s string, i int) int {
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if !inRanges(set, r) {
				break
			}
			i += n
		}
		return i
	}
}

// spaceRuneRun is runeRun with \s? before it.
func spaceRuneRun(set []rune) matcher {
	run := runeRun(set)
	return func(s string, i int) int {
		j := i
		if b, n := class(s, i); b&clSpace != 0 {
			// A set may hold spaces itself; then they are part of the run.
			j += n
		}
		if end := run(s, j); end > j {
			return end
		}
		return run(s, i)
	}
}

func inRanges(set []rune, r rune) bool {
	lo, hi := 0, len(set)/2
	for lo < hi {
		m := (lo + hi) / 2
		switch {
		case r < set[2*m]:
			hi = m
		case r > set[2*m+1]:
			lo = m + 1
		default:
			return true
		}
	}
	return false
}

// ranges reads the inside of a character class without escapes: "a-zA-Z,".
func ranges(class string) []rune {
	var out []rune
	rs := []rune(class)
	for i := 0; i < len(rs); i++ {
		lo, hi := rs[i], rs[i]
		if i+2 < len(rs) && rs[i+1] == '-' {
			hi = rs[i+2]
			i += 2
		}
		out = append(out, lo, hi)
	}
	// Insertion sort by the first of each range: the classes are short or
	// nearly sorted.
	for i := 2; i < len(out); i += 2 {
		for j := i; j > 0 && out[j] < out[j-2]; j -= 2 {
			out[j], out[j-2] = out[j-2], out[j]
			out[j+1], out[j-1] = out[j-1], out[j+1]
		}
	}
	return out
}

// endSpaces is \s+$ where the piece has no line break; with $ it also ends
// before one.
func endSpaces(s string, i int) int {
	end := skipClass(s, i, clSpace)
	if end == i || end == len(s) {
		return end
	}
	// $ holds before every \n: the longest run of spaces that one follows.
	for j := end; j > i; {
		_, n := classBefore(s, j)
		if j -= n; s[j] == '\n' && j > i {
			return j
		}
	}
	return i
}

// bloom is  ?[^(\s|.,!?…。，、।۔،)]+, one negated class.
func bloom(s string, i int) int {
	j := i
	if s[i] == ' ' {
		j++
	}
	end := j
	for end < len(s) {
		b, n := class(s, end)
		if b&clSpace != 0 {
			break
		}
		if b&(clP|clS) != 0 {
			r, _ := utf8.DecodeRuneInString(s[end:])
			if isBloomStop(r) {
				break
			}
		}
		end += n
	}
	if end == j {
		return i
	}
	return end
}

func isBloomStop(r rune) bool {
	switch r {
	case '(', '|', '.', ',', '!', '?', '…', '。', '，', '、', '।', '۔', '،', ')':
		return true
	}
	return false
}
