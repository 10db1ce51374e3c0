// Package grammartest has what the tests of grammars and of schemas share:
// vocabularies, and random walks over masks.
package grammartest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"ridge/internal/cpu"
	"ridge/internal/testdata"
	"ridge/text/grammar"
	"ridge/weights/gguf"
)

// Pieces are the tokens of Small: all bytes, some words that JSON is full of, and
// a token of each kind that causes trouble.
var Pieces = func() [][]byte {
	var p [][]byte
	for b := range 256 {
		p = append(p, []byte{byte(b)})
	}
	for _, s := range []string{
		"<eos>", "<special>", "", `{"`, `":`, `": "`, `",`, `", "`, `"}`, `"]`, `},`, `}]`, `}}`, "true", "false", "null", "\n  ", "\n", "  ",
		`name`, `na`, `me":`, `age`, `12`, `123`, `0.`, `.5`, `e5`, `é`, "\xc3", `日本`, "\xe6\x97", `\u`, `\n`, `\"`, `00`, `a`, `ab`, `abc`, `aaaa`,
		`[1,`, `[[`, `]]`, `{}`, `[]`, `{"name":"`, `"},{"`, ` `, ` a`, `-`, `--`, `2024-`, `T`, `:`, `T12:`, `</`, `</think>`, `think`, `>`, ">\n{", ">x", `nk>`,
	} {
		p = append(p, []byte(s))
	}
	return p
}()

// EOS is the token of Small that ends a text; the next one is special.
const EOS = 256

// Small returns a vocabulary of some three hundred tokens.
func Small() *grammar.Vocabulary {
	return grammar.NewVocabulary(func(id int32) []byte { return Pieces[id] }, len(Pieces), []int32{EOS},
		func(id int32) bool { return id == EOS+1 })
}

var realVocabularies sync.Map

// Real returns the vocabulary tokenizers/NAME.gguf of internal/testdata.
func Real(t testing.TB, name string) *grammar.Vocabulary {
	t.Helper()
	if v, ok := realVocabularies.Load(name); ok {
		return v.(*grammar.Vocabulary)
	}
	v := VocabularyOf(t, testdata.File(t, "tokenizers/"+name+".gguf"))
	realVocabularies.Store(name, v)
	return v
}

// VocabularyOf reads the tokens of a GGUF file. The bytes of the pieces are
// worked out here, not by the tokenizer package: byte-level BPE spells bytes as
// printable characters, the other kinds write spaces as U+2581 and single bytes
// as <0xHH>.
func VocabularyOf(t testing.TB, path string) *grammar.Vocabulary {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	get := func(key string) any { v, _ := f.Lookup("tokenizer.ggml." + key); return v }
	tokens, _ := get("tokens").([]string)
	kinds, _ := get("token_type").([]int32)
	if len(tokens) == 0 {
		t.Fatalf("%s: no tokens", path)
	}
	byteOf := map[rune]byte{}
	next := rune(256)
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			byteOf[rune(b)] = byte(b)
		} else {
			byteOf[next] = byte(b)
			next++
		}
	}
	bpe := get("model") == "gpt2"
	piece := func(id int32) []byte {
		s := tokens[id]
		if bpe {
			var out []byte
			for _, r := range s {
				if b, ok := byteOf[r]; ok {
					out = append(out, b)
				} else {
					out = append(out, string(r)...)
				}
			}
			return out
		}
		if len(s) == 6 && strings.HasPrefix(s, "<0x") {
			var b byte
			for _, c := range s[3:5] {
				b = b<<4 | byte(strings.IndexRune("0123456789ABCDEF", c))
			}
			return []byte{b}
		}
		return []byte(strings.ReplaceAll(s, "\u2581", " "))
	}
	var ends []int32
	if eos, ok := get("eos_token_id").(uint32); ok {
		ends = append(ends, int32(eos))
	} else {
		ends = append(ends, int32(len(tokens)-1))
	}
	special := func(id int32) bool { return int(id) < len(kinds) && (kinds[id] == 3 || kinds[id] == 2) }
	return grammar.NewVocabulary(piece, len(tokens), ends, special)
}

