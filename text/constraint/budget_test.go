package constraint

import (
	"math"
	"testing"

	"ridge/internal/testdata"
	"ridge/text/chat"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// follow draws text where the masker leaves a choice, and what it forces where
// not, for at most n tokens.
func follow(t *testing.T, tok *tokenizer.Tokenizer, m Masker, text string, n int) string {
	t.Helper()
	want := tok.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true})
	var ids []int32
	logits := make([]float32, tok.VocabSize())
	for range n {
		clear(logits)
		m.Mask(logits)
		id, allowed := int32(-1), 0
		for i, l := range logits {
			if !math.IsInf(float64(l), -1) {
				id = int32(i)
				allowed++
			}
		}
		if allowed > 1 {
			if len(want) == 0 {
				break
			}
			id, want = want[0], want[1:]
		}
		ids = append(ids, id)
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
	}
	return tok.DecodeSpecial(ids)
}

// Reasoning is closed after as many tokens as it may have, whether the prompt
// began it or the answer; without reasoning nothing is forced.
func TestBudget(t *testing.T) {
	f, err := gguf.Open(testdata.File(t, "tokenizers/gpt-2.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	think, harmony := chat.SyntaxOf("<think></think>"), chat.SyntaxOf("<|channel|><|message|>")
	for _, c := range []struct {
		name, prompt, text, want string
		syntax                   chat.Syntax
		budget                   int
	}{
		{"begun by the prompt", "<think>\n", " one two three four five", " one two three\n</think> four five", think, 3},
		{"none", "<think>", " one two", "\n</think> one two", think, 0},
		{"begun by the answer", "user", "<think> one two three", "<think> one two\n</think> three", think, 2},
		{"begun by the answer, none", "user", "<think> one", "<think>\n</think> one", think, 0},
		{"shorter than it may be", "<think>", " one</think> two three four", " one</think> two three four", think, 5},
		{"no reasoning", "user", " one <think> two three", " one <think> two three", think, 1},
		{"harmony, begun by the prompt", "<|channel|>analysis<|message|>", " one two three", " one two<|end|><|start|>assistant<|channel|>final<|message|> three", harmony, 2},
		{"harmony", "<|start|>assistant", "<|channel|>analysis<|message|> one two three", "<|channel|>analysis<|message|> one two<|end|><|start|>assistant<|channel|>final<|message|> three", harmony, 2},
	} {
		masker := Budget(c.budget, tok, c.syntax, c.prompt)
		if got := follow(t, tok, masker(), c.text, 200); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if Budget(3, tok, chat.SyntaxOf(""), "") != nil {
		t.Error("a budget for a model without reasoning")
	}
}

// A tool without parameters takes none.
func TestToolWithoutParameters(t *testing.T) {
	c, tok := compiler(t, chat.Generic())
	for _, params := range []string{"", `{"type": "object", "properties": {}}`} {
		g, err := c.Calls(t.Context(), []chat.Tool{{Name: "now", Parameters: []byte(params)}}, false, Format{})
		if err != nil {
			t.Fatal(err)
		}
		for args, want := range map[string]bool{`{}`: true, `{"a": 1}`: false} {
			f := chat.Generic().Call
			text := f.Begin + `{"name": "now", "arguments": ` + args + `}` + f.End
			if got := takes(t, g.NewState(), tok, text); got != want {
				t.Errorf("parameters %q, %s: taken %v, want %v", params, text, got, want)
			}
		}
	}
}
