package spec

// Suffixes guess that a text goes on as it, or an earlier text of the same tenant,
// went on behind the longest piece that is like its end, however long that is (SAM
// decoding: Hu et al., "SAM Decoding: Speculative Decoding via Suffix Automaton",
// 2024). Texts of one tenant are never looked up for another. Its drafters must be used
// by one goroutine.
type Suffixes struct {
	tenants map[string]*shelf
	clock   int64
}

// Bounds of what Suffixes keep.
const (
	shelfTokens = 1 << 15 // of each of the two automata of a tenant
	mostTenants = 64
	leastMatch  = 2 // tokens that must be like the end of a text
	resumed     = 64
)

// shelf is what is kept of a tenant's texts: those of late, and those before.
type shelf struct {
	young, old *automaton
	used       int64
}

// NewSuffixes returns drafters that know nothing yet.
func NewSuffixes() *Suffixes { return &Suffixes{tenants: map[string]*shelf{}} }

// Drafter returns the drafter of a sequence of a tenant.
func (x *Suffixes) Drafter(tenant string) Drafter {
	return &suffixSeq{x: x, tenant: tenant, own: newAutomaton(64)}
}

// keep adds a text to what is known of a tenant. The tenant that was not there for
// longest makes room for another.
func (x *Suffixes) keep(tenant string, text []int32) {
	x.clock++
	s := x.tenants[tenant]
	if s == nil {
		if len(x.tenants) == mostTenants {
			oldest := ""
			for name, t := range x.tenants {
				if o := x.tenants[oldest]; o == nil || t.used < o.used {
					oldest = name
				}
			}
			delete(x.tenants, oldest)
		}
		s = &shelf{}
		x.tenants[tenant] = s
	}
	s.used = x.clock
	text = text[max(0, len(text)-shelfTokens/2):]
	if s.young == nil || len(s.young.text)+len(text) >= shelfTokens {
		s.old, s.young = s.young, newAutomaton(len(text)+1)
	}
	for _, id := range text {
		s.young.add(id)
	}
	s.young.add(separator)
}

// shelves returns what is kept of a tenant.
func (x *Suffixes) shelves(tenant string) [2]*automaton {
	if s := x.tenants[tenant]; s != nil {
		return [2]*automaton{s.young, s.old}
	}
	return [2]*automaton{}
}

// Bytes returns the memory of all texts that are kept.
func (x *Suffixes) Bytes() (n int64) {
	for _, s := range x.tenants {
		for _, a := range []*automaton{s.young, s.old} {
			if a != nil {
				n += a.bytes()
			}
		}
	}
	return n
}

// suffixSeq is the drafter of a sequence.
type suffixSeq struct {
	x      *Suffixes
	tenant string
	own    *automaton // of the sequence's text
	seen   []int32    // that text
	others [2]*automaton
	at     [2]place // in those
}

// Draft copies what came behind the longest piece that is like the end.
func (q *suffixSeq) Draft(dst []Guess, tokens []int32, n int) []Guess {
	if len(tokens) < leastMatch || n <= 0 || len(dst) > 0 || q.own == nil {
		return dst
	}
	q.read(tokens)
	a := q.own
	end, long := a.repeated()
	for i, other := range q.others {
		if p := q.at[i]; other != nil && int(p.long) > long {
			a, end, long = other, int(other.states[p.state].end), int(p.long)
		}
	}
	if long < leastMatch {
		return dst
	}
	return a.guesses(dst, end, long, n)
}

// read takes in what is new of a text.
func (q *suffixSeq) read(tokens []int32) {
	fresh := q.seen == nil
	for _, id := range tokens[min(len(q.own.text), len(tokens)):] {
		q.own.add(id)
	}
	from := len(q.seen)
	q.seen = tokens
	for i, a := range q.x.shelves(q.tenant) {
		start := from
		if a != q.others[i] || fresh { // another text
			q.others[i], q.at[i], start = a, place{}, max(0, len(tokens)-resumed)
		}
		if a == nil {
			continue
		}
		for _, id := range tokens[min(start, len(tokens)):] {
			q.at[i] = a.read(q.at[i], id)
		}
	}
}

// Bytes returns the memory of the sequence's own automaton.
func (q *suffixSeq) Bytes() int64 {
	if q.own == nil {
		return 0
	}
	return q.own.bytes()
}

// Close keeps the text for others of the tenant.
func (q *suffixSeq) Close() {
	if q.own != nil && len(q.seen) > 0 {
		q.x.keep(q.tenant, q.seen)
	}
	q.own, q.seen, q.others = nil, nil, [2]*automaton{}
}
