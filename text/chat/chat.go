// Package chat turns conversations into prompts and answers into messages: it
// renders a model's own chat template, as Hugging Face transformers does, knows
// a few templates for models that bring none, finds reasoning and tool calls in
// answers, and holds back stop strings in streamed text.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ridge/internal/spans"
	"ridge/text/chat/internal/jinja"
)

// Message is one turn of a conversation.
type Message struct {
	Role       string     // "system", "user", "assistant", "tool", or what the template knows
	Content    string     // the text; may be empty in an assistant turn with tool calls
	Name       string     // who speaks, or the tool that answers; optional
	ToolCalls  []ToolCall // what the assistant asked for
	ToolCallID string     // in a tool's turn: the call it answers; optional
	Reasoning  string     // the assistant's thinking, apart from Content; optional
}

// ToolCall is a call of a tool by the assistant.
type ToolCall struct {
	ID   string // optional, but some templates refuse calls without one
	Name string
	// Arguments is a JSON object, or a JSON string that contains one (as on
	// OpenAI's wire). Key order is kept. Empty means no arguments.
	Arguments json.RawMessage
}

// Limits bound one rendering. The zero value of a field means its default.
type Limits = jinja.Limits

// Options of a template.
type Options struct {
	BOS, EOS string // text of the special tokens; "" where the model has none
	Name     string // what messages call the template
	Limits   Limits
	// TrustMarks makes control tokens of their texts wherever they are, as other
	// programs do: a user who writes <|im_end|> ends the turn. Without it only
	// what the template prints, and what the assistant wrote before, can be a
	// control token.
	TrustMarks bool
}

// Input is what a template is rendered with.
type Input struct {
	Messages            []Message
	Tools               []json.RawMessage // JSON objects; key order is kept
	AddGenerationPrompt bool              // end with the start of the assistant's turn
	Continue            bool              // end with the last message's text, for the model to continue it
	// Extra variables: documents, enable_thinking and the like, by the names
	// that the template uses. Maps are passed with sorted keys; use
	// json.RawMessage to keep an order. They take precedence.
	Extra map[string]any
	Now   time.Time // the clock of strftime_now; zero means the time of the call
}

// ErrRefused is wrapped by errors that the template raised itself, about
// conversations it does not support. The message is the template's.
var ErrRefused = errors.New("refused by the template")

// Template is a compiled chat template. It may be used by several goroutines
// at once.
type Template struct {
	prog    *jinja.Program
	opts    Options
	shape   shape
	sure    bool // shape was seen to work
	caps    Caps
	addsBOS bool
	stops   []string
}

// Caps says what a template was seen to do with a conversation. What a
// template has no place for, it usually leaves out without a word: callers
// that must not lose tools or tool calls have to look here first.
type Caps struct {
	System    bool // prints system messages
	Tools     bool // prints tool definitions
	ToolCalls bool // prints the tool calls of earlier turns
}

// Compile compiles a chat template. The error of a template that cannot be
// used names it, the line and the reason.
func Compile(source string, o Options) (*Template, error) {
	t := &Template{opts: o}
	if source == rwkvWorld {
		source = Default(source)
	}
	prog, err := jinja.Compile(source)
	if err != nil {
		return nil, t.wrap(err)
	}
	t.prog = prog
	t.stops = stopStrings(source)
	t.probe()
	return t, nil
}

// Render returns the prompt of a conversation. It takes bounded time and
// memory whatever the template does. Errors name the template, the line and
// the reason, or the part of the input that is wrong.
func (t *Template) Render(in Input) (string, error) {
	r, err := t.rendering(in)
	return r.text, err
}

