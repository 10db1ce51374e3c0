package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

// bytesTokenizer has a token for each byte, and 1000 before a text.
type bytesTokenizer struct{}

func (bytesTokenizer) Encode(dst []int32, text string, o tokenizer.EncodeOptions) []int32 {
	if o.AddSpecial {
		dst = append(dst, 1000)
	}
	if rest, ok := strings.CutPrefix(text, "<s>"); ok && o.ParseSpecial {
		dst, text = append(dst, 1000), rest
	}
	for _, c := range []byte(text) {
		dst = append(dst, int32(c))
	}
	return dst
}
func (bytesTokenizer) BOS() int32         { return 1000 }
func (bytesTokenizer) EOS() int32         { return -1 }
func (bytesTokenizer) Piece(int32) []byte { return []byte("<s>") }

const (
	plainTurns = `{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}{% if add_generation_prompt %}[assistant: {% endif %}`
	noSystem   = `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}[{{ m.role }}: {{ m.content }}]{% endfor %}{% if add_generation_prompt %}[assistant: {% endif %}`
	dropSystem = `{% for m in messages if m.role != 'system' %}[{{ m.role }}: {{ m.content }}]{% endfor %}{% if add_generation_prompt %}[assistant: {% endif %}`
	trimmed    = `{% for m in messages %}[{{ m.role }}: {{ m.content | trim }}]{% endfor %}`
	withBOS    = `{{ bos_token }}` + plainTurns
)

// Nothing of a conversation is lost for want of a place in the template, and
// the token that begins texts comes once.
func TestPrompt(t *testing.T) {
	sys, user := Message{Role: "system", Content: "Be brief."}, Message{Role: "user", Content: "Hi"}
	tool := json.RawMessage(`{"type": "function", "function": {"name": "f"}}`)
	call := Message{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(`{"a": 1}`)}}}
	result := Message{Role: "tool", Content: "7"}
	generic := GenericTools([]json.RawMessage{tool})
	calls := "[assistant: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>][user: <tool_response>\n7\n</tool_response>]"
	for _, c := range []struct {
		name, template string
		in             Input
		want           string
	}{
		{"system", plainTurns, Input{Messages: []Message{sys, user}}, "[system: Be brief.][user: Hi]"},
		{"system refused", noSystem, Input{Messages: []Message{sys, user}}, "[user: Be brief.\n\nHi]"},
		{"system dropped", dropSystem, Input{Messages: []Message{sys, user}, AddGenerationPrompt: true}, "[user: Be brief.\n\nHi][assistant: "},
		{"tools", plainTurns, Input{Messages: []Message{user}, Tools: []json.RawMessage{tool}}, "[system: " + generic + "][user: Hi]"},
		{"tools and system", plainTurns, Input{Messages: []Message{sys, user}, Tools: []json.RawMessage{tool}}, "[system: Be brief.\n\n" + generic + "][user: Hi]"},
		{"tools without system role", noSystem, Input{Messages: []Message{sys, user}, Tools: []json.RawMessage{tool}}, "[user: Be brief.\n\n" + generic + "\n\nHi]"},
		{"calls", noSystem, Input{Messages: []Message{user, call, result}}, "[user: Hi]" + calls},
		{"BOS", withBOS, Input{Messages: []Message{user}}, "<s>[user: Hi]"},
		{"continue", plainTurns, Input{Messages: []Message{user, {Role: "assistant", Content: " Well "}}, Continue: true}, "[user: Hi][assistant:  Well "},
		{"continue a short text", plainTurns, Input{Messages: []Message{user, {Role: "assistant", Content: "]"}}, Continue: true}, "[user: Hi][assistant: ]"},
		{"continue, trimmed by the template", trimmed, Input{Messages: []Message{user, {Role: "assistant", Content: "Well, \n"}}, Continue: true}, "[user: Hi][assistant: Well, \n"},
		{"continue a text that stands before", plainTurns, Input{Messages: []Message{user, {Role: "assistant", Content: "Hi"}}, Continue: true}, "[user: Hi][assistant: Hi"},
	} {
		tmpl := mustCompile(t, c.template, OptionsFor(c.name, bytesTokenizer{}))
		got, err := tmpl.Prompt(c.in, bytesTokenizer{})
		if err != nil || got.Text != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got.Text, err, c.want)
			continue
		}
		rest := strings.TrimPrefix(c.want, "<s>")
		if n := len(got.Tokens); n != len(rest)+1 || got.Tokens[0] != 1000 || got.Tokens[1] != int32(rest[0]) {
			t.Errorf("%s: tokens %v: expected one start token before %d bytes", c.name, got.Tokens, len(rest))
		}
	}
}

func TestPromptErrors(t *testing.T) {
	tmpl := mustCompile(t, plainTurns, Options{})
	lower := mustCompile(t, `{% for m in messages %}{{ m.content | lower }}{% endfor %}`, Options{})
	user := []Message{{Role: "user", Content: "Hi"}}
	if _, err := tmpl.Prompt(Input{}, bytesTokenizer{}); err == nil {
		t.Error("no messages: no error")
	}
	if _, err := tmpl.Prompt(Input{Messages: user, Continue: true, AddGenerationPrompt: true}, bytesTokenizer{}); err == nil {
		t.Error("continue and begin a turn: no error")
	}
	for name, in := range map[string]Input{
		"not printed": {Messages: user, Continue: true},
		"no text":     {Messages: []Message{{Role: "assistant"}}, Continue: true},
	} {
		if _, err := lower.Prompt(in, bytesTokenizer{}); !errors.Is(err, ErrContinue) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What begins an answer is what the template and the assistant wrote last, whatever
// marks users write before it; within reasoning it is the mark of that.
func TestOpening(t *testing.T) {
	const think = "{# <think></think> #}" + plainTurns + `{% if add_generation_prompt %}<think>{% endif %}`
	const harmony = `{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'user' %}<|message|>{{ m.content }}<|end|>{% elif m.thinking %}<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% else %}<|channel|>final<|message|>{{ m.content }}<|return|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}`
	long := strings.Repeat("hm ", 200)
	user := func(text string) Message { return Message{Role: "user", Content: text} }
	for _, c := range []struct {
		name, template string
		turns          []Message
		want           string
	}{
		{"a prompt", think, []Message{user("Hi</think>")}, "][assistant: <think>"},
		{"a mark of the user", think, []Message{user("<think>"), {Role: "assistant", Content: "i"}}, "][assistant: i"},
		{"within", think, []Message{user("Hi"), {Role: "assistant", Content: "<think>" + long}}, "<think>"},
		{"behind", think, []Message{user("Hi"), {Role: "assistant", Content: "<think>a</think>b"}}, "][assistant: <think>a</think>b"},
		{"harmony", harmony, []Message{user("Hi")}, "<|end|><|start|>assistant"},
		{"harmony, within", harmony, []Message{user("Hi"), {Role: "assistant", Reasoning: long}}, "<|channel|>analysis<|message|>"},
		{"harmony, behind", harmony, []Message{user("<|channel|>analysis<|message|>"), {Role: "assistant", Content: "So"}}, "<|end|><|start|>assistant<|channel|>final<|message|>So"},
	} {
		tmpl, err := Compile(c.template, Options{Name: c.name})
		if err != nil {
			t.Fatal(err)
		}
		continued := len(c.turns) > 1
		p, err := tmpl.Prompt(Input{Messages: c.turns, AddGenerationPrompt: !continued, Continue: continued}, bytesTokenizer{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Opening(SyntaxOf(c.template), continued); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
