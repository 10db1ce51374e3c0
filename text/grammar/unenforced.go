package grammar

import "ridge/internal/diag"

// Unenforced is a part of a source that a grammar does not hold texts to.
type Unenforced struct {
	Where   string // as in Error
	Keyword string
	Why     string
}

// String returns "WHERE: KEYWORD: WHY".
func (u Unenforced) String() string {
	s := ""
	if u.Where != "" {
		s = diag.Path(u.Where) + ": "
	}
	if u.Keyword != "" {
		s += diag.Quote(u.Keyword) + ": "
	}
	return s + u.Why
}

// maxUnenforced bounds what is remembered: a schema may have any number of
// keywords that nobody knows.
const maxUnenforced = 32

// Note remembers a part of the source that the grammar does not enforce, for
// [Grammar.Unenforced]. It remembers each once and only the first 32.
func (b *Builder) Note(u Unenforced) {
	if len(b.unenforced) == maxUnenforced {
		return
	}
	for _, known := range b.unenforced {
		if known == u {
			return
		}
	}
	b.unenforced = append(b.unenforced, u)
}

// Unenforced returns what of its source the grammar does not enforce, in the
// order in which it was read, at most 32. The slice must not be changed.
func (g *Grammar) Unenforced() []Unenforced { return g.unenforced }
