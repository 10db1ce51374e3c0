package spec

import (
	"math"

	"ridge/internal/logits"
)

// block is how many logits largest looks at at once.
const block = 256

// largest writes the indices of the largest logits to dst, the largest first and of equal
// ones the first, and returns how many there are. There is room for at most MaxWidth.
// The largest of each block come first: the least of the best of these bounds what is
// looked at one by one.
func largest(dst []int32, row []float32) (n int) {
	var best [MaxWidth]float32
	least, k := float32(math.Inf(-1)), len(dst)
	if k == 0 {
		return 0
	}
	for i := range best[:k] {
		best[i] = least
	}
	for i := 0; i < len(row); i += block {
		top := logits.Max(row[i:min(i+block, len(row))])
		if at := k - 1; top > best[at] {
			for ; at > 0 && best[at-1] < top; at-- {
				best[at] = best[at-1]
			}
			best[at] = top
		}
	}
	bound := best[k-1]
	for i := 0; i < len(row); i += block {
		piece := row[i:min(i+block, len(row))]
		if logits.Max(piece) < bound {
			continue
		}
		for j, x := range piece {
			if !(x > least) || x < bound {
				continue
			}
			at := min(n, k-1)
			for ; at > 0 && row[dst[at-1]] < x; at-- {
				dst[at] = dst[at-1]
			}
			dst[at] = int32(i + j)
			if n = min(n+1, k); n == k {
				least = row[dst[n-1]]
			}
		}
	}
	return n
}
