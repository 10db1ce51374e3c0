package tokenizer

import (
	"sync"
	"unicode/utf8"
)

// shortest knows how much text one token can stand for.
type shortest struct {
	once  sync.Once
	bytes int  // of text, at most; 0: any number
	trims bool // but for white space beside added tokens
}

// LeastTokens returns a number of tokens that text becomes at least, without
// encoding it: its length over that of the longest token. It is 0 where a token
// may stand for any length of text, or where text may be dropped.
func (t *Tokenizer) LeastTokens(text string) int {
	t.short.once.Do(t.measure)
	if t.short.bytes == 0 || len(text) < t.short.bytes {
		return 0
	}
	n := len(text)
	if t.short.trims {
		n = 0
		for i := 0; i < len(text); {
			b, w := class(text, i)
			if b&clSpace == 0 {
				n += w
			}
			i += w
		}
	}
	return n / t.short.bytes
}

// measure finds how much text one token can stand for.
func (t *Tokenizer) measure() {
	shrinks := 1 // to what part of it normalization may shorten a text
	for _, n := range t.norm {
		switch n := n.(type) {
		case prepend, byteTextNorm:
		case replaceText:
			if len(n.new) < len(n.old) {
				return
			}
		case unicodeForm:
			shrinks *= utf8.UTFMax * 2 // a character and its marks become one
		default:
			return
		}
	}
	for _, st := range t.stages {
		if st.kind == stageSplit && st.behave == removed {
			return
		}
	}
	if !t.keepsAll() {
		return
	}
	longest := utf8.UTFMax // a character without a token
	for id := range t.vocab.text {
		if t.vocab.valid(int32(id)) {
			longest = max(longest, len(t.vocab.text[id]))
		}
	}
	for _, set := range []*addedSet{t.added, t.addedNorm} {
		if set == nil {
			continue
		}
		for _, tok := range set.tokens {
			longest = max(longest, len(tok.text))
			t.short.trims = t.short.trims || tok.lstrip || tok.rstrip
		}
	}
	t.short.bytes = longest * shrinks
}

// keepsAll reports whether no text is dropped, and no token stands for a run of
// text without tokens.
func (t *Tokenizer) keepsAll() bool {
	switch m := t.model.(type) {
	case *bpe:
		if m.byByte {
			for _, id := range m.bytes {
				if id < 0 {
					return false
				}
			}
			return true
		}
		if m.byteFallback {
			_, n := t.vocab.byteTokens()
			return n == 256
		}
		return m.unk >= 0 && !m.fuseUnk
	case *spm:
		return m.hasBytes
	case *unigram:
		return m.byteFallback
	}
	return false
}
