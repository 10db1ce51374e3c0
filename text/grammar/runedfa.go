package grammar

import (
	"slices"
	"sort"
	"unicode/utf8"
)

// RuneDFA is a deterministic automaton over code points. Bytes come in only
// when it is spelled out, in UTF-8 or as the inside of a JSON string, so that
// lengths are counted in characters and one automaton serves both.
type RuneDFA struct {
	cuts  []rune  // ascending starts of the intervals of code points, cuts[0] = 0
	class []int32 // interval → class
	k     int     // number of classes
	next  []int32 // state*k + class → state, -1: none
	final []bool
	start int32
}

func (d *RuneDFA) classOf(r rune) int32 {
	return d.class[sort.Search(len(d.cuts), func(i int) bool { return d.cuts[i] > r })-1]
}

// Match reports whether the whole of s is accepted. Invalid UTF-8 is not.
func (d *RuneDFA) Match(s string) bool {
	q := d.start
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n <= 1 {
				return false
			}
		}
		if q = d.next[int(q)*d.k+int(d.classOf(r))]; q < 0 {
			return false
		}
	}
	return d.final[q]
}

// edges calls do for each successor of q with the code points that lead there.
func (d *RuneDFA) edges(q int32, do func(to int32, on RuneSet)) {
	sets := map[int32]RuneSet{}
	var order []int32
	for i, lo := range d.cuts {
		to := d.next[int(q)*d.k+int(d.class[i])]
		if to < 0 {
			continue
		}
		hi := rune(maxRune)
		if i+1 < len(d.cuts) {
			hi = d.cuts[i+1] - 1
		}
		s, ok := sets[to]
		if !ok {
			order = append(order, to)
		}
		if n := len(s); n > 0 && s[n-1]+1 == lo {
			s[n-1] = hi
		} else {
			s = append(s, lo, hi)
		}
		sets[to] = s
	}
	for _, to := range order {
		do(to, sets[to])
	}
}

// partition returns the coarsest cuts and classes that tell the given sets
// apart; member lists, for each class, the sets that it is part of. The sets
// are normalized. Code points outside all sets form a class of their own if there are any.
func partition(sets []RuneSet) (cuts []rune, class []int32, member [][]int32) {
	type event struct {
		at  rune
		set int32
		in  bool
	}
	var events []event
	for i, s := range sets {
		for j := 0; j < len(s); j += 2 {
			events = append(events, event{s[j], int32(i), true})
			if s[j+1] < maxRune {
				events = append(events, event{s[j+1] + 1, int32(i), false})
			}
		}
	}
	slices.SortFunc(events, func(a, b event) int { // a set that ends leaves before it comes back
		switch {
		case a.at != b.at:
			return int(a.at - b.at)
		case a.in == b.in:
			return 0
		case a.in:
			return 1
		}
		return -1
	})
	var inside []int32 // the sets that the current code point is in
	index := map[string]int32{}
	var key []byte
	for i, at := 0, rune(0); ; {
		for ; i < len(events) && events[i].at == at; i++ {
			j, _ := slices.BinarySearch(inside, events[i].set)
			if events[i].in {
				inside = slices.Insert(inside, j, events[i].set)
			} else {
				inside = slices.Delete(inside, j, j+1)
			}
		}
		key = key[:0]
		for _, s := range inside {
			key = append(key, byte(s), byte(s>>8), byte(s>>16))
		}
		c, ok := index[string(key)]
		if !ok {
			c = int32(len(member))
			index[string(key)] = c
			member = append(member, slices.Clone(inside))
		}
		cuts, class = append(cuts, at), append(class, c)
		if i == len(events) {
			return cuts, class, member
		}
		at = events[i].at
	}
}

// Explore builds the automaton whose states are values of S, given its alphabet
// as disjoint sets, the successor of a state for each of them, and which states
// are final.
func Explore[S comparable](b *Builder, alphabet []RuneSet, start S, next func(S, int) (S, bool), final func(S) bool) *RuneDFA {
	d := &RuneDFA{}
	var member [][]int32
	d.cuts, d.class, member = partition(alphabet)
	d.k = len(member)
	index := map[S]int32{start: 0}
	states := []S{start}
	for i := 0; i < len(states); i++ {
		d.final = append(d.final, final(states[i]))
		if !d.room(b, len(states)) {
			return NoText()
		}
		for c := range d.k {
			to := int32(-1)
			if len(member[c]) > 0 {
				if s, ok := next(states[i], int(member[c][0])); ok {
					if to, ok = index[s]; !ok {
						to = int32(len(states))
						index[s] = to
						states = append(states, s)
					}
				}
			}
			d.next = append(d.next, to)
		}
	}
	return d.Minimize(b)
}

// room reports whether d may have n states, and counts the work for one.
func (d *RuneDFA) room(b *Builder, n int) bool {
	if n > maxRuneStates || n*d.k > maxRuneCells {
		b.fail(tooLarge(b.Source, "", "an automaton over characters with more than %d states", min(n-1, maxRuneStates)))
		return false
	}
	return b.Spend(d.k)
}

// NoText accepts no text. It stands for an automaton that became too large.
func NoText() *RuneDFA {
	return &RuneDFA{cuts: []rune{0}, class: []int32{0}, k: 1, next: []int32{-1}, final: []bool{false}}
}

