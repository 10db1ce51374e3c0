package engine

import (
	"math/rand/v2"
	"testing"

	"ridge/spec"
)

// forester is a prophet that hides what it knows in a tree of other guesses.
type forester struct{ prophet }

func (f *forester) Draft(dst []spec.Guess, tokens []int32, n int) []spec.Guess {
	right, at := f.prophet.Draft(nil, tokens, n), -1
	first := len(dst)
	add := func(token int32, parent int) {
		dst = append(dst, spec.Guess{Token: token, Class: uint8(f.r.IntN(spec.Classes)), Up: uint8(len(dst) - first - 1 - parent)})
	}
	for i := range 1 + len(right) {
		for range f.r.IntN(4) {
			add(f.r.Int32N(100), f.r.IntN(len(dst)-first+1)-1)
		}
		if i < len(right) {
			add(right[i].Token, at)
			at = len(dst) - first - 1
		}
	}
	return dst
}

// Branch adds what it knows of one place more, and other guesses.
func (f *forester) Branch(dst []spec.Guess, tokens []int32, width int) []spec.Guess {
	depth, at, known := spec.Depth(dst), -1, len(dst)
	right := f.prophet.Draft(nil, tokens, depth+1)
	for i := 0; i < min(depth, len(right)) && at >= -1; i++ {
		parent := at
		at = -2
		for k := range known {
			if spec.Parent(dst, k) == parent && dst[k].Token == right[i].Token {
				at = k
			}
		}
	}
	if at >= -1 && len(right) == depth+1 {
		dst = append(dst, spec.Guess{Token: right[depth].Token, Up: uint8(len(dst) - 1 - at)})
	}
	for range width - 1 {
		dst = append(dst, spec.Guess{Token: f.r.Int32N(100), Up: uint8(len(dst) - known)})
	}
	return dst
}

// foresters returns how to make drafters that know what requests should get, and guess
// much beside it.
func foresters(reqs []Request, want []reply, errs int) func() spec.Costly {
	next := costly(reqs, want, errs)
	return func() spec.Costly { return &forester{*next().(*prophet)} }
}

// settled returns the figures after so many tokens: on a busy machine those of a moment
// before may come first.
func settled(t *testing.T, e *Engine, tokens int64) (st Stats) {
	t.Helper()
	until(t, "figures of all tokens", func() bool { st = e.Stats(); return st.Tokens >= tokens })
	return st
}

// Trees save steps as chains do: what a tree has the right path of is not computed
// again, wherever the path lies in it.
func TestTreesSaveSteps(t *testing.T) {
	ref := openTiny(t, "llama", 64)
	q := long(60)
	q.N = 1
	want := []reply{{choices: []answer{alone(t, ref, q)}}}
	make1 := foresters([]Request{q}, want, 1<<30)
	for name, d := range map[string]spec.Drafting{
		"a tree":      {New: func(int) spec.Drafter { return make1() }, Most: 4},
		"slow":        {New: func(int) spec.Drafter { return spec.NewNGram(0) }, Slow: make1, Most: 4, Width: 3},
		"two at once": {New: func(int) spec.Drafter { return make1() }, Slow: make1, Most: 4, Width: 2},
	} {
		d.Always = true
		e := start(t, openTiny(t, "llama", 64), Options{Draft: &d, NoPrefixCache: true})
		play(t, e, []Request{q}, want, rand.New(rand.NewPCG(1, 1)), 0)
		// Five tokens a step, but where a tree has no room for all of its guesses.
		if st := settled(t, e, 60); st.Steps > 20 || st.Right < 40 || st.Guessed < 2*st.Right {
			t.Errorf("%s: %d steps, %d of %d guesses right", name, st.Steps, st.Right, st.Guessed)
		}
	}
}

// Guesses of two drafters that err apart make one tree, which has more of the text than
// either.
func TestMergedDraftersSaveSteps(t *testing.T) {
	ref := openTiny(t, "llama", 64)
	q := long(60)
	q.N = 1
	want := []reply{{choices: []answer{alone(t, ref, q)}}}
	steps := func(d spec.Drafting) int64 {
		d.Most, d.Always = 4, true
		e := start(t, openTiny(t, "llama", 64), Options{Draft: &d, NoPrefixCache: true})
		play(t, e, []Request{q}, want, rand.New(rand.NewPCG(1, 1)), 0)
		return settled(t, e, 60).Steps
	}
	makes := costly([]Request{q}, want, 3)
	one := func(int) spec.Drafter { return makes() }
	two := func(string) spec.Drafter { return makes() }
	first, second := steps(spec.Drafting{New: one}), steps(spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Texts: two})
	both := steps(spec.Drafting{New: one, Texts: two})
	if third := steps(spec.Drafting{New: one, Texts: two, Slow: makes}); both >= min(first, second) || third >= both {
		t.Errorf("%d and %d steps with one drafter, %d with two, %d with three", first, second, both, third)
	}
}

// What a grammar forces is guessed, without a word of the request: the answer is that
// of drawing token by token, with its log-probabilities, in fewer steps.
func TestForcedTextIsGuessed(t *testing.T) {
	ref := openTiny(t, "llama", 64)
	r := rand.New(rand.NewPCG(6, 2))
	reqs, want := riddles(t, ref, r, 16, 40, 40)
	for i := range reqs {
		q := &reqs[i]
		q.JumpAhead = false
		want[i].choices = nil
		for c := range q.N {
			one := *q
			one.Sampling.Seed = ChoiceSeed(q.Sampling.Seed, c)
			a, _ := jumpAlone(t, ref, one)
			want[i].choices = append(want[i].choices, a)
		}
	}
	d := &spec.Drafting{New: func(int) spec.Drafter { return spec.NewNGram(0) }, Always: true}
	right := guessing(t, "llama", setting{pages: 64}, d, reqs, want, r)
	if right < 100 {
		t.Errorf("%d guesses were right", right)
	}
}
