package sched

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ridge/kvcache"
)

// Memory is the cache as the scheduler sees it. Amounts are pages. The
// scheduler's arithmetic is exact: of what is Available it plans no more than
// Need says, so that the step's growth cannot fail.
type Memory interface {
	Total() int                    // pages that can be had for sure, sooner or later
	Reach(want int) int            // pages that there are now, with those in use; memory that can grow takes more, up to want
	Available(want int) int        // pages that can be had now; memory that can grow takes more, up to want
	PageTokens() int               // tokens in a page
	PagesOf(tokens int) int        // the most pages of a sequence on its way to that length, with none shared
	Bounded() bool                 // a sequence's pages do not just follow its length: some layers see a window, or have a state
	Stateful() bool                // what is known of a sequence can be continued at the very length it has, not at a shorter one
	Need(s *Seq, n int) int        // pages that n more tokens of s take, in as many steps as that takes; s has memory
	Frees(s *Seq) int              // pages that become available if s loses its memory
	Cached(s *Seq) int             // tokens that Allocate would find computed
	SwapTime(s *Seq) time.Duration // time that SwapOut takes, 0 if there is nowhere to write to

	// Allocate gives s its memory, with what is computed of its tokens (never all
	// of them), and returns how many these are. It does so only if there is
	// then room for all that are wanted, and for keep pages besides.
	Allocate(s *Seq, keep int) (computed int, ok bool)
	// Release takes the memory of s away, and what was written out of it.
	Release(s *Seq)
	// SwapOut writes the memory of s out and takes it away; Allocate brings it
	// back. It returns false, and does nothing, if there is no room.
	SwapOut(s *Seq) bool
}

// Paged is the Memory of a pool of pages, with or without a prefix tree.
type Paged struct {
	Pool *kvcache.Pool
	Tree *kvcache.Tree // nil for none

	// Tokens returns what s was computed from, at least Wanted tokens, and the
	// salt of its tenant. It is needed with a tree.
	Tokens func(s *Seq) (salt string, tokens []int32)

	Store Store // where preempted sequences are written to; nil for nowhere

	// Step is the most tokens of a sequence that a step computes, if after each
	// step those that were computed slide to their last token, as
	// [kvcache.Pool.PagesInSteps] says; 0 if they do not, or if a step may compute
	// any number.
	Step int
}

// Total returns the pages that the pool can have whatever others do.
func (m *Paged) Total() int { return m.Pool.Sure() }

// Reach returns the pages that the pool has.
func (m *Paged) Reach(want int) int { return m.Pool.Reach(want) }

// Available returns the pages that are free or only cached.
func (m *Paged) Available(want int) int { return m.Pool.Reserve(want) }

// PageTokens returns the tokens in a page.
func (m *Paged) PageTokens() int { return m.Pool.PageTokens() }

// PagesOf returns the pages of a sequence of its own.
func (m *Paged) PagesOf(tokens int) int { return m.Pool.PagesInSteps(nil, tokens, m.Step) }

// Bounded says whether layers have windows or states.
func (m *Paged) Bounded() bool { return m.Pool.Bounded() }

// Stateful says whether layers have states.
func (m *Paged) Stateful() bool { return m.Pool.Stateful() }

// Need returns the pages that n more tokens of s take.
func (m *Paged) Need(s *Seq, n int) int { return m.Pool.PagesInSteps(s.KV, n, m.Step) }

// Frees returns the pages that only s holds.
func (m *Paged) Frees(s *Seq) int { return m.Pool.Releasable(s.KV) }

// Cached returns the tokens that the tree has of s, or that were written out.
func (m *Paged) Cached(s *Seq) int {
	if s.Swapped {
		return s.Computed
	}
	if m.Tree == nil {
		return 0
	}
	salt, known := m.Tokens(s)
	n, _, _ := m.Tree.Peek(salt, known[:s.Wanted-1])
	return n
}

// SwapTime returns how long it takes to write s out.
func (m *Paged) SwapTime(s *Seq) time.Duration {
	if m.Store == nil {
		return 0
	}
	return m.Store.Time(m.Pool.SnapshotBytes(s.KV, 0))
}