// Accepts reports whether the whole of text conforms, and if not why.
func Accepts(g *grammar.Grammar, text string) error {
	s := g.NewState()
	if err := s.AcceptBytes([]byte(text)); err != nil {
		return err
	}
	if !s.Complete() {
		return errIncomplete
	}
	return nil
}

var errIncomplete = &grammar.Error{Why: "incomplete"}

// Generate walks at random over masks: tokens that the mask allows until soft of
// them are written, then the shortest way to the end, in single bytes.
func Generate(t testing.TB, g *grammar.Grammar, rng *rand.Rand, soft int) string {
	t.Helper()
	v := g.Vocabulary()
	s := g.NewState()
	var out []byte
	for n := 0; n < soft; n++ {
		mask := s.MaskBits()
		if err := s.Err(); err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		id := Pick(mask, rng)
		if id < 0 {
			t.Fatalf("after %q: nothing allowed", out)
		}
		if v.IsEnd(id) != (len(v.Bytes(id)) == 0) || v.IsEnd(id) && !s.Complete() {
			t.Fatalf("after %q: token %d allowed", out, id)
		}
		if err := s.Accept(id); err != nil {
			t.Fatalf("after %q: token %d %q allowed and not accepted: %v", out, id, v.Bytes(id), err)
		}
		if v.IsEnd(id) {
			return string(out)
		}
		out = append(out, v.Bytes(id)...)
	}
	rest := s.Shortest(1 << 16)
	if err := s.AcceptBytes(rest); err != nil {
		t.Fatalf("after %q: shortest end %q: %v", out, rest, err)
	}
	if !s.Complete() {
		t.Fatalf("after %q: not complete after %q", out, rest)
	}
	return string(append(out, rest...))
}

// Pick returns a random token of a mask, -1 if it is empty.
func Pick(mask []uint64, rng *rand.Rand) int32 {
	for range 64 { // dense masks
		id := rng.IntN(len(mask) * 64)
		if mask[id>>6]>>(id&63)&1 != 0 {
			return int32(id)
		}
	}
	var all []int32
	for id := range len(mask) * 64 {
		if mask[id>>6]>>(id&63)&1 != 0 {
			all = append(all, int32(id))
		}
	}
	if len(all) == 0 {
		return -1
	}
	return all[rng.IntN(len(all))]
}

// Walk generates a little and checks what it generates; it is what all fuzz
// targets do with what they could compile. Two failures are part of the
// contract: a limit of a running grammar, and nothing else.
func Walk(t *testing.T, g *grammar.Grammar, seed uint64) (string, bool) {
	t.Helper()
	v := g.Vocabulary()
	rng := rand.New(rand.NewPCG(seed, 1))
	s := g.NewState()
	var out []byte
	for range 12 {
		mask := s.MaskBits()
		if err := s.Err(); err != nil {
			if errors.Is(err, grammar.ErrTooAmbiguous) {
				return "", false
			}
			t.Fatalf("after %q: %v", out, err)
		}
		id := Pick(mask, rng)
		if id < 0 {
			t.Fatalf("after %q: nothing allowed", out)
		}
		if err := s.Accept(id); err != nil {
			if errors.Is(err, grammar.ErrTooAmbiguous) {
				return "", false
			}
			t.Fatalf("after %q: token %d allowed and not accepted: %v", out, id, err)
		}
		if v.IsEnd(id) {
			return string(out), true
		}
		out = append(out, v.Bytes(id)...)
		s.Forced()
	}
	if s.Complete() {
		return string(out), true
	}
	rest := s.Shortest(1 << 12)
	if rest == nil || s.AcceptBytes(rest) != nil {
		return "", false
	}
	return string(append(out, rest...)), true
}

// InTime fails if compiling or generating took more processor time than a slow
// machine excuses. What else runs on the machine does not count.
func InTime(t *testing.T, start time.Duration, source string) {
	if d := cpu.Time() - start; d > 10*time.Second {
		t.Fatalf("%v for %.200q", d, source)
	}
}
