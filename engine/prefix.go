package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// Breakpoint is a length of a prompt up to which others are likely to begin
// alike: the end of instructions and tools. A prefix of that length can be found
// whatever layers the model has, is pinned, and is written to Options.Prefixes.
type Breakpoint struct {
	Tokens int
	Pin    bool // at once; else when a second prompt has begun so
}

// PrefixStats describe the prefixes that an engine keeps.
type PrefixStats struct {
	Pinned int // pages that are evicted last

	Files   int   // of this model
	Bytes   int64 // of all models
	Hits    int64 // prefixes that were read
	Tokens  int64 // in them
	Written int64 // files
	Refused int64 // files that were damaged, or were not what they should be
}

const (
	// maxBreakpoints bounds those of a request.
	maxBreakpoints = 4
	// leastPrefix is the length from which on prefixes are kept.
	leastPrefix = 64
	// maxPrefixes bounds the prefixes that an engine remembers.
	maxPrefixes = 64
	// learnedStep is what the length of a prefix is rounded to that no request names:
	// texts that differ begin alike by chance.
	learnedStep = 32
)

// prefix is the beginning of prompts that is worth keeping.
type prefix struct {
	key    string // of salt and tokens
	salt   string
	rope   int
	tokens []int32
	pin    bool
	whole  bool // a whole prompt, as far as is known: few others will begin so
	parted bool // prompts parted there, and none named it
	uses   int
	used   int64 // clock of the last use
	stored bool  // or it cannot be
}

// prefixes are those that an engine remembers. They belong to its loop.
type prefixes struct {
	all    []*prefix
	clock  int64
	stale  bool // pins are to be set anew
	pinned int  // pages
	save   *prefixSave
	loads  map[string]*prefixLoad
}

