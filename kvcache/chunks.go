package kvcache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ridge/internal/arena"
)

// The memory of a pool: chunks of pages. Page i lies in chunk i/perChunk, at the
// same address as long as the chunk is there. Without a budget there is one
// chunk, for ever.

const (
	systemPage = 4 << 10 // pages of the system are a multiple of it
	// A chunk is a part of a budget, small enough to move between pools, and where
	// the budget allows it large enough to be mostly huge pages.
	budgetPart = 64
	minChunk   = 4 << 20
	maxChunk   = 16 << 20
)

// chunked is the part of a Pool that has the memory.
type chunked struct {
	chunks   []*arena.Arena // nil where there is none now
	perChunk int            // pages of a chunk
	stride   int            // bytes of a chunk, what the budget is charged
	held     int            // chunks that are there
	account  *account       // nil without a budget
	short    int            // pages that were wanted in vain since the last Ask
	asked    bool           // the last Ask has asked for something
	moved    int64
}

// openChunks reserves the memory of the pool, or its floor of the budget.
func (p *Pool) openChunks() error {
	b := p.cfg.Budget
	if b == nil {
		n := max(1, p.cfg.MaxBytes/int64(p.pageBytes))
		if n > 1<<30 {
			return fmt.Errorf("kvcache: memory: %d bytes are more than 2^30 pages", p.cfg.MaxBytes)
		}
		p.perChunk, p.stride = int(n), int(n)*p.pageBytes
		p.setChunks(1)
		return p.addArena(0)
	}
	p.perChunk, p.stride = chunkOf(p.pageBytes, b.share, b.total)
	var err error
	if p.account, err = b.join(int64(p.stride)); err != nil {
		return err
	}
	n := p.account.most()
	if int64(n)*int64(p.perChunk) > 1<<30 {
		return fmt.Errorf("kvcache: budget: %d bytes are more than 2^30 pages", b.total)
	}
	p.setChunks(n)
	for p.held < p.floorChunks() && p.addChunk() {
	}
	return nil
}

