package spec

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/tokenizer"
	"ridge/weights/tensor"
)

// A cascade's guesses are those of the model alone, in fewer passes where the text repeats
// itself, and those behind them go on with the text.
func TestCascade(t *testing.T) {
	s, ref := openSmall(t, 512), openSmall(t, 512)
	r := rand.New(rand.NewPCG(2, 9))
	d := s.Cascade().(Strider)
	defer d.Close()
	text := make([]int32, 0, 500)
	for range 20 {
		text = append(text, 100+r.Int32N(1000))
	}
	text = append(text, greedy(t, ref, text, 60)...) // what follows it, as n-grams know then
	text = append(text, text[:24]...)
	guesses, trailed := 0, 0
	for round := range 12 {
		n := 2 + r.IntN(6)
		var got []Guess
		for len(got) < n {
			if next := d.Stride(got, text, n-len(got)); len(next) <= len(got) || len(next) > n {
				t.Fatalf("round %d: %d guesses, then %d, want at most %d", round, len(got), len(next), n)
			} else {
				got = next
			}
		}
		want := greedy(t, ref, text, n)
		for i, g := range got {
			if g.Token != want[i] || g.Class < half || g.Class >= 2*half {
				t.Fatalf("round %d: got %v, want %v", round, got, want)
			}
		}
		guesses += n
		more := d.Trail(slices.Clone(got), text, 3)
		if len(more) > n+3 || !slices.Equal(more[:n], got) {
			t.Fatalf("round %d: %v behind %v", round, more, got)
		}
		trailed += len(more) - n
		for _, g := range got[:r.IntN(n+1)] {
			text = append(text, g.Token)
		}
		if round%4 == 3 {
			text = append(text, 100+r.Int32N(1000))
		}
	}
	if s.Passes() >= int64(guesses) || trailed == 0 {
		t.Errorf("%d passes for %d guesses, and %d behind them", s.Passes(), guesses, trailed)
	}
}

// Guesses of a cascade allocate nothing.
func TestCascadeAllocations(t *testing.T) {
	s := openSmall(t, 512)
	d := s.Cascade().(*cascadeSeq)
	defer d.Close()
	text, out := slices.Repeat([]int32{300, 400, 500}, 20), make([]Guess, 0, MaxRows)
	pass := func() { out = d.Trail(d.Stride(out[:0], text, 6), text, 4) }
	pass()
	if n := testing.AllocsPerRun(5, pass); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// cascaded returns how many steps of a model an answer takes, each with four guesses.
func cascaded(t *testing.T, answer []int32, text []int32, d Costly) (steps int) {
	const most = 4
	defer d.Close()
	text = slices.Clone(text)
	for end := len(text) + len(answer); len(text) < end; steps++ {
		left := answer[len(answer)-(end-len(text)):]
		var got []Guess
		for len(got) < min(most, len(left)) {
			known := len(got)
			if s, is := d.(Strider); is {
				got = s.Stride(got, text, most-known)
			} else {
				got = d.Draft(got, text, 1)
			}
			if len(got) == known {
				t.Fatal("no guess")
			}
		}
		right := 0
		for right < min(len(got), len(left)-1) && got[right].Token == left[right] {
			right++
		}
		text = append(text, left[:right+1]...)
	}
	return steps
}

// On answers of SmolLM2, a cascade of n-grams, tiny and SmolLM2 has the same text in fewer
// passes of tiny than tiny and SmolLM2 alone.
func TestCascadeSavesPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: short")
	}
	large, err := model.Open(testdata.Model(t, "smollm2"), model.Options{KV: tensor.F16, Context: 512})
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	const n = 40
	var passes [2]int64
	var steps [2]int
	for _, p := range []string{
		"Translate into upper case: the mill stood at the river, and the river turned the mill.", "Why is the sky blue?",
	} {
		text := large.Tokenizer().Encode(nil, "<|im_start|>user\n"+p+"<|im_end|>\n<|im_start|>assistant\n", tokenizer.EncodeOptions{ParseSpecial: true})
		answer := greedy(t, &Small{m: large}, text, n)
		two, three := openSmall(t, 512), openSmall(t, 512)
		steps[0] += cascaded(t, answer, text, two.Drafter())
		steps[1] += cascaded(t, answer, text, three.Cascade())
		passes[0], passes[1] = passes[0]+two.Passes(), passes[1]+three.Passes()
	}
	t.Logf("%d tokens: two levels %d steps, %d passes; a cascade %d steps, %d passes", 2*n, steps[0], passes[0], steps[1], passes[1])
	if passes[1] >= passes[0] || steps[1] != steps[0] {
		t.Errorf("two levels: %d steps, %d passes; a cascade %d and %d", steps[0], passes[0], steps[1], passes[1])
	}
}
