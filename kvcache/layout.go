package kvcache

import (
	"cmp"
	"errors"
	"fmt"
	"ridge/weights/tensor"
	"slices"
)

// LayerShape is what one layer keeps of a sequence. A layer with attention has
// Heads keys of KDim and Heads values of VDim elements for each token, VDim being
// 0 where values are part of the keys (latent attention); a recurrent layer has State bytes for the whole sequence. One with
// both side by side has both.
// The zero value is a layer that keeps nothing, such as one that reads another's keys.
type LayerShape struct {
	Heads, KDim, VDim int

	Window int // tokens that a query sees at most, itself included; 0 for all
	State  int // bytes of a recurrent state; 0 for none
	Parts  int // equal parts of a state that each lie in one piece, such as heads; 0 means 1
}

// layout says how layers lie in pages. All pages have one size. Those of a group
// hold PageTokens tokens of the group's layers; a state lies in some pages more.
type layout struct {
	cfg         Config
	groups      []group // those that see all tokens first
	full        int     // how many groups see all tokens
	windows     []window
	layers      []layerPlace
	pageBytes   int
	tokenBytes  int // that layers use, for each PageTokens tokens
	statePages  int // of a sequence's state
	stateBytes  int // of these, what layers use
	largestTile int
}

// group is the layers that share a page table. All have the same window.
type group struct {
	window int // 0 for all tokens
	layers []int
}

// window is how many groups have a window.
type window struct{ tokens, groups int }

// layerPlace says where a layer's heads lie in the pages of its group, or the
// parts of its state in the pages of a state.
type layerPlace struct {
	group                                int // -1 for a layer without keys and values
	offset, headBytes, tileBytes, kBytes int
	parts                                []partPlace
}

type partPlace struct{ page, offset int }

// item is something that goes into a page whole: a layer, or a part of a state.
type item struct{ id, bytes int }

// newLayout checks cfg, fills in its defaults, and lays the layers out.
func newLayout(cfg Config) (*layout, error) {
	if cfg.PageTokens == 0 {
		cfg.PageTokens = 64
	}
	if cfg.PageTokens < 0 || cfg.PageTokens%TileTokens != 0 || cfg.PageTokens > 1<<20 {
		return nil, fmt.Errorf("kvcache: page size: expected a positive multiple of %d tokens, found %d", TileTokens, cfg.PageTokens)
	}
	if TileBytes(1, cfg.DType) == 0 {
		return nil, fmt.Errorf("kvcache: element type: expected F16, F32, BF16 or Q8_0, found %v", cfg.DType)
	}
	if len(cfg.Layers) == 0 {
		return nil, errors.New("kvcache: layers: expected at least 1, found 0")
	}
	if cfg.Checkpoints < 0 || cfg.Checkpoints > 1<<10 {
		return nil, fmt.Errorf("kvcache: checkpoints: expected 0 to %d, found %d", 1<<10, cfg.Checkpoints)
	}
	l := &layout{cfg: cfg, layers: make([]layerPlace, len(cfg.Layers))}
	windows, classes, parts, err := l.measure()
	if err != nil {
		return nil, err
	}
	l.divide(windows, classes, parts)
	return l, nil
}

// measure fills in the sizes of layers. It returns the windows that there are,
// the layers of each, and the parts of all states.
func (l *layout) measure() (windows []int, classes [][]item, parts []item, err error) {
	tiles := l.cfg.PageTokens / TileTokens
	for i, s := range l.cfg.Layers {
		pl := &l.layers[i]
		if s == (LayerShape{}) {
			pl.group = -1
			continue
		}
		n := max(s.Parts, 1)
		keys, state := s.Heads != 0 || s.State == 0, s.State != 0 || s.Parts != 0
		if s.Parts < 0 || state && (s.State <= 0 || s.State%n != 0) || keys && (s.Heads <= 0 || s.KDim <= 0 || s.VDim < 0 || s.Window < 0) || !keys && s.Window != 0 {
			return nil, nil, nil, fmt.Errorf("kvcache: layer %d: expected heads and dimensions of keys and values, a state in equal parts, or both, found %+v", i, s)
		}
		for range n {
			if state {
				parts = append(parts, item{i, align64(s.State / n)})
			}
		}
		if !keys {
			pl.group = -1
			continue
		}
		if l.cfg.DType == tensor.BF16 && s.KDim%2 != 0 {
			return nil, nil, nil, fmt.Errorf("kvcache: layer %d: keys as BF16: expected an even number of elements, found %d", i, s.KDim)
		}
		pl.kBytes = align64(TileBytes(s.KDim, l.cfg.DType))
		pl.tileBytes = pl.kBytes + align64(TileBytes(s.VDim, l.cfg.DType))
		pl.headBytes = pl.tileBytes * tiles
		l.largestTile = max(l.largestTile, TileBytes(s.KDim, l.cfg.DType)+TileBytes(s.VDim, l.cfg.DType))
		l.tokenBytes += pl.headBytes * s.Heads
		c := slices.Index(windows, s.Window)
		if c < 0 {
			c = len(windows)
			windows, classes = append(windows, s.Window), append(classes, nil)
		}
		classes[c] = append(classes[c], item{i, pl.headBytes * s.Heads})
	}
	return windows, classes, parts, nil
}

func align64(n int) int { return (n + 63) &^ 63 }

// fewPadding is the part of a token's bytes that may be padding for the sake of
// fewer groups.
const fewPadding = 64

