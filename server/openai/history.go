package openai

import (
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
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
	"ridge/server/wire"
	"ridge/text/chat"
)

// memory keeps the answers that later requests may go on from. With a folder
// they are on disk before a client sees them, and outlive the server.
type memory struct {
	dir string // "" for none
	log *slog.Logger

	mu    sync.Mutex
	byID  map[string]*list.Element
	order list.List         // of *remembered, the latest first
	bytes int               // of all
	items map[string]string // ids of responses by those of their items
}

// remembered is an answer and the conversation that it ends, without
// instructions.
type remembered struct {
	ID       string          `json:"id"`
	Owner    string          `json:"owner"`
	Reply    json.RawMessage `json:"reply"`
	Messages []chat.Message  `json:"messages"`
	// Input are the items of the request, each with an id.
	Input []json.RawMessage `json:"input,omitempty"`
	bytes int
	items []string // ids of those of Input and of Reply
}

// maxRemembered is how many answers are kept, and maxRememberedBytes how much
// text.
const (
	maxRemembered      = 1000
	maxRememberedBytes = 64 << 20
)

var responseID = regexp.MustCompile(`^resp_[0-9a-f]{24}$`)

// open takes up what is in a folder, which it makes. What cannot be read is
// left where it is.
func (m *memory) open(dir string, log *slog.Logger) error {
	entries, err := folder.Open(dir)
	if err != nil {
		return err
	}
	type found struct {
		id  string
		mod time.Time
	}
	var ids []found
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		info, err := e.Info()
		if ok && err == nil && responseID.MatchString(id) && info.Size() <= maxRememberedBytes {
			ids = append(ids, found{id, info.ModTime()})
		}
	}
	slices.SortFunc(ids, func(a, b found) int {
		if c := a.mod.Compare(b.mod); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	m.dir, m.log = dir, log
	for _, f := range ids {
		b, err := os.ReadFile(m.path(f.id))
		var r remembered
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err == nil && r.ID != f.id {
			err = fmt.Errorf("id: expected %s, found %q", f.id, r.ID)
		}
		if err != nil {
			log.Warn("a stored response cannot be used", "response", f.id, "error", fault.Unquoted(err.Error()))
			continue
		}
		for i := range r.Messages {
			for j := range r.Messages[i].ToolCalls {
				if c := &r.Messages[i].ToolCalls[j]; string(c.Arguments) == "null" {
					c.Arguments = nil
				}
			}
		}
		m.add(&r)
	}
	return nil
}

func (m *memory) path(id string) string { return filepath.Join(m.dir, id+".json") }

// put keeps an answer, all of it or, with an error, nothing: one that cannot be
// written is not there, not even as long as the server runs.
func (m *memory) put(r *remembered, reply any) error {
	var err error
	if r.Reply, err = wire.EncodeJSON(reply); err != nil {
		return err
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(b) > maxRememberedBytes { // it would be forgotten at once
		return fault.Unsupported("store", "the conversation and its answer have %d bytes, more than the %d that are kept; send \"store\": false", len(b), maxRememberedBytes)
	}
	if m.dir != "" {
		if err := atomicfile.Write(m.path(r.ID), func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		}); err != nil {
			m.log.Error("a response cannot be stored", "response", r.ID, "error", fault.Unquoted(err.Error()))
			return notStored(err)
		}
	}
	m.add(r)
	return nil
}

// notStored tells a client that an answer is there but could not be kept, as it
// should have been.
func notStored(err error) error {
	e := &fault.Error{Status: http.StatusInternalServerError, Type: "server_error", Code: "not_stored", Message: "the answer could not be stored"}
	if fault.DiskFull(err) {
		e = fault.As(err)
	}
	e.Message += "; with \"store\": false answers are given without being stored"
	return e
}

// add counts an answer in, and the oldest ones out.
func (m *memory) add(r *remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID, m.items = map[string]*list.Element{}, map[string]string{}
	}
	r.bytes = len(r.Reply)
	for _, x := range r.Input {
		r.bytes += len(x)
	}
	for _, item := range r.all() {
		r.items = append(r.items, itemID(item))
		m.items[itemID(item)] = r.ID
	}
	for _, x := range r.Messages {
		r.bytes += len(x.Content) + len(x.Reasoning)
		for _, c := range x.ToolCalls {
			r.bytes += len(c.Name) + len(c.Arguments)
		}
	}
	m.bytes += r.bytes
	m.byID[r.ID] = m.order.PushFront(r)
	for m.order.Len() > maxRemembered || m.bytes > maxRememberedBytes {
		if m.forget(m.order.Back()) != nil {
			return // with the next one
		}
	}
}

// forget drops an answer, from the disk first: what is left there would be back
// after the next start.
func (m *memory) forget(e *list.Element) error {
	old := e.Value.(*remembered)
	if m.dir != "" {
		if err := os.Remove(m.path(old.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.log.Error("a stored response cannot be removed", "response", old.ID, "error", fault.Unquoted(err.Error()))
			return err
		}
	}
	m.order.Remove(e)
	m.bytes -= old.bytes
	delete(m.byID, old.ID)
	for _, id := range old.items {
		if m.items[id] == old.ID {
			delete(m.items, id)
		}
	}
	return nil
}

// get finds an answer of owner's.
func (m *memory) get(id, owner string) (*remembered, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.byID[id]
	if !ok || e.Value.(*remembered).Owner != owner {
		return nil, fault.NotFound("no response has the id %q; this server keeps the last %d", id, maxRemembered)
	}
	return e.Value.(*remembered), nil
}

func (m *memory) drop(id, owner string) error {
	if _, err := m.get(id, owner); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.byID[id]; ok {
		return m.forget(e)
	}
	return nil
}

// all are the items of a response's request and of its answer.
func (r *remembered) all() []json.RawMessage {
	var reply struct{ Output []json.RawMessage }
	_ = json.Unmarshal(r.Reply, &reply) // it was made here
	return append(r.Input[:len(r.Input):len(r.Input)], reply.Output...)
}

// itemID is the id of an item, "" if it has none.
func itemID(item json.RawMessage) string {
	var x struct {
		ID string `json:"id"`
	}
	_ = json.Unmarshal(item, &x)
	return x.ID
}

// item finds an item of owner's by its id.
func (m *memory) item(id, owner string) (json.RawMessage, bool) {
	m.mu.Lock()
	response, ok := m.items[id]
	m.mu.Unlock()
	if !ok || id == "" {
		return nil, false
	}
	r, err := m.get(response, owner)
	if err != nil {
		return nil, false
	}
	for _, item := range r.all() {
		if itemID(item) == id {
			return item, true
		}
	}
	return nil, false
}
