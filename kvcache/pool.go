// Package kvcache keeps the keys and values of running sequences in a pool of
// pages. A page holds a fixed number of tokens of one sequence, for all
// layers; a sequence is a table of page numbers.
package kvcache

import (
	"errors"
	"fmt"

	"ridge/internal/arena"
	"ridge/tensor"
)

// TileTokens is the number of tokens in a tile, the unit that the attention
// kernels read: one vector register of scores. A page is a whole number of
// tiles.
const TileTokens = 16

// ErrNoPages is returned when the pool has no page left.
var ErrNoPages = errors.New("kvcache: no free page")

// LayerShape is what one layer stores for a token: Heads keys of KDim and
// Heads values of VDim elements.
type LayerShape struct{ Heads, KDim, VDim int }

// Config describes a pool.
type Config struct {
	Layers     []LayerShape
	PageTokens int          // tokens in a page, a multiple of TileTokens; 0 means 64
	DType      tensor.DType // F16 or F32
	MaxBytes   int64        // memory for pages; at least one page is always allowed
}

// Pool hands out pages. It is owned by one goroutine: there is no lock.
type Pool struct {
	cfg       Config
	pageBytes int
	layers    []layerPlace
	mem       *arena.Arena
	free      []int32
	dirty     []bool // page was used before and must be cleared
	refs      []int32
}

// layerPlace says where a layer's heads lie in a page.
type layerPlace struct{ offset, headBytes, tileBytes, kBytes int }

// New makes a pool for cfg. Memory is reserved at once and given by the system
// as pages are first used.
func New(cfg Config) (*Pool, error) {
	if cfg.PageTokens == 0 {
		cfg.PageTokens = 64
	}
	if cfg.PageTokens < 0 || cfg.PageTokens%TileTokens != 0 {
		return nil, fmt.Errorf("kvcache: page size: expected a positive multiple of %d tokens, found %d", TileTokens, cfg.PageTokens)
	}
	if cfg.DType != tensor.F16 && cfg.DType != tensor.F32 {
		return nil, fmt.Errorf("kvcache: element type: expected F16 or F32, found %v", cfg.DType)
	}
	if len(cfg.Layers) == 0 {
		return nil, errors.New("kvcache: layers: expected at least 1, found 0")
	}
	p := &Pool{cfg: cfg}
	size, tiles := cfg.DType.BlockBytes(), cfg.PageTokens/TileTokens
	for i, l := range cfg.Layers {
		if l.Heads <= 0 || l.KDim <= 0 || l.VDim <= 0 {
			return nil, fmt.Errorf("kvcache: layer %d: expected positive heads and dimensions, found %+v", i, l)
		}
		pl := layerPlace{offset: p.pageBytes}
		pl.kBytes = align64(l.KDim * TileTokens * size)
		pl.tileBytes = pl.kBytes + align64(l.VDim*TileTokens*size)
		pl.headBytes = pl.tileBytes * tiles
		p.pageBytes += pl.headBytes * l.Heads
		p.layers = append(p.layers, pl)
	}
	n := max(1, cfg.MaxBytes/int64(p.pageBytes))
	if n > 1<<30 {
		return nil, fmt.Errorf("kvcache: memory: %d bytes are more than 2^30 pages", cfg.MaxBytes)
	}
	var err error
	if p.mem, err = arena.New(int(n) * p.pageBytes); err != nil {
		return nil, fmt.Errorf("kvcache: %w", err)
	}
	p.free = make([]int32, n)
	for i := range p.free {
		p.free[i] = int32(n) - 1 - int32(i) // page 0 is given first
	}
	p.dirty, p.refs = make([]bool, n), make([]int32, n)
	return p, nil
}

func align64(n int) int { return (n + 63) &^ 63 }

// Close gives the memory of the pool back. No sequence may be used after it.
func (p *Pool) Close() error { return p.mem.Free() }

// PageTokens returns the number of tokens in a page.
func (p *Pool) PageTokens() int { return p.cfg.PageTokens }

// DType returns the element type of keys and values.
func (p *Pool) DType() tensor.DType { return p.cfg.DType }

// TokenBytes returns the bytes that one token takes in all layers.
func (p *Pool) TokenBytes() int { return p.pageBytes / p.cfg.PageTokens }

// Stats are counters of a pool.
type Stats struct {
	Pages, Free int   // pages in all, and pages that no sequence holds
	PageBytes   int64 // bytes of one page
}

