package kvcache

import (
	"fmt"
	"slices"

	"ridge/weights/tensor"
)

// noPage marks the pages of a sequence that have left a window.
const noPage = -1

// Seq is what one sequence holds: n tokens in pages of a pool, with a page table
// for each group of layers, and the state of recurrent layers.
type Seq struct {
	n      int
	tables []table      // one for each group
	state  []int32      // pages of the recurrent state, none for an empty sequence
	saved  []savedState // checkpoints of it, oldest first
	kept   savedState   // see Pool.Keep
}

// table is the page table of one group.
type table struct {
	pages []int32
	bases []*byte // address of each page, for the kernels; nil where there is none
	first int     // tokens before it are gone: they are out of the window
}

// gone returns how many entries at the start of t have no page.
func (t *table) gone(size int) int { return t.first / size }

// held returns the pages of t that are there.
func (t *table) held(size int) []int32 { return t.pages[t.gone(size):] }

// Len returns the number of tokens that the sequence holds.
func (s *Seq) Len() int { return s.n }

// First returns the first token whose keys and values are still there in all
// layers. It is not 0 only after [Pool.Slide].
func (s *Seq) First() int {
	first := 0
	for i := range s.tables {
		first = max(first, s.tables[i].first)
	}
	return first
}

// Pages returns the number of pages that the sequence holds, with those of its
// state and its checkpoints. One that it holds twice counts twice.
func (s *Seq) Pages() int {
	n := len(s.state)
	for i := range s.saved {
		n += len(s.saved[i].pages)
	}
	for i := range s.tables {
		t := &s.tables[i]
		n += len(t.pages)
		for k := 0; k < len(t.pages) && t.pages[k] == noPage; k++ {
			n--
		}
	}
	return n
}

// Bases returns the addresses of the pages that s has for a layer, in order, nil
// for those out of its window. The slice is valid until s changes.
func (p *Pool) Bases(layer int, s *Seq) []*byte { return s.tables[p.layers[layer].group].bases }

// NewSeq returns an empty sequence. It needs no Free while it is empty.
func (p *Pool) NewSeq() *Seq { return &Seq{tables: make([]table, len(p.groups))} }

// push appends a page to t.
func (p *Pool) push(t *table, id int32) {
	t.pages = append(t.pages, id)
	t.bases = append(t.bases, &p.bytes(id)[0])
}

// skip appends entries without a page to t.
func (t *table) skip(n int) {
	for range n {
		t.pages, t.bases = append(t.pages, noPage), append(t.bases, nil)
	}
}

// last returns the last page of t, which must have one.
func (p *Pool) last(t *table) *page { return &p.pages[t.pages[len(t.pages)-1]] }

// mustCopy says whether s has to copy its last page in t before it writes to it:
// when somebody else holds the page and the slot that s would write is theirs.
// Otherwise whoever comes first continues in the shared page, and the others
// find its slots taken.
func (p *Pool) mustCopy(s *Seq, t *table) bool {
	used := s.n % p.cfg.PageTokens
	if used == 0 {
		return false
	}
	pg := p.last(t)
	return pg.refs > 1 && int(pg.fill) != used
}

// need returns the pages that Grow takes for tokens more tokens.
func (p *Pool) need(s *Seq, tokens int) int {
	if tokens <= 0 {
		return 0
	}
	n := len(p.groups)*(p.pagesOf(s.n+tokens)-p.pagesOf(s.n)) + p.stateNeed(s)
	for g := range s.tables {
		if p.mustCopy(s, &s.tables[g]) {
			n++
		}
	}
	return n
}

// PagesFor returns the number of pages that s needs to hold tokens more tokens
// at once, whatever other sequences do before. It is what [Pool.Grow] takes, or
// one more for each group whose last page is shared with a sequence that might
// continue in it first. A nil s stands for an empty sequence.
func (p *Pool) PagesFor(s *Seq, tokens int) int {
	if tokens <= 0 {
		return 0
	}
	if s == nil {
		return len(p.groups)*p.pagesOf(tokens) + p.statePages
	}
	return p.need(s, tokens) + p.mightCopy(s)
}

// mightCopy returns the pages of s that it would have to copy if others went on
// in them first.
func (p *Pool) mightCopy(s *Seq) int {
	n := 0
	if s.n%p.cfg.PageTokens == 0 {
		return 0
	}
	for g := range s.tables {
		t := &s.tables[g]
		if pg := p.last(t); pg.refs-pg.cached > 1 && !p.mustCopy(s, t) {
			n++
		}
	}
	return n
}

