package schema

import (
	"slices"

	"ridge/text/grammar"
)

// freeText adds to r the texts in which none of the marks is complete, from one
// state on: the automaton of A. Aho and M. Corasick (Efficient string matching,
// 1975). It calls at for every state with r's state for it, and found where a
// text completes a mark. States are bytes of marks, so the marks' lengths bound
// their number.
func freeText(b *grammar.Builder, r *grammar.Rule, from int32, marks []string, at func(state int32), found func(marks []int) (state int32, ok bool)) {
	t := newMarkTable(marks)
	states := make([]int32, len(t.next))
	for n := range states {
		if states[n] = from; n > 0 {
			states[n] = r.State()
		}
	}
	targets := map[int]int32{} // of complete marks, by their node; -1: none
	for n := range t.next {
		if b.Err() != nil {
			return
		}
		if len(t.out[n]) > 0 {
			continue // left for good
		}
		at(states[n])
		for lo := 0; lo < 256; {
			node := t.step(n, byte(lo))
			hi := lo
			for hi < 255 && t.step(n, byte(hi+1)) == node {
				hi++
			}
			to := states[node]
			if len(t.out[node]) > 0 {
				known, ok := targets[node]
				if !ok {
					if known, ok = found(t.out[node]); !ok {
						known = -1
					}
					targets[node] = known
				}
				to = known
			}
			if to >= 0 {
				r.Bytes(states[n], byte(lo), byte(hi), to)
			}
			lo = hi + 1
		}
	}
}

// markTable finds marks in a text that comes byte by byte.
type markTable struct {
	next []map[byte]int
	fail []int
	out  [][]int // marks that end in a node
}

func newMarkTable(marks []string) *markTable {
	t := &markTable{next: []map[byte]int{{}}, fail: []int{0}, out: [][]int{nil}}
	for i, m := range marks {
		n := 0
		for k := range len(m) {
			to, ok := t.next[n][m[k]]
			if !ok {
				to = len(t.next)
				t.next, t.fail, t.out = append(t.next, map[byte]int{}), append(t.fail, 0), append(t.out, nil)
				t.next[n][m[k]] = to
			}
			n = to
		}
		t.out[n] = append(t.out[n], i)
	}
	// Nodes in order of depth, so that a node's failure is known before it is
	// needed; within one in order of bytes, so that results do not vary.
	queue := []int{0}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		var keys []byte
		for b := range t.next[n] {
			keys = append(keys, b)
		}
		slices.Sort(keys)
		for _, b := range keys {
			to := t.next[n][b]
			if n > 0 {
				t.fail[to] = t.step(t.fail[n], b)
			}
			t.out[to] = append(t.out[to], t.out[t.fail[to]]...)
			queue = append(queue, to)
		}
	}
	return t
}

// step returns the node after a byte.
func (t *markTable) step(n int, b byte) int {
	for {
		if to, ok := t.next[n][b]; ok {
			return to
		}
		if n == 0 {
			return 0
		}
		n = t.fail[n]
	}
}
