package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"ridge/kvcache"
)

// A request whose prompt begins with a prefix that is stored waits until that
// was read, if the tree has less. A goroutine reads the file and checks its sum;
// then the loop reads it again, into pages: from the system's memory, faster than a
// step computes, and in parts, so that answers under way go on between them.

// storedPrefix is a prefix of a request that is stored.
type storedPrefix struct {
	key    string
	tokens int
}

// prefixLoad is a prefix that is being read, and who waits for it.
type prefixLoad struct {
	storedPrefix
	file   io.ReadSeekCloser
	err    error
	groups []*group
}

const (
	// leastRead is how long the loop reads between two steps, or a readShare-th of the
	// last one's time if that is longer.
	leastRead = 5 * time.Millisecond
	readShare = 4
	// readPart is how much is read before the clock is looked at, in bytes.
	readPart = 1 << 20
)

// reading is a snapshot that the loop reads in parts.
type reading struct {
	from *kvcache.Restoration
	// end is called by the loop when all was read, with a sequence that it takes over,
	// or an error.
	end func(kv *kvcache.Seq, meta []byte, err error)
}

// read begins to read a snapshot into pages.
func (e *Engine) read(r io.Reader, end func(kv *kvcache.Seq, meta []byte, err error)) {
	e.readings = append(e.readings, reading{e.pool.Restoration(r, e.limits.context), end})
}

// readSnapshots reads the next parts of the oldest snapshot, and says whether
// there are more to read.
func (e *Engine) readSnapshots() (more bool) {
	if len(e.readings) == 0 {
		return false
	}
	begun, most := time.Now(), max(e.leastRead, e.took/e.readShare)
	r := e.readings[0]
	for {
		done, err := r.from.Next(e.readPart)
		if done || err != nil {
			e.readings = slices.Delete(e.readings, 0, 1)
			kv, meta := r.from.Seq()
			r.end(kv, meta, err)
			return true
		}
		if time.Since(begun) >= most {
			return true
		}
	}
}

// endReadings gives up what is being read.
func (e *Engine) endReadings(why error) {
	for _, r := range e.readings {
		r.from.Abort()
		r.end(nil, nil, why)
	}
	e.readings = nil
}

// storedFor returns the longest stored prefix of r.
func (e *Engine) storedFor(g *group) storedPrefix {
	store := e.o.Prefixes
	if store == nil || e.tree == nil || g.whole() {
		return storedPrefix{}
	}
	tokens := g.req.Tokens
	lengths := slices.DeleteFunc(store.Lengths(), func(n int) bool { return n > len(tokens) })
	if len(lengths) == 0 {
		return storedPrefix{}
	}
	keys := prefixKeys(e.storedSalt(g), tokens, lengths)
	for i, n := range slices.Backward(lengths) {
		if store.Has(keys[i], n) {
			return storedPrefix{keys[i], n}
		}
	}
	return storedPrefix{}
}

// storedSalt is what prefixes of a request are stored under that is not admitted
// yet.
func (e *Engine) storedSalt(g *group) string {
	n := len(g.req.Tokens)
	return saltOf(g.salt, e.m.RopeLength(n, n))
}

// load reads the stored prefix of g, and says whether g waits for it.
func (e *Engine) load(g *group) bool {
	at := g.stored
	if at.tokens == 0 {
		return false
	}
	known := &e.prefixes
	if l := known.loads[at.key]; l != nil {
		l.groups = append(l.groups, g)
		return true
	}
	tokens := g.req.Tokens
	if n, _, _ := e.tree.Peek(e.storedSalt(g), tokens[:len(tokens)-1]); n+leastPrefix > at.tokens {
		return false
	}
	l := &prefixLoad{storedPrefix: at, groups: []*group{g}}
	if known.loads == nil {
		known.loads = map[string]*prefixLoad{}
	}
	known.loads[at.key] = l
	go func() {
		l.file, l.err = e.o.Prefixes.Open(at.key, at.tokens)
		if l.err == nil {
			l.err = kvcache.VerifySnapshot(l.file)
		}
		if e.post(command{kind: callFunc, call: func() { e.loaded(l) }}) != nil {
			l.close()
		}
	}()
	return true
}

func (l *prefixLoad) close() {
	if l.file != nil {
		_ = l.file.Close() // it was only read
	}
}

// loaded reads a prefix that was verified into pages.
func (e *Engine) loaded(l *prefixLoad) {
	if l.err == nil {
		_, l.err = l.file.Seek(0, io.SeekStart)
	}
	if l.err != nil {
		e.endLoad(l)
		return
	}
	e.read(l.file, func(kv *kvcache.Seq, meta []byte, err error) {
		if l.err = err; err == nil {
			l.err = e.takeIn(l, kv, meta)
			e.pool.Free(kv)
		}
		e.endLoad(l)
	})
}

// endLoad lets those go on who wait for a prefix.
func (e *Engine) endLoad(l *prefixLoad) {
	l.close()
	delete(e.prefixes.loads, l.key)
	switch {
	case l.err == nil:
		e.o.Prefixes.Found(l.tokens)
	case errors.Is(l.err, kvcache.ErrNoPages), errors.Is(l.err, fs.ErrNotExist), errors.Is(l.err, ErrClosed):
	default:
		e.o.Prefixes.Refuse(l.key, l.tokens, l.err)
	}
	if errors.Is(l.err, ErrClosed) {
		return // those who wait were told
	}
	for _, g := range l.groups {
		if !g.removed {
			e.begin(g)
		}
	}
}

// takeIn puts a prefix that was read into the tree, if it is what the name of its file
// says.
func (e *Engine) takeIn(l *prefixLoad, kv *kvcache.Seq, b []byte) error {
	g := l.groups[0]
	salt, tokens := e.storedSalt(g), g.req.Tokens[:l.tokens]
	var meta sessionMeta
	if err := json.Unmarshal(b, &meta); err != nil {
		return fmt.Errorf("engine: prefixes: description: %w", err)
	}
	switch own := e.m.Fingerprint(); {
	case meta.Model != own:
		return fmt.Errorf("engine: prefixes: model: expected the fingerprint %.12s, found %.12q", own, meta.Model)
	case meta.Salt != salt:
		return errors.New("engine: prefixes: tenant: expected that of the file's name, found another")
	case kv.Len() != len(tokens) || !slices.Equal(meta.Tokens, tokens):
		return fmt.Errorf("engine: prefixes: tokens: expected the %d of the file's name, found %d others", len(tokens), kv.Len())
	}
	e.tree.Insert(salt, tokens, kv)
	e.inserted = true
	return nil
}
