package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ridge/engine"
	"ridge/internal/aside"
	"ridge/server/fault"
	"ridge/weights/gguf"
)

// Source is where models come from that are not loaded.
type Source struct {
	// Registry loads them, and unloads them when they are idle.
	Registry *engine.Registry
	// Find tells which model a client means by a name ("" if it named none).
	// Its Name is that in the registry; its Engine is not looked at.
	Find func(name string) (ModelConfig, bool)
	// List returns the models that clients may name, loaded or not. Nil: only
	// those that are loaded are listed.
	List func() []ModelConfig
}

// Library finds the models that clients name.
type Library struct {
	fixed   []*Model
	src     *Source
	overlay Overlay // nil for none

	adapted   *adapted   // nil: there are none
	templates *templates // of clients, nil: there are none

	mu      sync.Mutex
	models  map[string]*Model  // of the registry's engines, by their names there
	stale   map[string]bool    // those of models of which the source says something else now
	failed  map[string]failure // why models could not be loaded when that was tried last
	aliases map[string]string  // names that clients gave

	outlines outlines
}

// failure is why a model could not be loaded, and the file that it was then.
type failure struct {
	err      error
	size     int64
	modified time.Time
}

// Overlay knows models that are others with words of their own.
type Overlay interface {
	// Base tells which model with files the model of a name is made from.
	Base(name string) (from string, ok bool)
	// Dress makes the model of a name from that one. It may be kept for the next
	// time only if base stays.
	Dress(name string, base *Model, stays bool) (*Model, error)
	// List returns the models by name.
	List() []Derived
}

// Derived is a model that is another one with words of its own.
type Derived struct {
	Name, From string
	Modified   time.Time
}

// Loan is a model that stays loaded until its release.
type Loan struct {
	*Model
	lease *engine.Lease // nil for a model that stays anyway
	file  *gguf.File    // of a model of which only the headers were read
}

// Release gives the model back.
func (l *Loan) Release() {
	if l.lease != nil {
		l.lease.Release()
	}
	if l.file != nil {
		_ = l.file.Close() // it was only read
	}
}

// Keep says how long the model stays loaded when it is idle.
func (l *Loan) Keep(d time.Duration) {
	if l.lease != nil {
		l.lease.KeepAlive(d)
	}
}

// NewLibrary returns the library of models that stay, and of a source of others,
// which may be nil. overlay, if it is not nil, adds models derived from those.
func NewLibrary(fixed []*Model, src *Source, overlay Overlay) *Library {
	return &Library{fixed: fixed, src: src, overlay: overlay, models: map[string]*Model{}, stale: map[string]bool{}, failed: map[string]failure{}, aliases: map[string]string{}}
}

// AllowTemplates lets clients bring templates. It is called before l is used.
func (l *Library) AllowTemplates() {
	l.templates = &templates{aside.NewLane(1)}
	for _, m := range l.fixed {
		m.templates = l.templates
	}
}

// PlainName is a name without the tag that Ollama's clients add.
func PlainName(name string) string { return strings.TrimSuffix(name, ":latest") }

// Acquire returns the model that a client named ("": the first one), loading
// it if need be.
func (l *Library) Acquire(ctx context.Context, name string) (*Loan, error) {
	return l.named(ctx, name, l.files)
}

// named finds the model that a client named. files returns one that has files.
func (l *Library) named(ctx context.Context, name string, files func(ctx context.Context, name, asked string) (*Loan, error)) (*Loan, error) {
	l.mu.Lock()
	asked := name
	if real, ok := l.aliases[strings.ToLower(PlainName(name))]; ok {
		name = real
	}
	l.mu.Unlock()
	adapted := func(ctx context.Context, name, asked string) (*Loan, error) {
		return derived(ctx, l.adapted, l.adapted != nil, name, asked, files)
	}
	return derived(ctx, l.overlay, l.overlay != nil, name, asked, adapted)
}

// derived finds a model that an overlay, if there is one, may have derived from those
// that under returns.
func derived(ctx context.Context, o Overlay, there bool, name, asked string, under func(ctx context.Context, name, asked string) (*Loan, error)) (*Loan, error) {
	from := ""
	if there {
		from, there = o.Base(name)
	}
	if !there {
		return under(ctx, name, asked)
	}
	base, err := under(ctx, from, from)
	if err != nil {
		return nil, err
	}
	m, err := o.Dress(name, base.Model, base.file == nil)
	if err != nil {
		base.Release()
		return nil, err
	}
	return &Loan{m, base.lease, base.file}, nil
}

