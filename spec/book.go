package spec

// Book knows how often guesses of a class come true, from those that were compared
// with what came. One is of everything that an engine has seen, and each request
// has one of its own, which begins with what the other says.
type Book struct {
	all   *Book
	flat  bool // classes say nothing before they are known
	class [Classes]tally
}

// tally counts guesses. Old ones fade.
type tally struct{ tried, right float32 }

// Weights of what is known.
const (
	fade  = 128 // guesses of a class after which all count half
	trust = 8   // guesses of a request that count as much as what the others say
)

// NewBook returns the book of a request, or with nil one of everything.
func NewBook(all *Book) *Book { return &Book{all: all} }

// NewDepths is NewBook where the class of a guess is its place behind the last token.
func NewDepths(all *Book) *Book { return &Book{all: all, flat: true} }

// Learn enters that a guess of a class came true or not, the guesses before it in
// its chain having come true.
func (b *Book) Learn(class uint8, right bool) {
	for ; b != nil; b = b.all {
		t := &b.class[min(class, Classes-1)]
		t.tried++
		if right {
			t.right++
		}
		if t.tried >= fade {
			t.tried, t.right = t.tried/2, t.right/2
		}
	}
}

// Likely returns how many of guesses, from the first, have a chance of at least that.
func (b *Book) Likely(guesses []Guess, least float64) (n int) {
	var chances [MaxRows]float64
	b.chances(&chances, guesses)
	for n < min(len(guesses), MaxRows) && chances[n] >= least {
		n++
	}
	return n
}

// Share returns the part of the guesses of a class that is expected to come true.
func (b *Book) Share(class uint8) float64 {
	class = min(class, Classes-1)
	// Nobody has seen anything: the surer the likelier, and not more than that.
	before := 0.1 + 0.8*float64(class%half)/(half-1)
	switch {
	case b.flat:
		before = 0.5
	case class >= against:
		before /= 2
	}
	if b.all != nil {
		before = b.all.Share(class)
	}
	t := b.class[class]
	return (float64(t.right) + trust*before) / (float64(t.tried) + trust)
}
