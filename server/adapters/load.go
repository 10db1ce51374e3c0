package adapters

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ridge/engine"
	"ridge/model"
	"ridge/server/fault"
)

// errNoRoom is returned where others have the room that an adapter was found to need.
var errNoRoom = errors.New("adapters: no room for an adapter")

// Acquire returns the sum of adapters of the model of an engine, nil for none, and
// waits for room if others have it. release says that the request is over.
func (s *Set) Acquire(ctx context.Context, e *engine.Engine, uses []Use) (sum *model.Adapter, release func(), err error) {
	uses = slices.DeleteFunc(slices.Clone(uses), func(u Use) bool { return u.Scale == 0 })
	if len(uses) == 0 {
		return nil, func() {}, nil
	}
	if e == nil {
		return nil, nil, fault.Unsupported("lora", "this model takes no adapters")
	}
	if n := s.MaxLoaded; n > 0 && len(uses) > n {
		return nil, nil, fault.BadRequest("lora", "expected at most %d adapters, as many as the server has in memory, found %d", n, len(uses))
	}
	for {
		if err := s.hold(ctx, uses); err != nil {
			return nil, nil, err
		}
		sum, err := s.sum(e, uses)
		if err == nil {
			return sum, func() { s.release(uses) }, nil
		}
		s.release(uses)
		if !errors.Is(err, errNoRoom) {
			return nil, nil, err
		}
	}
}

// sum reads adapters that are held.
func (s *Set) sum(e *engine.Engine, uses []Use) (sum *model.Adapter, err error) {
	for _, u := range uses {
		mat, err := s.read(e, u.Adapter)
		if err != nil {
			return nil, err
		}
		sum = sum.With(s.scaled(u, mat))
	}
	return sum, nil
}

// scaled returns matrices times the scale of a use: the same for uses of one scale.
func (s *Set) scaled(u Use, mat *model.Adapter) *model.Adapter {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := u.Adapter
	if a.mat != mat {
		return mat.Scaled(u.Scale)
	}
	if a.scaled == nil || a.by != u.Scale {
		a.scaled, a.by = mat.Scaled(u.Scale), u.Scale
	}
	return a.scaled
}

// release says that a request of adapters is over.
func (s *Set) release(uses []Use) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range uses {
		if u.Adapter.uses--; u.Adapter.uses == 0 {
			delete(s.leaving, u.Adapter)
		}
	}
	s.free()
}

