package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"ridge/kvcache"
)

// PageMap returns what the pages of the pool are used for, and the sequences that hold
// some, in the order of Owner in the map; each node's Salt is the tenant's name. It is as
// of the end of the step at hand; if that takes longer than the context, as of the last
// time that somebody asked. nodes bounds those of the map, and head the tokens of
// each that are copied.
func (e *Engine) PageMap(ctx context.Context, nodes, head int) (*kvcache.Map, []SequenceStats, error) {
	got := new(pageMap)
	err := e.call(ctx, func() {
		now := e.now()
		held := make([]*sequence, 0, len(e.seqs))
		for s, q := range e.seqs {
			if s.KV != nil {
				held = append(held, q)
			}
		}
		slices.SortFunc(held, func(a, b *sequence) int { return int(a.ID) - int(b.ID) })
		kvs := make([]*kvcache.Seq, len(held))
		for i, q := range held {
			kvs[i] = q.KV
			got.seqs = append(got.seqs, q.stats(now))
		}
		got.pages = e.pool.Map(kvs, kvcache.MapOptions{Now: now, Nodes: nodes, Head: head})
		for i := range got.pages.Nodes {
			n := &got.pages.Nodes[i]
			n.Salt = tenantOf(n.Salt)
		}
		e.mapped.Store(got)
	})
	if err != nil {
		if got = e.mapped.Load(); got == nil {
			return nil, nil, err
		}
	}
	return got.pages, got.seqs, nil
}

// pageMap is what PageMap returned.
type pageMap struct {
	pages *kvcache.Map
	seqs  []SequenceStats
}

// tick tells the prefix tree the time.
func (e *Engine) tick(now time.Duration) {
	if e.tree != nil {
		e.tree.Tick(now)
	}
}

// tenantOf is whose prefixes are shared under a salt, see salt, adaptedSalt and saltOf.
func tenantOf(salt string) string {
	for _, before := range []string{"rope", "adapter"} {
		if rest, ok := strings.CutPrefix(salt, before); ok {
			_, salt, _ = strings.Cut(rest, ":")
		}
	}
	length, rest, _ := strings.Cut(salt, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n > len(rest) {
		return ""
	}
	return rest[:n]
}
