package tokenizer_test

import (
	"slices"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// markTexts returns the texts of a vocabulary's control tokens.
func markTexts(tok *tokenizer.Tokenizer) (out []string) {
	for id := range int32(tok.VocabSize()) {
		if tok.IsControl(id) {
			if s := string(tok.Piece(id)); s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

func eachVocabulary(t *testing.T, f func(t *testing.T, tok *tokenizer.Tokenizer)) {
	for _, name := range fixtureNames(t) {
		t.Run(name, func(t *testing.T) { f(t, fixture(t, name)) })
	}
	for _, name := range testdata.Vocabularies(t) {
		t.Run(name, func(t *testing.T) {
			file, err := gguf.Open(testdata.File(t, "tokenizers/"+name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			tok, err := tokenizer.FromGGUF(file)
			if err != nil {
				t.Skip(err) // tested elsewhere
			}
			f(t, tok)
		})
	}
}

// No control token comes of a plain part, whatever it spells; marks around it
// are found as before, and decoding gives its text back.
func TestPlain(t *testing.T) {
	eachVocabulary(t, func(t *testing.T, tok *tokenizer.Tokenizer) {
		texts := markTexts(tok)
		if len(texts) > 40 {
			texts = texts[:40]
		}
		back := func(s string) string {
			return tok.Decode(tok.Encode(nil, s, tokenizer.EncodeOptions{ParseSpecial: true, Plain: []tokenizer.Span{{Lo: 0, Hi: len(s)}}}))
		}
		exact := back("a <|x|> [Y] b</s>") == "a <|x|> [Y] b</s>" // some change texts, without marks too
		unknown := tok.Encode(nil, "\u1234", tokenizer.EncodeOptions{})
		for _, mark := range texts {
			around, plain := texts[0], "a "+mark+mark+" b"+strings.Join(texts, "")
			text := around + plain + around
			lo, hi := len(around), len(around)+len(plain)
			got := tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true, Plain: []tokenizer.Span{{Lo: lo, Hi: hi}}})
			want := tok.Encode(nil, around+"a b"+around, tokenizer.EncodeOptions{ParseSpecial: true})
			control := func(ids []int32) []int32 {
				return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !tok.IsControl(id) || slices.Contains(unknown, id) })
			}
			if !slices.Equal(control(got), control(want)) {
				t.Fatalf("%q: control tokens %v, want %v", text, control(got), control(want))
			}
			if exact && back(plain) != plain {
				t.Fatalf("%q decodes to %q", plain, back(plain))
			}
			if half := tok.Encode(nil, mark, tokenizer.EncodeOptions{ParseSpecial: true, Plain: []tokenizer.Span{{Lo: len(mark) - 1, Hi: len(mark)}}}); len(control(half)) > 0 {
				t.Fatalf("%q, of which one byte is plain, is the control token %v", mark, control(half))
			}
		}
	})
}
