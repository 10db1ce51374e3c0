package lookahead

import (
	"slices"
	"testing"

	"ridge/spec"
)

const vocab = 64

// placed is a model whose next token hangs on the place, and a little on the token before:
// Jacobi's iteration soon has it right. chained is one whose next token hangs on the token
// before alone, as n-grams have it.
func placed(path []int32) int32 {
	next := int32(5 * len(path))
	if path[len(path)-1]%8 == 0 {
		next++
	}
	return next % vocab
}

func chained(path []int32) int32 { return (7*path[len(path)-1] + 5) % vocab }

// answer has a text go on with the drafter's guesses verified, as an engine does.
func answer(t *testing.T, d spec.Drafter, follows func([]int32) int32, text []int32, want []int32, most int) (steps int) {
	row := make([]float32, vocab)
	for len(want) > 0 {
		steps++
		guesses := d.Draft(nil, text, most)
		rows := make([]int, len(guesses)) // of each guess's parent
		paths := [][]int32{text}
		tell := func(row1, parent int, path []int32) {
			clear(row)
			row[follows(path)] = 1
			d.(spec.Observer).Observe(row1, parent, path[len(path)-1], row)
		}
		tell(0, -1, text)
		for i, g := range guesses {
			if rows[i] = spec.Parent(guesses, i) + 1; rows[i] < 0 || len(guesses) > spec.MaxRows || spec.Depth(guesses) > most {
				t.Fatalf("guesses %v", guesses)
			}
			paths = append(paths, append(slices.Clone(paths[rows[i]]), g.Token))
			tell(i+1, rows[i], paths[i+1])
		}
		at := 0
		for len(want) > 0 {
			next := want[0]
			text, want = append(text, next), want[1:]
			to := 0
			for i, g := range guesses {
				if rows[i] == at && g.Token == next {
					to = i + 1
				}
			}
			if at = to; at == 0 {
				break
			}
		}
	}
	return steps
}

// greedyText returns what follows a text.
func greedyText(follows func([]int32) int32, text []int32, n int) (out []int32) {
	for range n {
		out = append(out, follows(append(slices.Clone(text), out...)))
	}
	return out
}

// Jacobi's iteration reaches the greedy tokens of a block in at most as many steps as it has
// tokens, and in fewer where a token hangs on its neighbours alone.
func TestJacobiConverges(t *testing.T) {
	text := []int32{3, 9, 20}
	want := greedyText(placed, text, 40)
	for _, width := range []int{1, 4, 8} {
		d := New(Shape{width, 1})
		if steps := answer(t, d, placed, slices.Clone(text), want, 8); steps > len(want) || width > 1 && steps > len(want)/2 {
			t.Errorf("%d places: %d steps for %d tokens", width, steps, len(want))
		}
		if d.Bytes() != 0 {
			t.Errorf("%d bytes", d.Bytes())
		}
	}
}

// A window and its n-grams give more than a token a step, whatever bounds guesses.
func TestLookahead(t *testing.T) {
	text := []int32{3, 9, 20}
	want := greedyText(chained, text, 150)
	for _, most := range []int{2, 4, 8} {
		d := New(Usual)
		if steps := answer(t, d, chained, slices.Clone(text), want, most); steps > len(want)*3/4 {
			t.Errorf("at most %d places: %d steps for %d tokens", most, steps, len(want))
		}
		if n := d.Bytes(); n == 0 || n > 1<<17 {
			t.Errorf("%d bytes", n)
		}
		d.Close()
	}
}

// Guesses and what is learned from rows allocate nothing.
func TestLookaheadAllocations(t *testing.T) {
	d, out, row := New(Usual), make([]spec.Guess, 0, spec.MaxRows), make([]float32, vocab)
	text := make([]int32, 0, 4096)
	text = append(text, 3, 9, 20)
	step := func() {
		out = d.Draft(out[:0], text, 8)
		for i := range out {
			row[(i+len(text))%vocab]++
			d.(spec.Observer).Observe(i+1, spec.Parent(out, i)+1, out[i].Token, row)
		}
		text = append(text, int32(len(text)%7))
	}
	if n := testing.AllocsPerRun(50, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
