package chat

import (
	"encoding/json"
	"strings"
)

// functionParams reads, after <function name=", NAME"><param name="KEY">VALUE
// </param>...</function>, as MiniCPM 5 writes it. A value may be CDATA.
func (p *Parser) functionParams() bool {
	name, _, ok := p.until(maxName, nil, "\">")
	if !ok || !validName(name) {
		return false
	}
	p.begin(name, "")
	args := objectWriter{}
	for p.skipSpace(); p.accept("<param name=\""); p.skipSpace() {
		key, _, ok := p.until(maxName, nil, "\">")
		if !ok {
			p.broken()
			return true
		}
		end := "</param>"
		data := p.accept("<![CDATA[")
		if data {
			end = "]]>"
		}
		value, mark := p.untilEnd(end)
		if mark == "" { // cut off
			p.arguments(args.member(key, quoteJSON(value)))
			p.end()
			return true
		}
		if data {
			p.accept("</param>")
		}
		p.arguments(args.member(key, p.tools.value(name, key, value)))
	}
	p.arguments(args.close())
	p.accept("</function>")
	p.end()
	return true
}

// internCalls reads what InternLM writes after <|action_start|>: a plugin's
// call as JSON, or code for the interpreter.
func (p *Parser) internCalls() bool {
	p.skipSpace()
	if p.accept("<|plugin|>") {
		return p.jsonCalls(false, "<|action_end|>")
	}
	if p.accept("<|interpreter|>") {
		for _, name := range codeTools {
			if p.tools[name] != nil {
				code, _ := p.untilEnd("<|action_end|>")
				p.code(name, strings.TrimSpace(code))
				return true
			}
		}
	}
	return false
}

// codeTools are names of tools that models write code for without JSON.
var codeTools = []string{"python", "ipython", "code_interpreter"}

// code is a call of a tool whose one argument is code.
func (p *Parser) code(name, code string) {
	key := "code"
	for k := range p.tools[name] {
		if len(p.tools[name]) == 1 {
			key = k
		}
	}
	args := objectWriter{}
	p.whole(name, "", append(args.member(key, quoteJSON(code)), '}'))
}

// keyedCalls reads [{NAME: ARGUMENTS}, ...], as Apertus writes it.
func (p *Parser) keyedCalls() bool {
	if p.skipSpace(); !p.accept("[") {
		return false
	}
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept("]") {
			return n > 0 && p.closing([]string{"<|tools_suffix|>"})
		}
		if n > 0 && !p.accept(",") {
			return true
		}
		if p.skipSpace(); !p.accept("{") {
			return n > 0
		}
		p.skipSpace()
		name, ok := p.jsonString(maxName)
		p.skipSpace()
		if !ok || !validName(name) || !p.accept(":") {
			return n > 0
		}
		if p.skipSpace(); !p.named(name, "") {
			return n > 0
		}
		p.skipSpaceBefore("}")
		p.accept("}")
	}
}

// kimi3Calls reads the calls of Kimi K3 after <|open|>tools<|sep|>.
func (p *Parser) kimi3Calls() bool {
	for n := 0; ; n++ {
		p.skipSpace()
		if !p.accept("<|open|>call tool=\"") {
			return n > 0 && p.closing([]string{"<|close|>tools<|sep|>"})
		}
		name, _, ok := p.until(maxName, nil, "\"")
		if !ok || !validName(name) {
			return n > 0
		}
		p.until(maxName, nil, "<|sep|>") // the call's number
		p.begin(name, "")
		args := objectWriter{}
		for p.skipSpace(); p.accept("<|open|>argument key=\""); p.skipSpace() {
			key, _, ok1 := p.until(maxName, nil, "\"")
			head, _, ok2 := p.until(maxName, nil, "<|sep|>")
			if !ok1 || !ok2 {
				p.broken()
				return true
			}
			value, mark := p.untilEnd("<|close|>argument<|sep|>")
			if mark == "" { // cut off
				p.arguments(args.member(key, quoteJSON(value)))
				p.end()
				return true
			}
			if v := strings.TrimSpace(value); !strings.Contains(head, `type="string"`) && json.Valid([]byte(v)) {
				p.arguments(args.member(key, []byte(v)))
				continue
			}
			p.arguments(args.member(key, quoteJSON(value)))
		}
		p.arguments(args.close())
		p.accept("<|close|>call<|sep|>")
		p.end()
	}
}

