package spec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/weights/tensor"
)

func openSmall(t testing.TB, context int) *Small {
	t.Helper()
	m, err := model.Open(testdata.Tiny, model.Options{KV: tensor.F16, Context: context, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSmall(m, m.Tokenizer().VocabSize(), func(int32) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// greedy returns the most probable tokens after a text, computed anew.
func greedy(t *testing.T, s *Small, text []int32, n int) (out []int32) {
	t.Helper()
	q := s.m.Pool().NewSeq()
	defer s.m.Pool().Free(q)
	next := text
	for range n {
		if err := s.m.Forward(&model.Step{Runs: []model.Run{{Seq: q, Tokens: next, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		best := int32(0)
		for i, x := range s.m.Logits(0) {
			if x > s.m.Logits(0)[best] {
				best = int32(i)
			}
		}
		out, next = append(out, best), []int32{best}
	}
	return out
}

// A model's guesses are its most probable tokens, whatever became of those before
// them, at once or one by one.
func TestSmall(t *testing.T) {
	s, ref := openSmall(t, 512), openSmall(t, 512)
	r := rand.New(rand.NewPCG(1, 5))
	d := s.Drafter()
	text := make([]int32, 0, 500)
	for range 300 {
		text = append(text, 100+r.Int32N(1000))
	}
	for round := range 12 {
		n := 1 + r.IntN(4)
		var got []Guess
		if round%2 == 0 {
			got = d.Draft(nil, text, n)
		} else {
			for range n {
				got = d.Draft(got, text, 1)
			}
		}
		want := greedy(t, ref, text, n)
		if len(got) != n {
			t.Fatalf("round %d: %d guesses of %d", round, len(got), n)
		}
		for i, g := range got {
			if g.Token != want[i] || g.Class < half || g.Class >= 2*half {
				t.Fatalf("round %d: got %v, want %v", round, got, want)
			}
		}
		// Some were right, some were not, and something else came.
		for _, g := range got[:r.IntN(n+1)] {
			text = append(text, g.Token)
		}
		text = append(text, 100+r.Int32N(1000))
	}
	if d.Bytes() == 0 || d.Cost() <= 0 {
		t.Errorf("%d bytes, %v a guess", d.Bytes(), d.Cost())
	}
	// Beyond the context, and where there is no memory, nothing is guessed.
	if got := d.Draft(nil, slices.Repeat(text, 3), 4); len(got) != 0 {
		t.Errorf("%d guesses beyond the context", len(got))
	}
	other := s.Drafter()
	if got := other.Draft(nil, text, 2); len(got) != 0 || other.Bytes() != 0 {
		t.Errorf("%d guesses without memory, %d bytes", len(got), other.Bytes())
	}
	d.Close()
	if got := other.Draft(nil, text, 2); len(got) != 2 {
		t.Errorf("%d guesses with memory", len(got))
	}
	other.Close()
	if d.Bytes() != 0 || s.m.Pool().Stats().InUse != 0 {
		t.Errorf("%d bytes held, %d pages", d.Bytes(), s.m.Pool().Stats().InUse)
	}
}

// Models with another vocabulary are refused.
func TestSmallRefused(t *testing.T) {
	m := openSmall(t, 64).m
	if _, err := NewSmall(m, 7, func(int32) bool { return true }); err == nil || err.Error() != "spec: model that drafts: expected the 7 tokens of the other one's vocabulary, found 49152" {
		t.Error(err)
	}
	if _, err := NewSmall(m, m.Tokenizer().VocabSize(), func(id int32) bool { return id != 9 }); err == nil || err.Error() != "spec: model that drafts: expected the vocabulary of the other one, found another token 9" {
		t.Error(err)
	}
}

// Guesses of a model that has room allocate nothing.
func TestSmallAllocations(t *testing.T) {
	s := openSmall(t, 512)
	d := s.Drafter()
	defer d.Close()
	text := slices.Repeat([]int32{300, 400, 500}, 20)
	out := d.Draft(make([]Guess, 0, 8), text, 4)
	if n := testing.AllocsPerRun(5, func() { out = d.Draft(out[:0], text, 4) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	tree := func() {
		out = out[:0]
		for range 3 {
			out = d.(Brancher).Branch(out, text, 3)
		}
	}
	out = make([]Guess, 0, MaxRows)
	tree()
	if n := testing.AllocsPerRun(5, tree); n != 0 {
		t.Errorf("%v allocations for a tree", n)
	}
}

// joint returns how probable a piece is behind a text, computed anew.
func joint(t *testing.T, s *Small, text, piece []int32) float64 {
	t.Helper()
	q := s.m.Pool().NewSeq()
	defer s.m.Pool().Free(q)
	run := model.Run{Seq: q, Tokens: slices.Concat(text, piece), Outputs: 1 + len(piece)}
	if err := s.m.Forward(&model.Step{Runs: []model.Run{run}}); err != nil {
		t.Fatal(err)
	}
	p := 1.0
	for i, id := range piece {
		row, total := s.m.Logits(i), 0.0
		for _, x := range row {
			total += math.Exp(float64(x - row[id]))
		}
		p /= total
	}
	return p
}

// A model's tree goes on behind its likeliest guesses, at each place with the tokens
// that are most probable behind them, whatever became of the guesses before.
func TestSmallBranches(t *testing.T) {
	s, ref := openSmall(t, 512), openSmall(t, 512)
	r := rand.New(rand.NewPCG(4, 5))
	d := s.Drafter().(Brancher)
	defer d.Close()
	text := make([]int32, 0, 500)
	for range 30 {
		text = append(text, 100+r.Int32N(1000))
	}
	moved, branched, deepest := 0, 0, 0
	for round := range 8 {
		width := 1 + r.IntN(4)
		var got []Guess
		for range 3 {
			got = d.Branch(got, text, width)
		}
		if len(got) == 0 {
			t.Fatalf("round %d: no guesses", round)
		}
		deepest = max(deepest, Depth(got))
		if len(Chain(got)) < len(got) {
			branched++
		}
		last := 1.0
		for i := range got {
			piece := pieceOf(got, i)
			p := joint(t, ref, text, piece)
			if parent := Parent(got, i); parent >= 0 {
				last = p / joint(t, ref, text, pieceOf(got, parent))
			} else {
				last = p
			}
			if class := half + min(int(last*half), half-1); int(got[i].Class) < class-1 || int(got[i].Class) > class+1 {
				t.Errorf("round %d: %v has class %d, its probability is %v", round, piece, got[i].Class, last)
			}
		}
		if want := greedy(t, ref, text, 1); got[0].Token != want[0] {
			t.Errorf("round %d: %v first, want %v", round, got[0], want)
		}
		// One of the guesses was right, and something else came.
		right := pieceOf(got, r.IntN(len(got)))
		moved += len(right)
		text = append(append(text, right...), 100+r.Int32N(1000))
	}
	if moved < 8 || branched < 3 || deepest != 3 {
		t.Errorf("%d guesses were right, %d trees had branches, the deepest %d", moved, branched, deepest)
	}
}

// pieceOf returns the tokens up to a guess.
func pieceOf(guesses []Guess, i int) (piece []int32) {
	for ; i >= 0; i = Parent(guesses, i) {
		piece = append(piece, guesses[i].Token)
	}
	slices.Reverse(piece)
	return piece
}
