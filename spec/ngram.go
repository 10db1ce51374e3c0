package spec

import "slices"

// Bounds of what an NGram looks at.
const (
	maxMatch   = half - 1 // tokens of a match that are compared
	maxVisited = 32       // earlier places that are compared
	leastHeads = 1 << 8
)

// NGram guesses that a text goes on as it went on before: it looks for the place
// whose last tokens are most like those at the end, of equal ones the last, and
// copies what came after it (prompt lookup decoding, Saxena 2023; LLMA: Yang et
// al., "Inference with Reference", 2023). The class of a guess is the length of the
// match it follows from.
//
// Places are found as compressors of the LZ77 family find them: a table has the
// last place of each pair of tokens by its hash, and each place the one before it.
// An NGram holds 12 to 24 bytes for each token, and allocates only when it
// doubles.
type NGram struct {
	pairs []int32 // 1 + the last place of a pair, by hash
	ones  []int32 // 1 + the last place of a token, by hash
	prev  []int32 // by place: 1 + the place before it of a pair with the same hash
	bits  uint    // of hashes
}

// NewNGram returns an NGram with room for a text of so many tokens.
func NewNGram(room int) *NGram {
	g := &NGram{}
	g.resize(max(room, leastHeads))
	return g
}

// resize makes the tables fit a text of n tokens, and forgets what is in them.
func (g *NGram) resize(n int) {
	g.bits = 0
	for 1<<g.bits < n {
		g.bits++
	}
	g.pairs, g.ones = make([]int32, 1<<g.bits), make([]int32, 1<<g.bits)
	g.prev = slices.Grow(g.prev[:0], 1<<g.bits)
}

// Bytes returns the memory of the tables.
func (g *NGram) Bytes() int64 { return 4 * int64(len(g.pairs)+len(g.ones)+cap(g.prev)) }

// Close gives the tables back.
func (g *NGram) Close() { *g = NGram{} }

// hash returns the place of two tokens in a table.
func (g *NGram) hash(a, b int32) uint32 {
	const golden = 0x9e3779b97f4a7c15
	return uint32((uint64(uint32(a))<<32 | uint64(uint32(b))) * golden >> (64 - g.bits))
}

// add enters the places of tokens that have one after them.
func (g *NGram) add(tokens []int32) {
	last := len(tokens) - 1
	if len(g.prev) > last || len(g.pairs) == 0 { // another text
		g.resize(max(len(tokens), leastHeads))
	}
	if last > 1<<g.bits {
		g.resize(2 * last)
	}
	for at := len(g.prev); at < last; at++ {
		before := int32(0)
		if at > 0 {
			h := g.hash(tokens[at-1], tokens[at])
			before, g.pairs[h] = g.pairs[h], int32(at+1)
		}
		g.prev = append(g.prev, before)
		g.ones[g.hash(0, tokens[at])] = int32(at + 1)
	}
}

// Draft copies what came after the place that is most like the end. Where that
// reaches the end, it goes on with the copy: a text that repeats itself is
// expected to go on doing so. It does not go on with the guesses of others.
func (g *NGram) Draft(dst []Guess, tokens []int32, n int) []Guess {
	if len(tokens) < 2 || n <= 0 || len(dst) > 0 {
		return dst
	}
	return g.behind(dst, tokens, tokens, n)
}

// behind appends n guesses of what follows all to dst, which is empty: places of tokens,
// with which all begins, are looked up.
func (g *NGram) behind(dst []Guess, tokens, all []int32, n int) []Guess {
	g.add(tokens)
	at, long := g.find(all)
	if long == 0 {
		return dst
	}
	for i := range n {
		token := int32(0)
		if from := at + 1 + i; from < len(all) {
			token = all[from]
		} else {
			token = dst[from-len(all)].Token
		}
		dst = append(dst, Guess{Token: token, Class: uint8(min(long+i, maxMatch))})
	}
	return dst
}

// find returns the place that is most like the end, and how many of its last
// tokens are those of the end.
func (g *NGram) find(tokens []int32) (at, long int) {
	last := len(tokens) - 1
	next := g.pairs[g.hash(tokens[last-1], tokens[last])]
	for range maxVisited {
		if next == 0 {
			break
		}
		place := int(next - 1)
		if n := match(tokens, place); n > long {
			if at, long = place, n; n == maxMatch {
				return at, long
			}
		}
		next = g.prev[place]
	}
	if long == 0 {
		if one := g.ones[g.hash(0, tokens[last])]; one > 0 {
			at, long = int(one-1), match(tokens, int(one-1))
		}
	}
	return at, long
}

// match returns how many tokens up to a place are those at the end, at most
// maxMatch.
func match(tokens []int32, place int) (n int) {
	last := len(tokens) - 1
	for n <= place && n < maxMatch && tokens[place-n] == tokens[last-n] {
		n++
	}
	return n
}