// minimaxMark stands before each tag of MiniMax M3.
const minimaxMark = "]<]minimax[>["

// minimaxCalls reads the calls of MiniMax M3: tags whose names are parameters,
// within each other for objects, and <item> for the items of lists.
func (p *Parser) minimaxCalls() bool {
	const invoke = minimaxMark + "<invoke name=\""
	for n := 0; ; n++ {
		p.skipSpace()
		if !p.accept(invoke) {
			return n > 0 && p.closing([]string{minimaxMark + "</tool_call>"})
		}
		name, _, ok := p.until(maxName, nil, "\">")
		if !ok || !validName(name) {
			return n > 0
		}
		p.begin(name, "")
		args := objectWriter{}
		for p.skipSpace(); !p.hasAt(0, minimaxMark+"</"); p.skipSpace() {
			key, ok := p.minimaxOpen()
			if !ok {
				p.broken()
				return true
			}
			v, ok := p.minimaxValue(key, p.tools[name][key], 0)
			if !ok {
				p.broken()
				return true
			}
			p.arguments(args.member(key, v))
		}
		p.arguments(args.close())
		p.closing([]string{minimaxMark + "</invoke>"})
		p.end()
	}
}

// minimaxOpen reads an opening tag.
func (p *Parser) minimaxOpen() (name string, ok bool) {
	if !p.accept(minimaxMark + "<") {
		return "", false
	}
	name, _, ok = p.until(maxName, func(c byte) bool { return c != '<' && c != '\n' }, ">")
	return name, ok && name != "" && name[0] != '/'
}

// minimaxValue reads a value and its closing tag.
func (p *Parser) minimaxValue(key string, schema json.RawMessage, depth int) ([]byte, bool) {
	if depth > maxJSONDepth {
		return nil, false
	}
	s := readSchema(schema)
	end := minimaxMark + "</" + key + ">"
	text, mark, ok := p.until(1<<30, nil, minimaxMark)
	if !ok {
		return nil, false
	}
	p.pos -= len(mark)
	if p.accept(end) {
		if strings.TrimSpace(text) == "" && s.is("array", "object") {
			if s.is("array") {
				return []byte("[]"), true
			}
			return []byte("{}"), true
		}
		return s.value(text), true
	}
	var items []byte
	object, list := objectWriter{}, true
	for n := 0; ; n++ {
		p.skipSpace()
		if p.accept(end) {
			break
		}
		name, ok := p.minimaxOpen()
		if !ok {
			return nil, false
		}
		if n == 0 {
			list = name == "item" && s.Properties["item"] == nil
		}
		sub := s.Items
		if !list {
			sub = s.Properties[name]
		}
		v, ok := p.minimaxValue(name, sub, depth+1)
		if !ok {
			return nil, false
		}
		switch {
		case !list:
			items = append(items, object.member(name, v)...)
		case n > 0:
			items = append(append(items, ", "...), v...)
		default:
			items = append(append(items, '['), v...)
		}
	}
	if list {
		return append(items, ']'), true
	}
	return append(items, object.close()...), true
}

// typed is what values written without quotes need of a schema.
type typed struct {
	Type       any
	Properties map[string]json.RawMessage
	Items      json.RawMessage
	AnyOf      []json.RawMessage
	OneOf      []json.RawMessage
}

func readSchema(raw json.RawMessage) (s typed) {
	_ = json.Unmarshal(raw, &s) // without a schema values are judged by their form
	for _, alt := range append(s.AnyOf, s.OneOf...) {
		a := readSchema(alt)
		if s.Properties == nil {
			s.Properties = a.Properties
		}
		if s.Items == nil {
			s.Items = a.Items
		}
	}
	return s
}

// is reports whether one of the names is the one type of s.
func (s *typed) is(names ...string) bool {
	for _, n := range names {
		if s.Type == n {
			return true
		}
	}
	return false
}

// value returns text as JSON: by the type of s, or by its form.
func (s *typed) value(text string) []byte {
	trimmed := strings.TrimSpace(text)
	if s.Type != "string" && json.Valid([]byte(trimmed)) {
		return []byte(trimmed)
	}
	switch trimmed {
	case "True", "False", "None":
		if s.Type != "string" {
			return []byte(map[string]string{"True": "true", "False": "false", "None": "null"}[trimmed])
		}
	}
	return quoteJSON(text)
}
