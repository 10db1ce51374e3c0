package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ridge/kvcache"
	"ridge/model"
)

// LoadFunc opens the model that a name stands for. Its page pool must take its
// memory from pages, unless that is nil.
type LoadFunc func(ctx context.Context, name string, pages *kvcache.Budget) (*model.Model, Options, error)

// RegistryOptions are the choices at making a registry.
type RegistryOptions struct {
	// PageBytes is the memory for keys and values of all models together, 0 for
	// no bound. It moves to the models that need it; each is sure of its part, one
	// of MaxModels.
	PageBytes int64
	// FixedPages keeps these parts as they are: no model has more.
	FixedPages bool
	MaxModels  int // that are loaded at a time; 0 means 1
	// KeepAlive is how long a model stays loaded after its last use, unless
	// Lease.KeepAlive says otherwise; 0 means five minutes, negative means for
	// ever.
	KeepAlive time.Duration
}

// Registry keeps the engines of several models under one memory budget. Models
// are loaded when they are asked for and unloaded when they were not used for a
// while, or when another needs their place. Its methods may be called from any
// goroutine.
type Registry struct {
	load   LoadFunc
	o      RegistryOptions
	pages  *kvcache.Budget // nil for no bound
	ctx    context.Context // of loading, ends with Close
	cancel context.CancelFunc

	mu      sync.Mutex
	entries map[string]*entry
	changed chan struct{} // closed and replaced when an entry changes
	closed  bool
	failed  []error                  // of unloading
	keep    map[string]time.Duration // of models that will be loaded again
}

// entry is a model that is being loaded, loaded, or being unloaded.
type entry struct {
	name    string
	engine  *Engine // nil until it is loaded
	err     error   // why it could not be loaded
	refs    int
	leaving bool // no new leases; it is unloaded when there are none left

	keepAlive time.Duration
	used      time.Time // when the last lease ended
	since     time.Time
	took      time.Duration
	timer     *time.Timer
}

// Lease is the right to use an engine. Streams must be read to their ends, or
// closed, before it is released.
type Lease struct {
	Engine *Engine

	r    *Registry
	e    *entry
	once sync.Once
}

// LoadedModel describes a model of a registry.
type LoadedModel struct {
	Name     string
	Engine   *Engine
	Since    time.Time
	LoadTime time.Duration
	Leases   int
	Expires  time.Time // when it will be unloaded; zero while it is in use, or if never
}

