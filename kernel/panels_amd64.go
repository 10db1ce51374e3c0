package kernel

import (
	"sync"

	"ridge/kernel/internal/layout"
)

// Products with many rows: a stretch of columns of two groups at a time is
// unpacked to bytes and float32 scales, while it is multiplied with the first
// tile of rows, and read by the other tiles from the first-level cache. These
// prefetch the packed weights of the next stretch.

// unpackFunc unpacks superblocks of one group to panel blocks.
type unpackFunc func(u *byte, w *byte, supers int)

// panelFunc multiplies unpacked panels, layout.PanelNext bytes apart, with tiles of a
// number of rows fixed in the function, as is that of panels. With add, dst
// holds what the panels of lower columns gave. For every pair of blocks it
// prefetches lines cache lines at ahead, until that is at end, and as many
// group bytes behind them.
type panelFunc func(dst *float32, ldd int, u *byte, x *byte, ldx int, pairs int, tiles int, add bool, ahead, end uintptr, group, lines int)

// firstFunc multiplies superblocks of two groups, group bytes apart, with a
// number of rows fixed in the function, and leaves their panels at u. It uses
// the layout.PanelHead bytes in front of them.
type firstFunc func(dst *float32, ldd int, u *byte, w *byte, group int, x *byte, ldx int, supers int, add bool)

const (
	// panelRows bounds the rows that one panel is multiplied with: their
	// results stay in the caches from one stretch of columns to the next.
	panelRows = 128
	// firstRows is the least number of rows of a tile that unpacks.
	firstRows = 4
)

// panelPool lends the memory that panels of two groups are unpacked to.
var panelPool = sync.Pool{New: func() any {
	b := make([]byte, layout.PanelHead+2*layout.PanelNext+64)
	return &b
}}

// panelTask is a product by panels.
type panelTask struct {
	p    *Packed
	u    []byte // two panels
	dst  []float32
	ldd  int
	x    []byte
	ldx  int
	rows int

	// the panel at hand: n superblocks from s on of some groups from g on
	s, n, g, groups int
}

// mulPanels multiplies many rows. Blocks of rows and stretches of columns are
// such that the activations of both stay in the second-level cache.
func mulPanels(p *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	buf := panelPool.Get().(*[]byte)
	defer panelPool.Put(buf)
	supers := p.layout.Supers(p.Cols)
	stretches := (min(r1-r0, panelRows)*x.LDQ + actBytes - 1) / actBytes
	stretch := (supers + stretches - 1) / stretches
	t := panelTask{p: p, u: alignBytes(*buf)[layout.PanelHead:], ldd: ldd, ldx: x.LDQ}
	for blocks := (r1 - r0 + panelRows - 1) / panelRows; blocks > 0; blocks-- {
		t.rows = (r1 - r0 + blocks - 1) / blocks
		t.dst, t.x = dst[r0*ldd:], x.Q[r0*x.LDQ:]
		for s := 0; s < supers; s += stretch {
			t.stretch(s, min(s+stretch, supers), g0, g1)
		}
		r0 += t.rows
	}
}

// stretch multiplies the superblocks [s0, s1) of the groups [g0, g1).
func (t *panelTask) stretch(s0, s1, g0, g1 int) {
	l := t.p.layout
	most := layout.PanelPairs / l.Pairs
	panels := (s1 - s0 + most - 1) / most
	step := (s1 - s0 + panels - 1) / panels
	for g := g0; g < g1; g += 2 {
		for s := s0; s < s1; s += step {
			t.s, t.n, t.g, t.groups = s, min(step, s1-s), g, min(2, g1-g)
			next := t.at() + t.n*l.SuperBytes()
			if s+t.n == s1 { // the first columns of the next two groups
				next = t.at() + 2*t.p.GroupBytes - (s-s0)*l.SuperBytes()
			}
			t.panel(next)
		}
	}
}

// at returns the place of the first weights of the panel.
func (t *panelTask) at() int { return t.g*t.p.GroupBytes + t.s*t.p.layout.SuperBytes() }

// panel multiplies the n superblocks from s on. Those at next will be the
// next.
func (t *panelTask) panel(next int) {
	l, typ, at := t.p.layout, t.p.Type, t.at()
	dst, x, rows, add := t.dst[t.g*Lanes:], t.x[t.s*l.Pairs*2*layout.ActBlock:], t.rows, t.s > 0
	if t.groups == 2 && rows >= firstRows {
		mr := firstTile(rows)
		first512[typ][mr](&dst[0], t.ldd, &t.u[0], &t.p.Data[at], t.p.GroupBytes, &x[0], t.ldx, t.n, add)
		rows -= mr
		dst, x = dst[mr*t.ldd:], x[mr*t.ldx:]
	} else {
		for v := range t.groups {
			unpack512[typ](&t.u[v*layout.PanelNext], &t.p.Data[at+v*t.p.GroupBytes], t.n)
		}
	}
	kernels := &panel512[l.Form][t.groups]
	tiles, mr, big := tilesOf(rows)
	pairs := t.n * l.Pairs
	ahead := address(&t.p.Data[0]) + uintptr(next)
	end, lines := ahead, (t.n*l.SuperBytes()/64+pairs*tiles-1)/(pairs*tiles)
	if next < len(t.p.Data) {
		end += uintptr(t.n * l.SuperBytes())
	}
	if big > 0 {
		kernels[mr+1](&dst[0], t.ldd, &t.u[0], &x[0], t.ldx, pairs, big, add, ahead, end, t.p.GroupBytes, lines)
		dst, x = dst[big*(mr+1)*t.ldd:], x[big*(mr+1)*t.ldx:]
		ahead += uintptr(64 * lines * pairs * big)
	}
	kernels[mr](&dst[0], t.ldd, &t.u[0], &x[0], t.ldx, pairs, tiles-big, add, ahead, end, t.p.GroupBytes, lines)
}

// tilesOf spreads rows evenly over as few tiles as there can be: big of them
// have mr+1 rows, the others mr.
func tilesOf(rows int) (tiles, mr, big int) {
	most := len(panel512[0][2]) - 1
	tiles = (rows + most - 1) / most
	return tiles, rows / tiles, rows % tiles
}

// firstTile returns how many of the rows the tile takes that unpacks, 4 or 5,
// so that the others are of about the same size.
func firstTile(rows int) int {
	most := len(panel512[0][2]) - 1
	tiles := 1 + (rows-5+most-1)/most
	return min(5, max(firstRows, rows/tiles))
}
