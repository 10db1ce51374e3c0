package kvcache

import (
	"fmt"
	"slices"

	"ridge/weights/tensor"
)

// noPage marks the pages of a sequence that have left its window.
const noPage = -1

// Seq is the page table of one sequence: n tokens in pages of a pool.
type Seq struct {
	pages []int32
	bases []*byte // address of each page, for the kernels; nil where there is none
	n     int
	first int // tokens before it are gone: they are out of every window

	state int32        // slot of the recurrent state, -1 for none
	saved []savedState // checkpoints of it, oldest first
}

// Len returns the number of tokens that the sequence holds.
func (s *Seq) Len() int { return s.n }

// First returns the first token whose keys and values are still there. It is
// not 0 only after [Pool.Slide].
func (s *Seq) First() int { return s.first }

// Pages returns the number of pages that the sequence holds.
func (s *Seq) Pages() int {
	n := len(s.pages)
	for n > 0 && s.pages[len(s.pages)-n] == noPage {
		n--
	}
	return n
}

// Bases returns the addresses of the pages of s, in order. The slice is valid
// until s changes.
func (s *Seq) Bases() []*byte { return s.bases }

// NewSeq returns an empty sequence. It needs no Free while it is empty.
func (p *Pool) NewSeq() *Seq { return &Seq{} }

// mustCopy says whether s has to copy its last page before it writes to it:
// when somebody else holds the page and the slot that s would write is theirs.
// Otherwise whoever comes first continues in the shared page, and the others
// find its slots taken.
func (p *Pool) mustCopy(s *Seq) bool {
	used := s.n % p.cfg.PageTokens
	if used == 0 {
		return false
	}
	pg := &p.pages[s.pages[len(s.pages)-1]]
	return pg.refs > 1 && int(pg.fill) != used
}

// need returns the pages that Grow takes for tokens more tokens.
func (p *Pool) need(s *Seq, tokens int) int {
	n := p.pagesOf(s.n+tokens) - len(s.pages)
	if tokens > 0 && p.mustCopy(s) {
		n++
	}
	return n
}

// PagesFor returns the number of pages that s needs to hold tokens more
// tokens, whatever other sequences do before. It is what [Pool.Grow] takes,
// or one more if the last page is shared with a sequence that might continue
// in it first. A nil s stands for an empty sequence.
func (p *Pool) PagesFor(s *Seq, tokens int) int {
	if tokens <= 0 {
		return 0
	}
	if s == nil {
		return p.pagesOf(tokens)
	}
	n := p.need(s, tokens)
	if s.n%p.cfg.PageTokens != 0 && !p.mustCopy(s) {
		pg := &p.pages[s.pages[len(s.pages)-1]]
		if pg.refs > 2 || pg.refs == 2 && !pg.cached {
			n++
		}
	}
	return n
}

// Releasable returns the number of pages that become available if s is freed:
// those that no other sequence holds.
func (p *Pool) Releasable(s *Seq) int {
	n := 0
	for _, id := range s.pages {
		if id == noPage {
			continue
		}
		if pg := &p.pages[id]; pg.refs == 1 || pg.refs == 2 && pg.cached {
			n++
		}
	}
	return n
}

// Grow makes room for tokens more tokens at the end of s and counts them as
// held. It takes memory from the budget, if there is one and some is left, and
// evicts from the tree what it still needs. If the last page is shared and
// its next slot taken, s gets a copy of it. On ErrNoPages the sequence is as
// it was.
func (p *Pool) Grow(s *Seq, tokens int) error {
	if tokens <= 0 {
		return nil
	}
	need := p.need(s, tokens)
	for need > len(p.free) && p.addChunk() {
	}
	if need > len(p.free) && p.tree != nil && need <= p.Available() {
		p.tree.Evict(need - len(p.free))
	}
	if need > len(p.free) {
		p.lack(need - len(p.free)) // others may have it
		return fmt.Errorf("%w: %d more tokens need %d pages, %d of %d are free", ErrNoPages, tokens, need, len(p.free), len(p.pages))
	}
	if err := p.giveState(s); err != nil {
		return err
	}
	if p.mustCopy(s) { // asked again: eviction may have ended the sharing
		p.copyLast(s)
	}
	end := s.n + tokens
	for used := s.n % p.cfg.PageTokens; s.n < end; used = 0 {
		if used == 0 {
			id := p.take()
			s.pages = append(s.pages, id)
			s.bases = append(s.bases, &p.bytes(id)[0])
		}
		n := min(p.cfg.PageTokens-used, end-s.n)
		p.setFill(s.pages[len(s.pages)-1], used+n)
		s.n += n
	}
	return nil
}

