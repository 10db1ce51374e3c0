package tokenizer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
)

// realVocabs makes the tokenizers of all real vocabularies.
func realVocabs(t testing.TB) map[string]*tokenizer.Tokenizer {
	t.Helper()
	out := map[string]*tokenizer.Tokenizer{}
	for _, name := range testdata.Vocabularies(t) {
		out[name] = openGGUF(t, testdata.File(t, "tokenizers/"+name+".gguf"))
	}
	return out
}

// checkStream compares decoding token by token with decoding at once.
func checkStream(t testing.TB, tok *tokenizer.Tokenizer, ids []int32) {
	t.Helper()
	for _, special := range []bool{false, true} {
		want := tok.Decode(ids)
		if special {
			want = tok.DecodeSpecial(ids)
		}
		if !utf8.ValidString(want) {
			t.Fatalf("ids %v: decode to invalid UTF-8 %q", ids, want)
		}
		d := tok.NewDecoder()
		d.Special = special
		for range 2 { // a decoder starts anew after Flush
			var got strings.Builder
			for _, id := range ids {
				s := d.Add(id)
				if !utf8.ValidString(s) {
					t.Fatalf("ids %v: Add(%d) = %q", ids, id, s)
				}
				got.WriteString(s)
			}
			got.WriteString(d.Flush())
			if got.String() != want {
				t.Fatalf("ids %v, special %v:\nstream %q\nat once %q", ids, special, got.String(), want)
			}
		}
	}
}

func TestStream(t *testing.T) {
	toks := map[string]*tokenizer.Tokenizer{}
	for _, name := range fixtureNames(t) {
		toks[name] = fixture(t, name)
	}
	texts := fixtureTexts(t)
	r := rand.New(rand.NewPCG(7, 7))
	for name, tok := range toks {
		t.Run(name, func(t *testing.T) {
			for _, s := range texts {
				ids := tok.Encode(nil, s, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
				checkStream(t, tok, ids)
			}
			for range 300 {
				ids := make([]int32, r.IntN(12))
				for i := range ids {
					ids[i] = int32(r.IntN(tok.VocabSize()+2) - 1)
				}
				checkStream(t, tok, ids)
			}
		})
	}
}

// TestHoldsBack adds the byte tokens of one character one by one.
func TestHoldsBack(t *testing.T) {
	tok := fixture(t, "llama2")
	d := tok.NewDecoder()
	want := []string{"", "", "", "\U0001F600", "\uFFFD", "\uFFFDx"}
	steps := []string{"<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "<0xFF>", "<0xE2>"}
	var got []string
	for _, s := range steps {
		id, ok := tok.ID(s)
		if !ok {
			t.Fatalf("no token %s", s)
		}
		got = append(got, d.Add(id))
	}
	x, _ := tok.ID("x")
	got[5] += d.Add(x)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	id, _ := tok.ID("<0xE2>")
	if s := d.Add(id) + d.Flush(); s != "\uFFFD" {
		t.Errorf("an unfinished character ends as %q", s)
	}
}

// TestRoundTrip decodes what was encoded, for vocabularies that keep all of a
// text.
func TestRoundTrip(t *testing.T) {
	toks := realVocabs(t)
	texts := fixtureTexts(t)
	for _, name := range []string{"gpt-2", "llama-spm", "baichuan", "deepseek-llm"} {
		for _, s := range texts {
			ids := toks[name].Encode(nil, s, tokenizer.EncodeOptions{})
			if got := toks[name].Decode(ids); got != s && name != "llama-spm" && name != "baichuan" {
				t.Errorf("%s: %q came back as %q", name, s, got)
			} else if got != s && strings.ReplaceAll(s, "▁", " ") != got {
				t.Errorf("%s: %q came back as %q", name, s, got)
			}
		}
	}
}

// TestAnyBytes encodes text that is not UTF-8: nothing is lost where the
// vocabulary has all bytes.
func TestAnyBytes(t *testing.T) {
	toks := realVocabs(t)
	r := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
			if r.IntN(3) == 0 {
				b[i] = "a \n'1"[r.IntN(5)]
			}
		}
		s := string(b)
		for name, tok := range toks {
			ids := tok.Encode(nil, s, tokenizer.EncodeOptions{})
			var back []byte
			for _, id := range ids {
				back = append(back, tok.Piece(id)...)
			}
			switch name {
			case "gpt-2":
				if string(back) != s {
					t.Fatalf("%s: %q came back as %q", name, s, back)
				}
			case "llama-spm":
				if got := strings.TrimPrefix(string(back), " "); got != s {
					t.Fatalf("%s: %q came back as %q", name, s, back)
				}
			}
			checkStream(t, tok, ids)
		}
	}
}

