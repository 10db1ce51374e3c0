package run

import (
	"testing"

	"ridge/internal/testdata"
	"ridge/text/constraint"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// Text that follows another is spelled without the space that vocabularies like
// SentencePiece's put before a text.
func TestContinuation(t *testing.T) {
	for _, name := range []string{"gpt-2", "llama-spm", "phi-3", "falcon", "baichuan", "deepseek-llm"} {
		f, err := gguf.Open(testdata.File(t, "tokenizers/"+name+".gguf"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		tok, err := tokenizer.FromGGUF(f)
		if err != nil {
			t.Fatal(err)
		}
		m := &Model{tok: tok}
		for _, text := range []string{`"name": "`, "name", " name", "größe: 12", "日本"} {
			got := ""
			for _, id := range constraint.Continuation(m.tok, text) {
				got += string(tok.Piece(id))
			}
			if got != text {
				t.Errorf("%s: got %q, want %q", name, got, text)
			}
		}
	}
}
