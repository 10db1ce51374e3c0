package kvcache

// Stats are counters of a pool.
type Stats struct {
	Pages, Free int   // pages in all, and pages that nobody holds
	PageBytes   int64 // bytes of one page
	Cached      int   // pages that only the tree holds: they are given when needed
	InUse       int   // pages that sequences hold
	Shared      int   // pages more that sequences would hold if they shared none
	States      int   // slots of recurrent states in use
}

// Stats returns the pool's counters.
func (p *Pool) Stats() Stats {
	s := Stats{Pages: len(p.pages), Free: len(p.free), PageBytes: int64(p.pageBytes), Cached: p.reclaimable}
	s.InUse = s.Pages - s.Free - s.Cached
	s.Shared = p.seqRefs - s.InUse
	s.States = p.states.slots - len(p.states.free)
	return s
}

// Usage says what an allocator's memory is used for, in slots for one token.
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

// Usage returns what the pool's memory is used for. Any free page serves any
// sequence, so nothing is wasted externally.
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