// Taken reports whether a model with files, or an adapter, has a name.
func (l *Library) Taken(name string) bool {
	if l.Adapters().Find(name) != nil {
		return true
	}
	for _, m := range l.fixed {
		if m.Named(name) {
			return true
		}
	}
	_, ok := l.Find(name)
	return ok
}

// Find is the model of the source that a name means, loaded or not.
func (l *Library) Find(name string) (ModelConfig, bool) {
	if l.src == nil {
		return ModelConfig{}, false
	}
	c, ok := l.src.Find(name)
	if !ok && PlainName(name) != name {
		c, ok = l.src.Find(PlainName(name))
	}
	return c, ok
}

// files returns a model that has files. asked is the client's name for it.
func (l *Library) files(ctx context.Context, name, asked string) (*Loan, error) {
	for i, m := range l.fixed {
		if m.Named(name) || name == "" && i == 0 {
			return &Loan{Model: m}, nil
		}
	}
	c, ok := l.Find(name)
	if !ok {
		if name == "" && l.src != nil {
			return nil, fault.BadRequest("model", "expected the name of a model, found nothing")
		}
		return nil, fault.ModelNotFound(asked)
	}
	lease, err := l.src.Registry.Acquire(ctx, c.Name)
	if err != nil {
		return nil, l.tried(ctx, &c, err)
	}
	m, err := l.dress(&c, lease.Engine)
	if err != nil {
		lease.Release()
		return nil, l.tried(ctx, &c, err)
	}
	_ = l.tried(ctx, &c, nil)
	return &Loan{Model: m, lease: lease}, nil
}

// tried remembers whether a model could be loaded, and returns what a client is
// told who wanted it.
func (l *Library) tried(ctx context.Context, c *ModelConfig, err error) error {
	if ctx.Err() == nil && !errors.Is(err, engine.ErrClosed) {
		l.mu.Lock()
		if delete(l.failed, c.Name); err != nil {
			f := failure{err: err}
			f.size, f.modified = sizeOf(c.Path)
			l.failed[c.Name] = f
		}
		l.mu.Unlock()
	}
	if err == nil {
		return nil
	}
	return loadError(ctx, c.Name, err)
}

// Broken says why no model can answer, nil if one can as far as is known: one that
// is loaded and well, or one whose files are there and that could be loaded when
// that was tried last.
func (l *Library) Broken() error {
	for _, m := range l.Loaded() {
		if m.backend.Healthy() == nil {
			return nil
		}
	}
	if l.src == nil || l.src.List == nil {
		return nil // who is sick says so
	}
	var first error
	for _, c := range l.src.List() {
		l.mu.Lock()
		f := l.failed[c.Name]
		l.mu.Unlock()
		err := f.err
		if err != nil {
			if size, modified := sizeOf(c.Path); size != f.size || !modified.Equal(f.modified) {
				err = nil // another file is there: the next request tries it
			}
		}
		if err == nil && c.Path != "" {
			_, err = os.Stat(c.Path)
		}
		if err == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return first
}

// Refresh has models made again of what the source says of them, which has changed,
// when they are asked for next. They stay loaded, and for requests that have them
// what they are.
func (l *Library) Refresh() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.models {
		l.stale[name] = true
	}
	clear(l.failed)
}

// loadError is what a client is told when a model cannot be loaded.
func loadError(ctx context.Context, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, engine.ErrClosed):
		return fault.Unavailable(5*time.Second, "the server is shutting down")
	}
	e := fault.Unavailable(0, "the model %s cannot be loaded: %v", name, err)
	e.Code = "model_load_failed"
	return e
}

// dress returns the model of an engine, with its tokenizer and template.
func (l *Library) dress(c *ModelConfig, e *engine.Engine) (*Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.models[c.Name]; m != nil && m.Engine() == e && !l.stale[c.Name] {
		return m, nil
	}
	c.Engine = e
	m, err := NewModel(*c)
	if err != nil {
		return nil, err
	}
	m.close, m.templates, m.adapters = nil, l.templates, l.Adapters() // the engine is the registry's
	l.models[c.Name] = m
	delete(l.stale, c.Name)
	return m, nil
}

