// Package spans has parts of texts: which bytes of a prompt others than the
// template wrote.
package spans

import "sort"

// Span is the part of a text from byte Lo up to byte Hi.
type Span struct{ Lo, Hi int }

// Append appends spans, moved by shift, to dst. Both are in order and apart from
// each other; a span that touches the last one of dst makes that longer.
func Append(dst, spans []Span, shift int) []Span {
	for _, s := range spans {
		s = Span{s.Lo + shift, s.Hi + shift}
		if n := len(dst); n > 0 && dst[n-1].Hi >= s.Lo {
			dst[n-1].Hi = max(dst[n-1].Hi, s.Hi)
			continue
		}
		dst = append(dst, s)
	}
	return dst
}

// Cut returns what of spans, which are in order and apart from each other, lies in
// lo up to hi, counted from lo, in memory of its own.
func Cut(spans []Span, lo, hi int) []Span {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].Hi > lo })
	j := i + sort.Search(len(spans)-i, func(j int) bool { return spans[i+j].Lo >= hi })
	if spans = spans[i:j]; len(spans) == 0 {
		return nil
	}
	out := make([]Span, len(spans))
	for k, s := range spans {
		out[k] = Span{max(s.Lo-lo, 0), min(s.Hi, hi) - lo}
	}
	return out
}
