// Package kvcache keeps what running sequences have computed, in pages of one
// pool: the keys and values of their tokens, and the states of recurrent layers.
// A page holds a fixed number of tokens of one sequence, for a group of layers
// that see the same tokens; a sequence is a table of page numbers for each group.
// Pages are counted, so that sequences and the prefix [Tree] share them, and are
// copied when what they hold would differ.
//
// A pool and what is in it belong to one goroutine: there are no locks, but for
// the [Budget] that the pools of several models share. The package moves bytes
// and counts tokens; it never looks at a number that a model computed.
// docs/memory.md explains how the parts fit together.
package kvcache

import (
	"errors"

	"ridge/weights/tensor"
)

// TileTokens is the number of tokens in a tile, the unit that the attention
// kernels read: one vector register of scores. A page is a whole number of
// tiles.
const TileTokens = 16

// ErrNoPages is returned when the pool has no page left.
var ErrNoPages = errors.New("kvcache: no free page")

// Config describes a pool.
type Config struct {
	Layers     []LayerShape
	PageTokens int          // tokens in a page, a multiple of TileTokens; 0 means 64
	DType      tensor.DType // F16, F32, BF16 or Q8_0
	MaxBytes   int64        // memory for pages; at least one page is always allowed
	Budget     *Budget      // where memory is taken from in chunks, in place of MaxBytes; nil for none

	// Checkpoints is how many copies of its recurrent state a sequence keeps to be
	// truncated to; 0 for none. See [Pool.Checkpoint].
	Checkpoints int
}

// Pool hands out pages.
type Pool struct {
	*layout
	free  []int32
	pages []page // as many as the pool can ever have
	chunked
	tree    *Tree
	seqRefs int // entries of all page tables of sequences, and pages of their states

	// Sums over pages, so that counters cost nothing to read.
	reclaimable    int // pages that only the tree holds
	filledInUse    int // filled slots of pages that a sequence holds
	filledInCached int // filled slots of pages that only the tree holds
}

// page is what the pool knows of one page. Tokens are only ever appended to a
// page that more than one holder has: who holds fewer than fill tokens of it
// must copy it before writing.
type page struct {
	refs   int32 // holders: sequences, and nodes and marks of the tree
	fill   int32 // slots written since the page was taken; all of them in a page of a state
	cached int32 // of refs, those of the tree
	dirty  bool  // was used before and must be cleared
}

// New makes a pool for cfg. Memory is reserved at once, or as much of it as the
// budget's floor is, and given by the system as pages are first used.
func New(cfg Config) (*Pool, error) {
	l, err := newLayout(cfg)
	if err != nil {
		return nil, err
	}
	p := &Pool{layout: l}
	if err := p.openChunks(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close gives the memory of the pool back. No sequence may be used after it.
func (p *Pool) Close() error { return p.closeChunks() }

// Tree returns the pool's prefix tree, nil if it has none.
func (p *Pool) Tree() *Tree { return p.tree }

// PageTokens returns the number of tokens in a page.
func (p *Pool) PageTokens() int { return p.cfg.PageTokens }

// DType returns the element type of keys and values.
func (p *Pool) DType() tensor.DType { return p.cfg.DType }

// Layers returns what the layers keep. It must not be changed.
func (p *Pool) Layers() []LayerShape { return p.cfg.Layers }

// PageBytes returns the bytes of a page.
func (p *Pool) PageBytes() int64 { return int64(p.pageBytes) }

// TokenBytes returns the bytes that one token takes in all layers, as long as
// it is in every window.
func (p *Pool) TokenBytes() int { return p.tokenBytes / p.cfg.PageTokens }

// Available returns the number of pages that [Pool.Grow] can take for sure: the
// free ones of the memory that the pool has, and those that only the tree holds.
func (p *Pool) Available() int { return len(p.free) + p.reclaimable }

// take returns a free page, empty and zero, with one holder.
func (p *Pool) take() int32 {
	id := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	pg := &p.pages[id]
	if pg.dirty {
		// A masked key gets weight zero, but zero times a stale infinity
		// would be NaN.
		clear(p.bytes(id))
	}
	pg.refs, pg.fill, pg.dirty = 1, 0, true
	p.seqRefs++
	return id
}

// onlyCached says whether the tree holds a page and no sequence does.
func (pg *page) onlyCached() bool { return pg.cached > 0 && pg.refs == pg.cached }

// share counts one more sequence as a holder of a page.
func (p *Pool) share(id int32) {
	pg := &p.pages[id]
	if pg.onlyCached() {
		p.reclaimable--
		p.filledInCached -= int(pg.fill)
		p.filledInUse += int(pg.fill)
	}
	pg.refs++
	p.seqRefs++
}

// release takes a page from a sequence.
func (p *Pool) release(id int32) {
	pg := &p.pages[id]
	pg.refs--
	p.seqRefs--
	switch {
	case pg.refs == 0:
		p.filledInUse -= int(pg.fill)
		p.free = append(p.free, id)
	case pg.onlyCached():
		p.reclaimable++
		p.filledInUse -= int(pg.fill)
		p.filledInCached += int(pg.fill)
	}
}

// hold makes the tree a holder of a page that a sequence has, once more if it is
// one already. It says whether it was none.
func (p *Pool) hold(id int32) bool {
	pg := &p.pages[id]
	pg.refs++
	pg.cached++
	return pg.cached == 1
}

// drop ends one of the tree's holds of a page and says whether the page became
// free.
func (p *Pool) drop(id int32) bool {
	pg := &p.pages[id]
	pg.cached--
	if pg.refs--; pg.refs > 0 {
		return false
	}
	p.reclaimable--
	p.filledInCached -= int(pg.fill)
	p.free = append(p.free, id)
	return true
}

// setFill says how many slots of a page that a sequence holds are written.
func (p *Pool) setFill(id int32, fill int) {
	p.filledInUse += fill - int(p.pages[id].fill)
	p.pages[id].fill = int32(fill)
}

// Tile returns the keys and the values of tile i (tokens 16i to 16i+15) of s
// in one layer and head: keys as [KDim][16], values as [16][VDim] elements, each
// behind its scales if the pool's type has some (see TileBytes).
func (p *Pool) Tile(layer, head int, s *Seq, i int) (k, v []byte) {
	pl, perPage := &p.layers[layer], p.cfg.PageTokens/TileTokens
	off := pl.offset + head*pl.headBytes + i%perPage*pl.tileBytes
	b := p.bytes(s.tables[pl.group].pages[i/perPage])[off : off+pl.tileBytes]
	return b[:pl.kBytes], b[pl.kBytes:]
}

// Place says where a head's tiles lie in every page, in bytes: the first
// tile's keys and values, the distance of tiles, and how many a page has.
type Place struct{ K, V, Step, PerPage int }

// Place returns where the tiles of a head are in a page.
func (p *Pool) Place(layer, head int) Place {
	pl := &p.layers[layer]
	off := pl.offset + head*pl.headBytes
	return Place{K: off, V: off + pl.kBytes, Step: pl.tileBytes, PerPage: p.cfg.PageTokens / TileTokens}
}
