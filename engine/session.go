package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ridge/kvcache"
)

// Session names what is computed of a prompt, to be kept in a file. Only a model
// with the same weights can use it.
type Session struct {
	Tokens    []int32
	Tenant    string // as in Request
	CacheSalt string
	Adapter   string // the ID of the adapter that it was computed with; "" for none
}

// salt is what the session's prefix is shared under.
func (s *Session) salt() string { return adaptedSalt(s.Adapter, salt(s.Tenant, s.CacheSalt)) }

// sessionMeta is what a snapshot carries beside keys and values.
type sessionMeta struct {
	Model  string  `json:"model"` // its fingerprint
	Tokens []int32 `json:"tokens"`
	Rope   int     `json:"rope,omitempty"` // length that they are rotated for, see model.RopeLength
	Salt   string  `json:"salt,omitempty"` // of a stored prefix: whose it is
	// Adapter is what tells the adapter from others that it was computed with.
	Adapter string `json:"adapter,omitempty"`
}

// errNoTree is returned where nothing is shared by prefix.
var errNoTree = errors.New("engine: session: the engine has no prefix cache")

// SaveSession writes the keys and values that the prefix tree has of the
// session's tokens, and returns how many these are: those of requests that are
// complete are there, unless others needed the memory since.
func (e *Engine) SaveSession(ctx context.Context, w io.Writer, s Session) (tokens int, err error) {
	if e.o.NoPrefixCache {
		return 0, errNoTree
	}
	var file bytes.Buffer // the loop must not wait for w
	var failed error
	var n int
	var kv *kvcache.Seq
	var parts *kvcache.Parts
	release := func() { // on the loop
		if kv != nil {
			e.pool.Free(kv)
			kv = nil
		}
	}
	defer func() {
		if err != nil { // behind the calls below, which may not have run yet
			_ = e.post(command{kind: callFunc, call: release}) // of a closed engine nothing is left
		}
	}()
	err = e.call(ctx, func() {
		own := s.salt()
		rope := e.m.RopeLength(len(s.Tokens), len(s.Tokens))
		kv = e.tree.Match(saltOf(own, rope), s.Tokens)
		if kv.Len() == 0 && rope != 0 { // no token was computed since it became so long
			e.pool.Free(kv)
			rope, kv = 0, e.tree.Match(own, s.Tokens)
		}
		n = kv.Len()
		meta, err := json.Marshal(sessionMeta{Model: e.m.Fingerprint(), Tokens: s.Tokens[:n], Rope: rope, Adapter: s.Adapter})
		if err == nil {
			file.Grow(int(e.pool.SnapshotBytes(kv, len(meta))))
			parts, err = e.pool.Parts(kv, meta)
		}
		failed = err
	})
	// Between two steps as much is copied as takes leastRead: answers go on.
	for done := false; ; {
		if err != nil { // the loop may still be at it
			return 0, err
		}
		if failed != nil {
			return 0, failed
		}
		if done {
			break
		}
		err = e.call(ctx, func() {
			for begin := e.now(); !done && failed == nil; {
				if done, failed = parts.Write(&file, kv, e.readPart); e.now()-begin >= e.leastRead {
					break
				}
			}
			if done {
				release()
			}
		})
	}
	if _, err := w.Write(file.Bytes()); err != nil {
		return 0, fmt.Errorf("engine: session: %w", err)
	}
	return n, nil
}

// LoadSession reads what SaveSession wrote, for the tenant and salt that s
// names, and returns its tokens: prompts that begin with them find them
// computed. What another model computed is refused, be it of the same name and
// shape: keys and values hold for the weights that made them.
func (e *Engine) LoadSession(ctx context.Context, r io.Reader, s Session) (tokens []int32, err error) {
	if e.o.NoPrefixCache {
		return nil, errNoTree
	}
	most := int64(e.Pages()) * e.m.Pool().PageBytes()
	file, err := io.ReadAll(io.LimitReader(r, most+kvcache.MaxMeta+1<<20))
	if err != nil {
		return nil, fmt.Errorf("engine: session: %w", err)
	}
	type result struct {
		tokens []int32
		err    error
	}
	read := make(chan result, 1)
	err = e.call(ctx, func() {
		e.read(bytes.NewReader(file), func(kv *kvcache.Seq, meta []byte, err error) {
			r := result{err: err}
			if err == nil {
				r.tokens, r.err = e.adopt(kv, meta, &s)
				e.pool.Free(kv)
			}
			read <- r
		})
	})
	if err != nil {
		return nil, err
	}
	select {
	case r := <-read:
		return r.tokens, r.err
	case <-e.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("engine: %w", ctx.Err())
	}
}

// ForgetSession forgets what the prefix tree has of the session's tokens, as far as
// no other prompt has them too, and returns how many tokens it had.
func (e *Engine) ForgetSession(ctx context.Context, s Session) (tokens int, err error) {
	if e.o.NoPrefixCache {
		return 0, errNoTree
	}
	err = e.call(ctx, func() {
		own := s.salt()
		for _, rope := range slices.Compact([]int{e.m.RopeLength(len(s.Tokens), len(s.Tokens)), 0}) {
			n, _, _ := e.tree.Peek(saltOf(own, rope), s.Tokens)
			tokens = max(tokens, n)
			e.tree.Forget(saltOf(own, rope), s.Tokens)
		}
	})
	return tokens, err
}

// ForgetPrefixes empties the prefix tree. Sequences that run keep what they have.
func (e *Engine) ForgetPrefixes(ctx context.Context) error {
	if e.o.NoPrefixCache {
		return nil
	}
	return e.call(ctx, e.tree.Clear)
}

// adopt puts what was read of a session into the prefix tree.
func (e *Engine) adopt(kv *kvcache.Seq, b []byte, s *Session) ([]int32, error) {
	var meta sessionMeta
	if err := json.Unmarshal(b, &meta); err != nil {
		return nil, fmt.Errorf("engine: session: description: %w", err)
	}
	if own := e.m.Fingerprint(); meta.Model != own {
		return nil, fmt.Errorf("engine: session: model: expected one saved with the weights that are loaded (fingerprint %.12s), found other ones (%.12q): the model's file was changed, or it is another model's session", own, meta.Model)
	}
	if own := s.Adapter; meta.Adapter != own {
		return nil, fmt.Errorf("engine: session: adapter: expected one saved with %s, found one saved with %s", adapterText(own), adapterText(meta.Adapter))
	}
	if len(meta.Tokens) != kv.Len() {
		return nil, fmt.Errorf("engine: session: tokens: expected %d, as many as have keys and values, found %d", kv.Len(), len(meta.Tokens))
	}
	e.tree.Insert(saltOf(s.salt(), meta.Rope), meta.Tokens, kv)
	e.inserted = true
	return meta.Tokens, nil
}

// adapterText names an adapter by its identity.
func adapterText(id string) string {
	if id == "" {
		return "no adapter"
	}
	return fmt.Sprintf("adapter %.12q", id)
}
