package chat

import (
	"encoding/json"
	"strings"
)

// maxJSONDepth bounds the nesting of arguments.
const maxJSONDepth = 256

// jsonCalls reads calls written as JSON: an object, several of them, or an
// array, and then closing (if it is there).
func (p *Parser) jsonCalls(known bool, closing ...string) bool {
	p.skipSpace()
	list := p.accept("[")
	for n := 0; ; n++ {
		p.skipSpace()
		if p.peek() != '{' {
			if n == 0 {
				return false
			}
			break
		}
		if !p.jsonCall(known) {
			return false
		}
		p.skipSpaceBefore(",", ";", "{", "]")
		if !p.accept(",") && !list {
			p.accept(";")
		}
	}
	if list {
		p.skipSpaceBefore("]")
		p.accept("]")
	}
	return p.closing(closing)
}

// closing consumes the mark that ends the calls. It may be missing.
func (p *Parser) closing(marks []string) bool {
	if len(marks) == 0 {
		return true
	}
	p.skipSpaceBefore(marks...)
	for _, m := range marks {
		if p.accept(m) {
			break
		}
	}
	return true
}

// skipSpaceBefore consumes white space if one of the marks follows it.
func (p *Parser) skipSpaceBefore(marks ...string) {
	n := 0
	for c := p.ahead(n); c >= 0 && isSpace(byte(c)); c = p.ahead(n) {
		n++
	}
	for _, m := range marks {
		if p.hasAt(n, m) {
			p.pos += n
			return
		}
	}
}

// ahead returns the byte n after the next one, or -1 behind the end.
func (p *Parser) ahead(n int) int {
	for p.pos+n >= len(p.buf) {
		if !p.more() && p.pos+n >= len(p.buf) {
			return -1
		}
	}
	return int(p.buf[p.pos+n])
}

// hasAt reports whether lit comes n bytes after the next one.
func (p *Parser) hasAt(n int, lit string) bool {
	for i := range len(lit) {
		if p.ahead(n+i) != int(lit[i]) {
			return false
		}
	}
	return true
}

// jsonFields collects what an object says of a call.
type jsonFields struct {
	name, id string
	args     []byte // arguments that came before the name
	begun    bool
	known    bool // the name must be one of the tools
}

// jsonCall reads one call: an object with a name and arguments, in any order
// and under the keys that models use.
func (p *Parser) jsonCall(known bool) bool {
	f := jsonFields{known: known}
	if !p.jsonCallFields(&f, 0) {
		if p.cutWithin() && !f.begun && p.nameFits(f.name, true) {
			f.begun = true
			p.begin(f.name, f.id)
		}
		if f.begun {
			p.broken()
			return true
		}
		return false
	}
	if !f.begun {
		if !p.nameFits(f.name, known) {
			return false
		}
		if len(f.args) == 0 {
			f.args = []byte("{}")
		}
		p.begin(f.name, f.id)
		p.arguments(f.args)
	}
	p.end()
	return true
}

// cutWithin reports whether the answer was cut off within what is being read.
func (p *Parser) cutWithin() bool { return p.cut && p.starved }

func (p *Parser) nameFits(name string, known bool) bool {
	if known {
		_, ok := p.tools[name]
		return ok
	}
	return validName(name)
}

// broken adds the rest of the answer, or of the call, to arguments that are
// not JSON: the client sees what the model wrote.
func (p *Parser) broken() {
	for p.inCall {
		r := p.rest()
		n := len(r)
		for _, o := range p.syn.closers {
			if i := strings.Index(string(r), o); i >= 0 && i < n {
				n = i
			}
		}
		found := n < len(r)
		if !found && !p.eof {
			n = max(0, n-32) // a closing mark may be cut
		}
		p.arguments(r[:n])
		p.pos += n
		if have := len(p.rest()); found || !p.more() && len(p.rest()) == have && have == 0 {
			p.end()
			return
		}
	}
}

func (p *Parser) jsonCallFields(f *jsonFields, depth int) bool {
	if !p.accept("{") {
		return false
	}
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept("}") {
			return true
		}
		if n > 0 && !p.accept(",") || n > 16 {
			return false
		}
		p.skipSpace()
		key, ok := p.jsonString(256)
		if !ok {
			return false
		}
		p.skipSpace()
		if !p.accept(":") {
			return false
		}
		p.skipSpace()
		if !p.jsonCallField(f, key, depth) {
			return false
		}
	}
}

// jsonCallField reads the value of key.
func (p *Parser) jsonCallField(f *jsonFields, key string, depth int) bool {
	switch key {
	case "name", "tool_name":
		name, ok := p.jsonString(256)
		f.name = name
		return ok && p.nameFits(name, f.known)
	case "function":
		if p.peek() == '{' && depth == 0 {
			return p.jsonCallFields(f, depth+1)
		}
		name, ok := p.jsonString(256)
		f.name = name
		return ok && p.nameFits(name, f.known)
	case "arguments", "parameters", "args", "input":
		return p.jsonCallArguments(f)
	case "id", "tool_call_id", "type", "index":
		v, ok := p.capture()
		if key == "id" || key == "tool_call_id" {
			f.id = text(v)
		}
		return ok
	}
	// A key of something else: this is a call only if a name came before.
	if f.name == "" {
		return false
	}
	_, ok := p.capture()
	return ok
}