// Allocate gives s a sequence that holds what the tree has of its tokens, or what
// was written out.
func (m *Paged) Allocate(s *Seq, keep int) (computed int, ok bool) {
	if s.Swapped {
		if need := m.PagesOf(s.Wanted) + keep; need > m.Available(need) {
			return 0, false
		}
		return m.swapIn(s)
	}
	tokens, salt := []int32(nil), ""
	if m.Tree != nil {
		salt, tokens = m.Tokens(s)
		tokens = tokens[:s.Wanted-1]
	}
	found, ok := m.prefix(salt, tokens, s.Wanted, keep)
	if rest := found % m.PageTokens(); !ok && rest > 0 {
		// The pages that the prefix ends in would be copied: there may be room
		// without.
		tokens = tokens[:found-rest]
		_, ok = m.prefix(salt, tokens, s.Wanted, keep)
	}
	if !ok {
		return 0, false
	}
	if m.Tree == nil {
		s.KV = m.Pool.NewSeq()
		return 0, true
	}
	s.KV = m.Tree.Match(salt, tokens)
	return s.KV.Len(), true
}

// prefix returns how many of tokens the tree has, and whether there is room for
// the rest of those wanted and for keep pages.
func (m *Paged) prefix(salt string, tokens []int32, wanted, keep int) (found int, ok bool) {
	need := m.PagesOf(wanted)
	if m.Tree != nil {
		found, need = m.Tree.Need(salt, tokens, wanted, m.Step)
	}
	need += keep
	return found, need <= m.Available(need)
}

// swapIn brings a sequence back. One that cannot be read is computed again.
func (m *Paged) swapIn(s *Seq) (computed int, ok bool) {
	err := m.Store.Get(s.ID, func(r io.Reader) (err error) {
		s.KV, _, err = m.Pool.Restore(r, s.Computed)
		return err
	})
	if err != nil || s.KV.Len() != s.Computed {
		if s.KV != nil {
			m.Pool.Free(s.KV)
		}
		s.KV = m.Pool.NewSeq()
	}
	return s.KV.Len(), true
}

// Publish gives what s has computed so far to the tree, so that others can use
// it while s runs. A good time is when its prompt is computed.
func (m *Paged) Publish(s *Seq) {
	if m.Tree != nil && s.KV != nil {
		salt, known := m.Tokens(s)
		m.Tree.Insert(salt, known[:min(s.Computed, s.KV.Len())], s.KV)
	}
}

// Release publishes what s has computed, if there is a tree, and frees it.
func (m *Paged) Release(s *Seq) {
	if s.Swapped {
		m.Store.Drop(s.ID)
	}
	if s.KV == nil {
		return
	}
	m.Publish(s)
	m.Pool.Free(s.KV)
	s.KV = nil
}

// SwapOut writes s out.
func (m *Paged) SwapOut(s *Seq) bool {
	if m.Store == nil || s.Computed == 0 {
		return false
	}
	err := m.Store.Put(s.ID, m.Pool.SnapshotBytes(s.KV, 0), func(w io.Writer) error { return m.Pool.Snapshot(w, s.KV, nil) })
	if err != nil {
		return false
	}
	m.Pool.Free(s.KV)
	s.KV = nil
	return true
}

// Contiguous is the Memory of sequences that each reserve, when they are
// admitted, one piece of memory as long as they may become: the baseline of
// systems before paging. Keys and values lie in the pages of a pool as always;
// Space decides who may have how many.
type Contiguous struct {
	Paged
	Space *kvcache.Contiguous

	// Length returns the tokens to reserve for s, at least those of its prompt
	// and longest answer; nil means just these. Systems that reserved the same
	// for all return the context length.
	Length func(s *Seq) int

	regions map[*Seq]*kvcache.Region // what sequences have reserved
}

func (m *Contiguous) length(s *Seq) int {
	n := s.Prompt + s.MaxNew
	if m.Length != nil {
		n = max(n, m.Length(s))
	}
	return m.PagesOf(n) * m.PageTokens()
}

// Need returns 0: the memory was reserved.
func (m *Contiguous) Need(*Seq, int) int { return 0 }

// Allocate reserves the memory of s.
func (m *Contiguous) Allocate(s *Seq, keep int) (computed int, ok bool) {
	region, err := m.Space.Reserve(m.length(s))
	if err != nil {
		return 0, false
	}
	if computed, ok = m.Paged.Allocate(s, 0); !ok {
		m.Space.Free(region)
		return 0, false
	}
	if m.regions == nil {
		m.regions = map[*Seq]*kvcache.Region{}
	}
	m.regions[s] = region
	return computed, true
}

