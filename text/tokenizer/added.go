package tokenizer

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"unicode/utf8"

	"ridge/internal/spans"
)

// added is a token that is looked for in the text before anything else.
type added struct {
	text    string
	id      int32
	special bool // only where the caller asks for special tokens
	word    bool // only as a whole word
	lstrip  bool // takes the spaces before it in
	rstrip  bool // takes the spaces after it in
}

// isMark reports whether plain text cannot be the token: it is special, or
// looks as special ones do, whatever the vocabulary calls it.
func (a *added) isMark() bool {
	s := a.text
	return a.special || (strings.HasPrefix(s, "<|") || strings.HasPrefix(s, "<｜")) && (strings.HasSuffix(s, "|>") || strings.HasSuffix(s, "｜>"))
}

// marks says where in a text marks are looked for.
type marks struct {
	special bool   // special tokens are
	plain   []Span // but not here
}

// cut returns m for the part of the text from lo up to hi.
func (m marks) cut(lo, hi int) marks {
	m.plain = spans.Cut(m.plain, lo, hi)
	return m
}

// limit returns how far a mark that begins at i may reach.
func (m marks) limit(i int) int {
	k := sort.Search(len(m.plain), func(k int) bool { return m.plain[k].Hi > i })
	if k == len(m.plain) {
		return math.MaxInt
	}
	return m.plain[k].Lo
}

// addedSet finds added tokens in a text: the leftmost, of those the longest.
type addedSet struct {
	tokens []added
	trie   trie     // of their texts; what it finds are indices of tokens
	pairs  []uint64 // bit a<<8|b: a token starts with the bytes a, b
	only   int      // the one byte that tokens start with, or -1
}

// newAddedSet returns the set of the given tokens, nil for none. Of two with
// the same text the first counts; empty texts are left out.
func newAddedSet(tokens []added) (*addedSet, error) {
	if len(tokens) == 0 {
		return nil, nil
	}
	total := 0
	for _, tok := range tokens {
		total += len(tok.text)
	}
	if total > maxTrieBytes {
		return nil, fmt.Errorf("added tokens of %d bytes in all, at most %d are supported", total, maxTrieBytes)
	}
	a := &addedSet{tokens: tokens, pairs: make([]uint64, 1<<16/64), only: -1}
	a.trie.init(2 * len(tokens))
	for i, tok := range tokens {
		n := len(tok.text)
		if n == 0 {
			continue
		}
		a.trie.insert(tok.text, int32(i))
		lo := int(tok.text[0]) << 8
		hi := lo + 255
		if n > 1 {
			lo |= int(tok.text[1])
			hi = lo
		}
		for k := lo; k <= hi; k++ {
			a.pairs[k/64] |= 1 << (k % 64)
		}
	}
	starts := 0
	for b, node := range a.trie.root {
		if node >= 0 {
			starts++
			a.only = b
		}
	}
	if starts > 1 {
		a.only = -1
	}
	return a, nil
}

// next returns the first token of s at or after from and the part of s that
// it takes, or nil.
func (a *addedSet) next(s string, from int, m marks) (lo, hi int, tok *added) {
	for i := from; i < len(s); i++ {
		if a.only >= 0 {
			k := strings.IndexByte(s[i:], byte(a.only))
			if k < 0 {
				break
			}
			i += k
		}
		if i+1 < len(s) {
			k := int(s[i])<<8 | int(s[i+1])
			if a.pairs[k/64]&(1<<(k%64)) == 0 {
				continue
			}
		}
		tok := a.at(s, i, m)
		if tok == nil {
			continue
		}
		lo, hi = i, i+len(tok.text)
		if tok.word && (lo > 0 && endsWord(s, lo) || hi < len(s) && isWord(s, hi)) {
			i = hi - 1
			continue
		}
		if tok.lstrip {
			for lo > from {
				b, n := classBefore(s, lo)
				if b&clSpace == 0 {
					break
				}
				lo -= n
			}
			lo = max(lo, from)
		}
		if tok.rstrip {
			hi = skipClass(s, hi, clSpace)
		}
		return lo, hi, tok
	}
	return 0, 0, nil
}

// nextMark reports whether there is a mark in s.
func (a *addedSet) nextMark(s string) bool {
	for at := 0; ; {
		_, hi, tok := a.next(s, at, marks{special: true})
		if tok == nil || tok.isMark() {
			return tok != nil
		}
		at = hi
	}
}

// at returns the longest token that s has at i, or nil.
func (a *addedSet) at(s string, i int, m marks) *added {
	var found *added
	limit := math.MaxInt
	if len(m.plain) > 0 {
		limit = m.limit(i)
	}
	for node := int32(0); i < len(s); i++ {
		if node = a.trie.child(node, s[i]); node < 0 {
			break
		}
		if k := a.trie.token[node]; k >= 0 && (m.special || !a.tokens[k].special) && (i < limit || !a.tokens[k].isMark()) {
			found = &a.tokens[k]
		}
	}
	return found
}

// endsWord reports whether the character before i > 0 is a word character.
func endsWord(s string, i int) bool {
	_, n := utf8.DecodeLastRuneInString(s[:i])
	return isWord(s, i-n)
}
