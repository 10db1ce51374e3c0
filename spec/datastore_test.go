package spec

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// storeOf returns the datastore of texts.
func storeOf(t testing.TB, texts ...[]int32) *Datastore {
	t.Helper()
	var b bytes.Buffer
	if err := BuildDatastore(&b, texts, 7); err != nil {
		t.Fatal(err)
	}
	d, err := ReadDatastore(b.Bytes(), 7)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A datastore guesses what comes most often behind the longest piece that is like the
// end, as a search over all of its texts finds it.
func TestDatastoreEqualsSearch(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 4))
		vocab := []int32{2, 4, 20}[seed%3]
		var texts [][]int32
		for range 1 + r.IntN(4) {
			text := make([]int32, r.IntN(200))
			for i := range text {
				text[i] = r.Int32N(vocab)
			}
			texts = append(texts, text)
		}
		d := storeOf(t, texts...)
		for range 40 {
			end := make([]int32, 2+r.IntN(20))
			for i := range end {
				end[i] = r.Int32N(vocab)
			}
			got := d.Drafter("").Draft(nil, end, 5)
			// Each guess is one of the most frequent behind the piece and the guesses before it.
			piece := longestIn(texts, end)
			if len(piece) < 2 {
				if len(got) > 0 {
					t.Fatalf("seed %d: guesses %v, want none", seed, got)
				}
				continue
			}
			for i, g := range got {
				after := behind(texts, piece)
				most := 0
				for _, n := range after {
					most = max(most, n)
				}
				if after[g.Token] != most {
					t.Fatalf("seed %d: guess %d is %d, which comes %d times, another one %d times", seed, i, g.Token, after[g.Token], most)
				}
				piece = append(piece, g.Token)
			}
			if len(got) < 5 && len(behind(texts, piece)) > 0 {
				t.Fatalf("seed %d: %d guesses, and more could be", seed, len(got))
			}
		}
	}
}

// longestIn returns the longest piece at an end, of 16 tokens at most, that is in some text.
func longestIn(texts [][]int32, end []int32) []int32 {
	for n := min(16, len(end)); n > 0; n-- {
		piece := end[len(end)-n:]
		for _, text := range texts {
			for at := range text {
				if at+n <= len(text) && slices.Equal(text[at:at+n], piece) {
					return slices.Clone(piece)
				}
			}
		}
	}
	return nil
}

// behind counts what comes behind a piece.
func behind(texts [][]int32, piece []int32) map[int32]int {
	out := map[int32]int{}
	for _, text := range texts {
		for at := 0; at+len(piece) < len(text); at++ {
			if slices.Equal(text[at:at+len(piece)], piece) {
				out[text[at+len(piece)]]++
			}
		}
	}
	return out
}

// Files of others are refused.
func TestDatastoreRefused(t *testing.T) {
	var b bytes.Buffer
	if err := BuildDatastore(&b, [][]int32{{1, 2, 3}}, 7); err != nil {
		t.Fatal(err)
	}
	later := slices.Clone(b.Bytes())
	later[8] = 9
	for want, c := range map[string]struct {
		file       []byte
		vocabulary uint64
	}{
		"spec: datastore: expected a file that ridge spec build has written, found another":  {[]byte("GGUF"), 7},
		"spec: datastore: expected version 1, found 9":                                       {later, 7},
		"spec: datastore: expected tokens of the model's vocabulary, found those of another": {b.Bytes(), 8},
		"spec: datastore: expected 4 tokens in 64 bytes, found 60 bytes":                     {b.Bytes()[:60], 7},
	} {
		if _, err := ReadDatastore(c.file, c.vocabulary); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Whatever lies in a file, it is refused, or guesses are made.
func FuzzDatastore(f *testing.F) {
	var b bytes.Buffer
	if err := BuildDatastore(&b, [][]int32{{1, 2, 3, 1, 2, 4}}, 7); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes()[storeHeader:], uint64(7))
	f.Add([]byte{255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 127}, uint64(2))
	f.Fuzz(func(t *testing.T, data []byte, n uint64) {
		file := append(slices.Clone(b.Bytes()[:storeHeader]), data...)
		binary.LittleEndian.PutUint64(file[24:], n)
		d, err := ReadDatastore(file, 7)
		if err != nil {
			return
		}
		if got := d.Drafter("").Draft(nil, []int32{3, 1, 2}, 5); len(got) > 5 {
			t.Errorf("%d guesses", len(got))
		}
	})
}

// Guesses allocate nothing.
func TestDatastoreAllocations(t *testing.T) {
	d := storeOf(t, []int32{1, 2, 3, 4, 5, 1, 2, 3, 9}).Drafter("")
	out := make([]Guess, 0, 8)
	text := []int32{8, 1, 2}
	if n := testing.AllocsPerRun(5, func() { out = d.Draft(out[:0], text, 8) }); n != 0 || len(out) == 0 {
		t.Errorf("%v allocations, %d guesses", n, len(out))
	}
}