func (p *Parser) jsonCallArguments(f *jsonFields) bool {
	if f.begun {
		_, ok := p.capture()
		return ok
	}
	if f.name != "" && p.peek() == '{' {
		f.begun = true
		p.begin(f.name, f.id)
		return p.jsonValue(p.arguments)
	}
	v, ok := p.capture()
	if len(v) > 0 && v[0] == '"' { // encoded twice
		v = []byte(text(v))
	}
	if string(v) == "null" {
		v = nil
	}
	f.args = v
	return ok
}

// text returns the text of a JSON string, or another value as it is written.
func text(v []byte) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// jsonString reads a string of at most limit bytes.
func (p *Parser) jsonString(limit int) (string, bool) {
	if p.peek() != '"' {
		return "", false
	}
	n := 0
	var b []byte
	ok := p.jsonValue(func(piece []byte) {
		if n += len(piece); n <= limit {
			b = append(b, piece...)
		}
	})
	var s string
	ok = ok && n <= limit && json.Unmarshal(b, &s) == nil
	return s, ok
}

// capture reads any value.
func (p *Parser) capture() (v []byte, ok bool) {
	ok = p.jsonValue(func(b []byte) { v = append(v, b...) })
	return v, ok
}

// jsonValue reads a JSON value and hands it on as it arrives. Brackets and
// quotes must match; line breaks and other control characters in strings,
// which models write and JSON forbids, are escaped.
func (p *Parser) jsonValue(sink func([]byte)) bool {
	var s jsonScan
	for {
		start, buf := p.pos, p.buf
		for p.pos < len(buf) && !s.over {
			c := buf[p.pos]
			if s.inString && c < ' ' && !s.escaped {
				sink(buf[start:p.pos])
				esc := quoteJSON(string(rune(c)))
				sink(esc[1 : len(esc)-1])
				p.pos++
				start = p.pos
				continue
			}
			if !s.step(c) {
				sink(buf[start:p.pos])
				return false
			}
			if !s.before {
				p.pos++
			}
		}
		sink(buf[start:p.pos])
		if s.over {
			return true
		}
		if n := len(p.rest()); !p.more() && len(p.rest()) == n {
			return s.scalar && len(s.stack) == 0
		}
	}
}

// jsonScan follows the nesting of a JSON value.
type jsonScan struct {
	stack             []byte
	inString, escaped bool
	scalar            bool // inside a number or a word at the top
	over              bool // the value is complete
	before            bool // and the last byte is not part of it
}

// step takes the next byte. It returns false if the value is not JSON.
func (s *jsonScan) step(c byte) bool {
	switch {
	case s.inString:
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inString = false
			s.over = len(s.stack) == 0
		}
	case s.scalar && (isSpace(c) || strings.IndexByte(",]}", c) >= 0):
		s.over, s.before = true, true
	case c == '"':
		s.inString = true
		return !s.scalar
	case c == '{' || c == '[':
		s.stack = append(s.stack, c+2) // '}' and ']' follow two after
		return !s.scalar && len(s.stack) <= maxJSONDepth
	case c == '}' || c == ']':
		if len(s.stack) == 0 || s.stack[len(s.stack)-1] != c {
			return false
		}
		s.stack = s.stack[:len(s.stack)-1]
		s.over = len(s.stack) == 0
	case isSpace(c):
	case len(s.stack) == 0:
		s.scalar = true
		return strings.IndexByte("-+.0123456789abcdefghijklmnopqrstuvwxyzE", c) >= 0
	case strings.IndexByte("-+.,:0123456789abcdefghijklmnopqrstuvwxyzE", c) < 0:
		return false
	}
	return true
}

// bareCalls reads calls without a mark before them: the whole answer is JSON,
// perhaps in a code fence, and names a tool.
func (p *Parser) bareCalls() bool {
	p.skipSpace()
	fence := p.accept("```json") || p.accept("```")
	p.skipSpace()
	if !fence && p.accept("[") {
		if p.skipSpace(); p.peek() != '{' {
			return p.pythonList(true)
		}
		p.pos = max(p.keep, 0)
		p.skipSpace()
	}
	if name, ok := p.lineOf(); ok { // GLM-4: the name, a line break, the arguments
		p.skipSpace()
		return p.named(name, "")
	}
	if c := p.peek(); c != '{' && c != '[' {
		return false
	}
	if !p.jsonCalls(!p.o.OnlyCalls) {
		return false
	}
	if fence {
		p.skipSpaceBefore("```")
		p.accept("```")
	}
	return true
}

// lineOf consumes a line that is the name of a tool that was offered, and a "{"
// begins the next.
func (p *Parser) lineOf() (name string, ok bool) {
	for tool := range p.tools {
		if len(tool) > len(name) && p.hasAt(0, tool) && p.ahead(len(tool)) == '\n' && p.ahead(len(tool)+1) == '{' {
			name = tool
		}
	}
	p.pos += len(name)
	return name, name != ""
}
