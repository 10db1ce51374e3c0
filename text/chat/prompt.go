package chat

import (
	"encoding/json"
	"errors"
	"strings"

	"ridge/internal/spans"
	"ridge/text/tokenizer"
)

// Tokenizer is what a prompt needs of a model's tokenizer, which
// *tokenizer.Tokenizer is.
type Tokenizer interface {
	Encode(dst []int32, text string, o tokenizer.EncodeOptions) []int32
	BOS() int32 // -1: none
	EOS() int32 // -1: none
	Piece(id int32) []byte
}

// Prompt is a conversation as a model reads it.
type Prompt struct {
	Text   string
	Tokens []int32
	plain  []spans.Span // of Text: no control token takes bytes of these
	given  []spans.Span // of Text: what users, tools and documents wrote
}

// Opening returns what of a prompt tells how an answer to it begins: its end, as
// far as the template or the assistant wrote it. If the last message is continued
// and ends within reasoning, it is the mark that begins that.
func (p *Prompt) Opening(s Syntax, continued bool) string {
	end := p.Text
	if n := len(p.given); n > 0 {
		end = end[p.given[n-1].Hi:]
	}
	if continued && s.InThinking(end) {
		open, _, _ := s.Reasoning()
		return open
	}
	return end[max(0, len(end)-maxOpening):]
}

// maxOpening bounds what of a prompt tells how an answer begins, in bytes.
const maxOpening = 256

// Encode returns the tokens of the prompt's text, with those around it that the
// vocabulary asks for, or without.
func (p *Prompt) Encode(tok Tokenizer, addSpecial bool) []int32 {
	return tok.Encode(nil, p.Text, tokenizer.EncodeOptions{AddSpecial: addSpecial, ParseSpecial: true, Plain: p.plain})
}

// ErrContinue is wrapped by the error of a conversation whose last message
// cannot be continued: the template does not print it as it is.
var ErrContinue = errors.New("expected a last message whose text the template prints as it is")

// OptionsFor returns the options of a template that name calls so, for a model
// with the tokenizer t.
func OptionsFor(name string, t Tokenizer) Options {
	piece := func(id int32) string {
		if id < 0 {
			return ""
		}
		return string(t.Piece(id))
	}
	return Options{Name: name, BOS: piece(t.BOS()), EOS: piece(t.EOS())}
}

// Prompt returns the prompt of a conversation. It is the only road from
// messages and tools to tokens. Unlike [Template.Render] it loses nothing that
// the template has no place for: tools become a system message, calls and
// results of tools become text, and system messages go before the first turn of
// the user. The token that begins texts is there once at most, whether the
// template or the tokenizer puts it. What users, tools and documents write stays
// text, see Options.TrustMarks.
func (t *Template) Prompt(in Input, tok Tokenizer) (Prompt, error) {
	if len(in.Messages) == 0 {
		return Prompt{}, errors.New("chat: messages: expected at least one, found none")
	}
	in = t.fit(in)
	r, err := t.rendering(in)
	if err != nil {
		return Prompt{}, err
	}
	p := Prompt{Text: r.text, plain: r.given, given: r.given}
	if t.opts.TrustMarks {
		p.plain = nil
	}
	p.Tokens = p.Encode(tok, !t.addsBOS)
	return p, nil
}

// fit rewrites a conversation so that it keeps its meaning under a template
// that lacks a place for some of it.
func (t *Template) fit(in Input) Input {
	if !t.caps.ToolCalls {
		in.Messages = FoldTools(in.Messages)
	}
	if len(in.Tools) > 0 && !t.caps.Tools {
		in.Messages, in.Tools = announce(in.Messages, in.Tools), nil
	}
	if !t.caps.System {
		in.Messages = FoldSystem(in.Messages)
	}
	return in
}

// announce tells of tools in a conversation's system message.
func announce(msgs []Message, tools []json.RawMessage) []Message {
	text := GenericTools(tools)
	if len(msgs) > 0 && msgs[0].Role == "system" {
		msgs = append([]Message(nil), msgs...)
		msgs[0].Content = strings.TrimSpace(msgs[0].Content + "\n\n" + text)
		return msgs
	}
	return append([]Message{{Role: "system", Content: text}}, msgs...)
}
