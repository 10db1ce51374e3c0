package chat_test

import (
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/model"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// feed gives text to an answer, token by token, and returns its text and how
// many tokens it took before it ended.
func feed(t *tokenizer.Tokenizer, text string, o chat.AnswerOptions) (out, reasoning string, calls []string, tokens int) {
	a := chat.NewAnswer(t, o)
	defer a.Close()
	add := func(parts []chat.Part) {
		for _, p := range parts {
			switch p.Kind {
			case chat.PartText:
				out += p.Text
			case chat.PartReasoning:
				reasoning += p.Text
			case chat.PartCall:
				calls = append(calls, p.Name)
			}
		}
	}
	for _, id := range t.Encode(nil, text, tokenizer.EncodeOptions{ParseSpecial: true}) {
		parts, ended := a.Add(id)
		add(parts)
		if tokens++; ended {
			return out, reasoning, calls, tokens
		}
	}
	add(a.End())
	return out, reasoning, calls, tokens
}

func TestAnswer(t *testing.T) {
	m, err := model.Open(testdata.Tiny, model.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tok, generic := m.Tokenizer(), chat.Generic()
	thinks := generic.WithReasoning("think")
	tools := &chat.ParseOptions{}
	raw, err := chat.Tool{Name: "f"}.Raw()
	if err != nil {
		t.Fatal(err)
	}
	tools.Tools = append(tools.Tools, raw)
	const call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
	for name, c := range map[string]struct {
		text string
		o    chat.AnswerOptions
		want string
		more string // reasoning and calls
	}{
		"plain":            {"A dog, a café ☕ and 日本.", chat.AnswerOptions{}, "A dog, a café ☕ and 日本.", ""},
		"stop":             {"one two three four", chat.AnswerOptions{Stops: []string{" three"}}, "one two", ""},
		"stop stays":       {"one two three four", chat.AnswerOptions{Stops: []string{"thr"}, IncludeStop: true}, "one two thr", ""},
		"stop too early":   {"one two one two", chat.AnswerOptions{Stops: []string{"one"}, MinTokens: 2}, "one two ", ""},
		"begins a stop":    {"one two th", chat.AnswerOptions{Stops: []string{"three"}}, "one two th", ""},
		"control":          {"a<|im_end|>b", chat.AnswerOptions{}, "ab", ""},
		"control shown":    {"a<|im_end|>b", chat.AnswerOptions{Special: true}, "a<|im_end|>b", ""},
		"reasoning":        {"<think>\nhm\n</think>\n\nYes.", chat.AnswerOptions{Syntax: thinks, Parse: &chat.ParseOptions{}}, "Yes.", "hm|"},
		"reasoning kept":   {"<think>hm</think> Yes.", chat.AnswerOptions{Syntax: thinks, Parse: &chat.ParseOptions{KeepReasoning: true}}, "<think>hm</think> Yes.", ""},
		"no such thinking": {"<think>hm</think> Yes.", chat.AnswerOptions{Syntax: thinks.WithReasoning("none"), Parse: &chat.ParseOptions{}}, "<think>hm</think> Yes.", ""},
		"calls":            {call + call, chat.AnswerOptions{Syntax: generic, Parse: tools}, "", "|ff"},
		"one call":         {call + call + "x", chat.AnswerOptions{Syntax: generic, Parse: tools, OneCall: true}, "", "|f"},
	} {
		text, reasoning, calls, _ := feed(tok, c.text, c.o)
		if more := strings.TrimPrefix(reasoning+"|"+strings.Join(calls, ""), "|"); text != c.want || strings.Trim(more, "|") != strings.Trim(c.more, "|") {
			t.Errorf("%s: got %q and %q, want %q and %q", name, text, more, c.want, c.more)
		}
	}
	ends := generic.EndTokens(tok)
	if len(ends) == 0 {
		t.Error("no token ends an answer")
	}
	for id := range int32(tok.VocabSize()) {
		found := false
		for _, e := range ends {
			found = found || e == id
		}
		if found != tok.IsEOG(id) {
			t.Errorf("token %d ends an answer: %v, want %v", id, found, tok.IsEOG(id))
		}
	}
}

func TestTool(t *testing.T) {
	b, err := chat.Tool{Name: "f", Description: "a < b", Parameters: []byte(`{"type": "object"}`), Strict: true}.Raw()
	if want := `{"type":"function","function":{"name":"f","description":"a < b","parameters":{"type":"object"},"strict":true}}`; err != nil || string(b) != want {
		t.Errorf("got %s, %v, want %s", b, err, want)
	}
	for _, bad := range []chat.Tool{{}, {Name: "f", Parameters: []byte(`[1]`)}} {
		if _, err := bad.Raw(); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
}
