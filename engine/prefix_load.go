package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"ridge/kvcache"
)

// A request whose prompt begins with a prefix that is stored waits until that
// was read, if the tree has less. A goroutine reads the file and checks its sum;
// then the loop reads it again, into pages: from the system's memory, faster than a
// step computes.

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

// loaded publishes a prefix that was read, and lets those go on who wait for it.
func (e *Engine) loaded(l *prefixLoad) {
	defer l.close()
	delete(e.prefixes.loads, l.key)
	g := l.groups[0]
	if l.err == nil {
		l.err = e.takeIn(l, e.storedSalt(g), g.req.Tokens[:l.tokens])
	}
	switch {
	case l.err == nil:
		e.o.Prefixes.Found(l.tokens)
	case errors.Is(l.err, kvcache.ErrNoPages), errors.Is(l.err, fs.ErrNotExist):
	default:
		e.o.Prefixes.Refuse(l.key, l.tokens, l.err)
	}
	for _, g := range l.groups {
		if !g.removed {
			e.begin(g)
		}
	}
}

// takeIn restores a file that was verified and puts it into the tree, if it has
// what its name says.
func (e *Engine) takeIn(l *prefixLoad, salt string, tokens []int32) error {
	if _, err := l.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("engine: prefixes: %w", err)
	}
	kv, b, err := e.pool.Restore(l.file, e.limits.context)
	if err != nil {
		return err
	}
	defer e.pool.Free(kv)
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