// Release gives the reservation of s back.
func (m *Contiguous) Release(s *Seq) {
	m.unreserve(s)
	m.Paged.Release(s)
}

// SwapOut writes s out and gives its reservation back.
func (m *Contiguous) SwapOut(s *Seq) bool {
	if !m.Paged.SwapOut(s) {
		return false
	}
	m.unreserve(s)
	return true
}

func (m *Contiguous) unreserve(s *Seq) {
	if region := m.regions[s]; region != nil {
		m.Space.Free(region)
		delete(m.regions, s)
	}
}

// Usage returns what the reserved memory is used for; running are the
// sequences that have some, want is the size of the next reservation.
func (m *Contiguous) Usage(running []*Seq, want int) kvcache.Usage {
	for _, s := range running {
		region := m.regions[s]
		if region == nil {
			continue
		}
		if n := m.Pool.Slots(s.Computed) - region.Used(); n > 0 {
			// It fits: Allocate reserved room for all of its tokens.
			_ = m.Space.Grow(region, n)
		}
	}
	return m.Space.Usage(want)
}

// Store keeps what preempted sequences had computed.
type Store interface {
	// Put keeps size bytes that write writes. On an error nothing is kept.
	Put(id uint64, size int64, write func(io.Writer) error) error
	// Get calls read with what was put and then forgets it.
	Get(id uint64, read func(io.Reader) error) error
	Drop(id uint64)
	// Time returns how long it takes to put or get size bytes.
	Time(size int64) time.Duration
}

// RAM is a Store in memory, of at most Limit bytes.
type RAM struct {
	Limit int64
	used  int64
	kept  map[uint64][]byte
}

// Put keeps a copy in memory.
func (r *RAM) Put(id uint64, size int64, write func(io.Writer) error) error {
	if r.used+size > r.Limit {
		return fmt.Errorf("sched: swap: %d bytes do not fit beside %d of %d", size, r.used, r.Limit)
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	if err := write(b); err != nil {
		return err
	}
	if r.kept == nil {
		r.kept = map[uint64][]byte{}
	}
	r.Drop(id)
	r.kept[id] = b.Bytes()
	r.used += int64(b.Len())
	return nil
}

// Get reads a copy and drops it.
func (r *RAM) Get(id uint64, read func(io.Reader) error) error {
	defer r.Drop(id)
	return read(bytes.NewReader(r.kept[id]))
}

// Drop forgets a copy.
func (r *RAM) Drop(id uint64) {
	r.used -= int64(len(r.kept[id]))
	delete(r.kept, id)
}

// Used returns the bytes kept.
func (r *RAM) Used() int64 { return r.used }

// Time supposes 4 GB/s: a copy, and the sum over it.
func (r *RAM) Time(size int64) time.Duration { return time.Duration(size / 4) }

// Disk is a Store of files in a folder of its own, of at most Limit bytes.
type Disk struct {
	Dir   string
	Limit int64
	used  int64
	sizes map[uint64]int64
}

func (d *Disk) path(id uint64) string { return filepath.Join(d.Dir, fmt.Sprintf("swap-%d.kv", id)) }

// Put writes a file.
func (d *Disk) Put(id uint64, size int64, write func(io.Writer) error) error {
	d.Drop(id)
	if d.used+size > d.Limit {
		return fmt.Errorf("sched: swap: %d bytes do not fit beside %d of %d", size, d.used, d.Limit)
	}
	f, err := os.OpenFile(d.path(id), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("sched: swap: %w", err)
	}
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(d.path(id))
		return fmt.Errorf("sched: swap: %w", err)
	}
	if d.sizes == nil {
		d.sizes = map[uint64]int64{}
	}
	d.sizes[id] = size
	d.used += size
	return nil
}

// Get reads a file and removes it.
func (d *Disk) Get(id uint64, read func(io.Reader) error) error {
	defer d.Drop(id)
	f, err := os.Open(d.path(id))
	if err != nil {
		return fmt.Errorf("sched: swap: %w", err)
	}
	defer f.Close()
	return read(f)
}

// Drop removes a file.
func (d *Disk) Drop(id uint64) {
	if size, ok := d.sizes[id]; ok {
		os.Remove(d.path(id))
		d.used -= size
		delete(d.sizes, id)
	}
}

// Time supposes 1 GB/s.
func (d *Disk) Time(size int64) time.Duration { return time.Duration(size) }
