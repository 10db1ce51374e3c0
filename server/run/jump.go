package run

import (
	"ridge/engine"
	"ridge/server/fault"
	"ridge/text/grammar"
)

// Jump-ahead: text that a grammar forces is not drawn. It is asked for by name,
// since it changes answers: forced text is spelled as the tokenizer spells it,
// and JSON gets a fixed spacing, so that there is much that is forced.

var (
	_ engine.Jumper = (*grammar.State)(nil)
	_ engine.Jumper = (*grammar.Gate)(nil)
)

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
