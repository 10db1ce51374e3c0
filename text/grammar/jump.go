package grammar

import (
	"strings"
	"unicode/utf8"
)

// Jump-ahead: text that a grammar leaves no choice about need not be sampled
// (L. Zheng et al., SGLang: Efficient Execution of Structured Language Model
// Programs, 2024, §4, compressed finite state machines). Here it is spelled in
// tokens once for each situation, and only as far as its spelling does not
// depend on what comes after it.

// SpellWith says how the tokenizer spells a text that follows another one, for
// [State.Jump]: encode returns tokens whose bytes are those of text. It is called
// before the vocabulary is used.
func (v *Vocabulary) SpellWith(encode func(text string) []int32) { v.encode = encode }

// Jump appends to dst the tokens that spell the text that must follow, see
// [State.Forced], and returns it. The state does not move: Accept follows for as
// many of the tokens as are taken. They are those of the tokenizer for that
// text alone, without the last ones if one token could stand for them and for
// some of what may follow: these are left to be sampled, so that the border of
// forced and free text does not cut a token. Where the text ends with the forced
// text, or nothing that may follow joins it, all tokens are there. What has been
// written before is never spelled anew.
//
// The tokens depend on the grammar, the tokenizer and the text so far, and on
// nothing else. It appends none if the vocabulary does not know a way to spell.
func (s *State) Jump(dst []int32) []int32 {
	m := s.m
	if s.err != nil || s.ended || m.v == nil || m.v.encode == nil {
		return dst
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin()
	if s.at.jump == nil {
		text, end := m.forcedFrom(s.at)
		if m.err != nil {
			s.fail(m.err)
			return dst
		}
		ids := m.spell(text, end)
		s.at.jump = &ids
		m.memory += 4*len(ids) + 24
	}
	return append(dst, *s.at.jump...)
}

// spell returns the tokens of a text that leads to end, as far as they do not
// depend on what follows.
func (m *machine) spell(text string, end *config) []int32 {
	v := m.v
	if text == "" {
		return nil
	}
	ids := v.encode(text[:len(text)-cutCharacter(text)])
	n := 0
	for rest := text; n < len(ids); n++ {
		b := v.Bytes(ids[n])
		// A text that begins within a character may have no such spelling.
		if len(b) == 0 || !strings.HasPrefix(rest, string(b)) || m.crosses(rest, end) {
			break
		}
		rest = rest[len(b):]
	}
	return ids[:n:n]
}

// cutCharacter returns how many bytes at the end of text are the begin of a
// character.
func cutCharacter(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n:]; utf8.RuneStart(b[0]) {
			if utf8.FullRuneInString(b) {
				return 0
			}
			return n
		}
	}
	return 0
}

// crosses reports whether a token begins with rest and goes on with something
// that may follow in end.
func (m *machine) crosses(rest string, end *config) bool {
	v := m.v
	at := uint32(0)
	for i := range len(rest) {
		if at = v.child(at, rest[i]); at == 0 {
			return false
		}
	}
	for j := at + 1; j < at+v.nodes[at].size; j += v.nodes[j].size {
		if next := m.after(end, m.p.class[v.nodes[j].b]); next != dead || m.err != nil {
			m.err = nil // what may follow is too much to look at
			return true
		}
	}
	return false
}

// child returns the node below node i for a byte, 0 if there is none.
func (v *Vocabulary) child(i uint32, b byte) uint32 {
	for j := i + 1; j < i+v.nodes[i].size; j += v.nodes[j].size {
		if v.nodes[j].b == b {
			return j
		}
	}
	return 0
}
