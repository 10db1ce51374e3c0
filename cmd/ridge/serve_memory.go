package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"ridge/engine"
	"ridge/kvcache"
	"ridge/model"
	"ridge/server"
)

// heapLeast is the least that Go's memory is held to: with less it would only
// collect.
const heapLeast = 32 << 20

// heapLimit is what Go's memory may become: what it has, and nine tenths of what
// the control group or the machine leaves when the pages are taken that were
// promised to keys and values. It is MaxInt64 where nothing is known.
func heapLimit(l kvcache.Limits, has, promised int64) int64 {
	left := l.Left()
	if left == 0 && l.Group != 0 {
		return math.MaxInt64
	}
	return max(has+(left-promised)/10*9, heapLeast)
}

// heapBytes is the memory that Go has from the system.
func heapBytes() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// promised is the memory that keys and values may still take.
func promised(pages *kvcache.Budget) int64 {
	if pages == nil {
		return 0
	}
	s := pages.Stats()
	return max(0, s.Bytes-s.Used)
}

// followMemory keeps Go's memory within what the system leaves, until ctx ends.
// Who sets GOMEMLIMIT has decided otherwise.
func followMemory(ctx context.Context, pages *kvcache.Budget) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	set := func() { debug.SetMemoryLimit(heapLimit(kvcache.ReadLimits(), heapBytes(), promised(pages))) }
	set()
	go func() {
		defer debug.SetMemoryLimit(math.MaxInt64)
		for tick := time.NewTicker(5 * time.Second); ; set() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	}()
}

// room says whether weights of the given size fit beside the memory that is
// promised to keys and values: a model that is loaded later must not be what
// gets the process killed.
func room(l kvcache.Limits, weights int64, pages kvcache.BudgetStats) error {
	if _, err := l.Budget(weights, pages.Bytes-pages.Used, 0); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	return nil
}

// roomFor says how much memory a model may take, and refuses one that needs more
// and is not read from a file.
func (o *serveOptions) roomFor(mo *model.Options, weights int64, pages kvcache.BudgetStats) (err error) {
	if mo.Memory, err = o.packFlag.memory(); err != nil || mo.Memory > 0 {
		return err
	}
	l := kvcache.ReadLimits()
	if !o.packCache {
		return room(l, weights, pages)
	}
	if left := l.Left(); left > 0 {
		mo.Memory = max(left-(pages.Bytes-pages.Used), 1)
	}
	return nil
}

// bodyMemory is the memory for the bodies of requests: an eighth of what is left,
// because a body is held several times while it becomes a prompt.
func bodyMemory(l kvcache.Limits, promised int64) int64 {
	left := l.Left()
	if left == 0 && l.Group != 0 {
		return 0 // nothing is known
	}
	return max((left-promised)/8, 1<<20)
}

// bound says how much memory bodies and Go may take, once the models that are kept
// are loaded.
func (o *serveOptions) bound(ctx context.Context, so *server.Options, reg *engine.Registry, log *slog.Logger) (err error) {
	if so.BodyMemory = bodyMemory(kvcache.ReadLimits(), promised(reg.Pages())); o.bodies != "" {
		if so.BodyMemory, err = parseSize(o.bodies); err != nil {
			return fmt.Errorf("--body-memory: %w", err)
		}
	}
	if n := so.BodyMemory; n > 0 && n < so.MaxBodyBytes {
		log.Warn("bodies are held to the memory that is left for them", "max_body", n)
		so.MaxBodyBytes = n
	}
	followMemory(ctx, reg.Pages())
	return nil
}
