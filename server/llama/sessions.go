package llama

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// action is the body of POST /slots/{id}: the name of a file, and a prompt whose keys
// and values are meant, which is the slot's last sequence if it has none.
type action struct {
	Filename string       `json:"filename"`
	Prompt   wire.Prompts `json:"prompt"`
	openai.ChatRequest
}

// session is POST /slots/{id}?action=save, restore or erase: keys and values
// of a sequence to a file and back, or out of the memory. Every sequence shares one
// cache here; a slot is the number that requests name in id_slot.
func (s *API) session(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.Atoi(r.PathValue("id"))
	if err != nil {
		return fault.BadRequest("id_slot", "expected the number of a slot, found %s", fault.Excerpt([]byte(r.PathValue("id"))))
	}
	what := r.URL.Query().Get("action")
	var b action
	if what != "erase" || r.ContentLength != 0 { // llama-server's clients send no body with it
		if err := wire.DecodeBody(r, &b); err != nil {
			return err
		}
	}
	if what != "erase" || b.Filename != "" {
		if s.Data == "" {
			return fault.NotImplemented("this server keeps no files; start it with --data")
		}
		if !sessionName.MatchString(b.Filename) {
			return fault.BadRequest("filename", "expected letters, digits, dots, hyphens and underscores, found %q", b.Filename)
		}
	}
	m, err := s.Model(r, cmp.Or(b.Model, r.URL.Query().Get("model")))
	if err != nil {
		return err
	}
	defer m.Release()
	if m.Engine() == nil {
		return fault.NotImplemented("this model keeps no sessions")
	}
	if err := m.CheckSlot("id_slot", id); err != nil {
		return err
	}
	dir, err := s.sessionDir(r)
	if err != nil {
		return err
	}
	o := &slotAction{r: r, m: m.Model, id: id, b: &b, dir: dir, path: filepath.Join(dir, b.Filename)}
	start := time.Now()
	var reply map[string]any
	switch what {
	case "save":
		reply, err = o.save()
	case "restore":
		reply, err = o.restore()
	case "erase":
		reply, err = o.erase()
	default:
		err = fault.BadRequest("action", "expected save, restore or erase, found %q", what)
	}
	if err != nil {
		return err
	}
	reply["id_slot"] = id
	if what != "erase" {
		reply["timings"] = map[string]float64{what + "_ms": wire.Milliseconds(time.Since(start).Seconds())}
	}
	if b.Filename != "" {
		reply["filename"] = b.Filename
	}
	wire.WriteJSON(w, http.StatusOK, reply)
	return nil
}

// sessionDir is the folder of the caller's sessions: a tenant's are its own, as its
// prefixes are.
func (s *API) sessionDir(r *http.Request) (string, error) {
	name := caller.Owner(r.Context())
	if name == "" {
		return s.Data, nil
	}
	if !sessionName.MatchString(name) {
		return "", fault.BadRequest("", "the key's name %q cannot be the name of a folder", name)
	}
	return filepath.Join(s.Data, name), nil
}

// slotAction is what is done with a slot.
type slotAction struct {
	r         *http.Request
	m         *run.Model
	id        int
	b         *action
	dir, path string // of the file
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

// sequence is what the action is about.
func (o *slotAction) sequence() (engine.Session, error) {
	ses := engine.Session{Tenant: caller.Owner(o.r.Context()), CacheSalt: o.b.CacheSalt}
	var err error
	if ses.Adapter, err = o.m.Adapter(o.r.Context()); err != nil {
		return ses, err
	}
	switch p := o.b.Prompt; {
	case len(p) == 1 && p[0].Tokens != nil:
		ses.Tokens = p[0].Tokens
	case len(p) == 1:
		ses.Tokens, err = o.m.Encode(p[0].Text, true)
	case len(p) > 1:
		err = fault.BadRequest("prompt", "expected one prompt, found %d", len(p))
	case len(o.b.Messages) > 0:
		prompt, e := o.b.ChatRequest.Prompt(o.r.Context(), o.m)
		ses.Tokens, err = prompt.Tokens, e
	default:
		if ses = o.m.Slot(o.r.Context(), o.id); len(ses.Tokens) == 0 {
			err = fault.BadRequest("prompt", "expected a prompt or messages whose keys and values are meant, since slot %d was not used", o.id)
		}
	}
	return ses, err
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

func (o *slotAction) save() (map[string]any, error) {
	ses, err := o.sequence()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, err
	}
	var n int
	size := &countingWriter{} // the file may be erased by another request before its size is asked for
	err = atomicfile.Write(o.path, func(w io.Writer) error {
		var err error
		size.w = w
		if n, err = o.m.Engine().SaveSession(o.r.Context(), size, ses); err == nil && n == 0 {
			err = fault.BadRequest("prompt", "none of it is computed, so that there is nothing to save: let the model read it first, with max_tokens 0 if need be")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"n_saved": n, "n_written": size.n}, nil
}

func (o *slotAction) restore() (map[string]any, error) {
	f, err := os.Open(o.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.NotFound("no session has the name %q", o.b.Filename)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	ses := engine.Session{Tenant: caller.Owner(o.r.Context()), CacheSalt: o.b.CacheSalt}
	if ses.Adapter, err = o.m.Adapter(o.r.Context()); err != nil {
		return nil, err
	}
	if ses.Tokens, err = o.m.Engine().LoadSession(o.r.Context(), f, ses); err != nil {
		return nil, fault.BadRequest("filename", "the session cannot be used: %v", err)
	}
	o.m.SetSlot(o.r.Context(), o.id, ses)
	return map[string]any{"n_restored": len(ses.Tokens), "n_read": st.Size()}, nil
}

// erase removes the file that the body names, or what the memory has of the slot's
// sequence. An empty slot is erased already.
func (o *slotAction) erase() (map[string]any, error) {
	if o.b.Filename != "" {
		err := os.Remove(o.path)
		if errors.Is(err, os.ErrNotExist) {
			err = fault.NotFound("no session has the name %q", o.b.Filename)
		}
		return map[string]any{"n_erased": 1}, err
	}
	n, err := o.m.Engine().ForgetSession(o.r.Context(), o.m.Slot(o.r.Context(), o.id))
	o.m.SetSlot(o.r.Context(), o.id, engine.Session{})
	return map[string]any{"n_erased": n}, err
}
