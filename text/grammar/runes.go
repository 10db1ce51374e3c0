package grammar

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// RuneSet is a set of code points as pairs of inclusive bounds, ascending and
// neither overlapping nor adjacent after normalize.
type RuneSet []rune

const (
	maxRune      = utf8.MaxRune
	surrogateMin = 0xD800
	surrogateMax = 0xDFFF
)

// Runes returns the code points of tables, normalized.
func Runes(tables ...*unicode.RangeTable) RuneSet {
	var s RuneSet
	add := func(lo, hi, stride rune) {
		if stride == 1 {
			s = append(s, lo, hi)
			return
		}
		for r := lo; r <= hi; r += stride {
			s = append(s, r, r)
		}
	}
	for _, t := range tables {
		for _, r := range t.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return s.normalize()
}

// normalize sorts the pairs of s and joins those that touch. It may reuse the
// memory of s.
func (s RuneSet) normalize() RuneSet {
	type pair struct{ lo, hi rune }
	pairs := make([]pair, 0, len(s)/2)
	for i := 0; i+1 < len(s); i += 2 {
		if s[i] <= s[i+1] {
			pairs = append(pairs, pair{s[i], s[i+1]})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return int(a.lo - b.lo) })
	out := s[:0]
	for _, p := range pairs {
		if n := len(out); n > 0 && p.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p.hi)
			continue
		}
		out = append(out, p.lo, p.hi)
	}
	return out
}

// Complement returns the code points that are not in s, which is normalized.
func (s RuneSet) Complement() RuneSet {
	var out RuneSet
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= maxRune {
		out = append(out, next, maxRune)
	}
	return out
}

// Intersect returns the code points that are in both normalized sets.
func (s RuneSet) Intersect(t RuneSet) RuneSet {
	var out RuneSet
	for i, j := 0, 0; i < len(s) && j < len(t); {
		if lo, hi := max(s[i], t[j]), min(s[i+1], t[j+1]); lo <= hi {
			out = append(out, lo, hi)
		}
		if s[i+1] < t[j+1] {
			i += 2
		} else {
			j += 2
		}
	}
	return out
}

// ByteRange is an inclusive range of bytes.
type ByteRange struct{ Lo, Hi byte }

// utf8Sequences appends to dst the sequences of byte ranges that spell exactly
// the code points of s in UTF-8. Surrogates have no spelling and are left out.
func utf8Sequences(dst [][]ByteRange, s RuneSet) [][]ByteRange {
	for i := 0; i < len(s); i += 2 {
		dst = utf8Range(dst, s[i], s[i+1])
	}
	return dst
}

func utf8Range(dst [][]ByteRange, lo, hi rune) [][]ByteRange {
	if lo > hi {
		return dst
	}
	if lo <= surrogateMax && hi >= surrogateMin {
		dst = utf8Range(dst, lo, surrogateMin-1)
		return utf8Range(dst, surrogateMax+1, hi)
	}
	for _, last := range [...]rune{0x7F, 0x7FF, 0xFFFF} { // same length
		if lo <= last && last < hi {
			dst = utf8Range(dst, lo, last)
			return utf8Range(dst, last+1, hi)
		}
	}
	if hi <= 0x7F {
		return append(dst, []ByteRange{{byte(lo), byte(hi)}})
	}
	// Split until the bytes after the first that differs run over their whole
	// range: then the product of the ranges is the range.
	for shift := 6; shift <= 18; shift += 6 {
		low := rune(1)<<shift - 1
		if lo&^low == hi&^low {
			break
		}
		if lo&low != 0 {
			dst = utf8Range(dst, lo, lo|low)
			return utf8Range(dst, (lo|low)+1, hi)
		}
		if hi&low != low {
			dst = utf8Range(dst, lo, (hi&^low)-1)
			return utf8Range(dst, hi&^low, hi)
		}
	}
	var a, b [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	seq := make([]ByteRange, n)
	for i := range seq {
		seq[i] = ByteRange{a[i], b[i]}
	}
	return append(dst, seq)
}
