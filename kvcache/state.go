package kvcache

import "slices"

// A recurrent layer keeps a state of fixed size instead of keys and values. The
// states of all such layers of one sequence lie in pages like others, so that
// there is one kind of memory to count: a state is shared when a sequence is
// forked, saved or published, and copied when its holder goes on. A state cannot
// be shortened, only replaced by one that was saved earlier.

// savedState is the state that a sequence had at n tokens.
type savedState struct {
	n     int
	pages []int32
}

// State returns a part of the state of a recurrent layer of s, which must hold
// tokens. It is zero before the first token; the layer updates it in place.
func (p *Pool) State(layer, part int, s *Seq) []byte {
	l, at := &p.cfg.Layers[layer], p.layers[layer].parts[part]
	return p.bytes(s.state[at.page])[at.offset:][:l.State/max(l.Parts, 1)]
}

// Checkpoint saves the state of s as it is now, so that s can later be
// truncated to the length it has. It takes no page: the next Grow does, for the
// state to go on in. A sequence keeps its last Config.Checkpoints.
func (p *Pool) Checkpoint(s *Seq) {
	if len(s.state) == 0 || p.cfg.Checkpoints == 0 {
		return
	}
	if n := len(s.saved); n > 0 && s.saved[n-1].n == s.n {
		return
	}
	if len(s.saved) == p.cfg.Checkpoints {
		p.releaseState(s.saved[0].pages)
		s.saved = slices.Delete(s.saved, 0, 1)
	}
	s.saved = append(s.saved, savedState{s.n, p.shareState(s.state)})
}

// shareState returns the pages of a state, with one holder more.
func (p *Pool) shareState(pages []int32) []int32 {
	for _, id := range pages {
		p.share(id)
	}
	return slices.Clone(pages)
}

func (p *Pool) releaseState(pages []int32) {
	for _, id := range pages {
		p.release(id)
	}
}

// stateNeed returns the pages that s takes so that it has a state of its own.
func (p *Pool) stateNeed(s *Seq) int {
	if len(s.state) > 0 && p.pages[s.state[0]].refs == 1 {
		return 0
	}
	return p.statePages
}

// ownState gives s a state that nobody else holds: a copy of the one it has, or
// a zero one.
func (p *Pool) ownState(s *Seq) {
	if p.stateNeed(s) == 0 {
		return
	}
	fresh := len(s.state) == 0
	if fresh {
		s.state = make([]int32, p.statePages)
	}
	for i, old := range s.state {
		id := p.take()
		p.setFill(id, p.cfg.PageTokens)
		if !fresh {
			copy(p.bytes(id), p.bytes(old))
			p.release(old)
		}
		s.state[i] = id
	}
}

// Keep keeps the state of s as it is now until Return or Drop, for a step that may
// have to be undone. The next Grow takes pages for a copy to go on in. A sequence
// without a state has nothing to keep.
func (p *Pool) Keep(s *Seq) {
	p.Drop(s)
	for _, id := range s.state {
		p.share(id)
	}
	s.kept = savedState{s.n, append(s.kept.pages, s.state...)}
}

// Drop lets go of what Keep kept.
func (p *Pool) Drop(s *Seq) {
	p.releaseState(s.kept.pages)
	s.kept.pages = s.kept.pages[:0]
}

// Return takes s, which has grown since, back to what Keep kept.
func (p *Pool) Return(s *Seq) {
	if len(s.kept.pages) == 0 {
		return
	}
	p.releaseState(s.state)
	s.state, s.kept.pages = s.kept.pages, s.state[:0]
	p.cut(s, s.kept.n)
}

// rewindState takes the state of s back to the last checkpoint at n tokens or
// fewer and returns how many it had there, 0 without one.
func (p *Pool) rewindState(s *Seq, n int) int {
	if p.statePages == 0 {
		return n
	}
	for i := len(s.saved) - 1; i >= 0; i-- {
		c := s.saved[i]
		if c.n <= n {
			p.releaseState(s.state)
			s.state = p.shareState(c.pages)
			return c.n
		}
		p.releaseState(c.pages)
		s.saved = s.saved[:i]
	}
	return 0
}

func (p *Pool) freeStates(s *Seq) {
	for _, c := range s.saved {
		p.releaseState(c.pages)
	}
	p.releaseState(s.state)
	s.saved, s.state = s.saved[:0], nil
}

// stateAt returns the pages of the state that s had at n tokens, nil if it has
// no longer.
func (s *Seq) stateAt(n int) []int32 {
	if n == s.n {
		return s.state
	}
	for _, c := range s.saved {
		if c.n == n {
			return c.pages
		}
	}
	return nil
}

// aloneStates returns the pages of states of s that no other sequence holds.
func (p *Pool) aloneStates(s *Seq) int {
	n := 0
	count := func(pages []int32, seen int) {
		if len(pages) == 0 {
			return
		}
		holds := int32(0) // of s
		for _, c := range s.saved {
			if c.pages[0] == pages[0] {
				holds++
			}
		}
		if len(s.state) > 0 && s.state[0] == pages[0] {
			holds++
		}
		for i := range seen {
			if s.saved[i].pages[0] == pages[0] {
				return // counted
			}
		}
		if pg := &p.pages[pages[0]]; pg.refs-pg.cached == holds {
			n += len(pages)
		}
	}
	for i, c := range s.saved {
		count(c.pages, i)
	}
	count(s.state, len(s.saved))
	return n
}
