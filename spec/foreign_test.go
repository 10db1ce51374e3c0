package spec

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

// letters spells with a token for each byte, and one for each pair of bytes of some: the
// ids are none of tiny's.
type letters struct{ pairs []string }

func (l letters) VocabSize() int { return 257 + len(l.pairs) }
func (l letters) AppendPiece(dst []byte, id int32) []byte {
	switch {
	case id == 256:
		return append(dst, "<|im_end|>"...)
	case id > 256:
		return append(dst, l.pairs[id-257]...)
	}
	return append(dst, byte(255-id))
}
func (l letters) IsControl(id int32) bool { return id == 256 }
func (l letters) IsEOG(id int32) bool     { return id == 256 }
func (l letters) Ends() []int32           { return []int32{256} }
func (l letters) ID(text string) (int32, bool) {
	return 256, text == "<|im_end|>"
}

func (l letters) encode(dst []int32, text string) []int32 {
	for i := 0; i < len(text); i++ {
		id := int32(255 - text[i])
		for k, p := range l.pairs {
			if strings.HasPrefix(text[i:], p) {
				id = int32(257 + k)
			}
		}
		if dst = append(dst, id); id > 256 {
			i++
		}
	}
	return dst
}

func (l letters) decode(ids []int32) string {
	var out []byte
	for _, id := range ids {
		out = l.AppendPiece(out, id)
	}
	return string(out)
}

func openForeign(t testing.TB, theirs letters, byTokens bool) (*foreign, *tokenizer.Tokenizer) {
	t.Helper()
	s := openSmall(t, 512)
	tok := s.m.Tokenizer()
	mine := Speller{tok, func(dst []int32, text string) []int32 { return tok.Encode(dst, text, tokenizer.EncodeOptions{}) }}
	f, err := newForeign(s.m, mine, Speller{theirs, theirs.encode}, byTokens)
	if err != nil {
		t.Fatal(err)
	}
	return f, tok
}

// By strings, guesses spell what the model goes on with in its own tokens, whatever came
// of those before.
func TestForeign(t *testing.T) {
	theirs := letters{pairs: []string{"th", "e ", ". ", "an"}}
	f, tok := openForeign(t, theirs, false)
	ref := openSmall(t, 512)
	r := rand.New(rand.NewPCG(5, 5))
	d := f.drafter().(Strider)
	text := theirs.encode(nil, "Question: What is the capital of France?")
	text = append(append(text, 256), theirs.encode(nil, "\nAnswer: The capital")...)
	same := 0
	for round := range 12 {
		n := 2 + r.IntN(12)
		var got []Guess
		for len(got) < n {
			next := d.Stride(got, text, n-len(got))
			if len(next) > n {
				t.Fatalf("round %d: %d guesses, want at most %d", round, len(next), n)
			}
			if len(next) <= len(got) {
				break
			}
			got = next
		}
		if len(got) == 0 {
			t.Fatalf("round %d: no guesses", round)
		}
		var ids []int32
		for _, g := range got {
			if ids = append(ids, g.Token); g.Class < half || g.Class >= 2*half {
				t.Fatalf("round %d: %v", round, g)
			}
		}
		own := tok.Encode(nil, theirs.decode(text), tokenizer.EncodeOptions{ParseSpecial: true})
		want := tok.Decode(greedy(t, ref, own, 12))
		if strings.HasPrefix(want, theirs.decode(ids)) {
			same++
		}
		text = append(text, ids[:r.IntN(len(ids)+1)]...)
		if round%3 == 2 {
			text = append(text, theirs.encode(nil, ". It is the")...)
		}
	}
	if same < 9 { // the seam is not always where a tokenizer cuts
		t.Errorf("%d of 12 rounds spell what the model goes on with", same)
	}
	if d.Bytes() == 0 || d.Cost() <= 0 {
		t.Errorf("%d bytes, %v a guess", d.Bytes(), d.Cost())
	}
	d.Close()
	if f.s.m.Pool().Stats().InUse != 0 {
		t.Error("pages are held")
	}
}

// By tokens, guesses are the likeliest of the tokens that both have.
func TestForeignTokens(t *testing.T) {
	theirs := letters{pairs: []string{"th", "an", " a", " t"}}
	f, tok := openForeign(t, theirs, true)
	ref := openSmall(t, 512)
	d := f.drafter()
	defer d.Close()
	text := theirs.encode(nil, "Once upon a time")
	var own []int32
	for _, id := range text {
		own = tok.Encode(own, theirs.decode([]int32{id}), tokenizer.EncodeOptions{})
	}
	got := d.Draft(nil, text, 4)
	if len(got) < 2 { // the end may be likeliest
		t.Fatalf("%d guesses", len(got))
	}
	for _, g := range got {
		greedy(t, ref, own, 1)
		row, best := ref.m.Logits(0), int32(-1)
		for id := range theirs.VocabSize() {
			piece := string(theirs.AppendPiece(nil, int32(id)))
			if at, ok := tok.ID(piece); ok && (best < 0 || row[at] > row[best]) {
				best = at
			}
		}
		if want := string(tok.Piece(best)); want != theirs.decode([]int32{g.Token}) {
			t.Fatalf("got %q, want %q", theirs.decode([]int32{g.Token}), want)
		}
		own = append(own, best)
	}
	if n := len(f.same) - len(f.outside); n < 200 {
		t.Errorf("%d tokens that both have", n)
	}
}

// What spells nothing, spells otherwise than it reads, or has marks that nobody knows,
// gives few guesses and no fault.
func FuzzForeign(f *testing.F) {
	theirs := letters{pairs: []string{"th", "\xff\xfe", "  "}}
	strings, _ := openForeign(f, theirs, false)
	tokens, _ := openForeign(f, theirs, true)
	f.Add([]byte("The quick brown\xff\xfe fox"), byte(3))
	f.Add([]byte{0, 0, 0, 200, 255, 10, 32, 32}, byte(9))
	f.Fuzz(func(t *testing.T, data []byte, n byte) {
		text := make([]int32, 0, len(data)+1)
		for _, b := range data[:min(len(data), 200)] {
			text = append(text, int32(b)+int32(b)%5)
		}
		text = append(text, 256)
		for _, by := range []*foreign{strings, tokens} {
			d := by.drafter()
			var got []Guess
			for cut := min(1, len(text)); cut <= len(text); cut += 1 + len(text)/2 {
				got = d.Draft(got[:0], text[:cut], int(n%12))
				if len(got) > int(n%12) {
					t.Fatalf("%d guesses", len(got))
				}
				for _, g := range got {
					if g.Token < 0 || int(g.Token) >= theirs.VocabSize() {
						t.Fatalf("token %d", g.Token)
					}
				}
			}
			d.Close()
		}
	})
}

// Two vocabularies without a token in common have no guesses by tokens.
func TestForeignRefused(t *testing.T) {
	s := openSmall(t, 64)
	tok := s.m.Tokenizer()
	none := Speller{letters{}, func(dst []int32, text string) []int32 { return dst }}
	none.Tokens = nothing{}
	_, err := NewForeign(s.m, Speller{tok, none.Encode}, none, true)
	if want := "spec: model that drafts: expected tokens that both vocabularies have, found none"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// nothing has tokens of texts that nobody writes.
type nothing struct{ letters }

func (nothing) AppendPiece(dst []byte, id int32) []byte {
	return append(dst, slices.Repeat([]byte{0xfe}, int(id)+2)...)
}
func (nothing) Ends() []int32                { return nil }
func (nothing) IsControl(id int32) bool      { return false }
func (nothing) ID(text string) (int32, bool) { return 0, false }
