package watch

import (
	"net/http"
	"path/filepath"

	"ridge/server/caller"
	"ridge/server/wire"
)

// Adapters is the answer of GET /ridge/adapters: those that requests may name in a
// model's place, and those that clients may load.
type Adapters struct {
	Adapters  []Adapter `json:"adapters"`
	Loads     bool      `json:"clients_load"` // clients may load some, with POST /v1/load_lora_adapter
	Available []string  `json:"available"`    // that they may load, by their lora_path
}

// Adapter is a LoRA adapter that has a name.
type Adapter struct {
	ID        int     `json:"id"` // as llama-server's clients know it
	Name      string  `json:"name"`
	Base      string  `json:"base_model"`
	Source    string  `json:"source"`    // name of the file or folder
	Rank      int     `json:"rank"`      // the largest of its matrices; 0 before they were read
	Bytes     int64   `json:"bytes"`     // of its matrices; 0 before they were read
	Loaded    bool    `json:"loaded"`    // they are in memory; if not, they are read when a request wants them
	Scale     float32 `json:"scale"`     // that requests of the base model have which say nothing
	Running   int     `json:"running"`   // requests that have it
	Waiting   int     `json:"waiting"`   // requests that wait for room for it
	Removable bool    `json:"removable"` // the caller may unload it, with POST /v1/unload_lora_adapter
}

// adapters answers GET /ridge/adapters.
func (s *API) adapters(w http.ResponseWriter, r *http.Request) error {
	set, ctx := s.Models.Adapters(), r.Context()
	available, err := set.Available()
	if err != nil {
		return err
	}
	out := Adapters{Adapters: []Adapter{}, Loads: set != nil && set.Dir != "", Available: available}
	for _, a := range set.Infos() {
		out.Adapters = append(out.Adapters, Adapter{ID: a.ID, Name: a.Name, Base: a.Base, Source: filepath.Base(a.Path), Rank: a.Rank, Bytes: a.Bytes, Loaded: a.Loaded, Scale: a.Scale,
			Running: a.Running, Waiting: a.Waiting, Removable: a.Owner == caller.Owner(ctx) || caller.Administers(ctx)})
	}
	wire.WriteJSON(w, http.StatusOK, &out)
	return nil
}
