package many

import (
	"slices"
	"testing"
	"time"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/spec"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// parrot knows a text but for the tokens at some places.
type parrot struct {
	text  []int32
	wrong int // one of so many places
	at    int // the first of them
	held  int64
}

func (p *parrot) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	for range n {
		i := len(tokens) + len(dst)
		if i >= len(p.text) {
			return dst
		}
		g := spec.Guess{Token: p.text[i]}
		if i%p.wrong == p.at {
			g.Token = 999
		}
		dst = append(dst, g.Sure(0.5))
	}
	return dst
}
func (p *parrot) Bytes() int64        { return p.held }
func (p *parrot) Cost() time.Duration { return time.Duration(p.wrong) }
func (p *parrot) Lag([]int32) int     { return p.at }
func (p *parrot) Close()              { p.held = 0 }

// reached returns how many tokens behind a text a tree has.
func reached(tree []spec.Guess, came []int32) (most int) {
	var depth [spec.MaxRows]int
	for i, g := range tree {
		at := 0
		if p := spec.Parent(tree, i); p >= 0 {
			if at = depth[p]; at == 0 {
				continue
			}
		}
		if at < len(came) && came[at] == g.Token {
			depth[i] = at + 1
			most = max(most, at+1)
		}
	}
	return most
}

// What drafters guess is one tree, in which each goes on behind its own guesses.
func TestMany(t *testing.T) {
	text := []int32{5, 6, 7, 8, 9, 10, 11, 12, 13, 14}
	birds := []*parrot{{text: text, wrong: 4, at: 1, held: 3}, {text: text, wrong: 7, at: 3, held: 4}}
	var makes []func() spec.Costly
	for _, b := range birds {
		makes = append(makes, func() spec.Costly { return b })
	}
	q := Of(makes...)().(spec.Brancher)
	for n := 2; n < 6; n++ {
		var tree []spec.Guess
		for range 4 {
			before := slices.Clone(tree)
			if tree = q.Branch(tree, text[:n], 1); !slices.Equal(tree[:len(before)], before) {
				t.Fatalf("%v became %v", before, tree)
			}
		}
		alone := 0
		for _, b := range birds {
			alone = max(alone, reached(b.Draft(nil, text[:n], 4), text[n:]))
		}
		if got := reached(tree, text[n:]); got != alone || spec.Depth(tree) != 4 {
			t.Errorf("behind %d tokens: %d of them, alone %d: %v", n, got, alone, tree)
		}
	}
	if got := q.Draft(nil, text[:2], 3); len(got) != 3 || q.Cost() != 11 || q.Lag(text) != 3 || q.Bytes() != 7 {
		t.Errorf("%v, cost %v, lag %d, %d bytes", got, q.Cost(), q.Lag(text), q.Bytes())
	}
	if q.Close(); q.Bytes() != 0 {
		t.Errorf("%d bytes afterwards", q.Bytes())
	}
}

func open(t *testing.T, path string) (*model.Model, spec.Speller) {
	t.Helper()
	m, err := model.Open(path, model.Options{KV: tensor.F16, Context: 256})
	if err != nil {
		t.Fatal(err)
	}
	tok := m.Tokenizer()
	return m, spec.Speller{Tokens: tok, Encode: func(dst []int32, text string) []int32 { return tok.Encode(dst, text, tokenizer.EncodeOptions{}) }}
}

// On an answer of Qwen's, the tree of tiny and SmolLM2, both of which have another
// vocabulary, has more of what comes than the chain of either.
func TestManyModels(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	large, theirs := open(t, testdata.Model(t, "qwen"))
	defer large.Close()
	text := theirs.Encode(nil, "Question: Why is the sky blue, and why is it red in the evening?\nAnswer:")
	first := len(text)
	kv := large.Pool().NewSeq()
	for next := text; len(text) < first+32; next = text[len(text)-1:] {
		if err := large.Forward(&model.Step{Runs: []model.Run{{Seq: kv, Tokens: next, Outputs: 1}}}); err != nil {
			t.Fatal(err)
		}
		best := int32(0)
		for id, x := range large.Logits(0) {
			if x > large.Logits(0)[best] {
				best = int32(id)
			}
		}
		text = append(text, best)
	}
	var makes []func() spec.Costly
	for _, path := range []string{testdata.Tiny, testdata.Model(t, "smollm2")} {
		small, mine := open(t, path)
		defer small.Close()
		make1, err := spec.NewForeign(small, mine, theirs, false)
		if err != nil {
			t.Fatal(err)
		}
		makes = append(makes, make1)
	}
	const depth = 4
	sum := func(d spec.Costly) (right int) {
		defer d.Close()
		for i := first; i < len(text); i++ {
			var got []spec.Guess
			if tree, is := d.(spec.Brancher); is {
				for range depth {
					got = tree.Branch(got, text[:i], 1)
				}
			} else {
				got = d.Draft(nil, text[:i], depth)
			}
			right += reached(got[:min(len(got), spec.MaxRows)], text[i:])
		}
		return right
	}
	a, b, both := sum(makes[0]()), sum(makes[1]()), sum(Of(makes...)())
	t.Logf("accepted behind a token: tiny %.2f, SmolLM2 %.2f, both %.2f", float64(a)/32, float64(b)/32, float64(both)/32)
	if both <= max(a, b) {
		t.Errorf("%d right guesses of both, %d and %d of each", both, a, b)
	}
}