// Intersect returns the automaton of the texts that both x and y accept.
func (x *RuneDFA) Intersect(b *Builder, y *RuneDFA) *RuneDFA {
	d := &RuneDFA{}
	type pair struct{ x, y int32 }
	classes := map[pair]int32{}
	var pairs []pair
	for i, j := 0, 0; i < len(x.cuts) && j < len(y.cuts); {
		at := max(x.cuts[i], y.cuts[j])
		p := pair{x.class[i], y.class[j]}
		c, ok := classes[p]
		if !ok {
			c = int32(len(pairs))
			classes[p] = c
			pairs = append(pairs, p)
		}
		d.cuts, d.class = append(d.cuts, at), append(d.class, c)
		endX, endY := rune(maxRune+1), rune(maxRune+1)
		if i+1 < len(x.cuts) {
			endX = x.cuts[i+1]
		}
		if j+1 < len(y.cuts) {
			endY = y.cuts[j+1]
		}
		if endX <= endY {
			i++
		}
		if endY <= endX {
			j++
		}
	}
	d.k = len(pairs)
	index := map[pair]int32{{x.start, y.start}: 0}
	states := []pair{{x.start, y.start}}
	for i := 0; i < len(states); i++ {
		s := states[i]
		d.final = append(d.final, x.final[s.x] && y.final[s.y])
		if !d.room(b, len(states)) {
			return NoText()
		}
		for _, c := range pairs {
			t := pair{x.next[int(s.x)*x.k+int(c.x)], y.next[int(s.y)*y.k+int(c.y)]}
			to := int32(-1)
			if t.x >= 0 && t.y >= 0 {
				var ok bool
				if to, ok = index[t]; !ok {
					to = int32(len(states))
					index[t] = to
					states = append(states, t)
				}
			}
			d.next = append(d.next, to)
		}
	}
	return d.Minimize(b)
}

// Complement returns the automaton of the texts that d does not accept.
func (d *RuneDFA) Complement() *RuneDFA {
	n := len(d.final)
	c := &RuneDFA{cuts: d.cuts, class: d.class, k: d.k, start: d.start}
	c.next = make([]int32, (n+1)*d.k)
	for i, to := range d.next {
		if to < 0 {
			to = int32(n)
		}
		c.next[i] = to
	}
	for i := n * d.k; i < len(c.next); i++ {
		c.next[i] = int32(n)
	}
	for _, f := range d.final {
		c.final = append(c.final, !f)
	}
	c.final = append(c.final, true)
	return c
}

// Empty reports whether d, which is minimized, accepts nothing.
func (d *RuneDFA) Empty() bool { return !slices.Contains(d.final, true) }

// Size returns the number of states.
func (d *RuneDFA) Size() int { return len(d.final) }

// Shortest returns the number of characters of the shortest text that d accepts,
// -1 if there is none.
func (d *RuneDFA) Shortest() int {
	seen := make([]bool, len(d.final))
	level := []int32{d.start}
	for n := 0; len(level) > 0; n++ {
		var next []int32
		for _, q := range level {
			if seen[q] {
				continue
			}
			if seen[q] = true; d.final[q] {
				return n
			}
			for _, to := range d.next[int(q)*d.k : (int(q)+1)*d.k] {
				if to >= 0 {
					next = append(next, to)
				}
			}
		}
		level = next
	}
	return -1
}

// Longest returns the number of characters of the longest text that d, which is
// minimized, accepts, -1 if there is no bound or no text.
func (d *RuneDFA) Longest() int {
	longest := make([]int, len(d.final))
	state := make([]uint8, len(d.final)) // 1: on the way, 2: known
	var visit func(q int32, depth int) bool
	visit = func(q int32, depth int) bool {
		if state[q] == 1 || depth > 10_000 {
			return false
		}
		if state[q] == 2 {
			return true
		}
		state[q] = 1
		for _, to := range d.next[int(q)*d.k : (int(q)+1)*d.k] {
			if to < 0 {
				continue
			}
			if !visit(to, depth+1) {
				return false
			}
			longest[q] = max(longest[q], longest[to]+1)
		}
		state[q] = 2
		return true
	}
	if d.Empty() || !visit(d.start, 0) {
		return -1
	}
	return longest[d.start]
}

// Lengths returns the automaton of the texts of at least lo and at most hi characters; hi < 0
// stands for no bound.
func (b *Builder) Lengths(lo, hi int) *RuneDFA {
	n := max(lo, hi) + 1
	d := &RuneDFA{cuts: []rune{0}, class: []int32{0}, k: 1}
	if !d.room(b, n) {
		return NoText()
	}
	for i := range n {
		to := int32(i + 1)
		if i == n-1 {
			to = -1
			if hi < 0 {
				to = int32(i)
			}
		}
		d.next = append(d.next, to)
		d.final = append(d.final, i >= lo)
	}
	return d
}

// Words returns the automaton of exactly the given texts.
func (b *Builder) Words(words []string) *RuneDFA {
	seen := map[rune]int{}
	var alphabet []RuneSet
	for _, w := range words {
		for _, r := range w {
			if _, ok := seen[r]; !ok {
				seen[r] = len(alphabet)
				alphabet = append(alphabet, RuneSet{r, r})
			}
		}
	}
	type edge struct {
		from int32
		on   int
	}
	trie := map[edge]int32{}
	final := map[int32]bool{}
	n := int32(1)
	for _, w := range words {
		at := int32(0)
		for _, r := range w {
			e := edge{at, seen[r]}
			to, ok := trie[e]
			if !ok {
				to = n
				trie[e] = to
				n++
			}
			at = to
		}
		final[at] = true
	}
	return Explore(b, alphabet, 0, func(s int32, on int) (int32, bool) {
		to, ok := trie[edge{s, on}]
		return to, ok
	}, func(s int32) bool { return final[s] })
}
