package tokenizer

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// part is a piece of a text, and whether it matched a pattern.
type part struct {
	lo, hi int
	match  bool
}

// pattern cuts a text into matches and what lies between.
type pattern interface {
	// split appends the parts of s, in order and without empty ones, to dst.
	split(dst []part, s string) []part
}

// behavior says what becomes of the matches of a Split.
type behavior int

const (
	isolated   behavior = iota // a piece of their own
	removed                    // nothing
	mergedPrev                 // the end of the piece before
	mergedNext                 // the start of the piece after
	contiguous                 // one piece for a run of matches
)

// stage is one pre-tokenizer: it cuts pieces into smaller ones and may rewrite
// them.
type stage struct {
	kind stageKind

	match     matcher // stageScan
	onBytes   matcher // does to bytes what match does to byte-level text, or nil
	byteSteps bool    // match is tried at each byte, not at each character

	pat    pattern // stageSplit
	behave behavior
	invert bool

	mark   string // stageMeta: what stands for a space
	prefix prefixRule
	// stageMeta: the mark is put in front even of a piece that starts with it
	prefixSpaces bool
	cut          bool // stageMeta: cut before each mark
}

type stageKind int

const (
	stageScan  stageKind = iota // matches of a matcher are isolated
	stageSplit                  // a pattern with any behavior
	stageMeta                   // spaces become a mark, which may be put in front
	stageSpace                  // a space is put in front (ByteLevel add_prefix_space)
	stageBytes                  // pieces become byte-level text, when more stages follow
)

// prefixRule says which pieces get a space mark in front.
type prefixRule int

const (
	prefixNever prefixRule = iota
	prefixFirst            // the piece that starts the text
	prefixAlways
)

// pretokenize applies the stages from level on to piece and encodes what comes
// out into sc.out. first: piece starts the text.
func (t *Tokenizer) pretokenize(sc *scratch, level int, piece string, first bool) {
	if piece == "" {
		return
	}
	if level == len(t.stages) {
		t.encodePiece(sc, piece)
		return
	}
	st := &t.stages[level]
	switch st.kind {
	case stageScan:
		t.scan(sc, level, piece, first)
	case stageSplit:
		t.splitStage(sc, level, piece, first)
	case stageMeta:
		t.metaspace(sc, level, piece, first)
	case stageSpace:
		if piece[0] != ' ' {
			buf := append(append(slices.Grow(sc.level(level).text[:0], len(piece)+1), ' '), piece...)
			sc.level(level).text = buf
			piece = view(buf)
		}
		t.pretokenize(sc, level+1, piece, first)
	case stageBytes:
		buf := appendByteText(slices.Grow(sc.level(level).text[:0], len(piece)), piece)
		sc.level(level).text = buf
		t.pretokenize(sc, level+1, view(buf), first)
	}
}

// scan isolates the matches of a matcher.
func (t *Tokenizer) scan(sc *scratch, level int, piece string, first bool) {
	match, byteSteps := t.stages[level].match, t.stages[level].byteSteps
	last := level+1 == len(t.stages)
	gap := 0 // what is not matched yet starts here
	for i := 0; i < len(piece); {
		end := match(piece, i)
		if end <= i {
			n := 1
			if !byteSteps {
				_, n = class(piece, i)
			}
			i += n
			continue
		}
		if gap < i {
			t.pretokenize(sc, level+1, piece[gap:i], first && gap == 0)
		}
		if last {
			t.encodePiece(sc, piece[i:end])
		} else {
			t.pretokenize(sc, level+1, piece[i:end], first && i == 0)
		}
		i, gap = end, end
	}
	if gap < len(piece) {
		t.pretokenize(sc, level+1, piece[gap:], first && gap == 0)
	}
}

// splitStage applies a pattern with its behavior.
func (t *Tokenizer) splitStage(sc *scratch, level int, piece string, first bool) {
	st := &t.stages[level]
	j := joiner{how: st.behave}
	put := func(p part) {
		if p.match = p.match != st.invert; j.add(p) {
			t.pretokenize(sc, level+1, piece[j.done.lo:j.done.hi], first && j.done.lo == 0)
		}
	}
	if m, ok := st.pat.(matches); ok {
		m.each(piece, put) // one part at a time: there may be one for each byte
	} else {
		lv := sc.level(level)
		lv.parts = st.pat.split(lv.parts[:0], piece)
		for _, p := range lv.parts {
			put(p)
		}
	}
	if p := j.last; p.hi > p.lo {
		t.pretokenize(sc, level+1, piece[p.lo:p.hi], first && p.lo == 0)
	}
}

