package llama

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"slices"

	"ridge/server/adapters"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/openai"
	"ridge/server/wire"
)

// adapterCard is an adapter in llama-server's list.
type adapterCard struct {
	ID    int     `json:"id"`
	Path  string  `json:"path"`
	Scale float32 `json:"scale"`
	Name  string  `json:"name"` // as a request's model
	Base  string  `json:"base_model"`

	Loaded bool  `json:"loaded"`
	Bytes  int64 `json:"bytes"`
}

// listAdapters is GET /lora-adapters.
func (s *API) listAdapters(w http.ResponseWriter, r *http.Request) error {
	out := []adapterCard{}
	for _, a := range s.Models.Adapters().Infos() {
		out = append(out, adapterCard{a.ID, filepath.Base(a.Path), a.Scale, a.Name, a.Base, a.Loaded, a.Bytes})
	}
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}

// scaleAdapters is POST /lora-adapters: what requests have that name neither an
// adapter nor scales. It changes the answers of all, and is for who may do that.
func (s *API) scaleAdapters(w http.ResponseWriter, r *http.Request) error {
	b, err := readScales(r)
	if err != nil {
		return err
	}
	if !caller.Administers(r.Context()) {
		return fault.NotImplemented("POST /lora-adapters is not offered to this key: it changes the answers of all; send lora in the request")
	}
	m, err := s.query(r)
	if err != nil {
		return err
	}
	defer m.Release()
	if err := s.Models.Adapters().SetScales(m.Root().Info().Name, b.Scales()); err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]bool{"success": true})
	return nil
}

// readScales reads a body that is a list, as a field of requests is.
func readScales(r *http.Request) (openai.AdapterScales, error) {
	list, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, wire.BodyError(err)
	}
	if !json.Valid(list) {
		return nil, fault.BadRequest("", "expected a list such as [{\"id\": 0, \"scale\": 1}], found %s", fault.Excerpt(list))
	}
	var b struct {
		Adapters openai.AdapterScales `json:"lora"`
	}
	_, err = wire.DecodeJSON(slices.Concat([]byte(`{"lora":`), list, []byte("}")), &b)
	return b.Adapters, err
}

// loadRequest is the body of vLLM's POST /v1/load_lora_adapter.
type loadRequest struct {
	Name string `json:"lora_name"`
	Path string `json:"lora_path"`
	Base string `json:"base_model_name"` // "": the first model
}

// loadAdapter is POST /v1/load_lora_adapter.
func (s *API) loadAdapter(w http.ResponseWriter, r *http.Request) error {
	var b loadRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	if s.Models.Taken(b.Name) {
		return fault.BadRequest("lora_name", "a model or adapter of this server has the name %q already", b.Name)
	}
	m, err := s.Model(r, b.Base)
	if err != nil {
		return err
	}
	defer m.Release()
	if err := s.Models.Adapters().Load(r.Context(), m.Engine(), adapters.Config{Name: b.Name, Path: b.Path, Base: m.Root().Info().Name, Scale: 1, Owner: caller.Owner(r.Context())}); err != nil {
		return err
	}
	return say(w, "Success: LoRA adapter '"+b.Name+"' added successfully.")
}

// unloadRequest is the body of vLLM's POST /v1/unload_lora_adapter.
type unloadRequest struct {
	Name string    `json:"lora_name"`
	ID   wire.Idle `json:"lora_int_id"`
}

// unloadAdapter is POST /v1/unload_lora_adapter.
func (s *API) unloadAdapter(w http.ResponseWriter, r *http.Request) error {
	var b unloadRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	if err := s.Models.Adapters().Unload(b.Name, caller.Owner(r.Context()), caller.Administers(r.Context())); err != nil {
		return err
	}
	return say(w, "Success: LoRA adapter '"+b.Name+"' removed successfully.")
}

// say answers with a line of text, as vLLM does.
func say(w http.ResponseWriter, line string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(line)) // a client that is gone is noticed by others
	return nil
}
