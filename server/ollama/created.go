package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"ridge/internal/atomicfile"
	"ridge/server/fault"
	"ridge/server/internal/folder"
	"ridge/server/run"
	"ridge/server/wire"
)

// variant is another model's files with words and numbers of its own, as
// Ollama's clients create them.
type variant struct {
	Name       string                     `json:"name"`
	From       string                     `json:"from"` // a model with files
	Owner      string                     `json:"owner,omitempty"`
	Template   string                     `json:"template,omitempty"` // Jinja
	System     string                     `json:"system,omitempty"`
	License    []string                   `json:"license,omitempty"`
	Messages   []message                  `json:"messages,omitempty"` // before each conversation
	Parameters map[string]json.RawMessage `json:"parameters,omitempty"`
	Modified   time.Time                  `json:"modified"`
}

// maxVariants bounds the created models, and maxVariantBytes what one says.
const (
	maxVariants     = 200
	maxVariantBytes = 1 << 20
)

// options are the parameters as those of a request. Ones that nobody knows are
// an error.
func (v *variant) options() (*options, error) {
	o := &options{}
	if len(v.Parameters) == 0 {
		return o, nil
	}
	b, err := wire.EncodeJSON(v.Parameters)
	if err != nil {
		return nil, err
	}
	unread, err := wire.DecodeJSON(b, o)
	if err == nil && len(unread) > 0 {
		err = fault.BadRequest("parameters", "expected those of Ollama's options that this server has, found %q", unread[0])
	}
	return o, err
}

// inherit takes over what v does not say itself.
func (v *variant) inherit(from *variant) {
	v.From = from.From
	if v.Template == "" {
		v.Template = from.Template
	}
	if v.System == "" {
		v.System = from.System
	}
	if v.License == nil {
		v.License = from.License
	}
	if v.Messages == nil {
		v.Messages = from.Messages
	}
	p := maps.Clone(from.Parameters)
	if p == nil {
		p = map[string]json.RawMessage{}
	}
	maps.Copy(p, v.Parameters)
	v.Parameters = p
}

// goTemplate finds what templates in Go's language have and Jinja's cannot.
var goTemplate = regexp.MustCompile(`\{\{-?\s*(?:(?:if|range|else|end|with|block|template|define)\b|[.$])`)

// derive returns the model of a variant: base with what v says.
func derive(base *run.Model, v *variant) (*run.Model, error) {
	o, err := v.options()
	if err != nil {
		return nil, err
	}
	d := run.Derivation{Name: v.Name, Created: v.Modified, System: v.System, License: strings.Join(v.License, "\n"), Template: v.Template, Sampling: o.sampling(), Stop: o.Stop}
	if d.Before, err = readMessages(v.Messages); err != nil {
		return nil, err
	}
	if n := o.NumPredict; n != nil && *n >= 0 {
		d.MaxTokens = n.Pointer()
	}
	if v.Template == "" {
		return base.Derive(&d)
	}
	m, err := base.Derive(&d)
	if goTemplate.MatchString(v.Template) {
		err = errors.New("found an action of Go's")
	}
	var api *fault.Error
	if errors.As(err, &api) {
		return nil, err
	}
	if err != nil {
		return nil, fault.BadRequest("template", "expected a Jinja chat template (those in Go's language are not run): %v", err)
	}
	return m, nil
}

// Store are the created models. They are kept in a folder, one file each.
type Store struct {
	dir string // "": there are none

	mu     sync.Mutex
	byName map[string]*variant   // by name in small letters, without ":latest"
	models map[string]*run.Model // derived, by the same
}

func variantKey(name string) string { return strings.ToLower(run.PlainName(name)) }

// open reads what is in a folder. What cannot be read is left where it is.
func (s *Store) open(dir string, log *slog.Logger) error {
	entries, err := folder.Open(dir)
	if err != nil {
		return err
	}
	s.dir, s.byName, s.models = dir, map[string]*variant{}, map[string]*run.Model{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || len(s.byName) >= maxVariants {
			continue
		}
		var v variant
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err == nil {
			err = json.Unmarshal(b, &v)
		}
		if want := filepath.Base(s.path(v.Name)); err == nil && e.Name() != want {
			err = fmt.Errorf("file name: expected %s, found %s", want, e.Name())
		}
		if err != nil {
			log.Warn("a created model cannot be used", "file", e.Name(), "error", fault.Unquoted(err.Error()))
			continue
		}
		s.byName[variantKey(v.Name)] = &v
	}
	return nil
}

// path is the file of a variant, a safe one for any name.
func (s *Store) path(name string) string {
	h := sha256.Sum256([]byte(variantKey(name)))
	return filepath.Join(s.dir, hex.EncodeToString(h[:12])+".json")
}

func (s *Store) find(name string) *variant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[variantKey(name)]
}

// list are the created models by name.
func (s *Store) list() []*variant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *variant) int { return strings.Compare(a.Name, b.Name) })
}

// put keeps a variant, in place of one that its owner has under that name.
func (s *Store) put(v *variant) error {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	if len(b) > maxVariantBytes {
		return fault.BadRequest("", "expected at most %d bytes of template, system, messages and license, found %d", maxVariantBytes, len(b))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := variantKey(v.Name)
	old := s.byName[key]
	switch {
	case old != nil && old.Owner != v.Owner:
		return fault.BadRequest("model", "another client's model has the name %q", v.Name)
	case old == nil && len(s.byName) >= maxVariants:
		return fault.BadRequest("model", "expected room for another model, found %d created ones, as many as may be", len(s.byName))
	}
	if err := atomicfile.Write(s.path(v.Name), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}); err != nil {
		return err
	}
	s.byName[key] = v
	delete(s.models, key)
	return nil
}

// drop removes a variant of owner's, and says whether there was one.
func (s *Store) drop(name, owner string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := variantKey(name)
	v := s.byName[key]
	if v == nil || v.Owner != owner {
		return false, nil
	}
	if err := os.Remove(s.path(name)); err != nil && !os.IsNotExist(err) {
		return true, err
	}
	delete(s.byName, key)
	delete(s.models, key)
	return true, nil
}

// Base is the model that a created one is made from.
func (s *Store) Base(name string) (from string, ok bool) {
	if v := s.find(name); v != nil {
		return v.From, true
	}
	return "", false
}

// Dress returns a created model on its base.
func (s *Store) Dress(name string, base *run.Model, stays bool) (*run.Model, error) {
	v := s.find(name)
	switch {
	case v == nil: // it was deleted meanwhile
		return nil, fault.ModelNotFound(name)
	case !stays:
		return derive(base, v)
	}
	return s.dress(v, base)
}

// List returns the created models by name.
func (s *Store) List() (out []run.Derived) {
	for _, v := range s.list() {
		out = append(out, run.Derived{Name: v.Name, From: v.From, Modified: v.Modified})
	}
	return out
}

// dress returns the model of a variant on a base that is loaded.
func (s *Store) dress(v *variant, base *run.Model) (*run.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := variantKey(v.Name)
	if m := s.models[key]; m != nil && m.Base() == base && s.byName[key] == v {
		return m, nil
	}
	m, err := derive(base, v)
	if err != nil {
		return nil, err
	}
	if s.byName[key] == v {
		s.models[key] = m
	}
	return m, nil
}
