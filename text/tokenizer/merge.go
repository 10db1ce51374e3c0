package tokenizer

// span is a symbol during merging: the part [lo, hi) of the piece, and its
// token, or -1 where the part alone is no token.
type span struct {
	id     int32
	lo, hi int32
}

// noRank marks a pair that does not merge.
const noRank = 1<<32 - 1

// pairer says which neighbours merge, in which order and into what.
type pairer interface {
	// pair returns the rank of merging two neighbours of text, lower first,
	// and the token they become; noRank where they do not merge.
	pair(text string, left, right span) (rank uint32, id int32)
}

// shortMerge is the number of symbols up to which scanning all pairs for the
// best one is faster than keeping a heap.
const shortMerge = 40

// merge joins neighbours in syms, the best rank first and the leftmost among
// equals, until none merges. It returns what is left, in place. Time grows
// with n log n.
func (sc *scratch) merge(p pairer, text string, syms []span) []span {
	switch {
	case len(syms) < 2:
		return syms
	case len(syms) <= shortMerge:
		return mergeShort(p, text, syms)
	}
	return sc.mergeLong(p, text, syms)
}

func mergeShort(p pairer, text string, syms []span) []span {
	var rank [shortMerge]uint32
	var prod [shortMerge]int32
	n := len(syms)
	for i := range n - 1 {
		rank[i], prod[i] = p.pair(text, syms[i], syms[i+1])
	}
	for n > 1 {
		best, at := uint32(noRank), 0
		for i, r := range rank[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == noRank {
			break
		}
		syms[at].id, syms[at].hi = prod[at], syms[at+1].hi
		copy(syms[at+1:n-1], syms[at+2:n])
		n--
		if at < n-1 {
			copy(rank[at+1:n-1], rank[at+2:n])
			copy(prod[at+1:n-1], prod[at+2:n])
			rank[at], prod[at] = p.pair(text, syms[at], syms[at+1])
		}
		if at > 0 {
			rank[at-1], prod[at-1] = p.pair(text, syms[at-1], syms[at])
		}
	}
	return syms[:n]
}

// mergeLong keeps the candidates in a heap of rank and position. A candidate
// is stale when the pair that now starts at its position has another rank.
func (sc *scratch) mergeLong(p pairer, text string, syms []span) []span {
	n := len(syms)
	sc.link = grow(sc.link, n)
	link, heap := sc.link, sc.heap[:0]
	for i := range syms {
		link[i] = linkage{prev: int32(i) - 1, next: int32(i) + 1, rank: noRank}
		if i+1 < n {
			link[i].rank, link[i].prod = p.pair(text, syms[i], syms[i+1])
			if link[i].rank != noRank {
				heap = append(heap, uint64(link[i].rank)<<32|uint64(i))
			}
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i)
	}
	repair := func(i int32) {
		j := link[i].next
		if link[i].rank = noRank; int(j) < n {
			link[i].rank, link[i].prod = p.pair(text, syms[i], syms[j])
		}
		if link[i].rank != noRank {
			heap = append(heap, uint64(link[i].rank)<<32|uint64(i))
			siftUp(heap)
		}
	}
	for len(heap) > 0 {
		top := heap[0]
		last := len(heap) - 1
		heap[0] = heap[last]
		heap = heap[:last]
		siftDown(heap, 0)
		i := int32(uint32(top))
		if link[i].rank != uint32(top>>32) {
			continue
		}
		j := link[i].next
		syms[i].id, syms[i].hi = link[i].prod, syms[j].hi
		k := link[j].next
		link[i].next = k
		link[j].rank = noRank
		if int(k) < n {
			link[k].prev = i
		}
		repair(i)
		if h := link[i].prev; h >= 0 {
			repair(h)
		}
	}
	sc.heap = heap
	m := 0
	for i := int32(0); int(i) < n; i = link[i].next {
		syms[m] = syms[i]
		m++
	}
	return syms[:m]
}

// linkage is the place of a symbol in the list of those left, and the pair
// that starts with it.
type linkage struct {
	prev, next int32
	rank       uint32
	prod       int32
}

// siftDown restores the order of a min-heap below i.
func siftDown(h []uint64, i int) {
	if i >= len(h) {
		return
	}
	v := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[c] >= v {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = v
}

// siftUp moves the last element of a min-heap to its place.
func siftUp(h []uint64) {
	i := len(h) - 1
	v := h[i]
	for i > 0 {
		up := (i - 1) / 2
		if h[up] <= v {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = v
}

// grow returns s with length n, reusing its memory where it is large enough;
// the contents are undefined.
func grow[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n, n+n/4)
}
