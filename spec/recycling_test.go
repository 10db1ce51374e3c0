package spec

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// The largest logits are those of a sort.
func TestLargest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 300 {
		row := make([]float32, r.IntN(1500))
		for i := range row {
			switch row[i] = float32(r.IntN(200)) / 8; r.IntN(30) {
			case 0:
				row[i] = float32(math.Inf(-1))
			case 1:
				row[i] = float32(math.NaN())
			}
		}
		var want []int32
		for i, x := range row {
			if x > float32(math.Inf(-1)) {
				want = append(want, int32(i))
			}
		}
		sort.SliceStable(want, func(a, b int) bool { return row[want[a]] > row[want[b]] })
		k := r.IntN(MaxWidth + 1)
		want = want[:min(k, len(want))]
		got := make([]int32, k)
		if got = got[:largest(got, row)]; !slices.Equal(got, want) {
			t.Fatalf("%d of %d: got %v, want %v", k, len(row), got, want)
		}
	}
}

// What the model held likely behind a token is guessed when that token comes again, for
// the tenant and nobody else.
func TestRecycling(t *testing.T) {
	const vocab = 40
	x := NewRecycling(vocab)
	a, b := x.Drafter("a"), x.Drafter("b")
	row := func(likely ...int32) []float32 {
		out := make([]float32, vocab)
		for i, id := range likely {
			out[id] = float32(9 - i)
		}
		return out
	}
	learner := a.(Observer)
	learner.Observe(0, -1, 5, row(7, 9, 3))
	learner.Observe(0, -1, 7, row(8, 0))
	learner.Observe(0, -1, 8, row(5))
	got := a.Draft(nil, []int32{1, 5}, 4)
	for _, piece := range [][]int32{{7}, {9}, {3}, {7, 8}, {7, 0}, {7, 8, 5}, {7, 8, 5, 7}} {
		if !hasPiece(got, piece) {
			t.Errorf("%v is not guessed: %v", piece, got)
		}
	}
	if Depth(got) != 4 || len(got) > MaxRows {
		t.Errorf("%d guesses, %d deep", len(got), Depth(got))
	}
	if got := a.Draft(nil, []int32{1, 5}, 1); Depth(got) != 1 {
		t.Errorf("one place: %v", got)
	}
	if got := b.Draft(nil, []int32{1, 5}, 4); len(got) != 0 {
		t.Errorf("another tenant's: %v", got)
	}
	for i := range 3 * mostAdjacency {
		x.Drafter(string(rune('c' + i)))
	}
	if x.Bytes() != mostAdjacency*vocab*ranks*4 {
		t.Errorf("%d bytes", x.Bytes())
	}
	learner.Observe(0, -1, -1, row(1))
	learner.Observe(0, -1, vocab, row(1))
	if got := a.Draft(nil, []int32{vocab + 3}, 4); len(got) != 0 {
		t.Errorf("behind no token: %v", got)
	}
	out := make([]Guess, 0, MaxRows)
	text, logits := []int32{5}, row(7, 9, 3)
	if n := testing.AllocsPerRun(10, func() { learner.Observe(0, -1, 5, logits); out = a.Draft(out[:0], text, 8) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func hasPiece(guesses []Guess, piece []int32) bool {
	for i := range guesses {
		if slices.Equal(pieceOf(guesses, i), piece) {
			return true
		}
	}
	return false
}
