package grammar

import (
	"fmt"
	"slices"
	"sync"

	"ridge/internal/diag"
)

// Constraint is what State and Gate have in common: what a generation needs.
type Constraint interface {
	Mask(logits []float32)
	MaskBits() []uint64
	Accept(token int32) error
	AcceptBytes(text []byte) error
	Forced() []byte
	Jump(dst []int32) []int32
	Complete() bool
	Done() bool
	Err() error
	Snapshot() Snapshot
	Restore(Snapshot)
}

var (
	_ Constraint = (*State)(nil)
	_ Constraint = (*Gate)(nil)
)

// GateOptions say where the constrained text begins.
type GateOptions struct {
	// Text opens the gate when it has been generated, in whatever tokens: the
	// end tag of a reasoning section, "</think>", or the begin of a tool call.
	Text string
	// Tokens open the gate too: tokens of their own for that tag.
	Tokens []int32
	// Optional allows the generation to end before the gate has opened.
	// Otherwise tokens that end a text are forbidden until the constrained text
	// is complete.
	Optional bool
}

// Gate lets a generation run free until a tag has been written and holds it to a
// grammar from there on. Between the tag and the text up to 8 characters of
// white space may stand. It is used by one goroutine at a time.
type Gate struct {
	s        *State
	tag      *tagTable
	tokens   []int32
	optional bool
	open     bool
	ended    bool // ended before it opened
	matched  int  // bytes of the tag that the text ends with
	buf      []uint64
}

// NewGate returns a closed gate before g, which was compiled with a vocabulary.
func NewGate(g *Grammar, o GateOptions) (*Gate, error) {
	v := g.m.v
	if v == nil {
		return nil, errNoVocabulary
	}
	if o.Text == "" && len(o.Tokens) == 0 {
		return nil, fmt.Errorf("grammar: gate: expected a text or tokens that open it")
	}
	if len(o.Text) > 256 {
		return nil, fmt.Errorf("grammar: gate: text %s: longer than 256 bytes", diag.Quote(o.Text))
	}
	return &Gate{
		s: &State{m: g.m, at: g.m.led}, tag: v.tagTable(o.Text),
		tokens: slices.Clone(o.Tokens), optional: o.Optional,
	}, nil
}

// Open reports whether the constrained text has begun.
func (g *Gate) Open() bool { return g.open }

// Clone returns an independent gate at the same position.
func (g *Gate) Clone() *Gate {
	c := *g
	c.s, c.buf = g.s.Clone(), nil
	return &c
}

// Snapshot returns the current position.
func (g *Gate) Snapshot() Snapshot {
	p := g.s.Snapshot()
	p.open, p.gateEnded, p.matched = g.open, g.ended, g.matched
	return p
}

// Restore returns to a position of this gate or of a clone.
func (g *Gate) Restore(p Snapshot) {
	g.s.Restore(p)
	g.open, g.ended, g.matched = p.open, p.gateEnded, p.matched
}

// Err returns why the grammar's state failed, or nil.
func (g *Gate) Err() error { return g.s.Err() }

// Complete reports whether the generation may end here.
func (g *Gate) Complete() bool {
	if g.open {
		return g.s.Complete()
	}
	return g.ended || g.optional
}

// Done reports whether the text is complete and nothing can follow.
func (g *Gate) Done() bool { return g.ended || g.open && g.s.Done() }

// Forced returns the bytes that must follow, see State.Forced; none before the
// gate has opened.
func (g *Gate) Forced() []byte {
	if !g.open {
		return nil
	}
	return g.s.Forced()
}

// Jump appends the tokens that must follow, see State.Jump; none before the gate
// has opened.
func (g *Gate) Jump(dst []int32) []int32 {
	if !g.open {
		return dst
	}
	return g.s.Jump(dst)
}

// Accept moves over a token. If it is not allowed it returns an error and the
// gate stays where it is.
func (g *Gate) Accept(token int32) error {
	v := g.s.m.v
	switch {
	case g.open:
		return g.s.Accept(token)
	case g.ended:
		return errEnded
	case slices.Contains(g.tokens, token):
		g.open = true
		return nil
	case v.IsEnd(token):
		if !g.optional {
			return fmt.Errorf("grammar: token %d ends the text before the constrained part has begun", token)
		}
		g.ended = true
		return nil
	}
	b := v.Bytes(token)
	if len(b) == 0 { // a special token interrupts the tag
		g.matched = 0
		return nil
	}
	return g.AcceptBytes(b)
}

