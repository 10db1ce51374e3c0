package ollama

import (
	"log/slog"
	"sync/atomic"

	"ridge/hub"
	"ridge/server/wire"
)

// API is Ollama's API.
type API struct {
	*wire.Door
	created *Store
	Version string       // of the program
	Hub     *hub.Options // where models are pulled and removed; nil: not by clients
	pulls   atomic.Int64
}

// New returns the API with the models that clients create.
func New(d *wire.Door, created *Store) *API { return &API{Door: d, created: created} }

// OpenStore returns the models that clients created before, in a folder; with
// "" none can be created.
func OpenStore(dir string, log *slog.Logger) (*Store, error) {
	s := &Store{}
	if dir == "" {
		return s, nil
	}
	return s, s.open(dir, log)
}

// Routes are the API's, by their patterns.
func (s *API) Routes() map[string]wire.Handler {
	return map[string]wire.Handler{
		"POST /api/generate": s.generate, "POST /api/chat": s.chat,
		"GET /api/tags": s.tags, "GET /api/ps": s.ps, "POST /api/show": s.show, "GET /api/version": s.version,
		"POST /api/pull": s.pullModel, "DELETE /api/delete": s.delete, "POST /api/copy": s.copy,
		"POST /api/embed": s.embed, "POST /api/embeddings": s.embeddings,
		"POST /api/create": s.create, "POST /api/push": s.push, "HEAD /api/blobs/{digest}": s.blob, "POST /api/blobs/{digest}": s.blob,
	}
}

// Bodies are values of the types that routes read, by their patterns.
func Bodies() map[string]any {
	return map[string]any{
		"POST /api/chat": chatRequest{}, "POST /api/generate": generateRequest{}, "POST /api/embed": embedRequest{},
		"POST /api/create": createRequest{}, "POST /api/show": nameRequest{}, "POST /api/pull": nameRequest{}, "DELETE /api/delete": nameRequest{},
		"POST /api/embeddings": promptRequest{}, "POST /api/copy": copyRequest{},
	}
}
