package grammar

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ridge/internal/testdata"
	"ridge/weights/gguf"
)

// A vocabulary of every printable byte, some words that JSON is full of, a
// token of each kind that causes trouble, and all bytes.
var smallPieces = func() [][]byte {
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

const smallEOS = 256

func smallVocabulary() *Vocabulary {
	return NewVocabulary(func(id int32) []byte { return smallPieces[id] }, len(smallPieces), []int32{smallEOS},
		func(id int32) bool { return id == smallEOS+1 })
}

var realVocabularies sync.Map

// realVocabulary returns the vocabulary of a file of ../shared/data/tokenizers.
func realVocabulary(t testing.TB, name string) *Vocabulary {
	t.Helper()
	path := filepath.Join(testdata.Dir(t), "tokenizers", name+".gguf")
	if v, ok := realVocabularies.Load(path); ok {
		return v.(*Vocabulary)
	}
	v := vocabularyOf(t, path)
	realVocabularies.Store(path, v)
	return v
}

// vocabularyOf reads the tokens of a GGUF file. The bytes of the pieces are
// worked out here, not by the tokenizer package: byte-level BPE spells bytes as
// printable characters, the other kinds write spaces as U+2581 and single bytes
// as <0xHH>.
func vocabularyOf(t testing.TB, path string) *Vocabulary {
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
	return NewVocabulary(piece, len(tokens), ends, special)
}

func TestVocabularyTrie(t *testing.T) {
	v := smallVocabulary()
	seen := map[int32]bool{}
	var path []byte
	for i := range v.nodes {
		n := &v.nodes[i]
		if i == 0 {
			continue
		}
		path = append(path[:n.depth-1], n.b)
		if int(n.size) < 1 || i+int(n.size) > len(v.nodes) {
			t.Fatalf("node %d: size %d", i, n.size)
		}
		for id := n.token; id >= 0; {
			if !bytes.Equal(v.Bytes(id), path) || seen[id] {
				t.Fatalf("token %d: %q at %q, seen %v", id, v.Bytes(id), path, seen[id])
			}
			seen[id] = true
			if v.same == nil {
				break
			}
			id = v.same[id]
		}
	}
	for id := range int32(v.n) {
		if want := len(v.Bytes(id)) > 0; seen[id] != want {
			t.Errorf("token %d %q: in the trie %v, want %v", id, smallPieces[id], seen[id], want)
		}
	}
	if v.IsEnd(smallEOS) != true || len(v.Bytes(smallEOS)) != 0 {
		t.Error("the end token is part of texts")
	}
}

func TestVocabularyOfNothing(t *testing.T) {
	v := NewVocabulary(nil, 0, nil, nil)
	g, err := Regex(v, "a")
	if err != nil {
		t.Fatal(err)
	}
	s := g.NewState()
	if s.MaskBits(); s.Err() == nil {
		t.Error("a vocabulary without tokens leads on")
	}
	if err := s.Accept(0); err == nil {
		t.Error("token 0 of none accepted")
	}
}

// accepts reports whether the whole of text conforms, and if not why.
func accepts(g *Grammar, text string) error {
	s := g.NewState()
	if err := s.AcceptBytes([]byte(text)); err != nil {
		return err
	}
	if !s.Complete() {
		return errIncomplete
	}
	return nil
}

var errIncomplete = &Error{Why: "incomplete"}

// generate walks at random over masks: tokens that the mask allows until soft of
// them are written, then the shortest way to the end, in single bytes.
func generate(t testing.TB, g *Grammar, rng *rand.Rand, soft int) string {
	t.Helper()
	v := g.m.v
	s := g.NewState()
	var out []byte
	for n := 0; n < soft; n++ {
		mask := s.MaskBits()
		if err := s.Err(); err != nil {
			t.Fatalf("after %q: %v", out, err)
		}
		id := pick(mask, rng)
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

// pick returns a random token of a mask, -1 if it is empty.
func pick(mask []uint64, rng *rand.Rand) int32 {
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