// divide chooses the size of a page and with it the groups. The layers of one
// window make one group if there are no others. Else they are divided so that
// the pages of all groups are about equally full: of the divisions that waste
// next to nothing the one with the fewest groups, or else the one that wastes
// least.
func (l *layout) divide(windows []int, classes [][]item, parts []item) {
	least := 64
	for _, p := range parts {
		least = max(least, p.bytes)
		l.stateBytes += p.bytes
	}
	switch len(classes) {
	case 0: // a state is one page
		l.pageBytes = max(least, l.stateBytes)
	case 1:
		l.pageBytes = max(least, l.tokenBytes)
	default:
		l.pageBytes = l.choose(classes, least)
	}
	for c, layers := range classes {
		for _, bin := range pack(layers, l.pageBytes) {
			l.addGroup(windows[c], bin)
		}
	}
	slices.SortStableFunc(l.groups, func(a, b group) int { return cmp.Compare(min(a.window, 1), min(b.window, 1)) })
	for g, gr := range l.groups {
		if gr.window == 0 {
			l.full = g + 1
		} else if n := len(l.windows); n > 0 && l.windows[n-1].tokens == gr.window {
			l.windows[n-1].groups++
		} else {
			l.windows = append(l.windows, window{gr.window, 1})
		}
		for _, i := range gr.layers {
			l.layers[i].group = g
		}
	}
	bins := pack(parts, l.pageBytes)
	l.statePages = len(bins)
	for page, bin := range bins {
		offset := 0
		for _, p := range bin {
			l.layers[p.id].parts = append(l.layers[p.id].parts, partPlace{page, offset})
			offset += p.bytes
		}
	}
}

func (l *layout) addGroup(window int, layers []item) {
	g, offset := group{window: window}, 0
	slices.SortFunc(layers, func(a, b item) int { return a.id - b.id })
	for _, i := range layers {
		g.layers = append(g.layers, i.id)
		l.layers[i.id].offset = offset
		offset += i.bytes
	}
	l.groups = append(l.groups, g)
}

// choose returns the size of a page, at least the given one, that divides the
// layers of several windows best.
func (l *layout) choose(classes [][]item, least int) int {
	for _, layers := range classes {
		for _, i := range layers {
			least = max(least, i.bytes)
		}
	}
	var best, bestGroups, bestPadding int
	for _, layers := range classes {
		for n := 1; n <= len(layers); n++ {
			size := max(least, largestOf(layers, n))
			groups := 0
			for _, c := range classes {
				groups += len(pack(c, size))
			}
			padding := groups*size - l.tokenBytes
			if padding <= l.tokenBytes/fewPadding {
				padding = 0
			}
			if best == 0 || cmp.Or(cmp.Compare(padding, bestPadding), cmp.Compare(groups, bestGroups), cmp.Compare(size, best)) < 0 {
				best, bestGroups, bestPadding = size, groups, padding
			}
		}
	}
	return best
}

// bySize returns items, the large ones first, equal ones in their order.
func bySize(items []item) []item {
	items = slices.Clone(items)
	slices.SortStableFunc(items, func(a, b item) int { return b.bytes - a.bytes })
	return items
}

// largestOf returns the size of the largest of n about equal shares of items.
func largestOf(items []item, n int) int {
	shares := make([]int, n)
	for _, i := range bySize(items) {
		at := slices.Index(shares, slices.Min(shares))
		shares[at] += i.bytes
	}
	return slices.Max(shares)
}

// pack puts items into as few bins of the given size as it finds at once.
func pack(items []item, size int) (bins [][]item) {
	var left []int
	for _, i := range bySize(items) {
		at := slices.IndexFunc(left, func(room int) bool { return room >= i.bytes })
		if at < 0 {
			at = len(bins)
			bins, left = append(bins, nil), append(left, size)
		}
		bins[at] = append(bins[at], i)
		left[at] -= i.bytes
	}
	return bins
}

// pagesOf returns the pages of one group that n tokens fill.
func (l *layout) pagesOf(n int) int { return (n + l.cfg.PageTokens - 1) / l.cfg.PageTokens }

// spanOf returns the most pages that a group with the given window has of a
// sequence on its way to the given number of tokens, if it grows by step tokens at
// a time, after each of which it slides to its last token; step 0 stands for any
// number at once.
func (l *layout) spanOf(window, tokens, step int) int {
	n := l.pagesOf(tokens)
	if step > 0 {
		n = min(n, l.pagesOf(window+step+l.cfg.PageTokens-1))
	}
	return n
}

// pagesFor returns the most pages that a sequence needs on its way to the given
// number of tokens, if it slides as spanOf says: also for its checkpoints, and
// if shared is set, for a copy of a state that others have, too.
func (l *layout) pagesFor(tokens, step int, shared bool) int {
	if tokens <= 0 {
		return 0
	}
	n := l.full * l.pagesOf(tokens)
	for _, w := range l.windows {
		n += w.groups * l.spanOf(w.tokens, tokens, step)
	}
	states := 1 + l.cfg.Checkpoints
	if shared {
		states++
	}
	return n + states*l.statePages
}

// SequenceBytes returns the memory of the pages that a pool of cfg needs for a
// sequence on its way to the given number of tokens, with nothing shared, if it
// grows by step tokens at a time and slides after each, see [Pool.Slide]; step 0
// is for one that does not slide. The error is that of New.
func SequenceBytes(cfg Config, tokens, step int) (int64, error) {
	l, err := newLayout(cfg)
	if err != nil {
		return 0, err
	}
	return int64(l.pagesFor(tokens, step, false)) * int64(l.pageBytes), nil
}
