package spans

import (
	"slices"
	"testing"
)

// bytes lists the bytes of spans from lo up to hi, counted from lo.
func bytes(spans []Span, lo, hi int) (at []int) {
	for _, s := range spans {
		for i := max(s.Lo, lo); i < min(s.Hi, hi); i++ {
			at = append(at, i-lo)
		}
	}
	return at
}

// What is cut out of spans has their bytes, and what is appended to others the
// bytes of both; spans that are given stay as they are.
func TestSpans(t *testing.T) {
	all := []Span{{1, 3}, {4, 5}, {7, 12}}
	for lo := range 14 {
		for hi := lo; hi < 14; hi++ {
			cut := Cut(all, lo, hi)
			if got, want := bytes(cut, 0, 14), bytes(all, lo, hi); !slices.Equal(got, want) {
				t.Errorf("%d to %d: got %v, want %v", lo, hi, got, want)
			}
			head := Cut(all, 0, lo)
			both := Append(slices.Clone(head), cut, lo)
			if got, want := bytes(both, 0, 14), bytes(all, 0, hi); !slices.Equal(got, want) {
				t.Errorf("up to %d and to %d: got %v, want %v", lo, hi, got, want)
			}
			for i := 1; i < len(both); i++ {
				if both[i].Lo <= both[i-1].Hi {
					t.Errorf("up to %d and to %d: %v touch", lo, hi, both)
				}
			}
		}
	}
	if !slices.Equal(all, []Span{{1, 3}, {4, 5}, {7, 12}}) {
		t.Errorf("changed to %v", all)
	}
}