// copyLast replaces the last page of s by a copy of the slots that s holds.
func (p *Pool) copyLast(s *Seq) {
	last, used := len(s.pages)-1, s.n%p.cfg.PageTokens
	from, to := s.pages[last], p.take()
	copy(p.bytes(to), p.bytes(from))
	p.clearFrom(to, used)
	p.setFill(to, used)
	p.release(from)
	s.pages[last], s.bases[last] = to, &p.bytes(to)[0]
}

// clearFrom zeroes the slots of a page from slot on.
func (p *Pool) clearFrom(id int32, slot int) {
	b := p.bytes(id)
	for i, l := range p.cfg.Layers {
		pl := &p.layers[i]
		for h := range l.Heads {
			for t := slot / TileTokens; t < p.cfg.PageTokens/TileTokens; t++ {
				tile := b[pl.offset+h*pl.headBytes+t*pl.tileBytes:][:pl.tileBytes]
				clearTile(tile[:pl.kBytes], tile[pl.kBytes:], max(slot-t*TileTokens, 0), l, p.cfg.DType)
			}
		}
	}
}

// clearTile zeroes the slots of a tile from slot on.
func clearTile(k, v []byte, slot int, l LayerShape, t tensor.DType) {
	head, size := tileElem(t)
	if head > 0 {
		clear(k[scaleBytes*slot : head])
		clear(v[scaleBytes*slot : head])
	}
	k, v = k[head:], v[head:]
	for d := range l.KDim {
		clear(k[(d*TileTokens+slot)*size : (d+1)*TileTokens*size])
	}
	clear(v[slot*l.VDim*size:])
}

// Truncate drops the tokens of s from the n-th on and frees the pages that no
// longer hold any. If s cannot continue at n, because tokens that a query
// there would see have left the window or no state was saved there, it is cut
// further, to the longest length at which it can: Len tells.
func (p *Pool) Truncate(s *Seq, n int) {
	if n < 0 || n >= s.n {
		return
	}
	n = p.rewindState(s, n)
	if s.first > 0 && n < s.first+p.window-1 {
		n = p.rewindState(s, 0)
	}
	keep := p.pagesOf(n)
	for _, id := range s.pages[keep:] {
		if id != noPage {
			p.release(id)
		}
	}
	s.pages, s.bases, s.n = s.pages[:keep], s.bases[:keep], n
	if n == 0 {
		s.first = 0
		return
	}
	if used := n % p.cfg.PageTokens; used > 0 {
		if id := s.pages[keep-1]; p.pages[id].refs == 1 {
			p.setFill(id, used)
		}
	}
}

// Free drops all tokens of s, its state and its checkpoints.
func (p *Pool) Free(s *Seq) {
	for _, id := range s.pages {
		if id != noPage {
			p.release(id)
		}
	}
	s.pages, s.bases, s.n, s.first = s.pages[:0], s.bases[:0], 0, 0
	p.freeStates(s)
}

// Fork returns a second sequence with the tokens of s. They share all pages;
// when both continue in the last one, the later gets a copy. The recurrent
// state is copied at once, the checkpoints are not: it fails with ErrNoPages
// only if there is no room for a state.
func (p *Pool) Fork(s *Seq) (*Seq, error) {
	f := p.NewSeq()
	if err := p.copyState(f, s); err != nil {
		return nil, err
	}
	f.pages, f.bases, f.n, f.first = slices.Clone(s.pages), slices.Clone(s.bases), s.n, s.first
	for _, id := range f.pages {
		if id != noPage {
			p.share(id)
		}
	}
	return f, nil
}

// Window returns the number of tokens that a query can see at most if every
// layer with attention has a window, and 0 if some layer sees all.
func (p *Pool) Window() int { return p.window }

// Slide frees the pages of s that no query at position pos or later sees. It
// does nothing if some layer sees all tokens. A sequence that has slid can be
// truncated to positions from pos on; see Truncate for shorter ones.
func (p *Pool) Slide(s *Seq, pos int) {
	if p.window == 0 {
		return
	}
	first := (min(pos, s.n) + 1 - p.window) / p.cfg.PageTokens
	for i := s.first / p.cfg.PageTokens; i < first; i++ {
		p.release(s.pages[i])
		s.pages[i], s.bases[i] = noPage, nil
		s.first = (i + 1) * p.cfg.PageTokens
	}
}
