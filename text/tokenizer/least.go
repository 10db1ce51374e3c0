package tokenizer

import (
	"sync"
	"unicode/utf8"
)

// shortest knows how much text one token can stand for.
type shortest struct {
	once  sync.Once
	bytes int        // of text, at most; 0: any number
	trims bool       // but for white space beside added tokens
	lost  *[256]bool // and for bytes that have no token; nil: all have one
}

// LeastTokens returns a number of tokens that text becomes at least, without
// encoding it: its length, without the bytes that have no token, over that of the
// longest token. It is 0 where a token may stand for any length of text, or where
// text may be dropped that is not known beforehand.
func (t *Tokenizer) LeastTokens(text string) int {
	t.short.once.Do(t.measure)
	if t.short.bytes == 0 || len(text) < t.short.bytes {
		return 0
	}
	n := len(text)
	switch {
	case t.short.trims:
		n = 0
		for i := 0; i < len(text); {
			b, w := class(text, i)
			if b&clSpace == 0 {
				n += t.short.known(text[i : i+w])
			}
			i += w
		}
	case t.short.lost != nil:
		n = t.short.known(text)
	}
	return n / t.short.bytes
}

// known counts the bytes of text that have a token.
func (s *shortest) known(text string) int {
	n := len(text)
	for i := 0; s.lost != nil && i < len(text); i++ {
		if s.lost[text[i]] {
			n--
		}
	}
	return n
}

// measure finds how much text one token can stand for.
func (t *Tokenizer) measure() {
	shrinks := 1     // to what part of it normalization may shorten a text
	changes := false // bytes that have a token into bytes that have none
	for _, n := range t.norm {
		switch n := n.(type) {
		case prepend, byteTextNorm:
		case replaceText:
			if len(n.new) < len(n.old) {
				return
			}
			changes = true
		case unicodeForm:
			shrinks *= utf8.UTFMax * 2 // a character and its marks become one
			changes = true
		default:
			return
		}
	}
	for _, st := range t.stages {
		if st.kind == stageSplit && st.behave == removed {
			return
		}
	}
	if !t.keepsAll() || changes && t.short.lost != nil {
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

// keepsAll reports whether no text is dropped but bytes that have no token, which
// it notes, and no token stands for a run of text without tokens.
func (t *Tokenizer) keepsAll() bool {
	switch m := t.model.(type) {
	case *bpe:
		if m.byByte {
			for b, id := range m.bytes {
				if id < 0 {
					if t.short.lost == nil {
						t.short.lost = new([256]bool)
					}
					t.short.lost[b] = true
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