// Stats returns the pool's counters.
func (p *Pool) Stats() Stats {
	return Stats{Pages: len(p.refs), Free: len(p.free), PageBytes: int64(p.pageBytes)}
}

// Seq is the page table of one sequence: n tokens in pages of a pool.
type Seq struct {
	pages []int32
	bases []*byte // address of each page, for the kernels
	n     int
}

// Len returns the number of tokens that the sequence holds.
func (s *Seq) Len() int { return s.n }

// Pages returns the number of pages that the sequence holds.
func (s *Seq) Pages() int { return len(s.pages) }

// NewSeq returns an empty sequence. It needs no Free while it is empty.
func (p *Pool) NewSeq() *Seq { return &Seq{} }

// Grow makes room for tokens more tokens at the end of s and counts them as
// held. On ErrNoPages the sequence is as it was.
func (p *Pool) Grow(s *Seq, tokens int) error {
	need := (s.n+tokens+p.cfg.PageTokens-1)/p.cfg.PageTokens - len(s.pages)
	if need > len(p.free) {
		return fmt.Errorf("%w: %d more tokens need %d pages, %d of %d are free", ErrNoPages, tokens, need, len(p.free), len(p.refs))
	}
	for range max(need, 0) {
		id := p.free[len(p.free)-1]
		p.free = p.free[:len(p.free)-1]
		p.refs[id] = 1
		if p.dirty[id] {
			// A masked key gets weight zero, but zero times a stale
			// infinity would be NaN.
			clear(p.page(id))
		}
		p.dirty[id] = true
		s.pages = append(s.pages, id)
		s.bases = append(s.bases, &p.page(id)[0])
	}
	s.n += tokens
	return nil
}

// Truncate drops the tokens of s from the n-th on and frees the pages that no
// longer hold any.
func (p *Pool) Truncate(s *Seq, n int) {
	if n < 0 || n >= s.n {
		return
	}
	keep := (n + p.cfg.PageTokens - 1) / p.cfg.PageTokens
	for _, id := range s.pages[keep:] {
		p.release(id)
	}
	s.pages, s.bases, s.n = s.pages[:keep], s.bases[:keep], n
}

// Free drops all tokens of s.
func (p *Pool) Free(s *Seq) {
	for _, id := range s.pages {
		p.release(id)
	}
	s.pages, s.bases, s.n = s.pages[:0], s.bases[:0], 0
}

func (p *Pool) release(id int32) {
	if p.refs[id]--; p.refs[id] == 0 {
		p.free = append(p.free, id)
	}
}

func (p *Pool) page(id int32) []byte {
	return p.mem.Bytes()[int(id)*p.pageBytes : (int(id)+1)*p.pageBytes]
}

// Tile returns the keys and the values of tile i (tokens 16i to 16i+15) of s
// in one layer and head: keys as [KDim][16], values as [16][VDim] elements.
func (p *Pool) Tile(layer, head int, s *Seq, i int) (k, v []byte) {
	pl, perPage := &p.layers[layer], p.cfg.PageTokens/TileTokens
	off := int(s.pages[i/perPage])*p.pageBytes + pl.offset + head*pl.headBytes + i%perPage*pl.tileBytes
	b := p.mem.Bytes()[off : off+pl.tileBytes]
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

// Bases returns the addresses of the pages of s, in order. The slice is valid
// until s changes.
func (s *Seq) Bases() []*byte { return s.bases }

// Check verifies the pool's bookkeeping: every page is either free or held,
// and the sequences given hold exactly the pages that are counted.
func (p *Pool) Check(seqs ...*Seq) error {
	held := make([]int32, len(p.refs))
	for i, s := range seqs {
		if want := (s.n + p.cfg.PageTokens - 1) / p.cfg.PageTokens; len(s.pages) != want {
			return fmt.Errorf("kvcache: sequence %d of %d tokens: expected %d pages, found %d", i, s.n, want, len(s.pages))
		}
		for _, id := range s.pages {
			held[id]++
		}
	}
	for _, id := range p.free {
		if p.refs[id] != 0 {
			return fmt.Errorf("kvcache: page %d is free and has %d references", id, p.refs[id])
		}
		held[id]--
	}
	for id, n := range held {
		want := p.refs[id]
		if want == 0 {
			want = -1
		}
		if n != want {
			return fmt.Errorf("kvcache: page %d: expected %d references, found %d", id, p.refs[id], n)
		}
	}
	return nil
}