// chunkOf returns the pages and the bytes of a chunk for a budget of the given
// size, of which share is the pool's.
func chunkOf(page int, share, total int64) (pages, bytes int) {
	target := int(min(max(total/budgetPart, min(minChunk, total/(budgetPart/4))), maxChunk, share))
	for pages = max(1, target/page); pages > 1 && roundUp(pages*page, systemPage) > int(share); {
		pages--
	}
	return pages, roundUp(pages*page, systemPage)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// setChunks makes the tables for n chunks.
func (p *Pool) setChunks(n int) {
	p.chunks = make([]*arena.Arena, n)
	p.pages = make([]page, n*p.perChunk)
	p.free = make([]int32, 0, len(p.pages))
}

// floorChunks returns the chunks that the pool keeps.
func (p *Pool) floorChunks() int {
	if p.account == nil {
		return 1
	}
	return int(p.account.floor / p.account.chunk)
}

// addChunk takes a chunk from the budget and says whether it got one.
func (p *Pool) addChunk() bool {
	if p.account == nil || p.held == len(p.chunks) || !p.account.take() {
		return false
	}
	if p.addArena(slices.Index(p.chunks, nil)) != nil {
		p.account.give(1) // the system has no more addresses
		return false
	}
	return true
}

// addArena reserves the memory of chunk i.
func (p *Pool) addArena(i int) error {
	mem, err := arena.New(p.stride)
	if err != nil {
		return fmt.Errorf("kvcache: %w", err)
	}
	p.chunks[i] = mem
	p.held++
	for k := p.perChunk - 1; k >= 0; k-- { // the first page is given first
		id := i*p.perChunk + k
		p.pages[id] = page{}
		p.free = append(p.free, int32(id))
	}
	return nil
}

// closeChunks gives all memory back, to the system and the budget.
func (p *Pool) closeChunks() error {
	var errs []error
	for i, mem := range p.chunks {
		if mem != nil {
			errs = append(errs, mem.Free())
			p.chunks[i] = nil
		}
	}
	p.held = 0
	if p.account != nil {
		p.account.leave()
	}
	return errors.Join(errs...)
}

// bytes returns the memory of a page.
func (p *Pool) bytes(id int32) []byte {
	at := int(id) % p.perChunk * p.pageBytes
	return p.chunks[int(id)/p.perChunk].Bytes()[at : at+p.pageBytes]
}

// has says whether the memory of a page is there.
func (p *Pool) has(id int32) bool { return p.chunks[int(id)/p.perChunk] != nil }

// Budget returns the budget that the pool takes its memory from, nil if it has
// memory of its own.
func (p *Pool) Budget() *Budget { return p.cfg.Budget }

// Chunk returns the pages of a chunk of memory, as they are taken from the budget.
func (p *Pool) Chunk() int { return p.perChunk }

// Sure returns the pages that the pool can have whatever other pools of its
// budget do: at once, or when those have given back what is more than their
// share. Without a budget that is all pages.
func (p *Pool) Sure() int {
	if p.account == nil {
		return len(p.pages)
	}
	return p.account.sure() * p.perChunk
}

// OnClaim sets a function that is called when another pool of the budget lacks
// memory, or has given some back that this one lacks; [Pool.Claims] tells which.
// It is called by any goroutine, and must neither wait nor use the budget.
func (p *Pool) OnClaim(wake func()) {
	if a := p.account; a != nil {
		a.b.mu.Lock()
		a.wake = wake
		a.b.mu.Unlock()
	}
}

// Reserve takes memory from the budget until want pages are available, as far as
// there is some, and returns how many are: what [Pool.Available] does. What is
// lacking will be asked for by Ask.
func (p *Pool) Reserve(want int) int {
	for p.Available() < want && p.addChunk() {
	}
	n := p.Available()
	p.lack(want - n)
	return n
}

// Reach takes memory from the budget until the pool has want pages, with those
// in use, as far as there is some, and returns how many it has. What is lacking
// will be asked for by Ask.
func (p *Pool) Reach(want int) int {
	for p.held*p.perChunk < want && p.addChunk() {
	}
	n := p.held * p.perChunk
	p.lack(want - n)
	return n
}

func (p *Pool) lack(pages int) {
	if p.account != nil {
		p.short = max(p.short, min(pages, (len(p.chunks)-p.held)*p.perChunk))
	}
}

// Ask tells the other pools of the budget what this one has lacked since the
// last Ask, or that it lacks nothing any more.
func (p *Pool) Ask() {
	if p.short > 0 || p.asked {
		p.account.ask(int64(p.chunksFor(p.short)) * p.account.chunk)
	}
	p.asked, p.short = p.short > 0, 0
}

func (p *Pool) chunksFor(pages int) int { return (pages + p.perChunk - 1) / p.perChunk }

// Claims returns how many pages other pools of the budget want of this one: all
// that they lack, and what of it they have a claim to, since this pool has more
// than its share and they less.
func (p *Pool) Claims() (wanted, due int) {
	if p.account == nil {
		return 0, 0
	}
	w, d := p.account.claims()
	pages := func(bytes int64) int {
		return int((bytes+p.account.chunk-1)/p.account.chunk) * p.perChunk
	}
	return pages(w), pages(d)
}

// Spare returns the pages that Shrink can give back without forgetting anything.
func (p *Pool) Spare() int {
	return max(0, min(len(p.free)/p.perChunk, p.held-p.floorChunks())) * p.perChunk
}

// Shrink gives chunks back to the budget and the system, up to so many pages,
// and returns how many it gave. It leaves the pool its floor and keep pages; for
// others the tree forgets what was not used for longest. The pages of the chunks
// that go are moved, so seqs must be all sequences that hold tokens.
func (p *Pool) Shrink(pages, keep int, seqs []*Seq) int {
	if p.account == nil {
		return 0
	}
	n := min(p.chunksFor(pages), p.held-max(p.floorChunks(), p.chunksFor(keep)))
	if n <= 0 {
		return 0
	}
	if lacks := n*p.perChunk - len(p.free); lacks > 0 && p.tree != nil {
		p.tree.Evict(lacks)
	}
	if n = min(n, len(p.free)/p.perChunk); n == 0 {
		return 0
	}
	leaves := p.emptiest(n)
	p.vacate(leaves, seqs)
	for _, i := range leaves {
		// The system takes the addresses back, whatever it says of it.
		_ = p.chunks[i].Free()
		p.chunks[i] = nil
		clear(p.pages[i*p.perChunk : (i+1)*p.perChunk])
	}
	p.held -= n
	p.account.give(n)
	return n * p.perChunk
}

// emptiest returns the n chunks with the fewest pages that somebody holds.
func (p *Pool) emptiest(n int) []int {
	full := make([]int, len(p.chunks))
	var order []int
	for i, mem := range p.chunks {
		if mem == nil {
			continue
		}
		order = append(order, i)
		for _, pg := range p.pages[i*p.perChunk : (i+1)*p.perChunk] {
			if pg.refs > 0 {
				full[i]++
			}
		}
	}
	// Of those that are alike the last ones, so that the first stay.
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(full[a]-full[b], b-a) })
	return order[:n]
}

