package kvcache

import (
	"fmt"

	"ridge/internal/arena"
)

// A recurrent layer keeps a state of fixed size instead of keys and values.
// The states of all such layers of one sequence lie in one slot. A state
// cannot be shortened, only replaced by one that was saved earlier.

const (
	noState        = 0 // slots are counted from 1
	maxCheckpoints = 2 // of a sequence; more would hold slots that others need
)

// savedState is a copy of a sequence's state when it had n tokens.
type savedState struct {
	n    int
	slot int32
}

// stateStore is the memory of recurrent states.
type stateStore struct {
	bytes int // of a slot; 0 if no layer is recurrent
	slots int
	mem   *arena.Arena
	free  []int32
}

func (p *Pool) openStates() error {
	st := &p.states
	if st.bytes == 0 {
		return nil
	}
	if st.slots = p.cfg.States; st.slots <= 0 || st.slots > 1<<20 {
		return fmt.Errorf("kvcache: states: expected 1 to %d for a model with recurrent layers, found %d", 1<<20, st.slots)
	}
	mem, err := arena.New(st.slots * st.bytes)
	if err != nil {
		return fmt.Errorf("kvcache: states: %w", err)
	}
	st.mem = mem
	for i := st.slots; i > 0; i-- {
		st.free = append(st.free, int32(i))
	}
	return nil
}

// total returns the bytes of all slots.
func (st *stateStore) total() int64 { return int64(st.bytes) * int64(st.slots) }

func (st *stateStore) close() error {
	if st.mem == nil {
		return nil
	}
	return st.mem.Free()
}

func (st *stateStore) slot(i int32) []byte {
	return st.mem.Bytes()[int(i-1)*st.bytes : int(i)*st.bytes]
}

func (st *stateStore) take() (int32, error) {
	if len(st.free) == 0 {
		return noState, fmt.Errorf("%w: all %d recurrent states are in use", ErrNoPages, st.slots)
	}
	i := st.free[len(st.free)-1]
	st.free = st.free[:len(st.free)-1]
	return i, nil
}

// State returns the state of a recurrent layer of s, which must hold tokens.
// It is zero before the first token; the layer updates it in place.
func (p *Pool) State(layer int, s *Seq) []byte {
	off := p.layers[layer].offset
	return p.states.slot(s.state)[off : off+p.cfg.Layers[layer].State]
}

// Checkpoint saves the state of s as it is now, so that s can later be
// truncated to the length it has. It does nothing for a model without
// recurrent layers. A sequence keeps its last two checkpoints.
func (p *Pool) Checkpoint(s *Seq) error {
	if s.state == noState {
		return nil
	}
	if n := len(s.saved); n > 0 && s.saved[n-1].n == s.n {
		return nil
	}
	var slot int32
	if len(s.saved) == maxCheckpoints {
		slot = s.saved[0].slot
		s.saved = append(s.saved[:0], s.saved[1:]...)
	} else {
		var err error
		if slot, err = p.states.take(); err != nil {
			return err
		}
	}
	copy(p.states.slot(slot), p.states.slot(s.state))
	s.saved = append(s.saved, savedState{s.n, slot})
	return nil
}

// giveState gives s a zero state if it needs one.
func (p *Pool) giveState(s *Seq) error {
	if p.states.bytes == 0 || s.state != noState {
		return nil
	}
	slot, err := p.states.take()
	if err != nil {
		return err
	}
	clear(p.states.slot(slot))
	s.state = slot
	return nil
}

// copyState gives to a copy of the state of from.
func (p *Pool) copyState(to, from *Seq) error {
	if from.state == noState {
		return nil
	}
	slot, err := p.states.take()
	if err != nil {
		return err
	}
	copy(p.states.slot(slot), p.states.slot(from.state))
	to.state = slot
	return nil
}

// rewindState takes the state of s back to the last checkpoint at n tokens or
// fewer and returns how many it had there. Without one it is 0, and the state
// is given up.
func (p *Pool) rewindState(s *Seq, n int) int {
	if s.state == noState {
		return n
	}
	for i := len(s.saved) - 1; i >= 0; i-- {
		c := s.saved[i]
		if c.n <= n && c.n > 0 {
			copy(p.states.slot(s.state), p.states.slot(c.slot))
			return c.n
		}
		p.states.free = append(p.states.free, c.slot)
		s.saved = s.saved[:i]
	}
	p.freeStates(s)
	return 0
}

func (p *Pool) freeStates(s *Seq) {
	for _, c := range s.saved {
		p.states.free = append(p.states.free, c.slot)
	}
	s.saved = s.saved[:0]
	if s.state != noState {
		p.states.free = append(p.states.free, s.state)
		s.state = noState
	}
}
