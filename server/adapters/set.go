// Package adapters has the LoRA adapters of a server: their names, and which of them
// are in memory.
package adapters

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ridge/model"
	"ridge/server/fault"
)

// Config says which file changes a model, and under which name.
type Config struct {
	Name, Path string
	Base       string  // name of the model that it changes
	Scale      float32 // times what it adds
	Owner      string  // who brought it, "" for whoever runs the server
}

// maxAdapters bounds the adapters that have a name.
const maxAdapters = 1000

// Set are the LoRA adapters that clients may name in a model's place. The
// matrices of one are read when a request wants them, and are let go, the longest
// unused first, when others need the room; a request keeps those that it began with.
type Set struct {
	MaxLoaded int    // in memory at one time, 0 for any number
	MaxBytes  int64  // of their memory, 0 for any
	Dir       string // where clients may load adapters from, "": nowhere

	reading sync.Mutex // held while a file is read

	mu      sync.Mutex
	byName  map[string]*Adapter
	leaving map[*Adapter]bool // unloaded, and some request has them still
	next    int               // number of the next one
	freed   chan struct{}     // closed when a request ends that others may have waited for
	loads   int               // files that were read
	evicted int               // adapters that made room
}

// Adapter is one that has a name, or had it.
type Adapter struct {
	config  Config
	id      int // as llama-server numbers them
	created time.Time

	// Guarded by Set.mu:

	scale   float32        // that requests of the model have which say nothing, see SetScales
	gone    bool           // it was unloaded
	mat     *model.Adapter // nil: not in memory
	scaled  *model.Adapter // mat times by, so that requests with it are computed together
	by      float32
	size    int64     // bytes of its matrices, 0 before they were read
	rank    int       // the largest of its matrices, 0 before they were read
	uses    int       // requests that have it now
	waiting int       // requests that wait for room for it
	last    time.Time // when one began
}

// Config is what was said of a.
func (a *Adapter) Config() Config { return a.config }

// Created is when a got its name.
func (a *Adapter) Created() time.Time { return a.created }

// Use is how much of an adapter a request has.
type Use struct {
	Adapter *Adapter
	Scale   float32
}

// New returns a set without adapters, and without bounds.
func New() *Set {
	return &Set{byName: map[string]*Adapter{}, leaving: map[*Adapter]bool{}, freed: make(chan struct{})}
}

// key is a name as names are compared: in either case, and with the tag that Ollama's
// clients add.
func key(name string) string { return strings.ToLower(strings.TrimSuffix(name, ":latest")) }

// Configure makes the adapters that no client brought those of a configuration.
// Those that stay as they were keep their numbers.
func (s *Set) Configure(all []Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	named := map[string]Config{}
	for _, c := range all {
		if _, twice := named[key(c.Name)]; twice {
			return fault.BadRequest("lora", "expected one adapter of each name, found two named %q", c.Name)
		}
		named[key(c.Name)] = c
	}
	for name, a := range s.byName {
		if c, ok := named[name]; a.config.Owner == "" && (!ok || c != a.config) {
			s.remove(a)
		}
	}
	for _, c := range all {
		if s.byName[key(c.Name)] == nil {
			s.add(&Adapter{config: c})
		}
	}
	return nil
}

// add gives an adapter its name and number.
func (s *Set) add(a *Adapter) {
	a.id, a.created = s.next, time.Now()
	s.next++
	s.byName[key(a.config.Name)] = a
}

// remove takes a name away. Requests that have the adapter keep its matrices.
func (s *Set) remove(a *Adapter) {
	delete(s.byName, key(a.config.Name))
	a.gone, a.mat, a.scaled = true, nil, nil
	if a.uses > 0 {
		s.leaving[a] = true
	}
	s.free()
}

// free wakes those that wait for room.
func (s *Set) free() {
	close(s.freed)
	s.freed = make(chan struct{})
}

// Find is the adapter of a name, nil for none.
func (s *Set) Find(name string) *Adapter {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[key(name)]
}

// all returns the adapters by their numbers.
func (s *Set) all() []*Adapter {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *Adapter) int { return cmp.Compare(a.id, b.id) })
}

// Info is what is shown of an adapter.
type Info struct {
	ID      int
	Name    string
	Path    string
	Base    string
	Scale   float32 // that requests of the base have which say nothing, see SetScales
	Loaded  bool
	Bytes   int64 // of its matrices, 0 if they were never read
	Rank    int   // the largest of its matrices, 0 if they were never read
	Owner   string
	Running int // requests that have it
	Waiting int // requests that wait for room for it
}

// Infos are the adapters by their numbers.
func (s *Set) Infos() (out []Info) {
	for _, a := range s.all() {
		s.mu.Lock()
		out = append(out, Info{a.id, a.config.Name, a.config.Path, a.config.Base, a.scale, a.mat != nil, a.size, a.rank, a.config.Owner, a.uses, a.waiting})
		s.mu.Unlock()
	}
	return out
}

// Counts are how many files were read since the server began, and how many adapters
// made room for others.
func (s *Set) Counts() (loads, evicted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads, s.evicted
}

// Scale is how much of an adapter a request wants, by the number that llama-server's
// clients know it by.
type Scale struct {
	ID    int
	Scale float32
}

// Uses are the adapters of the model base that numbers name. field is where they
// stand in the request.
func (s *Set) Uses(base, field string, scales []Scale) ([]Use, error) {
	all := s.all()
	out := []Use{}
	for _, x := range scales {
		i := slices.IndexFunc(all, func(a *Adapter) bool { return a.id == x.ID && a.config.Base == base })
		switch {
		case len(all) == 0:
			return nil, fault.Unsupported(field, "this server has no adapters: see --lora of ridge serve")
		case i < 0:
			return nil, fault.BadRequest(field, "expected the id of an adapter of %s, found %d", base, x.ID)
		case x.Scale-x.Scale != 0:
			return nil, fault.BadRequest(field, "adapter %d: expected a number as scale, found none", x.ID)
		case slices.ContainsFunc(out, func(u Use) bool { return u.Adapter == all[i] }):
			return nil, fault.BadRequest(field, "expected each adapter once, found %d twice", x.ID)
		}
		out = append(out, Use{all[i], x.Scale})
	}
	return out, nil
}

// SetScales sets what requests of the model base have of its adapters that say
// nothing: what is not named is left out.
func (s *Set) SetScales(base string, scales []Scale) error {
	uses, err := s.Uses(base, "", scales)
	if err != nil || s == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.byName {
		if a.config.Base == base {
			a.scale = 0
		}
	}
	for _, u := range uses {
		u.Adapter.scale = u.Scale
	}
	return nil
}

// Usual are the adapters of requests of the model base that say nothing.
func (s *Set) Usual(base string) (out []Use) {
	for _, a := range s.all() {
		s.mu.Lock()
		if a.scale != 0 && a.config.Base == base {
			out = append(out, Use{a, a.scale})
		}
		s.mu.Unlock()
	}
	return out
}
