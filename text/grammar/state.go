package grammar

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"ridge/internal/diag"
)

// Grammar is a compiled grammar, bound to the vocabulary that it was compiled
// for. It may be shared by any number of states and goroutines; what one of
// them finds out about its situations serves all.
type Grammar struct {
	m          *machine
	unenforced []Unenforced
}

// Compile makes a grammar of root and the rules that it needs, for the vocabulary
// v (nil: no masks). maxDepth bounds the nesting of rules in a text: 0 stands for
// 512, more than 10000 counts as 10000.
func (b *Builder) Compile(root *Rule, v *Vocabulary, maxDepth int) (*Grammar, error) {
	if b.err != nil {
		return nil, b.err
	}
	p, err := link(b, root)
	if err != nil {
		return nil, err
	}
	if maxDepth <= 0 {
		maxDepth = defaultMaxDepth
	}
	maxDepth = min(maxDepth, highestMaxDepth)
	if h := p.heightOf(p.led); int(h) > maxDepth {
		return nil, tooLarge(b.Source, "", "the shortest text needs %d levels of nesting, more than %d", h, maxDepth)
	}
	m, err := newMachine(p, v, maxDepth)
	if err != nil {
		return nil, tooLarge(b.Source, "", "too ambiguous")
	}
	return &Grammar{m, b.unenforced}, nil
}

// Bytes returns about how much memory the grammar takes, without what it
// remembers of texts.
func (g *Grammar) Bytes() int {
	p := g.m.p
	return 64*len(p.states) + 8*len(p.bytes) + 16*len(p.calls) + 4*len(p.eps) + 64*len(p.loops) + 96*len(p.rules)
}

// States returns the number of states of the automaton, a measure of the size
// of the grammar.
func (g *Grammar) States() int { return len(g.m.p.states) }

// Vocabulary returns the vocabulary that the grammar was compiled for, or nil.
func (g *Grammar) Vocabulary() *Vocabulary { return g.m.v }

// NewState returns the state before the first byte.
func (g *Grammar) NewState() *State { return &State{m: g.m, at: g.m.root} }

// State is a position in a text of a grammar. It is used by one goroutine at a
// time; different states of a grammar may be used at once.
//
// A state fails when a limit is exceeded or when no token of the vocabulary
// leads on: from then on it allows nothing and Err says why.
type State struct {
	m     *machine
	at    *config
	ended bool // a token that ends the text was accepted
	err   error
	buf   []uint64
	keep  []float32
}

// Snapshot is a state to come back to. It is a small value and stays valid
// whatever happens to the state it was taken from.
type Snapshot struct {
	at    *config
	ended bool
	err   error

	open, gateEnded bool // of a gate
	matched         int
}

var (
	errNoVocabulary = errors.New("grammar: the grammar was compiled without a vocabulary")
	errNoToken      = errors.New("grammar: no token of the vocabulary continues the text")
	errEnded        = errors.New("grammar: the text has ended")
)

// Snapshot returns the current position.
func (s *State) Snapshot() Snapshot { return Snapshot{at: s.at, ended: s.ended, err: s.err} }

// Restore returns to a position of this state or of another state of the same
// grammar.
func (s *State) Restore(p Snapshot) { s.at, s.ended, s.err = p.at, p.ended, p.err }

// Clone returns an independent state at the same position.
func (s *State) Clone() *State { return &State{m: s.m, at: s.at, ended: s.ended, err: s.err} }

// Err returns why the state failed, or nil.
func (s *State) Err() error { return s.err }

// Complete reports whether the text may end here. Tokens that end a text are
// allowed exactly then.
func (s *State) Complete() bool { return s.err == nil && (s.ended || s.at.accept) }

// Done reports whether the text is complete and nothing can follow.
func (s *State) Done() bool { return s.err == nil && (s.ended || s.at.accept && len(s.at.items) == 0) }

func (s *State) fail(err error) error {
	if s.err == nil {
		s.err = err
	}
	return s.err
}