// vacate moves what is in the given chunks to free pages of others.
func (p *Pool) vacate(leaves []int, seqs []*Seq) {
	goes := make([]bool, len(p.chunks))
	for _, i := range leaves {
		goes[i] = true
	}
	p.free = slices.DeleteFunc(p.free, func(id int32) bool { return goes[int(id)/p.perChunk] })
	to := map[int32]int32{}
	for _, i := range leaves {
		for id := int32(i * p.perChunk); int(id) < (i+1)*p.perChunk; id++ {
			if p.pages[id].refs == 0 {
				continue
			}
			last := len(p.free) - 1
			dst := p.free[last]
			p.free = p.free[:last]
			copy(p.bytes(dst), p.bytes(id))
			p.pages[dst] = p.pages[id]
			to[id] = dst
		}
	}
	if len(to) == 0 {
		return
	}
	p.moved += int64(len(to))
	move := func(pages []int32) {
		for i, id := range pages {
			if dst, ok := to[id]; ok {
				pages[i] = dst
			}
		}
	}
	for _, s := range seqs {
		for g := range s.tables {
			t := &s.tables[g]
			for i, id := range t.pages {
				if dst, ok := to[id]; ok {
					t.pages[i], t.bases[i] = dst, &p.bytes(dst)[0]
				}
			}
		}
		move(s.state)
		for _, c := range s.saved {
			move(c.pages)
		}
	}
	if p.tree != nil {
		for i := range p.tree.nodes {
			move(p.tree.nodes[i].pages)
		}
		p.tree.eachMark(func(i int32) {
			m := &p.tree.marks[i]
			for _, w := range m.windows {
				move(w.pages)
			}
			move(m.state)
		})
	}
}

// chunkStats fills in what s says of memory.
func (p *Pool) chunkStats(s *Stats) {
	s.Sure, s.HeldBytes = p.Sure(), int64(p.held)*int64(p.stride)
	if a := p.account; a != nil {
		a.b.mu.Lock()
		s.Taken, s.Given = a.taken, a.given
		a.b.mu.Unlock()
		s.Budget = a.b.Stats()
	}
}

// checkChunks checks the memory against the budget's books.
func (p *Pool) checkChunks() error {
	n := 0
	for _, mem := range p.chunks {
		if mem != nil {
			n++
		}
	}
	if n != p.held {
		return fmt.Errorf("kvcache: chunks: expected %d, found %d", p.held, n)
	}
	a := p.account
	if a == nil {
		return nil
	}
	a.b.mu.Lock()
	defer a.b.mu.Unlock()
	if want := int64(n) * a.chunk; a.held != want {
		return fmt.Errorf("kvcache: budget: expected %d bytes to be booked, found %d", want, a.held)
	}
	used := int64(0)
	for _, x := range a.b.accounts {
		used += x.held
	}
	if used != a.b.used || used > a.b.total {
		return fmt.Errorf("kvcache: budget: pools have %d bytes, %d are booked, %d there", used, a.b.used, a.b.total)
	}
	return nil
}
