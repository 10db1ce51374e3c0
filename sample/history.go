package sample

import "slices"

// history counts the tokens of the penalty window. Its memory is
// proportional to the window, not to the vocabulary.
type history struct {
	limit  int     // tokens in the window; -1 all, 0 nothing is counted
	ring   []int32 // the window, once it is full a ring
	next   int     // where the oldest token is
	counts []count // of the distinct tokens, by id
}

type count struct {
	id, n int32
}

func (h *history) init(limit int) {
	h.limit = limit
	if limit > 0 {
		h.counts = make([]count, 0, min(limit, 1024))
		h.ring = make([]int32, 0, min(limit, 1024))
	}
}

func (h *history) reset() {
	h.ring, h.counts, h.next = h.ring[:0], h.counts[:0], 0
}

// find returns where id is or belongs in counts.
func (h *history) find(id int32) (int, bool) {
	return slices.BinarySearchFunc(h.counts, id, func(c count, id int32) int { return int(c.id) - int(id) })
}

func (h *history) add(id int32) {
	if h.limit == 0 {
		return
	}
	if i, ok := h.find(id); ok {
		h.counts[i].n++
	} else {
		h.counts = slices.Insert(h.counts, i, count{id, 1})
	}
	if h.limit < 0 {
		return
	}
	if len(h.ring) < h.limit {
		h.ring = append(h.ring, id)
		return
	}
	old := h.ring[h.next]
	h.ring[h.next] = id
	if h.next++; h.next == h.limit {
		h.next = 0
	}
	i, _ := h.find(old)
	if h.counts[i].n--; h.counts[i].n == 0 {
		h.counts = slices.Delete(h.counts, i, i+1)
	}
}