// TestNoMarkFromText checks that text gives no mark unless asked to.
func TestNoMarkFromText(t *testing.T) {
	toks := realVocabs(t)
	for _, name := range fixtureNames(t) {
		toks[name] = fixture(t, name)
	}
	for name, tok := range toks {
		unknown := tok.Encode(nil, "\U0010FFFE", tokenizer.EncodeOptions{})
		n := 0
		for id := range int32(tok.VocabSize()) {
			if !tok.IsControl(id) {
				continue
			}
			text := string(tok.Piece(id))
			if slices.Contains(unknown, id) || text == "" || n > 300 {
				continue
			}
			n++
			for _, s := range []string{text, "a" + text + "b", " " + text + " ", text + text} {
				if ids := tok.Encode(nil, s, tokenizer.EncodeOptions{}); slices.Contains(ids, id) {
					t.Errorf("%s: %q gives the mark %d %q", name, s, id, text)
				}
				if tok.Kind() == "wordpiece" || name == "words" {
					continue
				}
				if ids := tok.Encode(nil, s, tokenizer.EncodeOptions{ParseSpecial: true}); !slices.Contains(ids, id) {
					t.Errorf("%s: %q does not give the mark %d %q when asked to", name, s, id, text)
				}
			}
		}
	}
}

func TestSpecialTokens(t *testing.T) {
	for _, c := range []struct {
		name     string
		bos, eos string
		adds     bool
		ends     []string
		not      []string
	}{
		{"tiny", "<|im_start|>", "<|im_end|>", false, []string{"<|im_end|>", "<|endoftext|>"}, []string{"<|im_start|>", " the"}},
		{"smollm2", "<|im_start|>", "<|im_end|>", false, []string{"<|im_end|>", "<|endoftext|>"}, []string{"<|im_start|>", " the"}},
		{"gemma3", "<bos>", "<eos>", true, []string{"<eos>", "<end_of_turn>"}, []string{"<bos>", "<start_of_turn>", "\n", "</s>"}},
		{"qwen", "<|endoftext|>", "<|im_end|>", false, []string{"<|im_end|>", "<|endoftext|>", "<|fim_pad|>"}, []string{"</s>", "<tool_call>", "<|im_start|>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := openGGUF(t, testdata.Model(t, c.name))
			if got := string(tok.Piece(tok.BOS())); got != c.bos {
				t.Errorf("BOS is %q, want %q", got, c.bos)
			}
			if got := string(tok.Piece(tok.EOS())); got != c.eos {
				t.Errorf("EOS is %q, want %q", got, c.eos)
			}
			if tok.AddsBOS() != c.adds {
				t.Errorf("AddsBOS is %v", tok.AddsBOS())
			}
			ids := tok.Encode(nil, "hi", tokenizer.EncodeOptions{AddSpecial: true})
			if (ids[0] == tok.BOS()) != c.adds {
				t.Errorf("AddSpecial gives %v", ids)
			}
			for _, s := range c.ends {
				if id, ok := tok.ID(s); !ok || !tok.IsEOG(id) {
					t.Errorf("%q does not end an answer", s)
				}
			}
			for _, s := range c.not {
				if id, ok := tok.ID(s); ok && tok.IsEOG(id) {
					t.Errorf("%q ends an answer", s)
				}
			}
		})
	}
}

func TestConcurrent(t *testing.T) {
	texts := fixtureTexts(t)
	for _, name := range []string{"llama3", "llama2", "t5", "bert", "roberta", "odd-regex"} {
		tok := fixture(t, name)
		var want []string
		for _, s := range texts {
			want = append(want, digest(tok.Encode(nil, s, tokenizer.EncodeOptions{})))
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				var ids []int32
				for i := range texts {
					i = (i + g*7) % len(texts)
					ids = tok.Encode(ids[:0], texts[i], tokenizer.EncodeOptions{})
					if digest(ids) != want[i] {
						t.Errorf("%s: text %d differs", name, i)
					}
					tok.Decode(ids)
				}
			})
		}
		wg.Wait()
	}
}

// TestAllocations checks that encoding allocates nothing in the long run.
func TestAllocations(t *testing.T) {
	text := mixedChunk(mixedWords(t), 1)
	english := strings.Repeat("It's the quick brown fox, 42 of them; they've jumped! ", 40)
	ids := make([]int32, 0, 1<<16)
	for _, name := range []string{"gpt2-prefix", "llama3", "tekken", "deepseek3", "falcon", "llama2", "llama2-first", "t5", "bert", "clip"} {
		tok := fixture(t, name)
		for _, s := range []string{text, english} {
			run := func() { ids = tok.Encode(ids[:0], s, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}) }
			run()
			composes := s == text && (name == "bert" || name == "clip") // x/text allocates where it changes a text
			if n := testing.AllocsPerRun(20, run); n >= 1 && !composes {
				t.Errorf("%s: %v allocations for a text of %d bytes", name, n, len(s))
			}
		}
	}
}

// TestLongPieces encodes long texts that nothing cuts: time must not grow with
// the square of the length.
func TestLongPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	noise := make([]byte, 1<<18)
	for i := range noise {
		noise[i] = 'a' + byte(r.IntN(26))
	}
	texts := []string{strings.Repeat("a", 1<<18), string(noise), strings.Repeat("中文", 1<<16), strings.Repeat(" ", 1<<18),
		strings.Repeat("\u0301", 1<<15), strings.Repeat("<|im_start|", 1<<14)}
	toks := realVocabs(t)
	for _, name := range fixtureNames(t) {
		toks[name] = fixture(t, name)
	}
	for name, tok := range toks {
		for i, s := range texts {
			testdata.Within(t, 10*time.Second, fmt.Sprintf("%s: text %d", name, i), func() { // usually well below one
				tok.Encode(nil, s, tokenizer.EncodeOptions{ParseSpecial: true})
			})
		}
	}
}
