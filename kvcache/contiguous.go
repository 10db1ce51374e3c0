package kvcache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// ErrNoRegion is returned when no free piece of memory is large enough.
var ErrNoRegion = errors.New("kvcache: no free region")

// Contiguous is the allocator that pages replaced: each sequence has one piece
// of memory, as long as it may ever become (ORCA: Yu et al., A Distributed
// Serving System for Transformer-Based Generative Models, 2022). It is kept as
// the baseline that paging is measured against. It is a ledger of token slots
// without memory of its own: a sequence that it has admitted also fits a pool
// of as many slots.
type Contiguous struct {
	slots   int
	regions []*Region // by start
	used    int
	held    int
}

// Region is a piece of contiguous memory of one sequence.
type Region struct{ start, size, used int }

// Size returns the tokens that r has room for, Used those that it holds.
func (r *Region) Size() int { return r.size }

// Used returns the tokens that r holds.
func (r *Region) Used() int { return r.used }

// NewContiguous returns an allocator of the given number of token slots.
func NewContiguous(slots int) *Contiguous { return &Contiguous{slots: slots} }

// Reserve returns the first free region of the given number of tokens.
func (c *Contiguous) Reserve(tokens int) (*Region, error) {
	if tokens <= 0 {
		return nil, fmt.Errorf("kvcache: reserve: expected at least 1 token, found %d", tokens)
	}
	at, i := c.gap(tokens)
	if i < 0 {
		return nil, fmt.Errorf("%w: %d tokens, %d of %d are free, the largest piece has %d", ErrNoRegion, tokens, c.slots-c.held, c.slots, c.Largest())
	}
	r := &Region{start: at, size: tokens}
	c.regions = slices.Insert(c.regions, i, r)
	c.held += tokens
	return r, nil
}

// gap returns the start of the first gap of at least n slots and the index of
// the region after it, or -1.
func (c *Contiguous) gap(n int) (start, index int) {
	at := 0
	for i, r := range c.regions {
		if r.start-at >= n {
			return at, i
		}
		at = r.start + r.size
	}
	if c.slots-at >= n {
		return at, len(c.regions)
	}
	return 0, -1
}

// Largest returns the size of the largest region that Reserve can give.
func (c *Contiguous) Largest() int {
	at, largest := 0, 0
	for _, r := range c.regions {
		largest = max(largest, r.start-at)
		at = r.start + r.size
	}
	return max(largest, c.slots-at)
}

// Grow counts tokens more tokens in r. It fails with ErrNoRegion when the
// reservation is used up; Extend makes it longer.
func (c *Contiguous) Grow(r *Region, tokens int) error {
	if tokens < 0 || r.used+tokens > r.size {
		return fmt.Errorf("%w: %d more tokens in a region of %d that holds %d", ErrNoRegion, tokens, r.size, r.used)
	}
	r.used += tokens
	c.used += tokens
	return nil
}

// Extend makes r larger by tokens, in place if the memory behind it is free,
// else by a move to another region; it returns the tokens that had to be moved.
// Reservation by a predicted length recovers from a wrong prediction that way
// (S³: Jin et al., Increasing GPU Utilization during Generative Inference,
// 2023).
func (c *Contiguous) Extend(r *Region, tokens int) (moved int, err error) {
	i := c.index(r)
	end := c.slots
	if i+1 < len(c.regions) {
		end = c.regions[i+1].start
	}
	if tokens >= 0 && r.start+r.size+tokens <= end {
		r.size += tokens
		c.held += tokens
		return 0, nil
	}
	to, err := c.Reserve(r.size + tokens)
	if err != nil {
		return 0, err
	}
	// r takes the place of to, and the old region goes.
	old := *r
	*r = Region{to.start, to.size, r.used}
	c.held -= old.size
	c.regions = slices.DeleteFunc(c.regions, func(x *Region) bool { return x == to })
	slices.SortFunc(c.regions, func(a, b *Region) int { return cmp.Compare(a.start, b.start) })
	return old.used, nil
}

// Free gives r back.
func (c *Contiguous) Free(r *Region) {
	i := c.index(r)
	c.regions = slices.Delete(c.regions, i, i+1)
	c.held -= r.size
	c.used -= r.used
	*r = Region{}
}

// index returns the place of r among the regions; it panics if it is not one.
func (c *Contiguous) index(r *Region) int {
	i, ok := slices.BinarySearchFunc(c.regions, r.start, func(x *Region, start int) int { return cmp.Compare(x.start, start) })
	if !ok || c.regions[i] != r {
		panic("kvcache: region does not belong to the allocator")
	}
	return i
}

// Usage returns what the slots are used for. Free pieces that are smaller than
// want tokens, the size of the next reservation, are external waste.
func (c *Contiguous) Usage(want int) Usage {
	u := Usage{Slots: c.slots, Used: c.used, Internal: c.held - c.used, Free: c.slots - c.held}
	at := 0
	piece := func(n int) {
		if n < want {
			u.External += n
		}
	}
	for _, r := range c.regions {
		piece(r.start - at)
		at = r.start + r.size
	}
	piece(c.slots - at)
	return u
}

// Check verifies that regions lie in order, within the memory and apart, and
// that the sums are right.
func (c *Contiguous) Check() error {
	at, used, held := 0, 0, 0
	for i, r := range c.regions {
		if r.start < at || r.size <= 0 || r.used < 0 || r.used > r.size || r.start+r.size > c.slots {
			return fmt.Errorf("kvcache: region %d: %+v after slot %d of %d", i, *r, at, c.slots)
		}
		at = r.start + r.size
		used, held = used+r.used, held+r.size
	}
	if used != c.used || held != c.held {
		return fmt.Errorf("kvcache: regions: expected %d used and %d held slots, found %d and %d", used, held, c.used, c.held)
	}
	return nil
}