// AcceptBytes moves over a piece of text. If it is not allowed it returns an
// error and the gate stays where it is.
func (g *Gate) AcceptBytes(text []byte) error {
	if g.open {
		return g.s.AcceptBytes(text)
	}
	if g.ended {
		return errEnded
	}
	k := g.matched
	for i, b := range text {
		k = g.tag.step(k, b)
		if k == len(g.tag.text) && k > 0 {
			if err := g.s.AcceptBytes(text[i+1:]); err != nil {
				return err
			}
			g.open, g.matched = true, 0
			return nil
		}
	}
	g.matched = k
	return nil
}

// forbid calls do for the tokens that are not allowed while the gate is closed:
// those that end the text, and those that go on after the tag with something
// that the constrained text cannot begin with.
func (g *Gate) forbid(do func(token int32)) {
	if !g.optional {
		for _, id := range g.s.m.v.ends.list {
			if !slices.Contains(g.tokens, id) {
				do(id)
			}
		}
	}
	before := g.s.Snapshot()
	for _, hit := range g.tag.hits(g.s.m.v, g.matched) {
		if g.s.AcceptBytes(hit.rest) != nil {
			do(hit.token)
		}
		g.s.Restore(before)
	}
}

// Mask sets the logits of the tokens that are not allowed to -Inf.
func (g *Gate) Mask(logits []float32) {
	switch {
	case g.open:
		g.s.Mask(logits)
	case g.ended:
		g.apply(logits)
	default:
		g.forbid(func(id int32) {
			if int(id) < len(logits) {
				logits[id] = forbidden
			}
		})
	}
}

func (g *Gate) apply(logits []float32) { maskDense(logits, g.MaskBits()) }

// MaskBits returns the tokens that are allowed next, see State.MaskBits.
func (g *Gate) MaskBits() []uint64 {
	if g.open {
		return g.s.MaskBits()
	}
	v := g.s.m.v
	if g.buf == nil {
		g.buf = make([]uint64, v.words())
	}
	clear(g.buf)
	if g.ended {
		v.ends.addTo(g.buf)
		return g.buf
	}
	for id := range v.n {
		g.buf[id>>6] |= 1 << (id & 63)
	}
	g.forbid(func(id int32) { g.buf[id>>6] &^= 1 << (id & 63) })
	return g.buf
}

// tagTable finds a tag in a text that comes in pieces (D. Knuth, J. Morris,
// V. Pratt, Fast pattern matching in strings, 1977).
type tagTable struct {
	text   string
	border []int // border[k]: longest proper border of the first k bytes

	mu   sync.Mutex
	tail [][]tagHit // by bytes matched: what hits returns
	done []bool
}

// tagHit is a token that completes the tag and goes on with rest, which is not
// empty.
type tagHit struct {
	token int32
	rest  []byte
}

// tagTable returns the table of a tag, one per vocabulary.
func (v *Vocabulary) tagTable(text string) *tagTable {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t := v.tags[text]; t != nil {
		return t
	}
	t := &tagTable{text: text, border: make([]int, len(text)+1), tail: make([][]tagHit, len(text)+1), done: make([]bool, len(text)+1)}
	for i := 1; i < len(text); i++ {
		t.border[i+1] = t.step(t.border[i], text[i])
	}
	if v.tags == nil || len(v.tags) >= 64 {
		v.tags = map[string]*tagTable{}
	}
	v.tags[text] = t
	return t
}

// step returns the bytes matched after one more.
func (t *tagTable) step(k int, b byte) int {
	for {
		if k < len(t.text) && t.text[k] == b {
			return k + 1
		}
		if k == 0 {
			return 0
		}
		k = t.border[k]
	}
}

// hits returns the tokens that complete the tag, of which k bytes have been
// matched, and go on.
func (t *tagTable) hits(v *Vocabulary, k int) []tagHit {
	if t.text == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done[k] {
		return t.tail[k]
	}
	at := make([]int, v.longest+1) // depth → bytes matched, or -1-depth where the tag ended
	at[0] = k
	for i := 1; i < len(v.nodes); i++ {
		n := &v.nodes[i]
		m := at[n.depth-1]
		if m >= 0 {
			if m = t.step(m, n.b); m == len(t.text) {
				m = -1 - int(n.depth)
			}
		}
		at[n.depth] = m
		end := -1 - m
		if m >= 0 || n.token < 0 || int(n.depth) == end {
			continue
		}
		for id := n.token; id >= 0; {
			t.tail[k] = append(t.tail[k], tagHit{id, v.Bytes(id)[end:]})
			if v.same == nil {
				break
			}
			id = v.same[id]
		}
	}
	t.done[k] = true
	return t.tail[k]
}
