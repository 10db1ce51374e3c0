package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"ridge/kvcache"
)

// Prefixes are written while the engine computes: between two steps the loop
// copies a part, which takes about a millisecond, and a goroutine writes it. No
// page is held meanwhile: if the prefix is evicted, the file is given up.

const (
	busyPart = 1 << 20 // bytes copied between two steps
	idlePart = 8 << 20 // and while there are none
	// savePatience is how long a prefix waits for the engine to be idle.
	savePatience = 10 * time.Second
)

// errEvicted ends a file whose prefix is not there any more.
var errEvicted = errors.New("engine: prefixes: the prefix was evicted while it was written")

// prefixSave is a prefix that is being written.
type prefixSave struct {
	p     *prefix
	parts *kvcache.Parts
	full  chan []byte // to the goroutine; closed when there is no more
	empty chan []byte // back
	whole atomic.Bool // all of it was copied
	done  chan error

	closed bool // of the loop: nothing more is copied
}

// savePrefixes copies a part of the prefix that is being written, or begins
// another, and says whether there is more to do at once. all writes also those
// that were used once.
func (e *Engine) savePrefixes(now time.Duration, all bool) (more bool) {
	known, store := &e.prefixes, e.o.Prefixes
	if store == nil || e.tree == nil {
		return false
	}
	if known.save == nil {
		if idle := len(e.groups) == 0; !idle && now-e.saved < savePatience {
			return false
		}
		at := slices.IndexFunc(known.all, func(p *prefix) bool { return known.toStore(p, all) })
		if at < 0 {
			return false
		}
		if !e.beginSave(known.all[at]) {
			return true // with the next one
		}
	}
	s := known.save
	select {
	case err := <-s.done:
		e.endSave(now, err)
		return true
	default:
	}
	if s.closed {
		return false // it is being flushed
	}
	select {
	case buf := <-s.empty:
		return e.copyPart(s, buf)
	default:
		return false // the disk is slower
	}
}

// beginSave begins to write p, if the tree has it.
func (e *Engine) beginSave(p *prefix) bool {
	p.stored = true // or tried
	kv := e.tree.Hold(p.salt, p.tokens)
	if kv == nil {
		return false
	}
	defer e.pool.Free(kv)
	meta, err := json.Marshal(sessionMeta{Model: e.m.Fingerprint(), Tokens: p.tokens, Rope: p.rope, Salt: p.salt})
	if err != nil {
		return false
	}
	parts, err := e.pool.Parts(kv, meta)
	if err != nil {
		return false
	}
	s := &prefixSave{p: p, parts: parts, full: make(chan []byte, 2), empty: make(chan []byte, 2), done: make(chan error, 1)}
	s.empty <- nil
	s.empty <- nil
	e.prefixes.save = s
	store, size := e.o.Prefixes, e.pool.SnapshotBytes(kv, len(meta))
	go func() {
		err := store.Put(p.key, len(p.tokens), size, func(w io.Writer) error {
			for buf := range s.full {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				s.empty <- buf[:0]
				e.wakeUp()
			}
			if !s.whole.Load() {
				return errEvicted
			}
			return nil
		})
		s.done <- err
		e.wakeUp()
	}()
	return true
}

// copyPart gives the goroutine the next part.
func (e *Engine) copyPart(s *prefixSave, buf []byte) (more bool) {
	kv := e.tree.Hold(s.p.salt, s.p.tokens)
	if kv == nil {
		s.closed = true
		close(s.full)
		return true
	}
	defer e.pool.Free(kv)
	size := busyPart
	if len(e.groups) == 0 {
		size = idlePart
	}
	part := bytes.NewBuffer(buf)
	done, err := s.parts.Write(part, kv, size)
	s.whole.Store(done && err == nil)
	if err == nil {
		s.full <- part.Bytes()
	}
	if s.closed = done || err != nil; s.closed {
		close(s.full)
	}
	return true
}

// endSave ends the file at hand. One that was given up may be tried again when
// its prefix is used again.
func (e *Engine) endSave(now time.Duration, err error) {
	s := e.prefixes.save
	e.prefixes.save, e.saved = nil, now
	if errors.Is(err, errEvicted) {
		s.p.stored = false
		e.prefixes.all = slices.DeleteFunc(e.prefixes.all, func(p *prefix) bool { return p == s.p })
	}
}

// saveAll writes what is not written yet, at the end of the engine: also what was
// used once.
func (e *Engine) saveAll() {
	for e.o.Prefixes != nil && e.tree != nil {
		if e.savePrefixes(e.now(), true) {
			continue
		}
		if e.prefixes.save == nil {
			return
		}
		<-e.wake
	}
}
