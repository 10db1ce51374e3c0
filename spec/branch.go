package spec

import (
	"math"
	"slices"
	"time"

	"ridge/internal/logits"
	"ridge/model"
)

// branches is the tree of guesses that a model that drafts has made behind a text. What
// is computed of it lies behind the text in the cache, in the order of slots.
type branches struct {
	nodes   []branch
	tokens  []int32 // of slots
	parents []int32 // of slots, see model.Run
	next    []branch
	level   int // the first node of the deepest place
}

// branch is a node: a guess, the node that it follows (-1 for the text), the probability
// of all guesses up to it and that of itself, and its slot, -1 if it is not computed.
type branch struct {
	token, parent, slot int32
	joint, p            float64
}

// worthless is the probability of a guess below which it is not made.
const worthless = 1.0 / 128

// Branch goes on with the likeliest of the deepest guesses, which are computed in one
// pass, and guesses the likeliest tokens behind all of them (EAGLE-2's expansion).
func (q *smallSeq) Branch(dst []Guess, tokens []int32, width int) []Guess {
	m, b := q.s.m, &q.tree
	width = min(width, MaxWidth)
	depth := Depth(dst) + 1
	if len(tokens)+MaxRows > m.Context() || len(tokens) == 0 || width < 1 || len(dst) > len(b.nodes) {
		return dst
	}
	begin, rows, ok := time.Now(), 1, false
	b.next = b.next[:0]
	if len(dst) == 0 {
		q.follow(tokens)
		b.clear()
		if rows, ok = q.catchUp(nil, tokens, nil); !ok {
			q.Close()
			return dst
		}
		b.expand(m.Logits(0), -1, 1, width)
	} else {
		b.nodes = b.nodes[:len(dst)]
		first := b.choose(width)
		q.s.step.Runs = append(q.s.step.Runs[:0], model.Run{Seq: q.kv, Tokens: b.tokens[first:], Tree: b.parents, Outputs: len(b.tokens) - first})
		if len(b.tokens) == first || m.Forward(&q.s.step) != nil {
			return dst
		}
		q.s.passes++
		for i := b.level; i < len(b.nodes); i++ {
			if n := &b.nodes[i]; n.slot >= int32(first) {
				b.expand(m.Logits(int(n.slot)-first), int32(i), n.joint, width)
			}
		}
	}
	dst = b.grow(dst, min(2*width, max(width, MaxRows/depth)))
	q.s.learn(begin, rows, 1)
	return dst
}

// choose gives the likeliest of the deepest guesses slots, at most so many, and returns the
// first one.
func (b *branches) choose(width int) (first int) {
	first = len(b.tokens)
	for i := b.level; i < len(b.nodes) && len(b.tokens)-first < width; i++ { // the likeliest come first
		n := &b.nodes[i]
		n.slot = int32(len(b.tokens))
		b.tokens, b.parents = append(b.tokens, n.token), append(b.parents, -1)
		if n.parent >= 0 {
			b.parents[n.slot] = b.nodes[n.parent].slot
		}
	}
	return first
}

// clear forgets the tree.
func (b *branches) clear() {
	b.nodes, b.tokens, b.parents, b.level = b.nodes[:0], b.tokens[:0], b.parents[:0], 0
}

// grow makes the likeliest of the next place guesses, at most so many.
func (b *branches) grow(dst []Guess, most int) []Guess {
	slices.SortStableFunc(b.next, func(x, y branch) int {
		switch {
		case x.joint > y.joint:
			return -1
		case x.joint < y.joint:
			return 1
		}
		return 0
	})
	// As many again as go on may be right themselves; each place leaves room for others.
	b.level = len(b.nodes)
	for _, n := range b.next[:min(len(b.next), most, MaxRows-len(dst))] {
		g := Guess{Token: n.token, Class: classOf(n.p)}
		g.Up = uint8(len(dst) - 1 - int(n.parent))
		dst, b.nodes = append(dst, g), append(b.nodes, n)
	}
	return dst
}

// expand adds the likeliest tokens of a row to those of the next place.
func (b *branches) expand(row []float32, parent int32, joint float64, width int) {
	var best [MaxWidth]int32
	n := largest(best[:width], row)
	if n == 0 {
		return
	}
	total := logits.Weight(row, row[best[0]], 1)
	for _, id := range best[:n] {
		p := math.Exp(float64(row[id]-row[best[0]])) / total
		if p != p || joint*p < worthless {
			return
		}
		b.next = append(b.next, branch{token: id, parent: parent, slot: -1, joint: joint * p, p: p})
	}
}

// follow keeps what was computed of a tree for guesses that have come true: they move to
// the places of their tokens.
func (q *smallSeq) follow(tokens []int32) {
	b, pool := &q.tree, q.s.m.Pool()
	if len(b.tokens) == 0 {
		return
	}
	known, at := q.kv.Len()-len(b.tokens), int32(-1)
	q.text = q.text[:known]
	for len(q.text) < len(tokens) {
		next := int32(-1)
		for slot := range b.tokens {
			if b.parents[slot] == at && b.tokens[slot] == tokens[len(q.text)] {
				next = int32(slot)
			}
		}
		if next < 0 {
			break
		}
		if to := len(q.text); known+int(next) != to {
			pool.Move(q.kv, to, known+int(next))
		}
		q.text, at = append(q.text, b.tokens[next]), next
	}
	pool.Truncate(q.kv, len(q.text))
	b.nodes, b.tokens, b.parents = b.nodes[:0], b.tokens[:0], b.parents[:0]
}
