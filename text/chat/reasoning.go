package chat

import (
	"bytes"
	"strings"
)

// reasoning reads the model's thinking at the start of the answer, if there
// is any: between the tags, or up to the closing tag if the prompt had the
// opening one.
func (p *Parser) reasoning() {
	open, closing := p.syn.ThinkOpen, p.syn.ThinkClose
	if closing == "" {
		return
	}
	if !p.syn.Thinks(p.o.Prompt) {
		n := 0
		for c := p.ahead(n); c >= 0 && isSpace(byte(c)); c = p.ahead(n) {
			n++
		}
		if !p.hasAt(n, open) {
			return
		}
		p.pos += n + len(open)
	} else {
		p.skipSpace()
		p.accept(open) // some write it again
	}
	p.section(PartReasoning, closing)
	p.skipSpace()
}

// section gives out text of one kind up to a mark, which is consumed, or up
// to the end of the answer. White space around it is dropped.
func (p *Parser) section(kind PartKind, marks ...string) (mark string) {
	p.thinking = kind == PartReasoning
	defer func() { p.thinking = false }()
	p.skipSpace()
	for {
		r := p.rest()
		at := len(r)
		for _, m := range marks {
			if i := bytes.Index(r, []byte(m)); i >= 0 && i < at {
				at, mark = i, m
			}
		}
		if mark == "" && !p.eof {
			for _, m := range marks {
				for n := min(len(m)-1, len(r)); n > 0; n-- {
					if len(r)-n < at && strings.HasPrefix(m, string(r[len(r)-n:])) {
						at = len(r) - n
					}
				}
			}
		}
		body := bytes.TrimRight(r[:at], " \n\r\t")
		if len(body) > 0 {
			p.emit(Part{Kind: kind, Text: string(body)})
		}
		if mark != "" {
			p.pos += at + len(mark)
			return mark
		}
		p.pos += len(body)
		if n := len(p.rest()); !p.more() && len(p.rest()) == n && p.eof {
			if r := bytes.TrimRight(p.rest(), " \n\r\t"); len(r) > 0 {
				p.emit(Part{Kind: kind, Text: string(r)})
			}
			p.pos = len(p.buf)
			return ""
		}
	}
}

// harmony reads messages in the format of gpt-oss: a header with a channel
// and perhaps a recipient, then a body.
func (p *Parser) harmony() {
	if !p.hasAt(0, "<|") && !p.hasAt(0, " to=") {
		return
	}
	for n := 0; n < 256 && p.peek() >= 0; n++ {
		p.keep = p.pos
		header, mark, ok := p.until(512, nil, "<|message|>", "<|end|>")
		if !ok || mark == "<|end|>" {
			p.pos, p.keep = p.keep, -1
			return
		}
		p.keep = -1
		to := ""
		if _, after, ok := strings.Cut(header, "to="); ok {
			to, _, _ = strings.Cut(after, "<")
			to, _, _ = strings.Cut(strings.TrimSpace(to), " ")
		}
		to = strings.TrimPrefix(to, "functions.")
		switch {
		case validName(to) && len(p.tools) > 0:
			p.harmonyCall(to)
		case strings.Contains(header, "analysis") && !p.o.KeepReasoning:
			p.section(PartReasoning, harmonyEnds...)
		default:
			p.section(PartText, harmonyEnds...)
		}
	}
}

var harmonyEnds = []string{"<|end|>", "<|return|>", "<|call|>"}

func (p *Parser) harmonyCall(name string) {
	p.keep = p.pos
	p.begin(name, "")
	if p.skipSpace(); p.peek() == '{' && p.jsonValue(p.arguments) {
		p.end()
		p.keep = -1
		p.closing(harmonyEnds)
		return
	}
	p.broken()
	p.keep = -1
	p.closing(harmonyEnds)
}
