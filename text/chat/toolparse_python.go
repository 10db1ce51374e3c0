package chat

import "strings"

// pythonCalls reads [NAME(KEY=VALUE, ...), ...], or JSON, and then closing (if
// it is there).
func (p *Parser) pythonCalls(closing string) bool {
	p.skipSpace()
	if p.hasAt(0, "[{") || p.peek() == '{' {
		return p.jsonCalls(false, closing)
	}
	return p.accept("[") && p.pythonList(false) && p.closing([]string{closing})
}

// pythonList reads, after "[", NAME(KEY=VALUE, ...), ... ]; known: the first
// name must be that of a tool that was offered.
func (p *Parser) pythonList(known bool) bool {
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept("]") {
			return n > 0
		}
		if n > 0 && !p.accept(",") {
			return true
		}
		p.skipSpace()
		name, _, ok := p.until(maxName, nil, "(")
		if !ok || !p.nameFits(name, known && n == 0) || !validName(name) || !p.pythonArguments(name) {
			return n > 0
		}
	}
}

// codeCalls reads calls of tools that were offered, written as Python's
// statements up to closing: NAME(...), print(NAME(...)), X = NAME(...).
func (p *Parser) codeCalls(closing string) bool {
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept(closing) || p.peek() < 0 {
			return n > 0
		}
		line := p.pos
		head, _, ok := p.until(maxName, func(c byte) bool { return c != '\n' }, "(")
		if ok && strings.TrimSpace(head) == "print" {
			head, _, ok = p.until(maxName, func(c byte) bool { return c != '\n' }, "(")
			defer p.accept(")")
		}
		if _, after, found := strings.Cut(head, "="); found {
			head = after
		}
		head = strings.TrimSpace(head)
		head = head[strings.LastIndexByte(head, '.')+1:] // of a module
		if !ok || p.tools[head] == nil || !p.pythonArguments(head) {
			p.pos = max(line, p.keep)
			return n > 0
		}
		p.accept(")")
	}
}

// functionCalls reads what stands between <function_calls> and its end: tags
// or, in the form of OLMo 3, one of Python's calls a line.
func (p *Parser) functionCalls() bool {
	p.skipSpace()
	if p.peek() == '<' {
		return p.invokes("<", "</function_calls>")
	}
	return p.codeCalls("</function_calls>")
}
