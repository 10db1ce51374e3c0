package tokenizer

import (
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Bounds of Overlaps.
const (
	MaxOverlapTexts = 32 // different texts
	MaxOverlapBytes = 40 // of a text
	// maxOverlapTail bounds the rest of a text, in tokens.
	maxOverlapTail = 20
	// overlapsKept is how many results are kept for the next that asks.
	overlapsKept = 8
)

// Overlap is a token in which a text may begin: the tokens Tails[Tail] complete it.
type Overlap struct{ Token, Tail int32 }

// Overlaps are the tokens in which some texts may begin. They must not be changed.
type Overlaps struct {
	Tails  [][]int32 // each once; the first is empty: the token has all of the text
	Tokens []Overlap // by token; a token may be there with several tails
}

// All goes through the tokens and the places of their tails.
func (o *Overlaps) All() iter.Seq2[int32, int32] {
	return func(yield func(token, tail int32) bool) {
		for _, x := range o.Tokens {
			if !yield(x.Token, x.Tail) {
				return
			}
		}
	}
}

// overlapCache has the results that were asked for last, the latest first.
type overlapCache struct {
	mu   sync.Mutex
	kept []keptOverlaps
}

type keptOverlaps struct {
	texts []string
	found *Overlaps
}

// Overlaps finds the tokens that have one of the texts in them, and those whose end
// begins one, with the tokens of its rest, at most 20 of them (as llama.cpp does
// for sequence breakers). It looks at every token of the vocabulary; the results
// that were asked for last are kept. Expected are at most MaxOverlapTexts texts of
// 1 to MaxOverlapBytes bytes.
func (t *Tokenizer) Overlaps(texts []string) (*Overlaps, error) {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	if len(texts) > MaxOverlapTexts {
		return nil, fmt.Errorf("tokenizer: overlaps: expected at most %d texts, found %d", MaxOverlapTexts, len(texts))
	}
	for _, s := range texts {
		if len(s) < 1 || len(s) > MaxOverlapBytes {
			return nil, fmt.Errorf("tokenizer: overlaps: expected texts of 1 to %d bytes, found one of %d", MaxOverlapBytes, len(s))
		}
	}
	c := &t.overlaps
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.kept, func(k keptOverlaps) bool { return slices.Equal(k.texts, texts) })
	if i < 0 {
		c.kept = append(c.kept, keptOverlaps{texts, t.findOverlaps(texts)})
		i = len(c.kept) - 1
	}
	k := c.kept[i]
	c.kept = slices.Insert(slices.Delete(c.kept, i, i+1), 0, k)
	c.kept = c.kept[:min(len(c.kept), overlapsKept)]
	return k.found, nil
}

// findOverlaps looks at every token.
func (t *Tokenizer) findOverlaps(texts []string) *Overlaps {
	o := &Overlaps{Tails: [][]int32{nil}}
	rests := map[string]int32{"": 0}
	var starts [256][]string // the texts by their first byte
	for _, s := range texts {
		starts[s[0]] = append(starts[s[0]], s)
	}
	var word []byte
	for id := range int32(t.VocabSize()) {
		word = t.AppendPiece(word[:0], id)
		first := len(o.Tokens)
		for at, b := range word {
			for _, s := range starts[b] {
				n := min(len(s), len(word)-at)
				if string(word[at:at+n]) != s[:n] {
					continue
				}
				tail, ok := rests[s[n:]]
				if !ok {
					tail = int32(len(o.Tails))
					rests[s[n:]] = tail
					o.Tails = append(o.Tails, t.encodeRest(s[n:]))
				}
				if x := (Overlap{id, tail}); !slices.Contains(o.Tokens[first:], x) {
					o.Tokens = append(o.Tokens, x)
				}
			}
		}
	}
	return o
}

// encodeRest returns the tokens of a text that goes on with another: at most
// maxOverlapTail.
func (t *Tokenizer) encodeRest(s string) []int32 {
	sc := t.pool.get(len(t.stages))
	sc.most = len(s) + cacheIDs
	sc.out = sc.begin(nil, len(s))
	t.encodeSegment(sc, s, false, marks{})
	ids := slices.Clone(sc.out[:min(len(sc.out), maxOverlapTail)])
	t.pool.put(sc)
	return ids
}
