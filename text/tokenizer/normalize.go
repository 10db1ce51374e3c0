package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// normalizer rewrites a text before it is cut into pieces.
type normalizer interface {
	// same reports whether s stays as it is; it may say no where it does.
	same(s string) bool
	// append appends the normalized form of s to dst.
	append(dst []byte, s string) []byte
}

// normalize applies the normalizers in order. The result is s or lives in sc
// until the next call.
func (t *Tokenizer) normalize(sc *scratch, s string) string {
	k := 0
	for _, n := range t.norm {
		if n.same(s) {
			continue
		}
		sc.norm[k] = n.append(slices.Grow(sc.norm[k][:0], len(s)), s)
		s = view(sc.norm[k])
		k ^= 1
	}
	return s
}

// replaceText replaces old by new.
type replaceText struct{ old, new string }

func (r replaceText) same(s string) bool { return r.old == "" || !strings.Contains(s, r.old) }

func (r replaceText) append(dst []byte, s string) []byte {
	for {
		i := strings.Index(s, r.old)
		if i < 0 {
			return append(dst, s...)
		}
		dst = append(append(dst, s[:i]...), r.new...)
		s = s[i+len(r.old):]
	}
}

// replacePattern replaces what a pattern matches by new.
type replacePattern struct {
	pat pattern
	new string
}

func (r replacePattern) same(string) bool { return false }

func (r replacePattern) append(dst []byte, s string) []byte {
	put := func(p part) {
		if p.match {
			dst = append(dst, r.new...)
		} else {
			dst = append(dst, s[p.lo:p.hi]...)
		}
	}
	if m, ok := r.pat.(matches); ok {
		m.each(s, put)
		return dst
	}
	for _, p := range r.pat.split(nil, s) {
		put(p)
	}
	return dst
}

// prepend puts a text in front of one that is not empty.
type prepend string

func (p prepend) same(s string) bool { return s == "" || p == "" }

func (p prepend) append(dst []byte, s string) []byte { return append(append(dst, p...), s...) }

// trim drops spaces at the ends.
type trim struct{ left, right bool }

func (t trim) cut(s string) string {
	lo, hi := 0, len(s)
	if t.left {
		lo = skipClass(s, 0, clSpace)
	}
	for t.right && hi > lo {
		b, n := classBefore(s, hi)
		if b&clSpace == 0 {
			break
		}
		hi -= n
	}
	return s[lo:hi]
}

func (t trim) same(s string) bool { return len(t.cut(s)) == len(s) }

func (t trim) append(dst []byte, s string) []byte { return append(dst, t.cut(s)...) }

// oneSpace makes one space of a run of them and drops those at the ends, at
// the right also what stands for spaces in the vocabulary.
type oneSpace struct{}

func (oneSpace) same(s string) bool {
	return s == "" || s[0] != ' ' && strings.TrimRight(s, " ▁") == s && !strings.Contains(s, "  ")
}

func (oneSpace) append(dst []byte, s string) []byte {
	s = strings.TrimLeft(strings.TrimRight(s, " ▁"), " ")
	for i := range len(s) {
		if s[i] != ' ' || s[i-1] != ' ' {
			dst = append(dst, s[i])
		}
	}
	return dst
}

// lowercase maps each character on its own, so a final sigma is like any other.
type lowercase struct{}

func (lowercase) same(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

func (lowercase) append(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, c)
		case r == 'İ':
			dst = append(dst, "i\u0307"...)
		default:
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
		i += n
	}
	return dst
}

// markAny are all marks.
var markAny = unicode.M

// markNonSpacing are the marks that Bert calls accents.
var markNonSpacing = unicode.Mn

// dropClass drops the characters of some categories.
type dropClass struct{ table *unicode.RangeTable }

func (d dropClass) same(s string) bool { return isASCII(s) }

func (d dropClass) append(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.Is(d.table, r) {
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// bert is the first half of Bert's normalizer: it drops controls, makes all
// white space a space and puts spaces around Chinese characters.
type bert struct{ clean, han bool }

func (b bert) same(string) bool { return false }

func (b bert) append(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		bad := r == utf8.RuneError && n == 1
		switch {
		case b.clean && (r == 0 || r == utf8.RuneError || isBertControl(r)):
		case b.clean && classTable[r]&clSpace != 0:
			dst = append(dst, ' ')
		case b.han && isBertHan(r):
			dst = append(append(append(dst, ' '), s[i:i+n]...), ' ')
		case bad:
			dst = append(dst, "\uFFFD"...)
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

// isBertControl reports whether Bert drops r: controls, formats and private
// characters, save tab and line breaks.
func isBertControl(r rune) bool {
	if r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return r < 0x20 || r >= 0x7F && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isBertHan has the ranges of Bert's tokenizer, a typing slip included: 2B920
// stands where 2B820 was meant.
func isBertHan(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, 0x4E00 <= r && r <= 0x9FFF, 0xF900 <= r && r <= 0xFAFF, 0x20000 <= r && r <= 0x2A6DF,
		0x2A700 <= r && r <= 0x2B81F, 0x2B920 <= r && r <= 0x2CEAF, 0x2F800 <= r && r <= 0x2FA1F:
		return true
	}
	return false
}

// nmt drops and replaces the characters that SentencePiece's nmt rules do.
type nmt struct{}

func (nmt) same(string) bool { return false }

func (nmt) append(dst []byte, s string) []byte {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case 1 <= r && r <= 8, r == 0xB, 0xE <= r && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, 0x200B <= r && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == utf8.RuneError:
			dst = append(dst, ' ')
		default:
			dst = append(dst, s[i:i+n]...)
		}
		i += n
	}
	return dst
}

// byteText turns a text into its byte-level form.
type byteTextNorm struct{}

func (byteTextNorm) same(s string) bool { return s == "" }

func (byteTextNorm) append(dst []byte, s string) []byte { return appendByteText(dst, s) }
