package run

import (
	"testing"

	"ridge/engine"
	"ridge/internal/testdata"
	"ridge/text/chat"
	"ridge/text/constraint"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// vocabulary returns the tokenizer of a family of models.
func vocabulary(t *testing.T, name string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open(testdata.File(t, "tokenizers/"+name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Text that follows another is spelled without the space that vocabularies like
// SentencePiece's put before a text.
func TestContinuation(t *testing.T) {
	for _, name := range []string{"gpt-2", "llama-spm", "phi-3", "falcon", "baichuan", "deepseek-llm"} {
		tok := vocabulary(t, name)
		for _, text := range []string{`"name": "`, "name", " name", "größe: 12", "日本"} {
			got := ""
			for _, id := range constraint.Continuation(tok, text) {
				got += string(tok.Piece(id))
			}
			if got != text {
				t.Errorf("%s: got %q, want %q", name, got, text)
			}
		}
	}
}

// A budget of reasoning does not hide what a format forces: nothing before the
// reasoning is closed, its text after that.
func TestJumpWithBudget(t *testing.T) {
	tok := vocabulary(t, "gpt-2")
	c := constraint.NewCompiler(tok, chat.SyntaxOf("<think></think>"), []int32{tok.EOS()})
	g, err := c.Format(t.Context(), constraint.Choice("yes, certainly"))
	if err != nil {
		t.Fatal(err)
	}
	masks, err := c.After(g, "<think>", false)
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{}
	p.addMasker(func() engine.Masker { return masks() })
	budget := c.Budget(2, "<think>")
	p.addMasker(func() engine.Masker { return budget() })
	m, ok := p.Request.NewMasker().(engine.Jumper)
	if !ok {
		t.Fatal("a format with a budget forces nothing")
	}
	// White space may stand before the text, so its first token is drawn.
	for _, id := range tok.Encode(nil, " one two\n</think>yes", tokenizer.EncodeOptions{}) {
		if ids := m.Jump(nil); len(ids) > 0 {
			t.Errorf("%q is forced too early", tok.DecodeSpecial(ids))
		}
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := tok.DecodeSpecial(m.Jump(nil)), ", certainly"; got != want {
		t.Errorf("forced in the text: got %q, want %q", got, want)
	}
}
