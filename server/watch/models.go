package watch

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"ridge/hub"
	"ridge/measure/machine"
	"ridge/measure/roofline"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
	"ridge/weights/tensor"
)

// Models is the answer of GET /ridge/models: what clients may name, and what they can
// pull.
type Models struct {
	Models []Model `json:"models"`
	Pulls  bool    `json:"clients_pull"` // clients may pull others, with POST /api/pull
}

// Model is a model that is here, or can be pulled.
type Model struct {
	Name       string   `json:"name"`
	Names      []string `json:"names"`  // all of it
	Source     string   `json:"source"` // name of the file or folder, or where it would be pulled from
	Bytes      int64    `json:"bytes"`
	Quant      string   `json:"quant"`
	Arch       string   `json:"arch"`
	Parameters int64    `json:"parameters"`
	Context    int      `json:"context"`
	Loaded     bool     `json:"loaded"`
	Fixed      bool     `json:"fixed"` // it stays loaded as long as the server runs
	Fits       bool     `json:"fits"`  // the memory that is free is enough to load it
	Needs      int64    `json:"needs_bytes"`
	Free       int64    `json:"free_bytes"`
	ReadsOnly  bool     `json:"reads_only"` // an encoder or a classifier: it reads texts and writes none
	Reason     string   `json:"reason"`     // why it cannot run, "" if it can as far as is known
	Catalogue  bool     `json:"catalogue"`  // it is not here and can be pulled
	Default    bool     `json:"default"`    // the one to take if nothing is known of what is wanted
	Licence    string   `json:"licence"`
}

// fitContext is the context that a model is taken to be used with where it is asked
// whether it fits.
const fitContext = 4096

// sizes keeps what models need, by path.
type sizes struct {
	mu    sync.Mutex
	known map[sizeKey]sized
}

type sizeKey struct {
	path string
	size int64
}

type sized struct {
	needs  int64
	reason string
}

// maxSizes bounds what is kept.
const maxSizes = 1024

// of returns what a model's file needs, and why it cannot run.
func (s *sizes) of(path string, size int64) (needs int64, reason string) {
	key := sizeKey{path, size}
	s.mu.Lock()
	x, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return x.needs, x.reason
	}
	shape, err := roofline.Read(path, tensor.F16)
	if err != nil {
		x.reason = plainError(err, path)
	} else {
		c := shape.Outline.Config.Context
		if c <= 0 || c > fitContext {
			c = fitContext
		}
		x.needs = shape.Memory(roofline.Use{Context: c}).Total()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSizes {
		s.known = map[sizeKey]sized{}
	}
	s.known[key] = x
	return x.needs, x.reason
}

// plainError is an error of a file without the place where that lies.
func plainError(err error, path string) string {
	text := strings.ReplaceAll(err.Error(), path, filepath.Base(path))
	text = strings.ReplaceAll(text, filepath.Dir(path)+string(filepath.Separator), "")
	return strings.Join(strings.Fields(text), " ")
}

// models answers GET /ridge/models.
func (s *API) models(w http.ResponseWriter, _ *http.Request) error {
	s.Look() // who asks for models is about to choose one
	free := machine.Read().MemoryFree
	out := Models{[]Model{}, s.Hub != nil}
	for _, x := range s.Models.List() {
		out.Models = append(out.Models, s.listed(&x, free))
	}
	if s.Hub != nil {
		for _, e := range hub.Catalog() {
			if slices.ContainsFunc(out.Models, func(m Model) bool { return strings.EqualFold(m.Name, e.Name) }) || len(e.Sources) == 0 {
				continue
			}
			out.Models = append(out.Models, Model{Name: e.Name, Names: append([]string{e.Name}, e.Aliases...), Source: e.Sources[0].Ref, Bytes: e.Size(), Quant: e.Sources[0].Quant,
				Context: e.Context, Needs: e.Size(), Free: free, Fits: e.Size() < free, Catalogue: true, Default: e.Default, Licence: e.License})
		}
	}
	wire.WriteJSON(w, http.StatusOK, &out)
	return nil
}

func (s *API) listed(x *run.Listed, free int64) Model {
	m := Model{Name: x.Name, Names: x.Names, Free: free}
	if x.Model != nil {
		i := x.Model.Info()
		m.Source, m.Bytes, m.Quant, m.Arch, m.Parameters, m.Context, m.Licence = filepath.Base(i.Path), i.Size, i.Quant, i.Arch, i.Parameters, i.Context, i.License
		m.Loaded, m.Fits, m.Fixed, m.ReadsOnly = true, true, s.Models.Fixed(x.Model), i.ReadsOnly
		m.Needs, _ = s.sizes.of(i.Path, i.Size)
		return m
	}
	c := &x.Config
	m.Source, m.Bytes, m.Quant = filepath.Base(c.Path), c.Size, c.Quant
	if o, err := s.Models.Outline(c); err == nil {
		m.Quant, m.Arch, m.Parameters, m.Context, m.ReadsOnly = o.Quant, o.Arch, o.Parameters, o.Context, o.ReadsOnly
	}
	m.Needs, m.Reason = s.sizes.of(c.Path, c.Size)
	m.Fits = m.Reason == "" && m.Needs < free
	return m
}

// nameBody names a model.
type nameBody struct {
	Model string `json:"model"`
}

// named reads the name of a model from a request of somebody who may change what all
// have.
func named(r *http.Request) (string, error) {
	var b nameBody
	if err := wire.DecodeBody(r, &b); err != nil {
		return "", err
	}
	if b.Model == "" {
		return "", fault.BadRequest("model", "expected the name of a model, found nothing")
	}
	if !caller.Administers(r.Context()) {
		return "", &fault.Error{Status: http.StatusForbidden, Type: "permission_error", Code: "not_admin", Message: "models are loaded and unloaded with a key that has admin=1"}
	}
	return b.Model, nil
}

// load answers POST /ridge/load.
func (s *API) load(w http.ResponseWriter, r *http.Request) error {
	name, err := named(r)
	if err != nil {
		return err
	}
	m, err := s.Models.Acquire(r.Context(), name)
	if err != nil {
		return err
	}
	defer m.Release()
	wire.WriteJSON(w, http.StatusOK, map[string]any{"model": m.Info().Name, "loaded": true, "load_seconds": m.LoadTime().Seconds()})
	return nil
}

// unload answers POST /ridge/unload, when what the model does now is done.
func (s *API) unload(w http.ResponseWriter, r *http.Request) error {
	name, err := named(r)
	if err != nil {
		return err
	}
	real, err := s.Models.Unload(r.Context(), name)
	if err != nil {
		if r.Context().Err() != nil {
			return context.Cause(r.Context())
		}
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"model": real, "loaded": false})
	return nil
}
