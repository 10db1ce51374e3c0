package run

import (
	"bytes"
	"context"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/text/tokenizer"
)

// truncate cuts a plan's prompt to a number of tokens, nil for all of them and -1 for
// room, on a side: left keeps the last ones, right the first. Nothing is cut that
// nobody asked for, and what is cut is told to the client.
func (p *Plan) truncate(ctx context.Context, asked *int, side string, room int) error {
	if side != "left" && side != "right" {
		return fault.BadRequest("truncation_side", "expected left or right, found %q", side)
	}
	if asked == nil {
		return nil
	}
	keep := *asked
	switch {
	case keep == -1 && room < 1:
		return fault.BadRequest("max_tokens", "expected an answer of fewer tokens than the context of %d has, so that truncate_prompt_tokens -1 leaves some of the prompt", p.Model.info.Context)
	case keep == -1:
		keep = room
	case keep < 1:
		return fault.BadRequest("truncate_prompt_tokens", "expected -1 or at least 1, found %d", keep)
	}
	ids := p.Request.Tokens
	if len(ids) <= keep {
		return nil
	}
	if p.Truncated = len(ids) - keep; side == "left" {
		p.Request.Tokens = ids[p.Truncated:]
	} else {
		p.Request.Tokens = ids[:keep]
	}
	p.text = "" // it has more than the model reads
	caller.Note(ctx, func(l *caller.Record) { l.Truncated += p.Truncated })
	return nil
}

// fitting is a model's tokenizer that refuses texts which cannot fit, before it
// does work that grows with them.
type fitting struct {
	*tokenizer.Tokenizer
	room  int // tokens
	least int // that the texts become
}

// Encode returns dst for a text that cannot fit.
func (f *fitting) Encode(dst []int32, text string, o tokenizer.EncodeOptions) []int32 {
	if f.least += f.LeastTokens(text); f.least > f.room {
		return dst
	}
	if len(text) > hugeText {
		huge <- struct{}{}
		defer func() { <-huge }()
	}
	return f.Tokenizer.Encode(dst, text, o)
}

// hugeText is the number of bytes from which on texts are encoded one at a time.
const hugeText = 4 << 20

var huge = make(chan struct{}, 1)

// err is the error of a prompt that cannot fit.
func (f *fitting) err() error {
	if f.least <= f.room {
		return nil
	}
	return &engine.ContextError{Tokens: f.least, Context: f.room, AtLeast: true}
}

// fits returns the tokenizer for one prompt. With cut the prompt will be cut to
// what fits, because the client said so.
func (m *Model) fits(cut bool) *fitting {
	f := &fitting{Tokenizer: m.tok, room: m.info.Context}
	if cut {
		f.room = int(^uint(0) >> 1)
	}
	return f
}

// Fits returns what says why a text can be in no prompt of any model that may
// answer, before anything is made of it; nil where other models may come. The text
// is as JSON has it, with quotes and escapes.
func (l *Library) Fits() func(text []byte) error {
	loaded := l.Loaded()
	if l.src != nil && (l.src.List == nil || len(l.src.List()) > len(loaded)) {
		return nil
	}
	return func(text []byte) error {
		const escape = 6 // bytes at most, for one or more
		var why error
		s, escaped := string(text), escape*bytes.Count(text, []byte{'\\'})
		for _, m := range loaded {
			n := m.tok.LeastTokens(s) - escaped - 2
			if n <= m.info.Context {
				return nil
			}
			why = &engine.ContextError{Tokens: n, Context: m.info.Context, AtLeast: true}
		}
		return why
	}
}

// encode turns a prompt's text into tokens.
func (m *Model) encode(text string, special, cut bool) ([]int32, error) {
	f := m.fits(cut)
	ids := f.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: true})
	return ids, f.err()
}

// Encode turns a prompt's text into tokens. One that cannot fit is an
// *engine.ContextError.
func (m *Model) Encode(text string, special bool) ([]int32, error) {
	return m.encode(text, special, false)
}

// Decode is the text of tokens, marks written out.
func (m *Model) Decode(field string, ids []int32) (string, error) {
	if err := m.CheckIDs(field, ids); err != nil {
		return "", err
	}
	var buf []byte
	n := 0
	for _, id := range ids {
		buf = m.tok.AppendPiece(buf[:0], id)
		if n += len(buf); n > MaxText {
			return "", fault.BadRequest(field, "expected tokens of at most %d bytes of text, found more", MaxText)
		}
	}
	return m.tok.DecodeSpecial(ids), nil
}
