package run

import (
	"context"
	"sync"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/fault"
)

// slots remember what was computed last under each number that clients call a slot.
// Every sequence shares one memory here; what llama-server's clients do with a slot
// (save it, restore it, erase it) is done with the tokens that it had last.
type slots struct {
	mu   sync.Mutex
	last map[slotKey]slot
}

// slotKey is a slot of a tenant.
type slotKey struct {
	owner string
	id    int
}

// slot is a sequence: its prompt, and its answer less the token that nothing was
// computed for.
type slot struct {
	prompt, answer []int32
	salt           string
	adapter        string // what tells the adapter from others that it was computed with
}

// put notes the sequence of a slot.
func (s *slots) put(k slotKey, x slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[slotKey]slot{}
	}
	s.last[k] = x
}

// CheckSlot refuses the number of a slot that m does not have.
func (m *Model) CheckSlot(field string, id int) error {
	if n := max(1, m.info.Slots); id < 0 || id >= n {
		return fault.BadRequest(field, "expected 0 to %d, found %d", n-1, id)
	}
	return nil
}

// Slot is the sequence that a slot of the caller had last; it has no tokens if the
// slot was not used.
func (m *Model) Slot(ctx context.Context, id int) engine.Session {
	owner := caller.Owner(ctx)
	m.slots.mu.Lock()
	defer m.slots.mu.Unlock()
	x := m.slots.last[slotKey{owner, id}]
	return engine.Session{Tokens: append(append([]int32(nil), x.prompt...), x.answer...), Tenant: owner, CacheSalt: x.salt, Adapter: x.adapter}
}

// SetSlot makes a sequence the last one of a slot of the caller.
func (m *Model) SetSlot(ctx context.Context, id int, s engine.Session) {
	m.slots.put(slotKey{caller.Owner(ctx), id}, slot{prompt: s.Tokens, salt: s.CacheSalt, adapter: s.Adapter})
}
