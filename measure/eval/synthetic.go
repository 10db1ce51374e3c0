package eval

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// words of which synthetic tasks are made: common, and mostly one token each.
var syntheticWords = strings.Fields(`apple river stone green table light horse cloud paper glass bread wheel music
garden window silver winter bridge letter market forest island mirror candle button basket hammer pencil ladder pocket`)

// Needles returns items that ask for a number that stands in a long text, at every depth
// of every length (Kamradt's needle in a haystack): the number must be what greedy
// decoding writes. count tells the tokens of a text; lengths are tokens, depths parts of
// a text from 0 to 1. The same seed gives the same items.
func Needles(count func(string) int, lengths []int, depths []float64, samples int, seed uint64) []Item {
	rng := rand.New(rand.NewPCG(seed, 528))
	var out []Item
	for _, length := range lengths {
		for _, depth := range depths {
			for range samples {
				place := syntheticWords[rng.IntN(len(syntheticWords))]
				number := fmt.Sprint(10000 + rng.IntN(90000))
				needle := fmt.Sprintf(" The number of the %s is %s. Remember it.", place, number)
				question := fmt.Sprintf(" What is the number of the %s? The number of the %s is", place, place)
				room := length - count(needle+question+" "+number) - 2
				hay := haystack(rng, count, room, place)
				at := int(depth*float64(len(hay)) + 0.5)
				text := strings.TrimSpace(strings.Join(hay[:at], "") + needle + strings.Join(hay[at:], ""))
				out = append(out, Item{Context: text + question, Continuation: " " + number, Group: fmt.Sprintf("%d tokens, depth %.0f%%", length, 100*depth)})
			}
		}
	}
	return out
}

// haystack returns sentences of at most so many tokens, without a word.
func haystack(rng *rand.Rand, count func(string) int, tokens int, without string) (out []string) {
	word := func() string {
		for {
			if w := syntheticWords[rng.IntN(len(syntheticWords))]; w != without {
				return w
			}
		}
	}
	forms := []string{" The %s was near the %s.", " Nobody saw the %s behind the %s.", " A %s is not a %s.", " They took the %s and left the %s."}
	for used := 0; ; {
		s := fmt.Sprintf(forms[rng.IntN(len(forms))], word(), word())
		n := count(s)
		if used += n; used > tokens {
			return out
		}
		out = append(out, s)
	}
}

// Copies returns items whose text stands there once and has begun again: so many words, of
// which all but the first must be what greedy decoding writes.
func Copies(lengths []int, samples int, seed uint64) []Item {
	rng := rand.New(rand.NewPCG(seed, 530))
	var out []Item
	for _, n := range lengths {
		for range samples {
			words := make([]string, n)
			for i := range words {
				words[i] = syntheticWords[rng.IntN(len(syntheticWords))]
			}
			text := strings.Join(words, " ")
			out = append(out, Item{Context: text + "\n" + words[0], Continuation: strings.TrimPrefix(text, words[0]), Group: fmt.Sprintf("%d words", n)})
		}
	}
	return out
}

// Recalls returns items that list so many pairs of a word and a number and ask for one of
// them.
func Recalls(lengths []int, samples int, seed uint64) []Item {
	rng := rand.New(rand.NewPCG(seed, 531))
	var out []Item
	for _, n := range lengths {
		n = min(n, len(syntheticWords))
		for range samples {
			var b strings.Builder
			order, values := rng.Perm(len(syntheticWords))[:n], make([]string, n)
			for i, w := range order {
				values[i] = fmt.Sprint(10 + rng.IntN(90))
				fmt.Fprintf(&b, "%s: %s\n", syntheticWords[w], values[i])
			}
			ask := rng.IntN(n)
			out = append(out, Item{Context: b.String() + syntheticWords[order[ask]] + ":", Continuation: " " + values[ask], Group: fmt.Sprintf("%d pairs", n)})
		}
	}
	return out
}
