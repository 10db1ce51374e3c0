package kvcache

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Budget is memory for keys and values that the pools of several models share.
// A pool takes it in chunks as it needs them and gives chunks back when another
// asks and it can do without. Nobody reaches into another's pool: whoever lacks
// memory says so here, and the owners of the others are woken to look.
//
// A budget is made for a number of pools, and the part of each is its share. A
// pool may take more than its share while nobody else wants it; a pool below
// its share comes first: the others get nothing more, and give back what their
// running sequences leave, until it has its share or no longer wants it. So what
// fits a share can always be had, sooner or later, and nothing more is promised.
//
// Its methods may be called from any goroutine.
type Budget struct {
	total int64
	share int64 // of each pool
	floor int64 // of a share, that a pool keeps when it is idle
	pools int   // that there may be

	mu       sync.Mutex
	used     int64
	accounts []*account
	taken    int64 // chunks, since the start
	given    int64

	asking atomic.Int32 // accounts that want something
}

// account is what one pool has of a budget. All of it is guarded by Budget.mu.
type account struct {
	b     *Budget
	chunk int64 // bytes
	held  int64 // bytes
	floor int64 // bytes
	want  int64 // bytes that it lacks
	taken int64 // chunks, since the start
	given int64
	wake  func()
}

// floorPart is the part of a share that an idle pool keeps, an eighth: enough
// for a sequence to begin at once, little enough to let others have the rest.
const floorPart = 8

// NewBudget returns a budget of the given bytes for so many pools. If fixed is
// set, each gets its share at once and keeps it: nothing is moved.
func NewBudget(bytes int64, pools int, fixed bool) (*Budget, error) {
	if bytes < 1 || pools < 1 {
		return nil, fmt.Errorf("kvcache: budget: expected memory for at least one pool, found %d bytes for %d", bytes, pools)
	}
	b := &Budget{total: bytes, share: bytes / int64(pools), pools: pools}
	if b.floor = b.share; !fixed {
		b.floor /= floorPart
	}
	return b, nil
}

// BudgetStats are counters of a budget.
type BudgetStats struct {
	Bytes, Used  int64 // in all, and what pools hold
	Share        int64 // bytes that each pool can have in any case
	Pools        int   // now
	Taken, Given int64 // chunks that pools took and gave back
}

// Stats returns the budget's counters.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{Bytes: b.total, Used: b.used, Share: b.share, Pools: len(b.accounts), Taken: b.taken, Given: b.given}
}

// join opens an account for a pool with chunks of so many bytes.
func (b *Budget) join(chunk int64) (*account, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.accounts) == b.pools {
		return nil, fmt.Errorf("kvcache: budget: expected at most %d pools, found one more", b.pools)
	}
	if chunk > b.share {
		return nil, fmt.Errorf("kvcache: budget: expected a share of at least %d bytes for the least that the model needs, found %d", chunk, b.share)
	}
	a := &account{b: b, chunk: chunk, floor: max(1, b.floor/chunk) * chunk}
	b.accounts = append(b.accounts, a)
	return a, nil
}

// sure returns the chunks that fit the share.
func (a *account) sure() int { return int(a.b.share / a.chunk) }

// most returns the chunks that the pool can have when others have next to
// nothing.
func (a *account) most() int {
	return max(a.sure(), int((a.b.total-int64(a.b.pools-1)*a.b.floor)/a.chunk))
}

// left returns what is free but for the floors of pools that do not exist yet.
func (b *Budget) left() int64 {
	return b.total - b.used - int64(b.pools-len(b.accounts))*b.floor
}

func (a *account) share() int64 { return int64(a.sure()) * a.chunk }

// due returns what the pool wants and can claim, since it is part of its share.
func (a *account) due() int64 { return min(a.want, max(0, a.share()-a.held)) }

// take takes a chunk, if the pool may have one more.
func (a *account) take() bool {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	left := b.left() - a.chunk
	if a.held+a.chunk > a.share() { // others may have a claim
		for _, x := range b.accounts {
			if x != a {
				left -= x.due()
			}
		}
	}
	if left < 0 {
		return false
	}
	b.used += a.chunk
	a.held += a.chunk
	a.taken++
	b.taken++
	if a.want > 0 { // as much less: when it asks for the same again, others must look again
		a.setWant(max(0, a.want-a.chunk))
	}
	return true
}

// give gives n chunks back, and wakes those who want some.
func (a *account) give(n int) {
	if n == 0 {
		return
	}
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	bytes := int64(n) * a.chunk
	b.used -= bytes
	a.held -= bytes
	a.given += int64(n)
	b.given += int64(n)
	b.wake(func(x *account) bool { return x != a && x.want > 0 })
}

// ask says how many bytes the pool lacks, 0 for none. If these are more than
// before it wakes those who might have some to give: they look again by
// themselves as often as something changes there.
func (a *account) ask(bytes int64) {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	more := bytes > a.want
	a.setWant(bytes)
	if more {
		b.wake(func(x *account) bool { return x != a && x.held > x.floor })
	}
}

func (a *account) setWant(bytes int64) {
	switch {
	case a.want == 0 && bytes > 0:
		a.b.asking.Add(1)
	case a.want > 0 && bytes == 0:
		a.b.asking.Add(-1)
	}
	a.want = bytes
}

func (b *Budget) wake(who func(*account) bool) {
	for _, x := range b.accounts {
		if x.wake != nil && who(x) {
			x.wake()
		}
	}
}

// claims returns the bytes that others want of the pool: all that they lack,
// and the part that they have a claim to, which it must give as soon as its
// running sequences leave as much.
func (a *account) claims() (wanted, due int64) {
	b := a.b
	if b.asking.Load() == 0 {
		return 0, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	left := max(b.left(), 0)
	for _, x := range b.accounts {
		if x != a {
			wanted += x.want
			due += x.due()
		}
	}
	return max(0, wanted-left), max(0, min(due-left, a.held-a.share()))
}

// leave closes the account.
func (a *account) leave() {
	b := a.b
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.accounts, a)
	if i < 0 {
		return
	}
	b.accounts = slices.Delete(b.accounts, i, i+1)
	b.used -= a.held
	a.setWant(0)
	a.held = 0
	b.wake(func(x *account) bool { return x.want > 0 })
}
