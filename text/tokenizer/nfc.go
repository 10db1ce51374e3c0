package tokenizer

import (
	"slices"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unicodeForm is one of the normalization forms of Unicode.
//
// The x/text package inserts a joiner into runs of more than 30 marks (the
// Stream-Safe Text Format), which tokenizers do not; texts with such runs take
// a slow way of their own.
type unicodeForm struct{ form norm.Form }

var (
	nfc = unicodeForm{norm.NFC}
	nfd = unicodeForm{norm.NFD}
)

// longRun is the number of marks in a row from which on x/text may insert: one
// may become two, and the character before may end with three.
const longRun = 14

func (f unicodeForm) same(s string) bool {
	return f.form.QuickSpanString(s) == len(s)
}

func (f unicodeForm) append(dst []byte, s string) []byte {
	if markRun(s) < longRun {
		return f.form.AppendString(dst, s)
	}
	return f.slow(dst, s)
}

// slow normalizes as the standard says, whatever the length of runs of marks.
func (f unicodeForm) slow(dst []byte, s string) []byte {
	var d []charClass
	full := norm.NFD
	if f.form == norm.NFKC || f.form == norm.NFKD {
		full = norm.NFKD
	}
	for i := 0; i < len(s); {
		p := full.PropertiesString(s[i:])
		n := max(p.Size(), 1)
		text := p.Decomposition()
		if text == nil {
			text = []byte(s[i : i+n])
		}
		if r, _ := utf8.DecodeRune(text); 0xAC00 <= r && r < 0xAC00+11172 {
			text = norm.NFD.AppendString(nil, string(r))
		}
		for len(text) > 0 {
			r, w := utf8.DecodeRune(text)
			c := charClass{r: r, ccc: full.Properties(text).CCC()}
			if r == utf8.RuneError && w == 1 {
				c.raw = text[0]
			}
			d = append(d, c)
			text = text[w:]
		}
		i += n
	}
	reorder(d)
	if f.form == norm.NFC || f.form == norm.NFKC {
		d = compose(d)
	}
	for _, c := range d {
		if c.raw != 0 {
			dst = append(dst, c.raw)
		} else {
			dst = utf8.AppendRune(dst, c.r)
		}
	}
	return dst
}

// charClass is a character and its canonical combining class; raw is not 0
// for a byte that is not valid UTF-8.
type charClass struct {
	r   rune
	ccc uint8
	raw byte
}

// markRun returns the length of the longest run of marks, counting characters
// that may become marks.
func markRun(s string) int {
	longest, run := 0, 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			run = 0
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		run++
		if classTable[r]&clM == 0 && r != 0xFF9E && r != 0xFF9F {
			run = 0
		}
		longest = max(longest, run)
		i += n
	}
	return longest
}

// reorder sorts runs of marks by combining class, as they stand among equals.
func reorder(d []charClass) {
	for i := 0; i < len(d); {
		j := i
		for j < len(d) && d[j].ccc != 0 {
			j++
		}
		if j > i {
			slices.SortStableFunc(d[i:j], func(a, b charClass) int { return int(a.ccc) - int(b.ccc) })
		}
		i = j + 1
	}
}

// compose joins characters with the marks that follow, where there is a
// character for both and nothing is between that blocks it.
func compose(d []charClass) []charClass {
	pairs := composites()
	out := d[:0]
	starter := -1
	last := uint8(0) // combining class of the character before
	for _, c := range d {
		if starter >= 0 && c.raw == 0 && out[starter].raw == 0 {
			adjacent := starter == len(out)-1
			if adjacent || last < c.ccc {
				if r, ok := composePair(pairs, out[starter].r, c.r); ok {
					out[starter].r = r
					continue
				}
			}
		}
		if c.ccc == 0 {
			starter = len(out)
		}
		last = c.ccc
		out = append(out, c)
	}
	return out
}

func composePair(pairs map[[2]rune]rune, a, b rune) (rune, bool) {
	const s, l, v, t, nv, nt = 0xAC00, 0x1100, 0x1161, 0x11A7, 21, 28 // Hangul
	switch {
	case l <= a && a < l+19 && v <= b && b < v+nv:
		return s + ((a-l)*nv+(b-v))*nt, true
	case s <= a && a < s+11172 && (a-s)%nt == 0 && t < b && b < t+nt:
		return a + b - t, true
	}
	r, ok := pairs[[2]rune{a, b}]
	return r, ok
}

// composites returns the primary composites of Unicode by their two parts.
var composites = sync.OnceValue(func() map[[2]rune]rune {
	m := make(map[[2]rune]rune)
	for r := rune(0xC0); r < 0x30000; r++ {
		s := string(r)
		if norm.NFC.String(s) != s {
			continue
		}
		parts := []rune(norm.NFD.String(s))
		if len(parts) < 2 || 0xAC00 <= r && r < 0xAC00+11172 {
			continue
		}
		// All but the last mark compose first.
		head := []rune(norm.NFC.String(string(parts[:len(parts)-1])))
		if len(head) == 1 {
			m[[2]rune{head[0], parts[len(parts)-1]}] = r
		}
	}
	return m
})
