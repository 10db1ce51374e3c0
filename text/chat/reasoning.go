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
	switch {
	case p.o.Continue && p.syn.InThinking(p.o.Prompt):
	case !p.syn.Thinks(p.o.Prompt):
		n := 0
		for c := p.ahead(n); c >= 0 && isSpace(byte(c)); c = p.ahead(n) {
			n++
		}
		if p.hasAt(n, closing) { // of a section that was never opened
			p.pos += n + len(closing)
			p.skipSpace()
			return
		}
		if !p.hasAt(n, open) {
			return
		}
		p.pos += n + len(open)
		p.skipSpace()
	default:
		p.skipSpace()
		p.accept(open) // some write it again
		p.skipSpace()
	}
	p.thinking = true
	p.thought(closing)
	p.thinking = false
	if p.kind == PartText {
		p.skipSpace()
	}
}

// thought reads reasoning up to its closing tag. A mark that begins a call is
// reasoning too if the section is closed after it. If it never is, the model
// forgot to: the call is one, and the reasoning over.
func (p *Parser) thought(closing string) {
	marks := []string{closing}
	if len(p.tools) > 0 {
		for _, o := range openers { // those of a family alone may be words
			marks = append(marks, o.mark)
		}
	}
	mark := p.upTo(PartReasoning, marks...)
	if mark == "" || mark == closing {
		return
	}
	for p.pos -= len(mark); p.pos > 0 && isSpace(p.buf[p.pos-1]); p.pos-- {
		// White space before it was not given out.
	}
	for seen := 0; ; {
		r := p.rest()
		if i := bytes.Index(r[seen:], []byte(closing)); i >= 0 {
			p.upTo(PartReasoning, closing)
			return
		}
		seen = max(0, len(r)-len(closing)+1)
		if n := len(r); !p.more() && len(p.rest()) == n {
			p.kind = PartReasoning
			return
		}
	}
}

// section gives out text of one kind up to a mark, which is consumed, or up
// to the end of the answer. White space around it is dropped.
func (p *Parser) section(kind PartKind, marks ...string) (mark string) {
	p.thinking = kind == PartReasoning
	defer func() { p.thinking = false }()
	p.skipSpace()
	return p.upTo(kind, marks...)
}

// upTo is section without regard to white space at its beginning.
func (p *Parser) upTo(kind PartKind, marks ...string) (mark string) {
	for {
		r := p.rest()
		at := len(r)
		for _, m := range marks {
			if i := bytes.Index(r, []byte(m)); i >= 0 && (i < at || i == at && len(m) > len(mark)) {
				at, mark = i, m
			}
		}
		if !p.eof {
			for _, m := range marks {
				for n := min(len(m)-1, len(r)); n > 0; n-- {
					if len(r)-n <= at && len(m) > len(mark) && strings.HasPrefix(m, string(r[len(r)-n:])) {
						at, mark = len(r)-n, "" // a longer one may come
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
	if p.o.Continue && strings.LastIndex(p.o.Prompt, harmonyAnalysis) > strings.LastIndex(p.o.Prompt, "<|end|>") && !p.o.KeepReasoning {
		p.thinking = true
		p.upTo(PartReasoning, harmonyEnds...)
		p.thinking = false
	}
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
		case p.tools[to] != nil:
			p.harmonyCall(to)
		case to != "" && to != "assistant" && to != "user" && to != "self" && !p.o.KeepReasoning:
			// For a tool that the model was not offered (python, browser): the
			// user is not who it was written for.
			p.section(PartReasoning, harmonyEnds...)
		case (strings.Contains(header, "analysis") || to == "self") && !p.o.KeepReasoning:
			p.section(PartReasoning, harmonyEnds...)
		case strings.Contains(header, "analysis"):
			p.emit(Part{Kind: PartText, Text: header + mark})
			end := p.section(PartText, harmonyEnds...)
			p.emit(Part{Kind: PartText, Text: end})
		default:
			p.section(PartText, harmonyEnds...)
		}
	}
}

// harmonyAnalysis begins a section of reasoning.
const harmonyAnalysis = "<|channel|>analysis<|message|>"

var harmonyEnds = []string{"<|end|>", "<|return|>", "<|call|>", "<|eom|>", "<|eot|>"}

func (p *Parser) harmonyCall(name string) {
	p.keep = p.pos
	if p.skipSpace(); p.accept("<atem:function_calls>") {
		p.invokes("<atem:", "</atem:function_calls>")
		p.keep = -1
		p.closing(harmonyEnds)
		return
	}
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