// joiner joins and drops parts that come in order, as a behavior says.
type joiner struct {
	how    behavior
	last   part // may still be joined with the next one; empty: none
	done   part // by add
	before bool // the part before was a match
}

// add takes the next part, and reports whether one is done.
func (j *joiner) add(p part) bool {
	last := j.last
	some := last.hi > last.lo
	switch j.how {
	case removed:
		j.done = p
		return !p.match
	case contiguous:
		if some && last.match == p.match {
			j.last.hi = p.hi
			return false
		}
	case mergedPrev:
		join := some && p.match && !j.before
		if j.before = p.match; join {
			j.last.hi = p.hi
			return false
		}
	case mergedNext:
		if some && last.match && !p.match {
			j.last = part{last.lo, p.hi, false}
			return false
		}
	default:
		j.done = p
		return true
	}
	j.done, j.last = last, p
	return some
}

// metaspace replaces spaces by the mark, puts one in front and cuts before
// each mark, as the stage says.
func (t *Tokenizer) metaspace(sc *scratch, level int, piece string, first bool) {
	st := &t.stages[level]
	lv := sc.level(level)
	buf := slices.Grow(lv.text[:0], len(piece)+len(st.mark)+strings.Count(piece, " ")*max(0, len(st.mark)-1))
	if st.prefix == prefixAlways || st.prefix == prefixFirst && first {
		if st.prefixSpaces || piece[0] != ' ' && !strings.HasPrefix(piece, st.mark) {
			buf = append(buf, st.mark...)
		}
	}
	for i := range len(piece) {
		if piece[i] == ' ' {
			buf = append(buf, st.mark...)
		} else {
			buf = append(buf, piece[i])
		}
	}
	lv.text = buf
	s := view(buf)
	if !st.cut {
		t.pretokenize(sc, level+1, s, first)
		return
	}
	for lo := 0; lo < len(s); {
		hi := len(s)
		skip := 0
		if strings.HasPrefix(s[lo:], st.mark) {
			skip = len(st.mark)
		}
		if k := strings.Index(s[lo+skip:], st.mark); k >= 0 {
			hi = lo + skip + k
		}
		t.pretokenize(sc, level+1, s[lo:hi], first && lo == 0)
		lo = hi
	}
}

// matches makes a pattern of a matcher.
type matches struct{ match matcher }

func (m matches) split(dst []part, s string) []part {
	m.each(s, func(p part) { dst = append(dst, p) })
	return dst
}

// each gives the parts of s, in order and without empty ones.
func (m matches) each(s string, put func(part)) {
	gap := 0
	for i := 0; i < len(s); {
		end := m.match(s, i)
		if end <= i {
			_, n := class(s, i)
			i += n
			continue
		}
		if gap < i {
			put(part{gap, i, false})
		}
		put(part{i, end, true})
		i, gap = end, end
	}
	if gap < len(s) {
		put(part{gap, len(s), false})
	}
}

// literal matches a fixed text.
func literal(text string) matcher {
	return func(s string, i int) int {
		if text != "" && strings.HasPrefix(s[i:], text) {
			return i + len(text)
		}
		return i
	}
}

// words is \w+|[^\w\s]+, the pre-tokenizer Whitespace.
func words(s string, i int) int {
	if isWord(s, i) {
		for i < len(s) && isWord(s, i) {
			_, n := class(s, i)
			i += n
		}
		return i
	}
	for i < len(s) && !isWord(s, i) {
		b, n := class(s, i)
		if b&clSpace != 0 {
			break
		}
		i += n
	}
	return i
}

// isWord reports whether the character of s at i is a \w: a letter, a mark, a
// decimal or letter number, a connector or a joiner.
func isWord(s string, i int) bool {
	if c := s[i]; c < utf8.RuneSelf {
		return c == '_' || asciiClass[c]&(clL|clN) != 0
	}
	b, _ := class(s, i)
	if b&(clL|clM) != 0 {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s[i:])
	return isWordRune(r)
}