// Accept moves over a token. If the token is not allowed it returns an error
// and the state stays where it is.
func (s *State) Accept(token int32) error {
	v := s.m.v
	switch {
	case s.err != nil:
		return s.err
	case v == nil:
		return errNoVocabulary
	case v.IsEnd(token):
		if !s.at.accept && !s.ended {
			return fmt.Errorf("grammar: token %d ends the text, which is not complete", token)
		}
		s.ended = true
		return nil
	case s.ended:
		return errEnded
	}
	b := v.Bytes(token)
	if len(b) == 0 {
		return fmt.Errorf("grammar: token %d: not a token of text", token)
	}
	if n, err := s.advance(b); err != nil {
		return err
	} else if n < len(b) {
		return fmt.Errorf("grammar: token %d %s: not allowed from byte %d on", token, diag.Quote(string(b)), n)
	}
	return nil
}

// AcceptBytes moves over a piece of text, which need not consist of whole
// characters or tokens. If the text is not allowed it returns an error and the
// state stays where it is.
func (s *State) AcceptBytes(text []byte) error {
	switch {
	case s.err != nil:
		return s.err
	case s.ended:
		return errEnded
	}
	if n, err := s.advance(text); err != nil {
		return err
	} else if n < len(text) {
		return fmt.Errorf("grammar: %s: not allowed from byte %d on", diag.Quote(string(text)), n)
	}
	return nil
}

// advance moves over b if all of it is allowed, and returns how much is.
func (s *State) advance(b []byte) (int, error) {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin()
	c := s.at
	for i, x := range b {
		c = m.after(c, m.p.class[x])
		if m.err != nil {
			return i, s.fail(m.err)
		}
		if c == dead {
			return i, nil
		}
		m.work = 0 // the limit is for one byte or one mask
	}
	s.at = c
	return len(b), nil
}

