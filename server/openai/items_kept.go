package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/wire"
)

// kept are the items of the request as they are kept with the response: each has an
// id and a type.
func (b *responsesRequest) kept() []json.RawMessage {
	items, err := b.items()
	if err != nil {
		return nil // it was read before
	}
	out := make([]json.RawMessage, 0, len(items))
	for _, raw := range items {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			continue
		}
		if members["type"] == nil {
			members["type"] = json.RawMessage(`"message"`)
		}
		if itemID(raw) == "" {
			members["id"] = json.RawMessage(strconv.Quote(caller.NewID("msg_")))
		}
		item, _ := wire.EncodeJSON(members) // raw JSON encodes
		out = append(out, item)
	}
	return out
}

// inputItems is GET /v1/responses/{id}/input_items.
func (s *API) inputItems(w http.ResponseWriter, r *http.Request) error {
	x, err := s.memory.get(r.PathValue("id"), caller.Owner(r.Context()))
	if err != nil {
		return err
	}
	q := r.URL.Query()
	limit := 20
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > 100 {
			return fault.BadRequest("limit", "expected 1 to 100, found %s", fault.Excerpt([]byte(text)))
		}
	}
	items := slices.Clone(x.Input)
	switch order := q.Get("order"); order {
	case "", "desc":
		slices.Reverse(items)
	case "asc":
	default:
		return fault.BadRequest("order", "expected asc or desc, found %s", fault.Excerpt([]byte(order)))
	}
	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(items, func(raw json.RawMessage) bool { return itemID(raw) == after })
		if i < 0 {
			return fault.BadRequest("after", "expected the id of an item of this response, found %s", fault.Excerpt([]byte(after)))
		}
		items = items[i+1:]
	}
	page := items[:min(limit, len(items))]
	out := map[string]any{"object": "list", "data": append([]json.RawMessage{}, page...), "has_more": len(page) < len(items), "first_id": nil, "last_id": nil}
	if n := len(page); n > 0 {
		out["first_id"], out["last_id"] = itemID(page[0]), itemID(page[n-1])
	}
	wire.WriteJSON(w, http.StatusOK, out)
	return nil
}

// running are the responses that are being made.
type running struct {
	mu   sync.Mutex
	byID map[string]*made
}

// made is a response that is being made.
type made struct {
	owner  string
	rep    responsesReply // as it was at the beginning
	cancel context.CancelCauseFunc
}

// errCancelled ends a response that its client has cancelled by another request.
var errCancelled = &fault.Error{Status: fault.StatusClientGone, Type: "invalid_request_error", Code: "response_cancelled", Message: "the response was cancelled"}

// begin notes a response. The context ends when it is cancelled.
func (m *running) begin(ctx context.Context, rep *responsesReply) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byID == nil {
		m.byID = map[string]*made{}
	}
	m.byID[rep.ID] = &made{caller.Owner(ctx), *rep, cancel}
	return ctx, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.byID, rep.ID)
		cancel(nil)
	}
}

// cancelResponse is POST /v1/responses/{id}/cancel.
func (s *API) cancelResponse(w http.ResponseWriter, r *http.Request) error {
	id, owner := r.PathValue("id"), caller.Owner(r.Context())
	s.running.mu.Lock()
	x, ok := s.running.byID[id]
	s.running.mu.Unlock()
	if !ok || x.owner != owner {
		if _, err := s.memory.get(id, owner); err != nil {
			return err
		}
		return fault.BadRequest("response_id", "expected a response that is being made, found one that is complete")
	}
	x.cancel(errCancelled)
	rep := x.rep
	rep.Status = "cancelled"
	wire.WriteJSON(w, http.StatusOK, &rep)
	return nil
}
