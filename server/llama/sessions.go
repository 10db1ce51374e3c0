package llama

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"ridge/engine"
	"ridge/internal/atomicfile"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/internal/folder"
	"ridge/server/openai"
	"ridge/server/run"
	"ridge/server/wire"
)

// sessionName is what a file of a session may be called.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$`)

// session is POST /slots/{id}?action=save, restore or erase: keys and values
// of a prompt to a file and back. There are no slots here, every prompt shares
// one cache: the id is not looked at, and what to save is said by a prompt.
func (s *API) session(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Filename string       `json:"filename"`
		Prompt   wire.Prompts `json:"prompt"`
		openai.ChatRequest
	}
	err := wire.DecodeBody(r, &b)
	switch {
	case err != nil:
	case s.Data == "":
		err = fault.NotImplemented("this server keeps no files; start it with --data")
	case !sessionName.MatchString(b.Filename):
		err = fault.BadRequest("filename", "expected letters, digits, dots, hyphens and underscores, found %q", b.Filename)
	}
	if err != nil {
		return err
	}
	m, err := s.Model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	e := m.Engine()
	if e == nil {
		return fault.NotImplemented("this model keeps no sessions")
	}
	dir := s.Data
	if name := caller.Owner(r.Context()); name != "" {
		// A tenant's sessions are its own, as its prefixes are.
		if !sessionName.MatchString(name) {
			return fault.BadRequest("", "the key's name %q cannot be the name of a folder", name)
		}
		dir = filepath.Join(dir, name)
	}
	path, start := filepath.Join(dir, b.Filename), time.Now()
	ses := engine.Session{Tenant: caller.Owner(r.Context()), CacheSalt: b.CacheSalt}
	var reply map[string]any
	switch action := r.URL.Query().Get("action"); action {
	case "save":
		if ses.Tokens, err = sessionTokens(r.Context(), m.Model, b.Prompt, &b.ChatRequest); err == nil {
			reply, err = saveSession(r, e, dir, path, ses)
		}
	case "restore":
		reply, err = restoreSession(r, e, path, ses)
	case "erase":
		if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
			err = fault.NotFound("no session has the name %q", b.Filename)
		}
		reply = map[string]any{"n_erased": 1}
	default:
		err = fault.BadRequest("action", "expected save, restore or erase, found %q", action)
	}
	if err != nil {
		return err
	}
	reply["filename"] = b.Filename
	reply["timings"] = map[string]float64{"total_ms": wire.Milliseconds(time.Since(start).Seconds())}
	wire.WriteJSON(w, http.StatusOK, reply)
	return nil
}

// openSessions rids the folders of sessions of what was left half-written.
func openSessions(dir string) error {
	entries, err := folder.Open(dir)
	for _, e := range entries {
		if e.IsDir() { // a tenant's
			atomicfile.Sweep(filepath.Join(dir, e.Name()))
		}
	}
	return err
}

func sessionTokens(ctx context.Context, m *run.Model, p wire.Prompts, b *openai.ChatRequest) ([]int32, error) {
	switch {
	case len(p) == 1 && p[0].Tokens != nil:
		return p[0].Tokens, nil
	case len(p) == 1:
		return m.Encode(p[0].Text, true)
	case len(b.Messages) > 0:
		p, err := b.Prompt(ctx, m)
		return p.Tokens, err
	}
	return nil, fault.BadRequest("prompt", "expected a prompt or messages whose keys and values to save")
}

// countingWriter counts what is written to w.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func saveSession(r *http.Request, e *engine.Engine, dir, path string, ses engine.Session) (map[string]any, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var n int
	size := &countingWriter{} // the file may be erased by another request before its size is asked for
	err := atomicfile.Write(path, func(w io.Writer) error {
		var err error
		size.w = w
		if n, err = e.SaveSession(r.Context(), size, ses); err == nil && n == 0 {
			err = fault.BadRequest("prompt", "none of it is computed, so that there is nothing to save: let the model read it first, with max_tokens 0 if need be")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"n_saved": n, "n_written": size.n}, nil
}

func restoreSession(r *http.Request, e *engine.Engine, path string, ses engine.Session) (map[string]any, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.NotFound("no session has the name %q", filepath.Base(path))
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	ids, err := e.LoadSession(r.Context(), f, ses)
	if err != nil {
		return nil, fault.BadRequest("filename", "the session cannot be used: %v", err)
	}
	return map[string]any{"n_restored": len(ids), "n_read": st.Size()}, nil
}
