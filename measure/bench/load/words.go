package load

import (
	_ "embed"
	"math"
	"math/rand/v2"
	"strings"
)

//go:embed words.txt
var wordList string

// Words makes texts of a given number of tokens out of ordinary words, in
// random order: no server has seen such a text before, and none of them is
// longer or shorter for a model than another of the same number.
type Words struct {
	words []string
	first []int // tokens of each word at the start of a text
	later []int // and behind a space
	one   []int // words of one token behind a space
	each  float64

	counted bool // by the model's own tokenizer
}

// NewWords returns a maker of texts. count returns the tokens of a text for the
// model that will read them; nil means that nobody here knows, and that a word
// is taken for one token until [Words.Fit] says more.
func NewWords(count func(text string) int) *Words {
	w := &Words{words: strings.Fields(wordList), each: 1, counted: count != nil}
	for i, s := range w.words {
		first, later := 1, 1
		if count != nil {
			// Counted in company, so that marks at a text's ends drop out.
			base := count("a a")
			later = max(1, count("a "+s+" a")-base)
			first = max(1, count(s+" a")-count("a a")+1)
		}
		w.first, w.later = append(w.first, first), append(w.later, later)
		if later == 1 {
			w.one = append(w.one, i)
		}
	}
	return w
}

// Fit tells that words turned out to be tokens, for texts to come. It is for
// servers whose tokenizer is not here.
func (w *Words) Fit(words, tokens int) {
	if words > 0 && tokens > 0 {
		w.each = float64(tokens) / float64(words)
	}
}

// Text returns words that are as many tokens, at least one. If it goes on
// after others, it begins with a space.
func (w *Words) Text(rng *rand.Rand, tokens int, goesOn bool) string {
	left := max(1, int(math.Round(float64(max(tokens, 1))/w.each)))
	var b strings.Builder
	b.Grow(left * 6)
	for left > 0 {
		i := rng.IntN(len(w.words))
		cost := w.later
		if b.Len() == 0 && !goesOn {
			cost = w.first
		}
		if cost[i] > left {
			if len(w.one) == 0 {
				break
			}
			i = w.one[rng.IntN(len(w.one))]
		}
		if b.Len() > 0 || goesOn {
			b.WriteByte(' ')
		}
		b.WriteString(w.words[i])
		left -= cost[i]
	}
	if b.Len() == 0 {
		return w.words[0]
	}
	return b.String()
}
