package schema

import (
	"errors"
	"strings"

	"ridge/text/grammar"
)

// leftOut are the keywords that a compilation leaves out because they cannot be
// enforced.
type leftOut struct {
	why   map[leftKey]string
	spent int // steps of the attempts before
	last  *grammar.Builder
}

type leftKey struct{ where, keyword string }

// maxLeftOut bounds the keywords that are left out, each of which costs another
// attempt.
const maxLeftOut = 32

// find reports whether a keyword is left out, and why.
func (l *leftOut) find(where, keyword string) (why string, ok bool) {
	if l == nil {
		return "", false
	}
	why, ok = l.why[leftKey{where, keyword}]
	return why, ok
}

// builder returns a new builder; attempts share the limit of steps.
func (o Options) builder(source string) *grammar.Builder {
	b := &grammar.Builder{Source: source, Context: o.Context}
	if o.left != nil {
		if o.left.last != nil {
			o.left.spent = o.left.last.Spent()
		}
		o.left.last = b
		b.Spend(o.left.spent)
	}
	return b
}

// loosely compiles and, with Loose, leaves out what an error names and compiles
// again, as long as errors name something new. What is not written correctly is
// left out of tools only, whose schemas are seldom the client's own.
func loosely(o Options, compile func(Options) (*grammar.Grammar, error)) (*grammar.Grammar, error) {
	if !o.Loose {
		return compile(o)
	}
	o.left = &leftOut{why: map[leftKey]string{}}
	for {
		g, err := compile(o)
		var e *grammar.Error
		if err == nil || !errors.As(err, &e) || e.Where == "" || e.Keyword == "" || len(o.left.why) == maxLeftOut {
			return g, err
		}
		if e.Kind == grammar.Unmatchable || e.Kind == grammar.Invalid && !strings.HasPrefix(e.Where, "tool ") {
			return g, err
		}
		key := leftKey{e.Where, e.Keyword}
		if _, again := o.left.why[key]; again {
			return g, err
		}
		o.left.why[key] = "left out: " + e.Why
	}
}

// owner returns the schema of a conjunction, or of what it applies in place, that
// has one of the keywords, and that keyword: the first of the keywords that any
// has. If there is none it returns at and the first keyword.
func (a *alternative) owner(at *schema, keywords ...string) (*schema, string) {
	seen := map[*schema]bool{}
	list := append([]*schema{at}, a.conj...)
	for i := 0; i < len(list) && i < 1000; i++ {
		s := list[i]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		list = append(list, s.ref)
		for _, more := range [...][]*schema{s.all, s.any, s.one, s.no} {
			list = append(list, more...)
		}
	}
	for _, key := range keywords {
		for _, s := range list {
			if s != nil && s.has(key) {
				return s, key
			}
		}
	}
	return at, keywords[0]
}
