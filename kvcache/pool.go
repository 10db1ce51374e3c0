// Package kvcache keeps what running sequences have computed: the keys and
// values of their tokens in pages of one pool, and the states of recurrent
// layers. A page holds a fixed number of tokens of one sequence, for all
// layers; a sequence is a table of page numbers. Pages are counted, so that
// sequences and the prefix [Tree] share them, and are copied when what they
// hold would differ.
//
// A pool and what is in it belong to one goroutine: there are no locks, but for
// the [Budget] that the pools of several models share. The package moves bytes
// and counts tokens; it never looks at a number that a model computed.
// docs/memory.md explains how the parts fit together.
package kvcache

import (
	"errors"
	"fmt"

	"ridge/weights/tensor"
)

// TileTokens is the number of tokens in a tile, the unit that the attention
// kernels read: one vector register of scores. A page is a whole number of
// tiles.
const TileTokens = 16

// ErrNoPages is returned when the pool has no page left.
var ErrNoPages = errors.New("kvcache: no free page")

// LayerShape is what one layer keeps of a sequence. A layer with attention has
// Heads keys of KDim and Heads values of VDim elements for each token; a
// recurrent layer has State bytes for the whole sequence and no heads.
type LayerShape struct {
	Heads, KDim, VDim int

	Window int // tokens that a query sees at most, itself included; 0 for all
	State  int // bytes of a recurrent state; 0 for a layer with attention
}

// Config describes a pool.
type Config struct {
	Layers     []LayerShape
	PageTokens int          // tokens in a page, a multiple of TileTokens; 0 means 64
	DType      tensor.DType // F16, F32 or Q8_0
	MaxBytes   int64        // memory for pages and states; at least one page is always allowed
	Budget     *Budget      // where memory is taken from in chunks, in place of MaxBytes; nil for none

	// States is how many recurrent states there is room for, live ones and
	// checkpoints; needed if a layer is recurrent.
	States int
}

// Pool hands out pages.
type Pool struct {
	cfg       Config
	pageBytes int
	layers    []layerPlace
	window    int // largest window if all layers with attention have one, else 0
	free      []int32
	pages     []page // as many as the pool can ever have
	chunked
	states  stateStore
	tree    *Tree
	seqRefs int // entries of all page tables of sequences

	// Sums over pages, so that counters cost nothing to read.
	reclaimable    int // pages that only the tree holds
	filledInUse    int // filled slots of pages that a sequence holds
	filledInCached int // filled slots of pages that only the tree holds
}

// page is what the pool knows of one page. Tokens are only ever appended to a
// page that more than one holder has: who holds fewer than fill tokens of it
// must copy it before writing.
type page struct {
	refs   int32 // sequences that hold it, and one for the tree
	fill   int32 // slots written since the page was taken
	dirty  bool  // was used before and must be cleared
	cached bool  // the tree is one of the holders
}

// layerPlace says where a layer's heads lie in a page, or its state in a slot.
type layerPlace struct{ offset, headBytes, tileBytes, kBytes int }

// New makes a pool for cfg. Memory is reserved at once, or as much of it as the
// budget's floor is, and given by the system as pages are first used.
func New(cfg Config) (*Pool, error) {
	if cfg.PageTokens == 0 {
		cfg.PageTokens = 64
	}
	if cfg.PageTokens < 0 || cfg.PageTokens%TileTokens != 0 || cfg.PageTokens > 1<<20 {
		return nil, fmt.Errorf("kvcache: page size: expected a positive multiple of %d tokens, found %d", TileTokens, cfg.PageTokens)
	}
	if TileBytes(1, cfg.DType) == 0 {
		return nil, fmt.Errorf("kvcache: element type: expected F16, F32 or Q8_0, found %v", cfg.DType)
	}
	if len(cfg.Layers) == 0 {
		return nil, errors.New("kvcache: layers: expected at least 1, found 0")
	}
	p := &Pool{cfg: cfg}
	if err := p.place(); err != nil {
		return nil, err
	}
	if err := p.openStates(); err != nil {
		return nil, err
	}
	if err := p.openChunks(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// place lays the layers out in a page and in a state slot.
func (p *Pool) place() error {
	tiles := p.cfg.PageTokens / TileTokens
	windowed := true
	for i, l := range p.cfg.Layers {
		if l.State > 0 && l.Heads == 0 {
			p.layers = append(p.layers, layerPlace{offset: p.states.bytes})
			p.states.bytes += align64(l.State)
			continue
		}
		if l.Heads <= 0 || l.KDim <= 0 || l.VDim <= 0 || l.Window < 0 || l.State != 0 {
			return fmt.Errorf("kvcache: layer %d: expected heads and dimensions of keys and values, or a state, found %+v", i, l)
		}
		pl := layerPlace{offset: p.pageBytes}
		pl.kBytes = align64(TileBytes(l.KDim, p.cfg.DType))
		pl.tileBytes = pl.kBytes + align64(TileBytes(l.VDim, p.cfg.DType))
		pl.headBytes = pl.tileBytes * tiles
		p.pageBytes += pl.headBytes * l.Heads
		p.layers = append(p.layers, pl)
		windowed = windowed && l.Window > 0
		p.window = max(p.window, l.Window)
	}
	if !windowed || p.pageBytes == 0 {
		p.window = 0
	}
	p.pageBytes = max(p.pageBytes, 64) // pages of a model without attention only count tokens
	return nil
}

func align64(n int) int { return (n + 63) &^ 63 }

// Close gives the memory of the pool back. No sequence may be used after it.
func (p *Pool) Close() error { return errors.Join(p.closeChunks(), p.states.close()) }

// Tree returns the pool's prefix tree, nil if it has none.
func (p *Pool) Tree() *Tree { return p.tree }

// PageTokens returns the number of tokens in a page.
func (p *Pool) PageTokens() int { return p.cfg.PageTokens }

// DType returns the element type of keys and values.
func (p *Pool) DType() tensor.DType { return p.cfg.DType }

// TokenBytes returns the bytes that one token takes in all layers.
func (p *Pool) TokenBytes() int { return p.pageBytes / p.cfg.PageTokens }

// Available returns the number of pages that [Pool.Grow] can take for sure: the
// free ones of the memory that the pool has, and those that only the tree holds.
func (p *Pool) Available() int { return len(p.free) + p.reclaimable }

// pagesOf returns the number of pages that n tokens fill.
func (p *Pool) pagesOf(n int) int { return (n + p.cfg.PageTokens - 1) / p.cfg.PageTokens }

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

// share counts one more sequence as a holder of a page.
func (p *Pool) share(id int32) {
	pg := &p.pages[id]
	if pg.cached && pg.refs == 1 {
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
	case pg.refs == 1 && pg.cached:
		p.reclaimable++
		p.filledInUse -= int(pg.fill)
		p.filledInCached += int(pg.fill)
	}
}

// hold makes the tree a holder of a page that a sequence has.
func (p *Pool) hold(id int32) {
	pg := &p.pages[id]
	pg.cached = true
	pg.refs++
}

// drop ends the tree's hold of a page and says whether the page became free.
func (p *Pool) drop(id int32) bool {
	pg := &p.pages[id]
	pg.cached = false
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
	b := p.bytes(s.pages[i/perPage])[off : off+pl.tileBytes]
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
