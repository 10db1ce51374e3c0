package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"ridge/engine"
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

// library finds the models that clients name.
type library struct {
	fixed []*Model
	src   *Source
	// created are models that clients made of the others.
	created variants

	mu      sync.Mutex
	models  map[string]*Model // of the registry's engines, by their names there
	aliases map[string]string // names that clients gave
}

// loan is a model that stays loaded until its release.
type loan struct {
	*Model
	lease *engine.Lease // nil for a model that stays anyway
	file  *gguf.File    // of a model of which only the headers were read
}

func (l *loan) release() {
	if l.lease != nil {
		l.lease.Release()
	}
	if l.file != nil {
		_ = l.file.Close() // it was only read
	}
}

// keep says how long the model stays loaded when it is idle.
func (l *loan) keep(d time.Duration) {
	if l.lease != nil {
		l.lease.KeepAlive(d)
	}
}

func newLibrary(fixed []*Model, src *Source) *library {
	return &library{fixed: fixed, src: src, models: map[string]*Model{}, aliases: map[string]string{}}
}

// plainName is a name without the tag that Ollama's clients add.
func plainName(name string) string { return strings.TrimSuffix(name, ":latest") }

// acquire returns the model that a client named ("": the first one), loading
// it if need be.
func (l *library) acquire(ctx context.Context, name string) (*loan, error) {
	return l.named(ctx, name, l.files)
}

// named finds the model that a client named. files returns one that has files.
func (l *library) named(ctx context.Context, name string, files func(ctx context.Context, name, asked string) (*loan, error)) (*loan, error) {
	l.mu.Lock()
	asked := name
	if real, ok := l.aliases[strings.ToLower(plainName(name))]; ok {
		name = real
	}
	l.mu.Unlock()
	v := l.created.find(name)
	if v == nil {
		return files(ctx, name, asked)
	}
	base, err := files(ctx, v.From, v.From)
	if err != nil {
		return nil, err
	}
	dress := l.created.dress
	if base.file != nil { // not to be kept
		dress = func(v *variant, base *Model) (*Model, error) { return base.derive(v) }
	}
	m, err := dress(v, base.Model)
	if err != nil {
		base.release()
		return nil, err
	}
	return &loan{m, base.lease, base.file}, nil
}

// taken reports whether a model with files has a name.
func (l *library) taken(name string) bool {
	for _, m := range l.fixed {
		if m.named(name) {
			return true
		}
	}
	_, ok := l.find(name)
	return ok
}

// find is the model of the source that a name means, loaded or not.
func (l *library) find(name string) (ModelConfig, bool) {
	if l.src == nil {
		return ModelConfig{}, false
	}
	c, ok := l.src.Find(name)
	if !ok && plainName(name) != name {
		c, ok = l.src.Find(plainName(name))
	}
	return c, ok
}

// files returns a model that has files. asked is the client's name for it.
func (l *library) files(ctx context.Context, name, asked string) (*loan, error) {
	for i, m := range l.fixed {
		if m.named(name) || name == "" && i == 0 {
			return &loan{Model: m}, nil
		}
	}
	c, ok := l.find(name)
	if !ok {
		if name == "" && l.src != nil {
			return nil, badRequest("model", "expected the name of a model, found nothing")
		}
		return nil, modelNotFound(asked)
	}
	lease, err := l.src.Registry.Acquire(ctx, c.Name)
	if err != nil {
		return nil, loadError(ctx, c.Name, err)
	}
	m, err := l.dress(&c, lease.Engine)
	if err != nil {
		lease.Release()
		return nil, loadError(ctx, c.Name, err)
	}
	return &loan{Model: m, lease: lease}, nil
}

// loadError is what a client is told when a model cannot be loaded.
func loadError(ctx context.Context, name string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, engine.ErrClosed):
		return unavailable(5*time.Second, "the server is shutting down")
	}
	e := unavailable(0, "the model %s cannot be loaded: %v", name, err)
	e.Code = "model_load_failed"
	return e
}

// dress returns the model of an engine, with its tokenizer and template.
func (l *library) dress(c *ModelConfig, e *engine.Engine) (*Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.models[c.Name]; m != nil && m.engine() == e {
		return m, nil
	}
	c.Engine = e
	m, err := NewModel(*c)
	if err != nil {
		return nil, err
	}
	m.close = nil // the registry's
	l.models[c.Name] = m
	return m, nil
}

// loaded returns the models that are ready.
func (l *library) loaded() []*Model {
	out := slices.Clone(l.fixed)
	if l.src == nil {
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.src.Registry.Loaded()   // not before: a model that was dressed meanwhile would be missing
	for name, m := range l.models { // forget those that went
		if !slices.ContainsFunc(in, func(x engine.LoadedModel) bool { return x.Engine == m.engine() }) {
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

// alias gives a model another name.
func (l *library) alias(m *Model, name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.ToLower(plainName(name))
	for _, o := range l.fixed {
		if o != m && o.named(name) {
			return badRequest("destination", "another model has the name %q", name)
		}
	}
	if len(l.aliases) >= 100 {
		return badRequest("destination", "%d names were given, as many as may be", len(l.aliases))
	}
	l.aliases[key] = m.name
	return nil
}

// unalias takes back a name that a client gave, and reports whether it was one.
func (l *library) unalias(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := strings.ToLower(plainName(name))
	_, ok := l.aliases[key]
	delete(l.aliases, key)
	return ok
}

// listed is a model that clients may name.
type listed struct {
	name  string
	names []string    // all of it, that first
	c     ModelConfig // if it is not loaded
	m     *Model      // if it is, else nil
}

// list returns the models that clients may name, those of the source in its order
// and then what is loaded besides.
func (l *library) list() (out []listed) {
	loaded := l.loaded()
	if l.src != nil && l.src.List != nil {
		for _, c := range l.src.List() {
			x := listed{name: c.Name, names: l.names(c.Name, c.Aliases), c: c}
			if i := slices.IndexFunc(loaded, func(m *Model) bool { return m.name == c.Name }); i >= 0 {
				x.m = loaded[i]
				loaded = slices.Delete(loaded, i, i+1)
			}
			out = append(out, x)
		}
	}
	for _, m := range loaded {
		out = append(out, listed{name: m.name, names: l.names(m.name, m.aliases), m: m})
	}
	return out
}

// names are all names of a model: its own, other ones that it has, and those that
// clients gave it.
func (l *library) names(name string, others []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]string{name}, others...)
	for alias, real := range l.aliases {
		if real == name && !slices.Contains(out, alias) {
			out = append(out, alias)
		}
	}
	slices.Sort(out[1:])
	return out
}

// expiry says when a model will be unloaded; zero means never.
func (l *library) expiry(m *Model) time.Time {
	if l.src == nil {
		return time.Time{}
	}
	for _, x := range l.src.Registry.Loaded() {
		if x.Engine == m.engine() {
			return x.Expires
		}
	}
	return time.Time{}
}

// drain lets all models finish what they have begun.
func (l *library) drain(ctx context.Context) error {
	var wg sync.WaitGroup
	models := l.loaded()
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

// close closes everything.
func (l *library) close() error {
	var errs []error
	for _, m := range l.fixed {
		if m.close != nil {
			errs = append(errs, m.close())
		}
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
