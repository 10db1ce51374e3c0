package sample

import (
	"cmp"
	"iter"
	"slices"
)

// Breakers are texts that no text that DRY finds repeated goes beyond, as tokens: a
// breaker is a token that has the whole text, or one whose end begins it with the
// tokens of its rest (as in llama.cpp). Made once, they may serve many samplers.
type Breakers struct {
	whole []uint64  // a bit for each token that has a whole text
	heads []uint64  // a bit for each token that has one or begins one
	begin []begin   // by token
	tails [][]int32 // each once
}

// begin says that a token begins a breaker that goes on with a tail.
type begin struct{ id, tail int32 }

// NewBreakers returns breakers among the tokens of a vocabulary: each names a token
// in which one may begin and the tail, by its place in tails, that completes it; the
// empty one if the token has all of it.
func NewBreakers(vocab int, tails [][]int32, each iter.Seq2[int32, int32]) *Breakers {
	words := (vocab + 63) / 64
	b := &Breakers{whole: make([]uint64, words), heads: make([]uint64, words), tails: tails}
	for id, tail := range each {
		if id < 0 || int(id) >= vocab {
			continue
		}
		b.heads[id>>6] |= 1 << (id & 63)
		if len(tails[tail]) == 0 {
			b.whole[id>>6] |= 1 << (id & 63)
		} else {
			b.begin = append(b.begin, begin{id, tail})
		}
	}
	slices.SortFunc(b.begin, func(x, y begin) int { return cmp.Or(int(x.id)-int(y.id), int(x.tail)-int(y.tail)) })
	b.begin = slices.Compact(b.begin)
	return b
}

func bit(set []uint64, id int32) bool {
	return int(id>>6) < len(set) && set[id>>6]>>(id&63)&1 != 0
}

// single reports whether a token has a whole breaker.
func (b *Breakers) single(id int32) bool { return b != nil && bit(b.whole, id) }

// after returns how many tokens come after the last breaker of a text, all if there
// is none.
func (b *Breakers) after(text []int32) int {
	if b == nil {
		return len(text)
	}
	for i := len(text) - 1; i >= 0; i-- {
		id := text[i]
		if !bit(b.heads, id) {
			continue
		}
		rest := text[i+1:]
		longest := -1
		if b.single(id) {
			longest = 0
		}
		first, _ := slices.BinarySearchFunc(b.begin, id, func(x begin, id int32) int { return int(x.id) - int(id) })
		for _, x := range b.begin[first:] {
			if x.id != id {
				break
			}
			if tail := b.tails[x.tail]; len(tail) > longest && len(tail) <= len(rest) && slices.Equal(tail, rest[:len(tail)]) {
				longest = len(tail)
			}
		}
		if longest >= 0 {
			return len(rest) - longest
		}
	}
	return len(text)
}