// rendering is Render with what is known of the text's origin.
func (t *Template) rendering(in Input) (rendered, error) {
	if err := in.check(); err != nil {
		return rendered{}, err
	}
	if !in.Continue {
		return t.renderTools(in)
	}
	// Where the last message ends is where something stands that was put there.
	// So nothing is taken for it that the template prints after it, and white
	// space at its end stays even where templates drop it.
	last := len(in.Messages) - 1
	in.Messages = append([]Message(nil), in.Messages...)
	text := &in.Messages[last].Content
	if *text == "" {
		text = &in.Messages[last].Reasoning
	}
	if *text == "" {
		return rendered{}, fmt.Errorf("chat: last message: %w", ErrContinue)
	}
	*text += needleEnd
	s, err := t.renderTools(in)
	if err != nil {
		return s, err
	}
	end := strings.LastIndex(s.text, needleEnd)
	if end < 0 {
		return rendered{}, fmt.Errorf("chat: last message: %w", ErrContinue)
	}
	return s.cut(end), nil
}

// needleEnd is put where a message that is continued ends.
const needleEnd = "RidgeContinuesHere"

// rendered is a prompt and the parts of it that others than the assistant and
// the template wrote.
type rendered struct {
	text  string
	given []spans.Span
}

// cut returns the first n bytes of r.
func (r rendered) cut(n int) rendered {
	return rendered{r.text[:n], spans.Cut(r.given, 0, n)}
}

// renderTools renders a conversation with its tool calls in the form that the
// template wants.
func (t *Template) renderTools(in Input) (rendered, error) {
	s, err := t.render(in, t.shape, t.opts.Limits)
	if err == nil || t.sure || !in.hasToolCalls() {
		return s, err
	}
	// The probes could not tell in what form the template wants tool calls
	// (it may need variables that only the caller knows): find it now.
	for _, sh := range shapes {
		sh.toolsUndefined = t.shape.toolsUndefined
		if s, err := t.render(in, sh, t.opts.Limits); err == nil {
			return s, nil
		}
	}
	return rendered{}, err
}

// Within returns the template with other limits.
func (t *Template) Within(l Limits) *Template {
	out := *t
	out.opts.Limits = l
	return &out
}

// AddsBOS reports whether prompts start with the BOS token's text, so that
// the tokenizer must not add another.
func (t *Template) AddsBOS() bool { return t.addsBOS }

// Caps reports what the template supports. A template that raises errors
// about conversations that are otherwise fine may support more than it says.
func (t *Template) Caps() Caps { return t.caps }

// StopStrings returns the texts that end a turn in this template, where that
// is obvious from its source: "<|im_end|>", "<end_of_turn>" and the like.
// Callers that do not decode special tokens to text need none of them.
func (t *Template) StopStrings() []string { return append([]string(nil), t.stops...) }

// FoldSystem returns the conversation with leading system messages put
// before the text of the first user turn, for templates without a system
// role (see Caps).
func FoldSystem(msgs []Message) []Message {
	n := 0
	for n < len(msgs) && msgs[n].Role == "system" {
		n++
	}
	if n == 0 || n == len(msgs) || msgs[n].Role != "user" {
		return msgs
	}
	out := append([]Message(nil), msgs[n:]...)
	var text []string
	for _, m := range msgs[:n+1] {
		text = append(text, m.Content)
	}
	out[0].Content = strings.Join(text, "\n\n")
	return out
}

// wrap adds the template's name to an error of jinja.
func (t *Template) wrap(err error) error {
	name := "template"
	if t.opts.Name != "" {
		name += " " + t.opts.Name
	}
	var e *jinja.Error
	if errors.As(err, &e) && e.Raised {
		return fmt.Errorf("chat: %s: %w: %s (line %d)", name, ErrRefused, e.Msg, e.Line)
	}
	return fmt.Errorf("chat: %s: %w", name, err)
}

// turnEnds are the texts that end a turn in well-known templates.
var turnEnds = []string{
	"<|im_end|>", "<end_of_turn>", "<turn|>", "<|eot_id|>", "<|eom_id|>", "<|eot|>", "<|end|>", "<|return|>", "<|call|>",
	"<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "<|endoftext|>", "<|end_of_text|>", "</s>",
}

func stopStrings(source string) []string {
	var out []string
	for _, s := range turnEnds {
		if strings.Contains(source, s) {
			out = append(out, s)
		}
	}
	return out
}
