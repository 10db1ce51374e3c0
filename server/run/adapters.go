package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"ridge/model"
	"ridge/server/adapters"
	"ridge/server/fault"
)

// adapted are the models that adapters make of others, an Overlay.
type adapted struct {
	set *adapters.Set

	mu     sync.Mutex
	models map[*adapters.Adapter]*Model // on bases that stay
}

// Base is the model that an adapter changes.
func (o *adapted) Base(name string) (from string, ok bool) {
	if a := o.set.Find(name); a != nil {
		return a.Config().Base, true
	}
	return "", false
}

// Dress returns the model that base is with an adapter.
func (o *adapted) Dress(name string, base *Model, stays bool) (*Model, error) {
	a := o.set.Find(name)
	if a == nil { // it was unloaded meanwhile
		return nil, fault.ModelNotFound(name)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if m := o.models[a]; m != nil && m.base == base {
		return m, nil
	}
	c := a.Config()
	m := base.twin(c.Name, a.Created())
	size, modified := sizeOf(c.Path)
	h := sha256.Sum256([]byte(fmt.Sprint(base.info.Digest, c.Path, size, modified.UnixNano(), c.Scale)))
	m.info.Digest = hex.EncodeToString(h[:])
	m.own = []adapters.Use{{Adapter: a, Scale: c.Scale}}
	if !stays {
		return m, nil
	}
	for known := range o.models { // forget those that went
		if o.set.Find(known.Config().Name) != known {
			delete(o.models, known)
		}
	}
	o.models[a] = m
	return m, nil
}

// List returns the adapters as models that are others with something more.
func (o *adapted) List() (out []Derived) {
	for _, x := range o.set.Infos() {
		if a := o.set.Find(x.Name); a != nil {
			out = append(out, Derived{Name: x.Name, From: x.Base, Modified: a.Created()})
		}
	}
	return out
}

// UseAdapters has clients name adapters in a model's place. It is called before l is
// used.
func (l *Library) UseAdapters(s *adapters.Set) {
	l.adapted = &adapted{set: s, models: map[*adapters.Adapter]*Model{}}
	for _, m := range l.fixed {
		m.adapters = s
	}
}

// Adapters are those that clients may name, nil for none.
func (l *Library) Adapters() *adapters.Set {
	if l.adapted == nil {
		return nil
	}
	return l.adapted.set
}

// Adapted are the models that adapters make of others.
func (l *Library) Adapted() []Derived {
	if l.adapted == nil {
		return nil
	}
	return l.adapted.List()
}

// CheckAdapters reads the adapters of models that are loaded, so that a bad one shows
// before a request has it.
func (l *Library) CheckAdapters(ctx context.Context) error {
	var errs []error
	for _, m := range l.Loaded() {
		errs = append(errs, l.Adapters().Check(ctx, m.Engine(), m.info.Name))
	}
	return errors.Join(errs...)
}

// adapter returns what changes the model for a plan, nil for nothing, when there is
// room for it. release says that the request is over.
func (p *Plan) adapter(ctx context.Context) (sum *model.Adapter, release func(), err error) {
	m, uses := p.Model, p.adapters
	if uses == nil {
		uses = m.own
	}
	if uses == nil {
		uses = m.adapters.Usual(m.Root().info.Name)
	}
	return m.adapters.Acquire(ctx, m.Engine(), uses)
}

// fillAdapters takes over which adapters a request wants.
func (c *Options) fillAdapters(p *Plan) (err error) {
	m := p.Model
	if len(m.own) > 0 && len(c.Adapters) > 0 {
		return fault.BadRequest("lora", "expected the name of a model without an adapter of its own, found %s, whose adapter the answer has", m.info.Name)
	}
	if len(m.own) == 0 && c.Adapters != nil {
		p.adapters, err = m.adapters.Uses(m.Root().info.Name, "lora", c.Adapters)
	}
	return err
}

// Adapter names what the adapter of requests computes that say nothing, for sessions
// of them; "" for none.
func (m *Model) Adapter(ctx context.Context) (string, error) {
	p := Plan{Model: m}
	a, release, err := p.adapter(ctx)
	if err != nil {
		return "", err
	}
	release()
	return adapterID(a), nil
}

func adapterID(a *model.Adapter) string {
	if a == nil {
		return ""
	}
	return a.ID
}