// worth orders prefixes by what they are worth, the most first.
func worth(a, b *prefix) int {
	if a.pin != b.pin {
		if a.pin {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(b.uses, a.uses), cmp.Compare(b.used, a.used))
}

// toStore says whether p is to be written: it was used twice, or is pinned, or
// the engine ends, and it is more than one conversation's.
func (k *prefixes) toStore(p *prefix, all bool) bool {
	return !p.stored && (p.uses > 1 || !p.whole && (all || p.pin) || all && p.parted && k.apart(p))
}

// apart says whether p, where two prompts parted, is no later parting of the same
// ones: where each turn takes something out of the one before there are many.
func (k *prefixes) apart(p *prefix) bool {
	return !slices.ContainsFunc(k.all, func(q *prefix) bool {
		n := len(q.tokens)
		return q.parted && q.salt == p.salt && n < len(p.tokens) && n >= len(p.tokens)/2 && slices.Equal(q.tokens, p.tokens[:n])
	})
}

// prefixKeys returns names for the beginnings of tokens that have the given
// lengths, in ascending order, under salt. Nobody can make two that are the same.
func prefixKeys(salt string, tokens []int32, lengths []int) []string {
	h := sha256.New()
	buf := binary.LittleEndian.AppendUint64(make([]byte, 0, 4<<10), uint64(len(salt)))
	h.Write(append(buf, salt...))
	keys, at := make([]string, 0, len(lengths)), 0
	for _, n := range lengths {
		for at < n {
			buf = buf[:0]
			for ; at < n && len(buf) < cap(buf)-4; at++ {
				buf = binary.LittleEndian.AppendUint32(buf, uint32(tokens[at]))
			}
			h.Write(buf)
		}
		keys = append(keys, hex.EncodeToString(h.Sum(nil)[:16]))
	}
	return keys
}

// KeepsPrefixes says whether breakpoints of requests are of use: something is
// pinned or stored, or layers have windows or states.
func (e *Engine) KeepsPrefixes() bool {
	return e.tree != nil && (e.o.PinShare > 0 || e.o.Prefixes != nil || e.pool.Bounded())
}

// breakpoints checks those of r and puts them into order.
func (r *Request) breakpoints() error {
	for _, b := range r.Breakpoints {
		if b.Tokens < 0 || b.Tokens > len(r.Tokens) {
			return badRequest("breakpoints", "expected 0 to %d, the tokens of the prompt, found %d", len(r.Tokens), b.Tokens)
		}
	}
	if len(r.Breakpoints) > maxBreakpoints {
		return badRequest("breakpoints", "expected at most %d, found %d", maxBreakpoints, len(r.Breakpoints))
	}
	r.Breakpoints = slices.Clone(r.Breakpoints)
	slices.SortFunc(r.Breakpoints, func(a, b Breakpoint) int { return a.Tokens - b.Tokens })
	r.Breakpoints = slices.DeleteFunc(r.Breakpoints, func(b Breakpoint) bool { return b.Tokens < leastPrefix })
	return nil
}

// notePrefixes remembers the prefixes that the breakpoints of a request name,
// once its prompt is computed.
func (e *Engine) notePrefixes(q *sequence) {
	if q.g.noted || q.Computed < q.Prompt {
		return
	}
	q.g.noted = true
	points := q.learned()
	if e.tree == nil || len(points) == 0 || e.o.Prefixes == nil && e.o.PinShare == 0 {
		return
	}
	lengths := make([]int, len(points))
	for i, b := range points {
		lengths[i] = b.Tokens
	}
	known := &e.prefixes
	for i, key := range prefixKeys(q.salt(), q.tokens, lengths) {
		k := slices.IndexFunc(known.all, func(p *prefix) bool { return p.key == key })
		if k < 0 {
			k = len(known.all)
			p := &prefix{key: key, salt: q.salt(), rope: q.rope, whole: true, tokens: slices.Clone(q.tokens[:lengths[i]])}
			p.parted = !slices.Contains(q.g.req.Breakpoints, points[i])
			p.stored = e.o.Prefixes != nil && e.o.Prefixes.Has(key, lengths[i])
			known.all = append(known.all, p)
		}
		p := known.all[k]
		known.clock++
		p.whole = p.whole && (lengths[i] == q.Prompt || !slices.Contains(q.g.req.Breakpoints, points[i]))
		p.uses, p.used, p.pin = p.uses+1, known.clock, p.pin || points[i].Pin
	}
	slices.SortStableFunc(known.all, worth)
	if len(known.all) > maxPrefixes { // the least used one goes
		oldest := slices.MinFunc(known.all, func(a, b *prefix) int { return cmp.Compare(a.used, b.used) })
		known.all = slices.DeleteFunc(known.all, func(p *prefix) bool { return p == oldest })
	}
	known.stale = true
}

// learned are the breakpoints of a request, and where its prompt leaves what is known:
// when another leaves it there, too, that is worth keeping, named or not. What Claude
// Code and Codex tell of the machine is behind the opening and before the task.
func (q *sequence) learned() []Breakpoint {
	points, info := q.g.req.Breakpoints, &q.g.info
	n := info.Known / learnedStep * learnedStep
	if n < leastPrefix || len(info.Instead) == 0 || slices.ContainsFunc(points, func(b Breakpoint) bool { return b.Tokens >= n && b.Tokens <= info.Known }) {
		return points
	}
	points = append(slices.Clone(points), Breakpoint{Tokens: n})
	slices.SortFunc(points, func(a, b Breakpoint) int { return a.Tokens - b.Tokens })
	return points
}

// pinPrefixes pins the most used prefixes, as many as Options.PinShare has room
// for, the next one always of the salt that has least.
func (e *Engine) pinPrefixes() {
	known := &e.prefixes
	if !known.stale || e.o.PinShare == 0 {
		return
	}
	known.stale, known.pinned = false, 0
	e.tree.Unpin()
	room := int(e.o.PinShare * float64(e.pool.Sure()))
	has := map[string]int{}
	rest := slices.DeleteFunc(slices.Clone(known.all), func(p *prefix) bool { return !p.pin && p.uses < 2 })
	for len(rest) > 0 {
		at := 0
		for i, p := range rest {
			if has[p.salt] < has[rest[at].salt] {
				at = i
			}
		}
		p := rest[at]
		rest = slices.Delete(rest, at, at+1)
		if e.pool.PagesInSteps(nil, len(p.tokens), 0) > room-known.pinned {
			continue
		}
		pages, ok := e.tree.Pin(p.salt, p.tokens)
		if !ok {
			continue
		}
		has[p.salt] += pages
		known.pinned += pages
	}
}

// breaksAt says whether a breakpoint of q is at n tokens.
func (q *sequence) breaksAt(n int) bool {
	return slices.ContainsFunc(q.g.req.Breakpoints, func(b Breakpoint) bool { return b.Tokens == n })
}

// prefixStats are the numbers of Stats.
func (e *Engine) prefixStats() (st PrefixStats) {
	if e.o.Prefixes != nil {
		st = e.o.Prefixes.PrefixStats()
	}
	st.Pinned = e.prefixes.pinned
	return st
}
