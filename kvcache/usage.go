package kvcache

// Stats are counters of a pool.
type Stats struct {
	Pages, Free int   // pages in all that the pool can have, and those that nobody holds
	Held        int   // pages whose memory the pool has now: with a budget it may be fewer than Pages
	Sure        int   // pages that it can have whatever other pools of the budget do
	PageBytes   int64 // bytes of one page
	Cached      int   // pages that only the tree holds: they are given when needed
	InUse       int   // pages that sequences hold
	Shared      int   // pages more that sequences would hold if they shared none

	Groups     int   // groups of layers that share a page table, see docs/memory.md
	Padding    int64 // bytes of the pages of one PageTokens tokens that no layer uses
	StatePages int   // pages of the recurrent state of a sequence
	StatePad   int64 // bytes of these that no layer uses

	HeldBytes    int64       // memory that the pool has
	Taken, Given int64       // chunks taken from the budget and given back
	Moved        int64       // pages moved so that chunks could be given back
	Budget       BudgetStats // of all pools together; zero without a budget
}

// Stats returns the pool's counters.
func (p *Pool) Stats() Stats {
	s := Stats{Pages: len(p.pages), Held: p.held * p.perChunk, PageBytes: int64(p.pageBytes), Cached: p.reclaimable, Moved: p.moved}
	s.InUse = s.Held - len(p.free) - s.Cached
	s.Free = s.Pages - s.Cached - s.InUse
	p.chunkStats(&s)
	s.Shared = p.seqRefs - s.InUse
	s.Groups, s.Padding = len(p.groups), int64(len(p.groups)*p.pageBytes-p.tokenBytes)
	s.StatePages, s.StatePad = p.statePages, int64(p.statePages*p.pageBytes-p.stateBytes)
	return s
}

// Usage says what an allocator's memory is used for, in slots: of a page, each
// for one token of one group of layers. A page of a state is used whole.
// Used, Internal, Cached and Free add up to Slots. Waste, as the paper on paged
// attention counts it (Kwon et al., Efficient Memory Management for Large
// Language Model Serving with PagedAttention, 2023), is internal where memory
// is held for tokens that are not there, and external where free memory cannot
// be given because it lies in pieces.
type Usage struct {
	Slots    int // in all
	Used     int // hold a token of a running sequence; a shared one counts once
	Internal int // held by running sequences without a token in them
	Cached   int // in pages that only the tree holds
	Free     int
	External int // part of Free that cannot be given
}

// Waste returns the slots wasted, per 1000 that are not simply free: those
// held for nothing or in pieces, against these and the used ones.
func (u Usage) Waste() int {
	waste := u.Internal + u.External
	if waste == 0 {
		return 0
	}
	return 1000 * waste / (waste + u.Used)
}

// Slots returns the slots of pages that a sequence of so many tokens fills with
// what its layers can still see.
func (p *Pool) Slots(tokens int) int {
	n := p.full*tokens + p.statePages*p.cfg.PageTokens
	for g := p.full; g < len(p.groups); g++ {
		n += tokens - p.since(g, tokens)
	}
	return n
}

// Usage returns what the pool's memory is used for, that which it has not taken
// from the budget yet being free. Any free page serves any sequence, so nothing
// is wasted externally.
func (p *Pool) Usage() Usage {
	size := p.cfg.PageTokens
	st := p.Stats()
	return Usage{
		Slots:    st.Pages * size,
		Used:     p.filledInUse,
		Internal: st.InUse*size - p.filledInUse,
		Cached:   st.Cached * size,
		Free:     st.Free * size,
	}
}