// hold counts a request of adapters, when there is room for them.
func (s *Set) hold(ctx context.Context, uses []Use) error {
	for {
		s.mu.Lock()
		for _, u := range uses {
			if u.Adapter.gone {
				s.mu.Unlock()
				return fault.ModelNotFound(u.Adapter.config.Name)
			}
		}
		ok, freed := s.makeRoom(uses), s.freed
		for _, u := range uses {
			if ok {
				u.Adapter.uses, u.Adapter.last = u.Adapter.uses+1, time.Now()
			} else {
				u.Adapter.waiting++
			}
		}
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		for _, u := range uses {
			u.Adapter.waiting--
		}
		s.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// makeRoom lets unused adapters go until there is room for those that are wanted,
// and reports whether there is. One that alone is too much has room too: it is refused
// when it is read.
func (s *Set) makeRoom(want []Use) bool {
	all := maps.Clone(s.leaving)
	for _, a := range s.byName {
		all[a] = true
	}
	wanted := map[*Adapter]bool{}
	for _, u := range want {
		all[u.Adapter], wanted[u.Adapter] = true, true
	}
	n, bytes, busy := 0, int64(0), false
	var idle []*Adapter
	for a := range all {
		switch {
		case wanted[a]:
		case a.uses > 0:
			busy = true
		case a.mat == nil:
			continue
		default:
			idle = append(idle, a)
		}
		n, bytes = n+1, bytes+a.size
	}
	slices.SortFunc(idle, func(a, b *Adapter) int { return a.last.Compare(b.last) })
	over := func() bool {
		return s.MaxLoaded > 0 && n > s.MaxLoaded || s.MaxBytes > 0 && bytes > s.MaxBytes
	}
	for ; over() && len(idle) > 0; idle = idle[1:] {
		n, bytes = n-1, bytes-idle[0].size
		idle[0].mat, idle[0].scaled = nil, nil
		s.evicted++
	}
	return !over() || !busy
}

// kept returns the matrices of an adapter that are in memory for an engine.
func (s *Set) kept(e *engine.Engine, a *Adapter) *model.Adapter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.mat == nil || !e.Model().Has(a.mat) { // or for another loading of the model
		return nil
	}
	return a.mat
}

// read returns the matrices of an adapter that is held, from its file if they are not
// in memory.
func (s *Set) read(e *engine.Engine, a *Adapter) (*model.Adapter, error) {
	if mat := s.kept(e, a); mat != nil {
		return mat, nil
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	if mat := s.kept(e, a); mat != nil {
		return mat, nil
	}
	mat, err := e.ReadAdapter(a.config.Path)
	if err != nil {
		f := fault.Unavailable(0, "the adapter %s cannot be loaded: %v", a.config.Name, err)
		f.Code = "model_load_failed"
		return nil, f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	a.size, a.rank = mat.Bytes, mat.Rank
	if most := s.MaxBytes; most > 0 && mat.Bytes > most {
		return nil, fault.BadRequest("model", "adapter %s: expected at most %d bytes of matrices, as much as the server has for adapters, found %d", a.config.Name, most, mat.Bytes)
	}
	if !s.makeRoom([]Use{{Adapter: a}}) {
		return nil, errNoRoom
	}
	if !a.gone {
		a.mat, a.scaled = mat, nil
	}
	return mat, nil
}

// Load reads an adapter for a client, for the model of an engine, and gives it its
// name.
func (s *Set) Load(ctx context.Context, e *engine.Engine, c Config) error {
	if c.Name == "" || len(c.Name) > 100 || strings.ContainsAny(c.Name, " \t\r\n\\") {
		return fault.BadRequest("lora_name", "expected a name of 1 to 100 bytes without spaces, found %q", c.Name)
	}
	if s == nil || s.Dir == "" {
		return fault.NotImplemented("this server loads no adapters for clients; start it with --lora-dir and the folder that they lie in")
	}
	path, err := s.inDir(c.Path)
	if err != nil {
		return err
	}
	c.Path = path
	if err := s.vacant(c.Name); err != nil {
		return err
	}
	a := &Adapter{config: c}
	_, release, err := s.Acquire(ctx, e, []Use{{a, 1}})
	var f *fault.Error
	if errors.As(err, &f) && f.Code == "model_load_failed" { // the client named what is wrong
		return fault.BadRequest("lora_path", "%s", f.Message)
	}
	if err != nil {
		return err
	}
	defer release()
	if err := s.vacant(c.Name); err != nil { // another client was as quick
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(a)
	return nil
}

// vacant refuses a name that an adapter has, and one more than there may be.
func (s *Set) vacant(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[key(name)] != nil {
		return fault.BadRequest("lora_name", "expected a name that no adapter has, found %q, which one has already", name)
	}
	if len(s.byName) >= maxAdapters {
		return fault.BadRequest("lora_name", "expected room for another adapter, found %d, as many as may be", maxAdapters)
	}
	return nil
}

// inDir is the path of an adapter that a client names, which lies in the folder for
// them, wherever links lead.
func (s *Set) inDir(path string) (string, error) {
	if path == "" {
		return "", fault.BadRequest("lora_path", "expected the folder or file of an adapter, found nothing")
	}
	dir, err := filepath.Abs(s.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(dir, full)
	}
	real, err := filepath.EvalSymlinks(full)
	if err == nil {
		var in string
		if in, err = filepath.Rel(dir, real); err == nil && (in == "." || !filepath.IsLocal(in)) {
			err = os.ErrNotExist
		}
	}
	if err != nil { // nothing is said of what lies elsewhere
		return "", fault.NotFound("no adapter is at %q in the folder for them", path)
	}
	return real, nil
}

// Available are the adapters that clients may load, by what they are called in the
// folder for them: folders with a configuration of PEFT, and files of weights. They
// are the first of its entries if it has many.
func (s *Set) Available() ([]string, error) {
	out := []string{}
	if s == nil || s.Dir == "" {
		return out, nil
	}
	all, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		name := e.Name()
		_, err := os.Stat(filepath.Join(s.Dir, name, "adapter_config.json"))
		if err == nil || !e.IsDir() && (strings.HasSuffix(name, ".gguf") || strings.HasSuffix(name, ".safetensors")) {
			out = append(out, name)
		}
		if len(out) == maxAdapters {
			break
		}
	}
	return out, nil
}

// Unload takes an adapter's name away, for its owner or for who may do all. Requests
// that have it go on with it.
func (s *Set) Unload(name, owner string, all bool) error {
	a := s.Find(name)
	if a == nil {
		return fault.ModelNotFound(name)
	}
	if a.config.Owner != owner && !all {
		return fault.BadRequest("lora_name", "the adapter %q is another's", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.gone {
		s.remove(a)
	}
	return nil
}

// Check reads the adapters of the model base, of an engine, so that a bad one shows
// before a request has it.
func (s *Set) Check(ctx context.Context, e *engine.Engine, base string) error {
	var errs []error
	for _, a := range s.all() {
		if a.config.Base != base {
			continue
		}
		_, release, err := s.Acquire(ctx, e, []Use{{a, 1}})
		if err == nil {
			release()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
