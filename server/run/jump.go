package run

import (
	"bytes"

	"ridge/engine"
	"ridge/server/fault"
	"ridge/text/grammar"
	"ridge/text/grammar/schema"
	"ridge/text/tokenizer"
)

// Jump-ahead: text that a grammar forces is not drawn. It is asked for by name,
// since it changes answers: forced text is spelled as the tokenizer spells it,
// and JSON gets a fixed spacing, so that there is much that is forced.

var (
	_ engine.Jumper = (*grammar.State)(nil)
	_ engine.Jumper = (*grammar.Gate)(nil)
	_ engine.Jumper = (*branch)(nil)
)

// options are those that f is compiled with.
func (f Format) options() schema.Options {
	if f.jumps() {
		return schema.Options{Whitespace: schema.Spaced}
	}
	return schema.Options{}
}

// Jump returns what the masker forces that holds. Nothing is forced while that
// is open.
func (b *branch) Jump(dst []int32) []int32 {
	if j, ok := b.chosen.(engine.Jumper); ok && b.doors == nil {
		return j.Jump(dst)
	}
	return dst
}

// jumps reports whether forced text is not drawn.
func (f Format) jumps() bool { return f.Jump != nil && *f.Jump }

// resolve returns f with what a model does if its request does not say it.
func (f Format) resolve(m *Model, c *Options) Format {
	if f.Jump == nil && m.info.JumpAhead && len(c.AllowedTokens) == 0 && len(c.BadWords) == 0 {
		f.Jump = new(true)
	}
	return f
}

// jumpAhead lets a plan take forced text without drawing it, if f is so and
// there is something to force. asked says whether the request says so itself.
func (p *Plan) jumpAhead(f Format, asked bool, c *Options) error {
	switch {
	case !f.jumps() || p.Request.NewMasker == nil && !asked:
		return nil
	case p.Request.NewMasker == nil:
		return fault.BadRequest("jump_ahead", "expected structured output or tools that must be called or are strict, found nothing that could force text")
	case len(c.AllowedTokens) > 0 || len(c.BadWords) > 0:
		return fault.BadRequest("jump_ahead", "cannot be combined with allowed_token_ids and bad_words: forced text could need such tokens")
	}
	p.Request.JumpAhead = true
	return nil
}

// continuation returns the tokens of a text that follows another one: without
// the space that some vocabularies put before a text.
func (m *Model) continuation(text string) []int32 {
	ids := m.tok.Encode(nil, text, tokenizer.EncodeOptions{})
	var b []byte
	for _, id := range ids {
		b = m.tok.AppendPiece(b, id)
	}
	if string(b) == text {
		return ids
	}
	ids = m.tok.Encode(ids[:0], "\n"+text, tokenizer.EncodeOptions{})
	for i, id := range ids {
		if bytes.HasSuffix(m.tok.Piece(id), []byte("\n")) {
			return ids[i+1:]
		}
	}
	return nil
}