// tokens returns the tokens that are allowed next.
func (s *State) tokens() *tokenSet {
	m := s.m
	if s.err != nil || m.v == nil {
		return &noTokens
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.ended {
		return &m.v.ends
	}
	m.begin()
	set := m.maskOf(s.at)
	if m.err != nil {
		s.fail(m.err)
		return &noTokens
	}
	if len(set.list) == 0 && len(set.bits) == 0 {
		s.fail(errNoToken)
	}
	return set
}

// MaskBits returns the tokens that are allowed next: bit id%64 of word id/64.
// The slice holds until the next call and must not be changed. After the end of
// the text only the tokens that end it are allowed; a failed state allows
// nothing.
func (s *State) MaskBits() []uint64 {
	set := s.tokens()
	if set.bits != nil {
		return set.bits
	}
	if s.buf == nil && s.m.v != nil {
		s.buf = make([]uint64, s.m.v.words())
	}
	clear(s.buf)
	set.addTo(s.buf)
	return s.buf
}

var noTokens tokenSet

var forbidden = float32(math.Inf(-1))

// Mask sets the logits of the tokens that are not allowed to -Inf. Logits
// beyond the vocabulary are never allowed.
func (s *State) Mask(logits []float32) {
	set := s.tokens()
	if set.bits != nil {
		maskDense(logits, set.bits)
		return
	}
	if cap(s.keep) < len(set.list) {
		s.keep = make([]float32, 0, maxList)
	}
	keep := s.keep[:0]
	for _, id := range set.list {
		if int(id) < len(logits) {
			keep = append(keep, logits[id])
		}
	}
	for i := range logits {
		logits[i] = forbidden
	}
	for i := range keep { // the list is ascending: those kept come first
		logits[set.list[i]] = keep[i]
	}
}

func maskDense(logits []float32, mask []uint64) {
	for i, w := range mask {
		lo := i << 6
		if lo >= len(logits) {
			return
		}
		part := logits[lo:min(lo+64, len(logits))]
		if w == 0 {
			for j := range part {
				part[j] = forbidden
			}
			continue
		}
		for out := ^w; out != 0; out &= out - 1 {
			if j := bits.TrailingZeros64(out); j < len(part) {
				part[j] = forbidden
			}
		}
	}
	for i := len(mask) << 6; i < len(logits); i++ {
		logits[i] = forbidden
	}
}

// Forced returns the bytes that every continuation begins with, at most a few
// thousand: text that need not be sampled. It is empty where the text may end.
// The caller moves over it with AcceptBytes, or with Accept in the tokens that
// spell it.
func (s *State) Forced() []byte {
	if s.err != nil || s.ended {
		return nil
	}
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin()
	if s.at.forced == nil {
		if text, _ := m.forcedFrom(s.at); m.err == nil {
			s.at.forced = &text
			m.memory += len(text) + 16
		} else {
			s.fail(m.err)
			return nil
		}
	}
	if *s.at.forced == "" {
		return nil
	}
	return []byte(*s.at.forced)
}

// forcedFrom returns the bytes that must follow in c, and where they lead.
func (m *machine) forcedFrom(c *config) (string, *config) {
	var text []byte
	for len(text) < maxForced {
		b, ok := m.onlyByte(c)
		if !ok {
			break
		}
		next := m.after(c, m.p.class[b])
		if m.err != nil || next == dead {
			break
		}
		text = append(text, b)
		c = next
		m.work = 0
	}
	return string(text), c
}

// onlyByte returns the one byte that can follow in c, if there is one.
func (m *machine) onlyByte(c *config) (byte, bool) {
	if c.accept || len(c.items) == 0 {
		return 0, false
	}
	only := -1
	for _, it := range c.items {
		st := &m.p.states[it.q]
		for _, e := range m.p.bytes[st.bytes0:st.bytes1] {
			if st.tracked && e.lo == e.hi && m.tracked(it.below, e.to, m.p.first[e.lo]) == nil {
				continue
			}
			if st.counted && m.counted(it.below, e.to, m.p.reads(st)) == nil {
				continue
			}
			if e.lo != e.hi || only >= 0 && only != int(e.lo) {
				return 0, false
			}
			only = int(e.lo)
		}
	}
	if only < 0 {
		return 0, false
	}
	return m.p.first[only], m.p.single[only]
}

// Shortest returns a shortest text that completes the text from here: what to
// write when a generation must end. It is empty where the text may end and
// where it would be longer than limit bytes (Complete tells them apart).
func (s *State) Shortest(limit int) []byte {
	if s.err != nil || s.ended {
		return nil
	}
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin()
	var text []byte
	for c := s.at; !c.accept; {
		if len(text) >= limit {
			return nil
		}
		class, ok := m.towardsEnd(c)
		if !ok {
			return nil
		}
		c = m.after(c, class)
		if m.err != nil {
			s.fail(m.err)
			return nil
		}
		text = append(text, m.p.first[class])
		m.work = 0
	}
	return text
}

// towardsEnd returns the class of a byte on a shortest way to the end.
func (m *machine) towardsEnd(c *config) (class uint8, ok bool) {
	best := int64(math.MaxInt64)
	known := map[*node]int64{}
	for _, it := range c.items {
		below := m.distance(it.below, known)
		st := &m.p.states[it.q]
		for _, e := range m.p.bytes[st.bytes0:st.bytes1] {
			for st.tracked && e.lo <= e.hi && m.tracked(it.below, e.to, m.p.first[e.lo]) == nil {
				e.lo++ // classes are bytes there
			}
			if e.lo > e.hi || !m.fits(it.below.depth+m.p.height[e.to]) || st.counted && m.counted(it.below, e.to, m.p.reads(st)) == nil {
				continue
			}
			if d := int64(m.p.cost[e.to]) + below; d < best {
				best, class, ok = d, e.lo, true
			}
		}
	}
	m.need = 0
	return class, ok
}

// distance returns the least number of bytes from returning to n to the end.
func (m *machine) distance(n *node, known map[*node]int64) int64 {
	if d, ok := known[n]; ok {
		return d
	}
	best := int64(math.MaxInt32)
	for _, it := range n.items {
		if it.below == nil {
			best = 0
			break
		}
		best = min(best, int64(m.p.costOf(it.q))+m.distance(it.below, known))
	}
	known[n] = best
	return best
}