// PagesInSteps returns the most pages beside its own that s needs at any time
// until it holds tokens more tokens, if it grows by step tokens at a time at most
// and slides to its last token after each: see [Pool.Slide]. With step 0 it grows
// at once, as PagesFor says. A nil s stands for a sequence to come, with its
// checkpoints and the copy of a state that others share.
func (p *Pool) PagesInSteps(s *Seq, tokens, step int) int {
	if s == nil {
		return p.pagesFor(tokens, step, p.tree != nil)
	}
	n := p.PagesFor(s, tokens)
	if step <= 0 || tokens <= step {
		return n
	}
	whole := p.pagesOf(s.n+tokens) - p.pagesOf(s.n)
	for g := p.full; g < len(p.groups); g++ {
		// What only s holds comes back when it leaves the window.
		most := p.spanOf(p.groups[g].window, s.n+tokens, step) - p.alone(&s.tables[g])
		n -= max(0, whole-max(0, most))
	}
	return n
}

// alone returns the pages of t that no other sequence holds.
func (p *Pool) alone(t *table) int {
	n := 0
	for _, id := range t.held(p.cfg.PageTokens) {
		if pg := &p.pages[id]; pg.refs-pg.cached == 1 {
			n++
		}
	}
	return n
}

// Tokens returns the tokens of the longest sequence that needs no more than the
// given pages, if it grows by step tokens at a time and slides: see
// [Pool.PagesInSteps].
func (p *Pool) Tokens(pages, step int) int {
	lo, hi := 0, 1<<30
	for lo < hi {
		if mid := lo + (hi-lo+1)/2; p.PagesInSteps(nil, mid, step) <= pages {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo
}

// Bounded says whether the pages of a sequence do not just follow its length:
// some layers have windows, or a state.
func (p *Pool) Bounded() bool { return len(p.groups) > p.full || p.statePages > 0 }

// Stateful says whether some layers have a state, so that what was computed can
// be continued at the very length that it has, and not at a shorter one.
func (p *Pool) Stateful() bool { return p.statePages > 0 }

// Releasable returns the number of pages that become available if s is freed:
// those that no other sequence holds.
func (p *Pool) Releasable(s *Seq) int {
	n := 0
	for g := range s.tables {
		n += p.alone(&s.tables[g])
	}
	return n + p.aloneStates(s)
}

// room sees to it that so many pages are free: it takes memory from the budget,
// if there is one and some is left, and evicts from the tree what it still needs.
func (p *Pool) room(need int) error {
	for need > len(p.free) && p.addChunk() {
	}
	if need > len(p.free) && p.tree != nil && need <= p.Available() {
		p.tree.Evict(need - len(p.free))
	}
	if need > len(p.free) {
		p.lack(need - len(p.free)) // others may have it
		return fmt.Errorf("%w: %d are needed, %d of %d are free", ErrNoPages, need, len(p.free), len(p.pages))
	}
	return nil
}

// Grow makes room for tokens more tokens at the end of s and counts them as
// held. It takes memory from the budget, if there is one and some is left, and
// evicts from the tree what it still needs. Of a last page that is shared and
// whose next slot is taken, and of a state that is shared, s gets a copy. On
// ErrNoPages the sequence is as it was.
func (p *Pool) Grow(s *Seq, tokens int) error {
	if tokens <= 0 {
		return nil
	}
	if need := p.need(s, tokens); need > 0 {
		if err := p.room(need); err != nil {
			return fmt.Errorf("%d more tokens: %w", tokens, err)
		}
		p.ownState(s)
		for g := range s.tables { // asked again: eviction may have ended the sharing
			if p.mustCopy(s, &s.tables[g]) {
				p.copyLast(s, g)
			}
		}
	}
	end := s.n + tokens
	for used := s.n % p.cfg.PageTokens; s.n < end; used = 0 {
		n := min(p.cfg.PageTokens-used, end-s.n)
		for g := range s.tables {
			t := &s.tables[g]
			if used == 0 {
				p.push(t, p.take())
			}
			p.setFill(t.pages[len(t.pages)-1], used+n)
		}
		s.n += n
	}
	return nil
}

// copyLast replaces the last page of group g of s by a copy of the slots that s
// holds.
func (p *Pool) copyLast(s *Seq, g int) {
	t := &s.tables[g]
	last, used := len(t.pages)-1, s.n%p.cfg.PageTokens
	from, to := t.pages[last], p.take()
	copy(p.bytes(to), p.bytes(from))
	p.clearFrom(g, to, used)
	p.setFill(to, used)
	p.release(from)
	t.pages[last], t.bases[last] = to, &p.bytes(to)[0]
}

// clearFrom zeroes the slots of a page of group g from slot on.
func (p *Pool) clearFrom(g int, id int32, slot int) {
	b := p.bytes(id)
	for _, i := range p.groups[g].layers {
		pl, l := &p.layers[i], p.cfg.Layers[i]
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
		clear(v[min(scaleBytes*slot, len(v)):min(head, len(v))])
	}
	if t == tensor.BF16 {
		clearPairs(k, v, slot, l)
		return
	}
	k, v = k[head:], v[min(head, len(v)):]
	for d := range l.KDim {
		clear(k[(d*TileTokens+slot)*size : (d+1)*TileTokens*size])
	}
	clear(v[slot*l.VDim*size:])
}

// since returns the first token that a query at position n sees in group g.
func (p *Pool) since(g, n int) int {
	if w := p.groups[g].window; w > 0 {
		return max(0, n+1-w)
	}
	return 0
}

// continues says whether s has what a query at position n sees.
func (p *Pool) continues(s *Seq, n int) bool {
	for g := range s.tables {
		if s.tables[g].first > p.since(g, n) {
			return false
		}
	}
	return true
}

// Truncate drops the tokens of s from the n-th on and frees the pages that no
// longer hold any. If s cannot continue at n, because tokens that a query
// there would see have left a window or no state was saved there, it is cut
// further, to the longest length at which it can: Len tells.
func (p *Pool) Truncate(s *Seq, n int) {
	if n < 0 || n >= s.n {
		return
	}
	if n = p.rewindState(s, n); !p.continues(s, n) {
		n = 0
	}
	if n == 0 {
		p.Free(s)
		return
	}
	p.cut(s, n)
}

// cut drops the tokens of s from the n-th on, without regard to its state.
func (p *Pool) cut(s *Seq, n int) {
	keep, used := p.pagesOf(n), n%p.cfg.PageTokens
	for g := range s.tables {
		t := &s.tables[g]
		for _, id := range t.pages[keep:] {
			p.release(id)
		}
		t.pages, t.bases = t.pages[:keep], t.bases[:keep]
		if used > 0 {
			if id := t.pages[keep-1]; p.pages[id].refs == 1 {
				p.setFill(id, used)
			}
		}
	}
	s.n = n
}

// Free drops all tokens of s, its state and its checkpoints.
func (p *Pool) Free(s *Seq) {
	for g := range s.tables {
		t := &s.tables[g]
		for _, id := range t.held(p.cfg.PageTokens) {
			p.release(id)
		}
		*t = table{pages: t.pages[:0], bases: t.bases[:0]}
	}
	s.n = 0
	p.Drop(s)
	p.freeStates(s)
}

// Fork returns a second sequence with the tokens of s. They share all pages, and
// the recurrent state; when both continue, the later gets a copy of what is not
// full. Checkpoints stay with s.
func (p *Pool) Fork(s *Seq) *Seq {
	f := p.NewSeq()
	f.n, f.state = s.n, p.shareState(s.state)
	for g := range s.tables {
		t := &s.tables[g]
		f.tables[g] = table{slices.Clone(t.pages), slices.Clone(t.bases), t.first}
		for _, id := range t.held(p.cfg.PageTokens) {
			p.share(id)
		}
	}
	return f
}

// Slide frees the pages of s that no query at position pos or later sees in
// their layers. A sequence that has slid can be truncated to positions from pos
// on; see Truncate for shorter ones.
func (p *Pool) Slide(s *Seq, pos int) {
	size := p.cfg.PageTokens
	for g := p.full; g < len(s.tables); g++ {
		t := &s.tables[g]
		first := p.since(g, min(pos, s.n)) / size
		for i := t.gone(size); i < first; i++ {
			p.release(t.pages[i])
			t.pages[i], t.bases[i] = noPage, nil
			t.first = (i + 1) * size
		}
	}
}
