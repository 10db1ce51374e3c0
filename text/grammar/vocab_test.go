package grammar_test

import (
	"testing"

	"ridge/text/grammar"
	"ridge/text/grammar/internal/grammartest"
)

func TestVocabularyTrie(t *testing.T) {
	v := grammartest.Small()
	tokens, err := v.Trie()
	if err != nil {
		t.Fatal(err)
	}
	for id := range int32(v.Size()) {
		path, seen := tokens[id]
		if want := len(v.Bytes(id)) > 0; seen != want {
			t.Errorf("token %d %q: in the trie %v, want %v", id, grammartest.Pieces[id], seen, want)
		}
		if path != string(v.Bytes(id)) {
			t.Errorf("token %d: %q at %q", id, v.Bytes(id), path)
		}
	}
	if v.IsEnd(grammartest.EOS) != true || len(v.Bytes(grammartest.EOS)) != 0 {
		t.Error("the end token is part of texts")
	}
}

func TestVocabularyOfNothing(t *testing.T) {
	v := grammar.NewVocabulary(nil, 0, nil, nil)
	g, err := grammar.Regex(v, "a")
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
