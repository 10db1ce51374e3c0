package grammar

import "sync"

// Cache keeps the grammars used last, so that a schema that comes with every
// request is compiled once. It may be used by several goroutines.
type Cache struct {
	size int

	mu      sync.Mutex
	clock   uint64
	entries map[string]*cacheEntry
}

type cacheEntry struct {
	once    sync.Once
	grammar *Grammar
	err     error
	used    uint64
}

// NewCache returns a cache of at most size grammars, at least one.
func NewCache(size int) *Cache {
	return &Cache{size: max(size, 1), entries: map[string]*cacheEntry{}}
}

// Get returns the grammar under key, which must name its source, its options and
// its vocabulary; if there is none it calls compile. Of several callers that ask
// at once one compiles and the others wait. Errors are not kept.
func (c *Cache) Get(key string, compile func() (*Grammar, error)) (*Grammar, error) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		e = &cacheEntry{}
		c.entries[key] = e
	}
	c.clock++
	e.used = c.clock
	c.evict()
	c.mu.Unlock()
	e.once.Do(func() { e.grammar, e.err = compile() })
	if e.err != nil {
		c.mu.Lock()
		if c.entries[key] == e {
			delete(c.entries, key)
		}
		c.mu.Unlock()
	}
	return e.grammar, e.err
}

// evict removes what was used longest ago.
func (c *Cache) evict() {
	for len(c.entries) > c.size {
		oldest, at := "", ^uint64(0)
		for key, e := range c.entries {
			if e.used < at {
				oldest, at = key, e.used
			}
		}
		delete(c.entries, oldest)
	}
}