// NewRegistry returns a registry without models.
func NewRegistry(load LoadFunc, o RegistryOptions) (*Registry, error) {
	if o.MaxModels < 0 || o.PageBytes < 0 {
		return nil, fmt.Errorf("engine: registry: expected no negative limits, found %d models, %d bytes", o.MaxModels, o.PageBytes)
	}
	if o.MaxModels == 0 {
		o.MaxModels = 1
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = 5 * time.Minute
	}
	var pages *kvcache.Budget
	if o.PageBytes > 0 {
		var err error
		if pages, err = kvcache.NewBudget(o.PageBytes, o.MaxModels, o.FixedPages); err != nil {
			return nil, fmt.Errorf("engine: registry: %w", err)
		}
	}
	r := &Registry{load: load, o: o, pages: pages, entries: map[string]*entry{}, keep: map[string]time.Duration{}, changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// Acquire returns a lease of the named model's engine. It loads the model if it
// is not there, and waits until there is room for it: models that are not in use
// make room, the one first whose last use is longest ago. If all are in use, the
// one that was loaded first takes no new leases until it was unloaded. A model
// whose files were changed under it, or whose engine has failed, is loaded
// again.
func (r *Registry) Acquire(ctx context.Context, name string) (*Lease, error) {
	var claim *entry // being loaded; this call holds a lease of it already
	for {
		r.mu.Lock()
		if claim != nil && claim.err != nil {
			r.mu.Unlock()
			return nil, claim.err
		}
		e := claim
		if e == nil {
			if r.closed {
				r.mu.Unlock()
				return nil, ErrClosed
			}
			if e = r.entries[name]; e == nil {
				e = r.place(name)
			} else if e.engine != nil && !e.leaving && e.engine.broken.Load() {
				r.keep[name] = e.keepAlive
				r.leave(e)
			}
			if e != nil && !e.leaving {
				e.refs++
				r.stopTimer(e)
				claim = e
			}
		}
		if claim != nil && claim.engine != nil {
			r.mu.Unlock()
			return &Lease{Engine: claim.engine, r: r, e: claim}, nil
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			r.mu.Lock()
			defer r.mu.Unlock()
			if claim != nil {
				r.release(claim)
			}
			return nil, fmt.Errorf("engine: model %s: %w", name, ctx.Err())
		}
	}
}

// place begins to load a model, or to make room for it; then it returns nil.
func (r *Registry) place(name string) *entry {
	if len(r.entries) >= r.o.MaxModels {
		r.makeRoom()
		return nil
	}
	e := &entry{name: name, keepAlive: r.o.KeepAlive, used: time.Now()}
	if d, ok := r.keep[name]; ok {
		e.keepAlive = d
	}
	r.entries[name] = e
	go r.open(e)
	return e
}

// makeRoom unloads a model, unless one is on its way out.
func (r *Registry) makeRoom() {
	var idle, busy *entry
	for _, e := range r.entries {
		switch {
		case e.leaving:
			return
		case e.engine == nil:
		case e.refs == 0:
			if idle == nil || e.used.Before(idle.used) {
				idle = e
			}
		case busy == nil || e.since.Before(busy.since):
			busy = e
		}
	}
	if idle != nil {
		r.leave(idle)
	} else if busy != nil {
		r.leave(busy)
	}
}

// leave lets a model go as soon as nobody uses it.
func (r *Registry) leave(e *entry) {
	e.leaving = true
	r.stopTimer(e)
	if e.refs == 0 && e.engine != nil {
		go r.unload(e)
	}
}

func (r *Registry) stopTimer(e *entry) {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// change tells those who wait.
func (r *Registry) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// open loads the model of e.
func (r *Registry) open(e *entry) {
	begin := time.Now()
	eng, err := r.start(e.name)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.change()
	if err != nil {
		e.err = fmt.Errorf("engine: model %s: %w", e.name, err)
		delete(r.entries, e.name)
		return
	}
	e.engine, e.since, e.took = eng, time.Now(), time.Since(begin)
	delete(r.keep, e.name)
	switch {
	case r.closed:
		e.refs = 0
		r.leave(e)
	case e.refs == 0:
		r.idle(e)
	}
}

// start opens a model and its engine.
func (r *Registry) start(name string) (*Engine, error) {
	m, o, err := r.load(r.ctx, name, r.pages)
	if err != nil {
		return nil, err
	}
	if r.pages != nil && m.Pool().Budget() != r.pages {
		return nil, errors.Join(errors.New("page pool: expected its memory to be part of the registry's budget, found memory of its own"), m.Close())
	}
	e, err := New(m, o)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return e, nil
}

// Pages returns the memory for keys and values that the models share, nil if it
// has no bound.
func (r *Registry) Pages() *kvcache.Budget { return r.pages }

// unload closes the engine and the model of e, which nobody uses.
func (r *Registry) unload(e *entry) {
	err := errors.Join(e.engine.Close(), e.engine.m.Close())
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.err = err; err != nil {
		r.failed = append(r.failed, err)
	}
	delete(r.entries, e.name)
	r.change()
}

// idle begins the time after which e, which nobody uses, is unloaded.
func (r *Registry) idle(e *entry) {
	e.used = time.Now()
	switch {
	case e.leaving, e.keepAlive == 0:
		r.leave(e)
	case e.keepAlive < 0:
	default:
		e.timer = time.AfterFunc(e.keepAlive, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if e.timer != nil && e.refs == 0 && !e.leaving {
				r.leave(e)
			}
		})
	}
}

// KeepAlive says how long the model stays loaded after the last lease ends: 0
// unloads it then, a negative time never.
func (l *Lease) KeepAlive(d time.Duration) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	l.e.keepAlive = d
}

// Release ends the lease. It may be called more than once.
func (l *Lease) Release() {
	l.once.Do(func() {
		l.r.mu.Lock()
		defer l.r.mu.Unlock()
		l.r.release(l.e)
	})
}

func (r *Registry) release(e *entry) {
	if e.refs--; e.refs > 0 || e.engine == nil {
		return
	}
	r.idle(e)
	r.change() // it may make room now
}

// Loaded returns the models that are loaded, by name.
func (r *Registry) Loaded() []LoadedModel {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []LoadedModel
	for _, e := range r.entries {
		if e.engine == nil {
			continue
		}
		m := LoadedModel{Name: e.name, Engine: e.engine, Since: e.since, LoadTime: e.took, Leases: e.refs}
		if e.timer != nil {
			m.Expires = e.used.Add(e.keepAlive)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b LoadedModel) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}

// Unload lets a model go when its leases have ended, and returns when it is
// gone, or when ctx ends.
func (r *Registry) Unload(ctx context.Context, name string) error {
	r.mu.Lock()
	e := r.entries[name]
	if e != nil && !e.leaving {
		r.leave(e)
	}
	r.mu.Unlock()
	for e != nil {
		r.mu.Lock()
		gone, changed := r.entries[name] != e, r.changed
		r.mu.Unlock()
		if gone {
			return e.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("engine: model %s: %w", name, ctx.Err())
		}
	}
	return nil
}

// Close refuses new leases, lets requests come to their ends until ctx ends,
// aborts the others and unloads all models. Leases need not be released.
func (r *Registry) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	r.cancel()
	var errs []error
	for _, e := range r.entries {
		if e.engine == nil || e.leaving && e.refs == 0 {
			continue // it is on its way
		}
		e.leaving, e.refs = true, 0
		r.stopTimer(e)
		go func() {
			if err := e.engine.Drain(ctx); err != nil {
				r.mu.Lock()
				errs = append(errs, err)
				r.mu.Unlock()
			}
			r.unload(e)
		}()
	}
	for len(r.entries) > 0 {
		changed := r.changed
		r.mu.Unlock()
		<-changed
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	return errors.Join(append(errs, r.failed...)...)
}
