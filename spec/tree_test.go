package spec

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomTree makes a tree of n guesses, no two of which are the same.
func randomTree(r *rand.Rand, n int) (guesses []Guess) {
	for len(guesses) < n {
		g := Guess{Token: r.Int32N(6), Class: uint8(r.IntN(Classes)), Up: uint8(r.IntN(len(guesses) + 1))}
		next := append(guesses, g)
		if !hasPiece(guesses, pieceOf(next, len(guesses))) {
			guesses = next
		}
	}
	return guesses
}

func randomBook(r *rand.Rand) *Book {
	b := NewBook(nil)
	for range r.IntN(2000) {
		b.Learn(uint8(r.IntN(Classes)), r.IntN(3) > 0)
	}
	return b
}

// The tree that is verified is the best one: of all trees that can be cut out of the
// guesses, tried one by one, none makes more tokens in the time of a step.
func TestTreesEqualBruteForce(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		book := randomBook(r)
		guesses := randomTree(r, r.IntN(10))
		pieces := map[int][]int32{}
		for i := range guesses {
			pieces[i] = pieceOf(guesses, i)
		}
		costs := []float64{1}
		for range MaxRows {
			costs = append(costs, costs[len(costs)-1]+r.Float64()*r.Float64()*.3)
		}
		best := 1.0
		var byRows [11]float64 // the most tokens with so many guesses
		for set := range uint(1) << len(guesses) {
			tokens := 1.0
			for i := range guesses {
				if set>>i&1 == 0 {
					continue
				}
				chance := 1.0
				for k := i; k >= 0; k = Parent(guesses, k) {
					if set>>k&1 == 0 {
						chance = math.NaN()
					}
					chance *= book.Share(guesses[k].Class)
				}
				tokens += chance
			}
			if tokens == tokens {
				n := bits.OnesCount(set)
				byRows[n] = max(byRows[n], tokens)
				best = max(best, tokens/costs[n])
			}
		}
		book.Sort(guesses)
		for i := range guesses {
			if p := Parent(guesses, i); p < -1 || p >= i {
				t.Fatalf("seed %d: guess %d follows %d: %v", seed, i, p, guesses)
			}
			if want := byRows[i+1] - 1; math.Abs(book.Expect(guesses[:i+1])-want) > 1e-9 {
				t.Fatalf("seed %d: %d guesses are expected to give %v tokens, the best would give %v", seed, i+1, book.Expect(guesses[:i+1]), want)
			}
		}
		for _, piece := range pieces {
			if !hasPiece(guesses, piece) {
				t.Fatalf("seed %d: %v is lost: %v", seed, piece, guesses)
			}
		}
		offers := []Offer{{Guesses: guesses, Book: book}}
		gain := choose(offers, 1, func(n int) float64 { return costs[n] })
		if best <= margin(1) {
			best = 1
		}
		if math.Abs(gain-best) > 1e-9 {
			t.Fatalf("seed %d: took %d guesses and gain %v, the best is %v", seed, offers[0].Take, gain, best)
		}
	}
}

// A merged tree has the guesses of both, each once; those against others are known as
// such, and learned from on their own.
func TestMerge(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		a, b := randomTree(r, r.IntN(40)), randomTree(r, r.IntN(40))
		for i := range b {
			b[i].Class %= against
		}
		got := Merge(slices.Clone(a), b)
		for i := range got {
			for k := range i {
				if slices.Equal(pieceOf(got, i), pieceOf(got, k)) {
					t.Fatalf("seed %d: %v comes twice", seed, pieceOf(got, i))
				}
			}
		}
		for _, list := range [][]Guess{a, b} {
			for i := range list {
				if len(got) < MaxRows && !hasPiece(got, pieceOf(list, i)) {
					t.Fatalf("seed %d: %v is lost", seed, pieceOf(list, i))
				}
			}
		}
		if len(got) > MaxRows || !slices.Equal(got[:len(a)], a) {
			t.Fatalf("seed %d: %d guesses, the first are not those merged with", seed, len(got))
		}
	}
	chain := []Guess{{Token: 1, Class: 9}, {Token: 2, Class: 10}}
	got := Merge(slices.Clone(chain), []Guess{{Token: 1, Class: 20}, {Token: 3, Class: 20}, {Token: 4, Class: 21}, {Token: 5, Class: 22, Up: 3}})
	want := []Guess{chain[0], chain[1], {Token: 3, Class: 20 + against, Up: 1}, {Token: 4, Class: 21}, {Token: 5, Class: 22 + against, Up: 4}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	book := NewBook(nil)
	before := book.Share(20 + against)
	book.LearnAgainst(got, []int32{1, 3, 4})
	if book.Share(20+against) <= before || book.Share(21) != NewBook(nil).Share(21) {
		t.Error("guesses against others were not learned from alone")
	}
	if reached := book.LearnTree(got, []int32{1, 3, 9}); reached != 2 {
		t.Errorf("%d tokens were guessed, want 2", reached)
	}
}
