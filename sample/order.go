package sample

import (
	"math"
	"slices"

	"ridge/internal/logits"
)

// heapK is up to which k a heap beats ordering the whole vocabulary.
const heapK = 512

// topK appends the k tokens with the largest logits, in the order of their ids.
func (s *Sampler) topK(c []cand, w []float32, k int) []cand {
	if k <= heapK {
		c = s.best(c, w, k)
		slices.SortFunc(c, func(a, b cand) int { return int(a.id) - int(b.id) })
		return c
	}
	s.survey(w)
	c = s.above(c, w, -math.MaxFloat32)
	if k >= len(c) {
		return c
	}
	s.order = append(s.order[:0], c...)
	selectFirst(s.order, k)
	return notAfter(c, last(s.order[:k]))
}

// last returns the candidate that comes last.
func last(c []cand) cand {
	l := 0
	for i := range c {
		if before(&c[l], &c[i]) {
			l = i
		}
	}
	return c[l]
}

// best appends the k tokens with the largest logits, in no particular order. It
// is meant for few: they are a heap with the worst of them on top. Ids rise, so
// of equal logits the token that came first stays.
func (s *Sampler) best(c []cand, w []float32, k int) []cand {
	i := 0
	for ; i < len(w) && len(c) < k; i++ {
		if w[i] >= -math.MaxFloat32 {
			c = append(c, newCand(w[i], i))
		}
	}
	if len(c) < k {
		return c
	}
	for j := k/2 - 1; j >= 0; j-- {
		siftDown(c, j)
	}
	for ; i < len(w); i += block {
		x := w[i:min(i+block, len(w))]
		n := logits.AtLeast(s.ids[:len(x)], x, c[0].logit)
		for _, j := range s.ids[:n] {
			if x[j] > c[0].logit {
				c[0] = newCand(x[j], i+int(j))
				siftDown(c, 0)
			}
		}
	}
	return c
}

// siftDown restores the heap below c[i]: no element comes before its parent.
func siftDown(c []cand, i int) {
	for {
		j := 2*i + 1
		if j >= len(c) {
			return
		}
		if j+1 < len(c) && before(&c[j], &c[j+1]) {
			j++
		}
		if !before(&c[i], &c[j]) {
			return
		}
		c[i], c[j] = c[j], c[i]
		i = j
	}
}

// sortAll is insertion sort for a few and heapsort for many: no allocation,
// no bad case.
func sortAll(c []cand) {
	if len(c) <= 16 {
		for i := 1; i < len(c); i++ {
			for j := i; j > 0 && before(&c[j], &c[j-1]); j-- {
				c[j], c[j-1] = c[j-1], c[j]
			}
		}
		return
	}
	for i := len(c)/2 - 1; i >= 0; i-- {
		siftDown(c, i)
	}
	for n := len(c) - 1; n > 0; n-- {
		c[0], c[n] = c[n], c[0]
		siftDown(c[:n], 0)
	}
}

// maxPivots is after how many pivots quickselect gives up and sorts.
const maxPivots = 64

// selectFirst moves the n first candidates to the front, in no particular
// order (quickselect).
func selectFirst(c []cand, n int) {
	lo, hi := 0, len(c)
	for i := 0; n > lo && n < hi; i++ {
		if i == maxPivots || hi-lo <= 16 {
			sortAll(c[lo:hi])
			return
		}
		p := lo + partition(c[lo:hi])
		switch {
		case p == n || p+1 == n:
			return
		case p < n:
			lo = p + 1
		default:
			hi = p
		}
	}
}

// take moves the first candidates that together reach the weight want to the
// front, the last of them last but else in no particular order, and returns how
// many they are; all if they do not reach it. It is quickselect by weight: the work is proportional to
// the number of candidates, however many are taken.
func take(c []cand, top float32, want float64) int {
	lo, hi, sum := 0, len(c), 0.0 // c[:lo] weighs sum, which is less than want
	for i := 0; hi-lo > 16 && i < maxPivots; i++ {
		p := lo + partition(c[lo:hi])
		part := 0.0
		for j := lo; j < p; j++ {
			part += weight(c[j].logit, top)
		}
		if sum+part >= want {
			hi = p
			continue
		}
		sum += part + weight(c[p].logit, top)
		lo = p + 1
		if sum >= want {
			return lo
		}
	}
	sortAll(c[lo:hi])
	for ; lo < hi; lo++ {
		if sum += weight(c[lo].logit, top); sum >= want {
			return lo + 1
		}
	}
	return hi
}

// partition splits c around a pivot and returns the pivot's place: what comes
// before it is in front.
func partition(c []cand) int {
	last := len(c) - 1
	// The median of three, moved to the end.
	m := last / 2
	if before(&c[m], &c[0]) {
		c[m], c[0] = c[0], c[m]
	}
	if before(&c[last], &c[0]) {
		c[last], c[0] = c[0], c[last]
	}
	if before(&c[m], &c[last]) {
		c[m], c[last] = c[last], c[m]
	}
	n := 0
	for i := range last {
		if before(&c[i], &c[last]) {
			c[i], c[n] = c[n], c[i]
			n++
		}
	}
	c[n], c[last] = c[last], c[n]
	return n
}
