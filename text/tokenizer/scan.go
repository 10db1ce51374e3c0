package tokenizer

// A matcher returns the end of the match of a pattern that starts at i in s,
// or i where there is none. What it sees ends with s: patterns are applied to
// pieces one after the other, and a look-ahead stops at the end of the piece.
//
// The matchers here are hand-written forms of the regular expressions that
// published tokenizers use; scanners, in patterns.go, says which is which.
type matcher func(s string, i int) int

// contraction returns the length of an English contraction ('s 't 'm 'd 're
// 've 'll) at i, where s[i] is an apostrophe, or 0. With fold it may be in
// upper case, and the long s U+017F counts as an s.
func contraction(s string, i int, fold bool) int {
	if i+1 >= len(s) {
		return 0
	}
	a, b := s[i+1], byte(0)
	if i+2 < len(s) {
		b = s[i+2]
	}
	if fold {
		if a == 0xC5 && b == 0xBF {
			return 3
		}
		if 'A' <= a && a <= 'Z' {
			a |= 0x20
		}
		if 'A' <= b && b <= 'Z' {
			b |= 0x20
		}
	}
	switch a {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if b == 'e' {
			return 3
		}
	case 'l':
		if b == 'l' {
			return 3
		}
	}
	return 0
}

// spaces matches \s+(?!\S)|\s+ at i, where s[i] starts a space: the run of
// spaces, less the last one where something follows it.
func spaces(s string, i int) int {
	end := skipClass(s, i, clSpace)
	if end == len(s) {
		return end
	}
	if _, n := classBefore(s, end); end-n > i {
		return end - n
	}
	return end
}

// lines matches \s*[\r\n]+ at i, or returns i.
func lines(s string, i int) int {
	end := i
	for j := i; j < len(s); {
		if c := s[j]; c == '\r' || c == '\n' {
			j++
			end = j
			continue
		}
		b, n := class(s, j)
		if b&clSpace == 0 {
			break
		}
		j += n
	}
	return end
}

// newlines skips the characters of set, of \r, \n and /.
func newlines(s string, i int, slash bool) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || slash && s[i] == '/') {
		i++
	}
	return i
}

// gpt2 is the pattern of GPT-2:
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func gpt2(s string, i int) int {
	j := i
	switch s[i] {
	case ' ':
		if j++; j == len(s) {
			return j
		}
	case '\'':
		if n := contraction(s, i, false); n > 0 {
			return i + n
		}
	}
	b, n := class(s, j)
	switch {
	case b&clL != 0:
		return skipClass(s, j+n, clL)
	case b&clN != 0:
		return skipClass(s, j+n, clN)
	case b&clSpace == 0:
		return skipOther(s, j+n, clSpace|clL|clN)
	}
	return spaces(s, i)
}

// gpt2Digits is \p{N} on its own, then gpt2 on what lies between: the digits
// are borders that a look-ahead does not see past.
func gpt2Digits(s string, i int) int {
	j := i
	switch s[i] {
	case ' ':
		if j++; j == len(s) {
			return j
		}
	case '\'':
		if n := contraction(s, i, false); n > 0 {
			return i + n
		}
	}
	b, n := class(s, j)
	switch {
	case b&clL != 0:
		return skipClass(s, j+n, clL)
	case b&clN != 0:
		if j > i {
			return j
		}
		return j + n
	case b&clSpace == 0:
		return skipOther(s, j+n, clSpace|clL|clN)
	}
	end := skipClass(s, i, clSpace)
	if end == len(s) {
		return end
	}
	if b, _ := class(s, end); b&clN != 0 {
		return end
	}
	if _, n := classBefore(s, end); end-n > i {
		return end - n
	}
	return end
}

// cl100k is a family of patterns that GPT-4's, Llama 3's and Qwen 2's belong to:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
type cl100k struct {
	contractions bool // the first alternative is there
	digits       int  // most characters of a number; 0: no limit
	marks        bool // words are [\p{L}\p{M}]+, and marks are not symbols
	bare         bool // no line breaks follow symbols
}

