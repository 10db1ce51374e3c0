package spec

// automaton is the suffix automaton of a text of tokens: the smallest one that reads
// every piece of the text, built token by token in constant time each (Blumer et al.,
// "The smallest automaton recognizing the subwords of a text", 1985). A state stands
// for pieces that end at the same places; its link for the longest shorter one that
// ends at more.
//
// It takes about 100 bytes for each token, and allocates only when it doubles.
type automaton struct {
	text   []int32
	states []saState
	edges  []saEdge
	table  []int32 // 1 + an edge, by hash of state and token
	last   int32   // the state of the whole text
}

// saState is a state: the length of its longest piece, where its first place ends
// (behind the last token), and the first of its edges, -1 for none.
type saState struct{ long, link, end, edge int32 }

// saEdge leads from a state by a token to another. next is another edge of the state.
type saEdge struct{ from, token, to, next int32 }

// newAutomaton returns an automaton with room for a text of so many tokens.
func newAutomaton(room int) *automaton {
	a := &automaton{text: make([]int32, 0, room), states: make([]saState, 1, 2*room+2), edges: make([]saEdge, 0, 3*room+2)}
	a.states[0] = saState{link: -1, edge: -1}
	a.rehash(3 * room)
	return a
}

// rehash makes the table fit n edges.
func (a *automaton) rehash(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	a.table = make([]int32, size)
	for i := range a.edges {
		a.enter(int32(i))
	}
}

func (a *automaton) slot(from, token int32) int {
	const golden = 0x9e3779b97f4a7c15
	h := (uint64(uint32(from))<<32 | uint64(uint32(token))) * golden
	return int(h>>32) & (len(a.table) - 1)
}

func (a *automaton) enter(edge int32) {
	e := &a.edges[edge]
	at := a.slot(e.from, e.token)
	for a.table[at] != 0 {
		at = (at + 1) & (len(a.table) - 1)
	}
	a.table[at] = 1 + edge
}

// find returns the edge of a state for a token, nil if it has none.
func (a *automaton) find(from, token int32) *saEdge {
	for at := a.slot(from, token); a.table[at] != 0; at = (at + 1) & (len(a.table) - 1) {
		if e := &a.edges[a.table[at]-1]; e.from == from && e.token == token {
			return e
		}
	}
	return nil
}

func (a *automaton) connect(from, token, to int32) {
	s := &a.states[from]
	a.edges = append(a.edges, saEdge{from, token, to, s.edge})
	s.edge = int32(len(a.edges) - 1)
	if 2*len(a.edges) > len(a.table) {
		a.rehash(2 * len(a.edges))
		return
	}
	a.enter(s.edge)
}

// add appends a token to the text.
func (a *automaton) add(token int32) {
	a.text = append(a.text, token)
	end := int32(len(a.text))
	now := int32(len(a.states))
	a.states = append(a.states, saState{long: end, link: 0, end: end, edge: -1})
	at := a.last
	a.last = now
	for at >= 0 && a.find(at, token) == nil {
		a.connect(at, token, now)
		at = a.states[at].link
	}
	if at < 0 {
		return
	}
	next := a.find(at, token).to
	if a.states[next].long == a.states[at].long+1 {
		a.states[now].link = next
		return
	}
	// Shorter pieces than next's longest end here, too: they get a state of their own.
	s := a.states[next]
	clone := int32(len(a.states))
	a.states = append(a.states, saState{long: a.states[at].long + 1, link: s.link, end: s.end, edge: -1})
	for i := s.edge; i >= 0; i = a.edges[i].next {
		a.connect(clone, a.edges[i].token, a.edges[i].to)
	}
	for at >= 0 {
		e := a.find(at, token)
		if e == nil || e.to != next {
			break
		}
		e.to = clone
		at = a.states[at].link
	}
	a.states[next].link, a.states[now].link = clone, clone
}

// repeated returns where the longest piece at the end of the text that was there
// before ended for the first time, behind its last token, and how long it is.
func (a *automaton) repeated() (end, long int) {
	s := a.states[max(a.states[a.last].link, 0)]
	return int(s.end), int(s.long)
}

// place is how far a text has been read by an automaton of another: the longest of
// its last pieces that is in it.
type place struct{ state, long int32 }

// read moves on by a token.
func (a *automaton) read(p place, token int32) place {
	// The text may have grown: shorter pieces of the state may have got another.
	for p.state != 0 && p.long <= a.states[a.states[p.state].link].long {
		p.state = a.states[p.state].link
	}
	for {
		if e := a.find(p.state, token); e != nil {
			return place{e.to, p.long + 1}
		}
		if p.state == 0 {
			return place{}
		}
		p.state = a.states[p.state].link
		p.long = a.states[p.state].long
	}
}

// bytes returns the memory that a holds.
func (a *automaton) bytes() int64 {
	return int64(4*cap(a.text) + 16*cap(a.states) + 16*cap(a.edges) + 4*len(a.table))
}

// guesses appends what came behind a place of the text, which is long tokens like the
// end of what is guessed.
func (a *automaton) guesses(dst []Guess, end, long, n int) []Guess {
	for i := range min(n, len(a.text)-end) {
		if a.text[end+i] == separator {
			break
		}
		dst = append(dst, Guess{Token: a.text[end+i], Class: suffixes + uint8(min(long+i, half-1))})
	}
	return dst
}

// separator lies between texts: no token is like it.
const separator = -1
