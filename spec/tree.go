package spec

// Trees of guesses are lists, in which each guess follows one before it or the text. The
// best n guesses are the n most probable ones, where the probability of one is that of
// all up to it: none is above that of the one it follows, so that they are a tree, and
// no other n make more tokens (Wang et al., "OPT-Tree", 2024, arXiv 2406.17276; Li et
// al., "EAGLE-2", 2024, arXiv 2406.16858).

// MaxWidth bounds the guesses that go on at one place.
const MaxWidth = 16

// Parent returns the place of the guess that guess i follows, -1 for the text.
func Parent(guesses []Guess, i int) int { return i - 1 - int(guesses[i].Up) }

// Chain returns the first guesses that follow each other.
func Chain(guesses []Guess) []Guess {
	for i := range guesses {
		if guesses[i].Up > 0 {
			return guesses[:i]
		}
	}
	return guesses
}

// chances fills in how likely each of the first MaxRows guesses is to be a token of the
// text.
func (b *Book) chances(to *[MaxRows]float64, guesses []Guess) {
	for i := range guesses[:min(len(guesses), MaxRows)] {
		to[i] = b.Share(guesses[i].Class)
		if p := Parent(guesses, i); p >= 0 {
			to[i] *= to[p]
		}
	}
}

// Expect returns how many of the first MaxRows guesses are expected to come true.
func (b *Book) Expect(guesses []Guess) (n float64) {
	var chances [MaxRows]float64
	b.chances(&chances, guesses)
	for _, c := range chances[:min(len(guesses), MaxRows)] {
		n += c
	}
	return n
}

// Sort puts the likeliest of at most MaxRows guesses first. None comes before the one
// that it follows.
func (b *Book) Sort(guesses []Guess) {
	if len(Chain(guesses)) == len(guesses) {
		return
	}
	var chances [MaxRows]float64
	var order, place [MaxRows]int8
	var parents [MaxRows]int8
	b.chances(&chances, guesses)
	var sorted [MaxRows]Guess
	for i := range guesses {
		parents[i] = int8(Parent(guesses, i))
		k := i
		for ; k > 0 && chances[order[k-1]] < chances[i]; k-- {
			order[k] = order[k-1]
		}
		order[k] = int8(i)
	}
	for k, i := range order[:len(guesses)] {
		place[i] = int8(k)
		g := guesses[i]
		if g.Up = uint8(k); parents[i] >= 0 {
			g.Up = uint8(k - 1 - int(place[parents[i]]))
		}
		sorted[k] = g
	}
	copy(guesses, sorted[:])
}

// Merge adds the guesses of a second tree to dst, of which there are at most MaxRows
// then, and returns it. Where both have the same tokens, dst's stay. A guess beside others
// of dst is one against them, and comes true less often: it gets a class for that.
func Merge(dst, more []Guess) []Guess {
	var where [MaxRows]int
	first := len(dst)
	for i, g := range more[:min(len(more), MaxRows)] {
		at := -1
		if p := Parent(more, i); p >= 0 {
			at = where[p]
		}
		if where[i] = -2; at == -2 {
			continue
		}
		beside := false
		for k := at + 1; k < len(dst); k++ {
			if Parent(dst, k) != at {
				continue
			}
			if beside = beside || k < first; dst[k].Token == g.Token {
				where[i] = k
				break
			}
		}
		if where[i] >= 0 || len(dst) == MaxRows {
			continue
		}
		if where[i] = len(dst); beside && g.Class < against {
			g.Class += against
		}
		g.Up = uint8(len(dst) - 1 - at)
		dst = append(dst, g)
	}
	return dst
}

// LearnTree enters which of guesses came true, those that follow one that did not being
// passed over. It returns how many tokens of what came were guessed.
func (b *Book) LearnTree(guesses []Guess, came []int32) (reached int) {
	return b.learn(guesses, came, 0)
}

// LearnAgainst is LearnTree of guesses against others alone: of merged trees, whose others
// are learned from as they were made.
func (b *Book) LearnAgainst(guesses []Guess, came []int32) { b.learn(guesses, came, against) }

func (b *Book) learn(guesses []Guess, came []int32, least uint8) (reached int) {
	var depth [MaxRows]int // of those that came true, from 1 on
	for i, g := range guesses[:min(len(guesses), MaxRows)] {
		at := 0
		if p := Parent(guesses, i); p >= 0 {
			if at = depth[p]; at == 0 {
				continue
			}
		}
		if at >= len(came) {
			continue
		}
		right := came[at] == g.Token
		if g.Class >= least {
			b.Learn(g.Class, right)
		}
		if right {
			depth[i] = at + 1
			reached = max(reached, at+1)
		}
	}
	return reached
}

// Reach is LearnTree that enters nothing.
func (b *Book) Reach(guesses []Guess, came []int32) int { return b.learn(guesses, came, Classes) }

// Depth returns how many guesses follow each other at most.
func Depth(guesses []Guess) (deepest int) {
	var depth [MaxRows]int
	for i := range guesses[:min(len(guesses), MaxRows)] {
		if depth[i] = 1; Parent(guesses, i) >= 0 {
			depth[i] += depth[Parent(guesses, i)]
		}
		deepest = max(deepest, depth[i])
	}
	return deepest
}