func (p cl100k) match(s string, i int) int {
	letters := clL
	if p.marks {
		letters |= clM
	}
	c := s[i]
	if c == '\'' && p.contractions {
		if n := contraction(s, i, true); n > 0 {
			return i + n
		}
	}
	b, n := class(s, i)
	if b&letters != 0 {
		return skipClass(s, i+n, letters)
	}
	if b&clN != 0 {
		return number(s, i+n, p.digits)
	}
	j := i + n
	var b2 uint8
	if j < len(s) {
		b2, n = class(s, j)
		if b2&letters != 0 && c != '\r' && c != '\n' {
			return skipClass(s, j+n, letters)
		}
	}
	switch {
	case b&clSpace == 0:
		j = skipOther(s, j, clSpace|letters|clN)
	case c == ' ' && j < len(s) && b2&(clSpace|letters|clN) == 0:
		j = skipOther(s, j+n, clSpace|letters|clN)
	default:
		return breaks(s, i)
	}
	if p.bare {
		return j
	}
	return newlines(s, j, false)
}

// number returns the end of a number of at most most characters, 0 for no
// limit, the first of which ends at i.
func number(s string, i, most int) int {
	if most == 0 {
		return skipClass(s, i, clN)
	}
	for k := 1; k < most && i < len(s); k++ {
		b, n := class(s, i)
		if b&clN == 0 {
			break
		}
		i += n
	}
	return i
}

// breaks matches \s*[\r\n]+|\s+(?!\S)|\s+ at i, where s[i] starts a space.
func breaks(s string, i int) int {
	if end := lines(s, i); end > i {
		return end
	}
	return spaces(s, i)
}

// o200k is a family of patterns that GPT-4o's and Mistral's Tekken belong to.
// With A for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], B for [\p{Ll}\p{Lm}\p{Lo}\p{M}] and
// C for (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
//
//	[^\r\n\p{L}\p{N}]?A*B+C|[^\r\n\p{L}\p{N}]?A+B*C|\p{N}{1,3}|
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
type o200k struct {
	contractions bool // C is there
	digits       int  // most characters of a number
	slash        bool // [\r\n/]* follows symbols, else [\r\n]*
	han          bool // A and B leave out Han, and \p{Han}+ comes first (Kimi K2)
}

// cases returns whether the character of s at i is in A and in B.
func (p o200k) cases(s string, i int) (a, b bool, n int) {
	bits, n := class(s, i)
	if bits&(clL|clM) == 0 || p.han && isHan(s, i) {
		return false, false, n
	}
	return bits&clLower == 0, bits&clUpper == 0, n
}

// word matches A*B+ or, with upper, A+B* at i, or returns i.
func (p o200k) word(s string, i int, upper bool) int {
	j := i        // end of A*
	both := -1    // start of the last character of it that is in B too
	bothEnd := -1 // and its end
	for j < len(s) {
		a, b, n := p.cases(s, j)
		if !a {
			break
		}
		if b {
			both, bothEnd = j, j+n
		}
		j += n
	}
	k := j // end of B*
	for k < len(s) {
		_, b, n := p.cases(s, k)
		if !b {
			break
		}
		k += n
	}
	switch {
	case k > j && (j > i || !upper):
		return k
	case upper:
		return j
	case both >= 0:
		return bothEnd // A* gives back what B+ needs
	}
	return i
}

func (p o200k) match(s string, i int) int {
	if p.han && isHan(s, i) {
		return skipHan(s, i)
	}
	bits, n := class(s, i)
	prefix := bits&(clL|clN) == 0 && s[i] != '\r' && s[i] != '\n'
	for _, upper := range [2]bool{false, true} {
		if prefix {
			if end := p.word(s, i+n, upper); end > i+n {
				return p.suffix(s, end)
			}
		}
		if end := p.word(s, i, upper); end > i {
			return p.suffix(s, end)
		}
	}
	if bits&clN != 0 {
		return number(s, i+n, p.digits)
	}
	j := i
	if s[i] == ' ' {
		j++
	}
	if end := skipOther(s, j, clSpace|clL|clN); end > j {
		return newlines(s, end, p.slash)
	}
	return breaks(s, i)
}

// suffix returns the end of a word that ends at i, its contraction included.
func (p o200k) suffix(s string, i int) int {
	if p.contractions && i < len(s) && s[i] == '\'' {
		i += contraction(s, i, true)
	}
	return i
}
