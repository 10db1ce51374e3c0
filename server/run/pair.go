package run

import (
	"strings"
	"unicode/utf8"

	"ridge/engine"
	"ridge/model"
	"ridge/server/fault"
	"ridge/text/chat"
	"ridge/text/tokenizer"
)

// setPair finds the template in which a reranker reads a query and a text: its chat
// template, if that has places for both, or the text that its files have for it.
func (m *Model) setPair(d *model.Defaults) (err error) {
	switch {
	case m.info.Labels == nil:
	case m.ownTmpl && chat.Pairs(m.info.Template):
		m.pair = m.tmpl
	case d.Rerank != "":
		m.pair, err = m.compile("rerank template", chat.PairSource(d.Rerank), chat.Limits{})
	}
	return err
}

// pairPlan plans the scores of a text that a template shows beside a query. If it may
// be cut, the text is, and the template stays whole.
func (m *Model) pairPlan(instruction, query, text string, keep *int, side string) (*Plan, error) {
	room := m.info.Context
	if keep != nil && *keep > 0 {
		room = min(*keep, room)
	}
	p := &Plan{Model: m, text: text}
	p.Request.Embed = engine.PoolingScores
	whole := 0
	for {
		f := m.fits(keep != nil)
		prompt, err := m.pair.Pair(instruction, query, text, f)
		switch {
		case err != nil:
			return nil, fault.BadRequest("query", "the reranker's template does not take it: %v", err)
		case f.err() != nil:
			return nil, f.err()
		}
		n := len(prompt.Tokens)
		if whole = max(whole, n); n <= room {
			p.Request.Tokens, p.Truncated = prompt.Tokens, whole-n
			return p, nil
		}
		before := len(text)
		if keep != nil {
			text = m.shorter(text, n-room, side)
		}
		if len(text) == before {
			return nil, &engine.ContextError{Tokens: n, Context: room}
		}
	}
}

// shorter returns a text without n tokens at a side.
func (m *Model) shorter(text string, n int, side string) string {
	ids := m.tok.Encode(nil, text, tokenizer.EncodeOptions{})
	n = min(n, len(ids))
	if side == "left" {
		text = m.tok.Decode(ids[n:])
		for text != "" && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
		return strings.TrimPrefix(text, "\ufffd")
	}
	return strings.TrimRight(m.tok.Decode(ids[:len(ids)-n]), "\ufffd")
}