// Loaded returns the models that are ready.
func (l *Library) Loaded() []*Model {
	out := slices.Clone(l.fixed)
	if l.src == nil {
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.src.Registry.Loaded()   // not before: a model that was dressed meanwhile would be missing
	for name, m := range l.models { // forget those that went
		if !slices.ContainsFunc(in, func(x engine.LoadedModel) bool { return x.Engine == m.Engine() }) {
			delete(l.models, name)
		}
	}
	for _, x := range in {
		if m := l.models[x.Name]; m != nil {
			m.setLoadTime(x.LoadTime)
			out = append(out, m)
		}
	}
	return out
}

// Alias gives a model another name.
func (l *Library) Alias(m *Model, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.ToLower(PlainName(name))
	for _, o := range l.fixed {
		if o != m && o.Named(name) {
			return fault.BadRequest("destination", "another model has the name %q", name)
		}
	}
	if len(l.aliases) >= 100 {
		return fault.BadRequest("destination", "%d names were given, as many as may be", len(l.aliases))
	}
	l.aliases[key] = m.info.Name
	return nil
}

// Unalias takes back a name that a client gave, and reports whether it was one.
func (l *Library) Unalias(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.ToLower(PlainName(name))
	_, ok := l.aliases[key]
	delete(l.aliases, key)
	return ok
}

// Listed is a model that clients may name.
type Listed struct {
	Name   string
	Names  []string    // all of it, that first
	Given  []string    // of these, those that clients gave it
	Config ModelConfig // if it is not loaded
	Model  *Model      // if it is, else nil
}

// List returns the models that clients may name, those of the source in its order
// and then what is loaded besides.
func (l *Library) List() (out []Listed) {
	loaded := l.Loaded()
	if l.src != nil && l.src.List != nil {
		for _, c := range l.src.List() {
			x := Listed{Name: c.Name, Config: c}
			x.Names, x.Given = l.names(c.Name, c.Aliases)
			if i := slices.IndexFunc(loaded, func(m *Model) bool { return m.info.Name == c.Name }); i >= 0 {
				x.Model = loaded[i]
				loaded = slices.Delete(loaded, i, i+1)
			}
			out = append(out, x)
		}
	}
	for _, m := range loaded {
		if !l.Taken(m.info.Name) {
			continue // the source has it no more
		}
		x := Listed{Name: m.info.Name, Model: m}
		x.Names, x.Given = l.names(m.info.Name, m.info.Aliases)
		out = append(out, x)
	}
	return out
}

// Derived are the models that are others with words of their own, by name.
func (l *Library) Derived() []Derived {
	out := l.Adapted()
	if l.overlay != nil {
		out = append(out, l.overlay.List()...)
	}
	return out
}

// names are all names of a model: its own, other ones that it has, and those that
// clients gave it, which are returned alone too. One that differs from another in
// case or in Ollama's tag alone is the same.
func (l *Library) names(name string, others []string) (all, given []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all = []string{name}
	add := func(other string) bool {
		if slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(PlainName(n), PlainName(other)) }) {
			return false
		}
		all = append(all, other)
		return true
	}
	for _, other := range others {
		add(other)
	}
	for _, alias := range slices.Sorted(maps.Keys(l.aliases)) {
		if l.aliases[alias] == name && add(alias) {
			given = append(given, alias)
		}
	}
	slices.Sort(all[1:])
	return all, given
}

// Expiry says when a model will be unloaded; zero means never.
func (l *Library) Expiry(m *Model) time.Time {
	if l.src == nil {
		return time.Time{}
	}
	for _, x := range l.src.Registry.Loaded() {
		if x.Engine == m.Engine() {
			return x.Expires
		}
	}
	return time.Time{}
}

// Drain lets all models finish what they have begun.
func (l *Library) Drain(ctx context.Context) error {
	var wg sync.WaitGroup
	models := l.Loaded()
	errs := make([]error, len(models))
	for i, m := range models {
		wg.Go(func() { errs[i] = m.backend.Drain(ctx) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes everything.
func (l *Library) Close() error {
	var errs []error
	for _, m := range l.fixed {
		errs = append(errs, m.Close())
	}
	if l.src != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what should finish had its time in drain
		if err := l.src.Registry.Close(ctx); !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
