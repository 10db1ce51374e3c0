package grammar

import (
	"context"
	"errors"
	"sync"

	"ridge/internal/aside"
)

// Cache keeps the grammars used last, so that a schema that comes with every
// request is compiled once. It may be used by several goroutines.
type Cache struct {
	size, bytes int

	mu      sync.Mutex
	clock   uint64
	entries map[string]*cacheEntry
	held    int // bytes of entries, about
}

type cacheEntry struct {
	done    chan struct{} // closed when the rest is known
	grammar *Grammar
	err     error
	used    uint64
	bytes   int
}

// MaxCacheBytes bounds what the grammars of a cache take, without what they
// remember while they run; see [Grammar.Bytes].
const MaxCacheBytes = 128 << 20

// NewCache returns a cache of at most size grammars, at least one, and of at
// most MaxCacheBytes.
func NewCache(size int) *Cache {
	return &Cache{size: max(size, 1), bytes: MaxCacheBytes, entries: map[string]*cacheEntry{}}
}

// compilations are the places for those who compile at the same time, in all
// caches: compiling takes memory, and time that answers could have.
var compilations = aside.NewLane(0)

// Get returns the grammar under key, which must name its source, its options and
// its vocabulary; if there is none it calls compile, with a context that is ctx.
// Of several callers that ask at once one compiles and the others wait, none
// longer than its context. A few callers of all caches compile at the same time.
// Errors are not kept.
func (c *Cache) Get(ctx context.Context, key string, compile func(context.Context) (*Grammar, error)) (*Grammar, error) {
	for {
		e, mine := c.entry(key)
		if mine {
			c.compile(ctx, key, e, compile)
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		gone := errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)
		if !gone || ctx.Err() != nil {
			return e.grammar, e.err
		}
		// Who compiled has left; it is this caller's turn, or another's.
	}
}

// entry returns the entry of a key, and whether the caller has to compile it.
func (c *Cache) entry(key string) (e *cacheEntry, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e = c.entries[key]
	if mine = e == nil; mine {
		e = &cacheEntry{done: make(chan struct{})}
		c.entries[key] = e
	}
	c.clock++
	e.used = c.clock
	c.evict()
	return e, mine
}

// compile fills in an entry, also if compile panics.
func (c *Cache) compile(ctx context.Context, key string, e *cacheEntry, compile func(context.Context) (*Grammar, error)) {
	e.err = errors.New("grammar: cache: the compilation did not end")
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries[key] == e {
			if e.err != nil {
				delete(c.entries, key)
			} else {
				e.bytes = len(key) + e.grammar.Bytes()
				c.held += e.bytes
				c.evict()
			}
		}
		close(e.done)
	}()
	if compilations.Do(ctx, func(ctx context.Context) { e.grammar, e.err = compile(ctx) }) != nil {
		e.err = ctx.Err() // no place
	}
}

// evict removes what was used longest ago, but for what was used last.
func (c *Cache) evict() {
	for len(c.entries) > c.size || c.held > c.bytes && len(c.entries) > 1 {
		oldest, at := "", ^uint64(0)
		for key, e := range c.entries {
			if e.used < at {
				oldest, at = key, e.used
			}
		}
		c.held -= c.entries[oldest].bytes
		delete(c.entries, oldest)
	}
}
