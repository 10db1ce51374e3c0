package chat

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxName bounds the text in which a name is looked for.
const maxName = 256

// taggedCalls reads what stands between <tool_call> and </tool_call>: JSON
// (Hermes, Qwen), a function tag (Qwen-Coder, Seed) or a name with argument
// tags (GLM).
func (p *Parser) taggedCalls() bool {
	p.skipSpace()
	switch p.peek() {
	case '{', '[':
		return p.jsonCalls(false, "</tool_call>", "</seed:tool_call>")
	case '<':
		for n := 0; p.accept("<function="); n++ {
			if !p.functionTag() {
				return n > 0
			}
			p.skipSpaceBefore("<function=")
		}
	default:
		if !p.glmCall() {
			return false
		}
	}
	return p.closing([]string{"</tool_call>", "</seed:tool_call>"})
}

// glmCall reads NAME, <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value> ...
func (p *Parser) glmCall() bool {
	name, mark, ok := p.until(maxName, func(c byte) bool { return c > ' ' }, "\n", "<arg_key>", "</tool_call>")
	name = strings.TrimSpace(name)
	if !ok || !validName(name) {
		return false
	}
	if mark == "</tool_call>" {
		p.whole(name, "", []byte("{}"))
		return true
	}
	args := objectWriter{}
	if mark == "\n" {
		p.skipSpace()
		if p.hasAt(0, "</tool_call>") {
			p.whole(name, "", []byte("{}"))
			return true
		}
		if !p.accept("<arg_key>") {
			return false
		}
	}
	p.begin(name, "")
	for {
		key, _, ok := p.until(maxName, nil, "</arg_key>")
		if !ok {
			p.broken()
			return true
		}
		p.skipSpace()
		p.accept("<arg_value>")
		value, mark := p.untilEnd("</arg_value>")
		if mark == "" { // cut off
			p.arguments(args.member(strings.TrimSpace(key), quoteJSON(value)))
			p.end()
			return true
		}
		p.arguments(args.member(strings.TrimSpace(key), p.tools.value(name, strings.TrimSpace(key), value)))
		p.skipSpace()
		if !p.accept("<arg_key>") {
			break
		}
	}
	p.arguments(args.close())
	p.end()
	return true
}

// objectWriter writes a JSON object member by member.
type objectWriter struct{ open bool }

func (w *objectWriter) member(key string, value []byte) []byte {
	b := []byte(", ")
	if !w.open {
		b = []byte("{")
	}
	w.open = true
	b = append(b, quoteJSON(key)...)
	b = append(b, ": "...)
	return append(b, value...)
}

func (w *objectWriter) close() []byte {
	if !w.open {
		return []byte("{}")
	}
	return []byte("}")
}

// functionTag reads, after "<function=", NAME>{...}</function> or
// NAME> <parameter=KEY>VALUE</parameter> ... </function>.
func (p *Parser) functionTag() bool {
	name, _, ok := p.until(maxName, nil, ">")
	if !ok || !validName(name) {
		return false
	}
	p.skipSpace()
	if p.peek() == '{' {
		p.begin(name, "")
		if !p.jsonValue(p.arguments) {
			p.broken()
			return true
		}
		p.end()
		return p.closing([]string{"</function>"})
	}
	if !p.hasAt(0, "<parameter=") && !p.hasAt(0, "</function>") {
		return false
	}
	p.begin(name, "")
	args := objectWriter{}
	for p.accept("<parameter=") {
		key, _, ok := p.until(maxName, nil, ">")
		if !ok {
			p.broken()
			return true
		}
		// Of line breaks around a value, the last belongs to the form if the
		// first does.
		line := p.accept("\n")
		value, mark := p.untilEnd("</parameter>", "</function>")
		if mark == "" { // cut off
			p.arguments(args.member(key, quoteJSON(value)))
			p.end()
			return true
		}
		if line {
			value = strings.TrimSuffix(value, "\n")
		}
		p.arguments(args.member(key, p.tools.value(name, key, value)))
		if mark == "</function>" {
			p.arguments(args.close())
			p.end()
			return true
		}
		p.skipSpace()
	}
	p.arguments(args.close())
	p.end()
	return p.closing([]string{"</function>"})
}

// invokes reads <invoke name="NAME"><parameter name="KEY">VALUE</parameter>
// ...</invoke> ... with a prefix before the tags' names.
func (p *Parser) invokes(prefix, closing string) bool {
	for n := 0; ; n++ {
		p.skipSpaceBefore(prefix+"invoke name=\"", closing)
		if !p.accept(prefix + "invoke name=\"") {
			return n > 0 && p.closing([]string{closing})
		}
		name, _, ok := p.until(maxName, nil, "\"")
		if !ok || !validName(name) {
			return n > 0
		}
		p.accept(">")
		p.begin(name, "")
		end := strings.Replace(prefix, "<", "</", 1)
		args := objectWriter{}
		for {
			p.skipSpace()
			if !p.accept(prefix + "parameter name=\"") {
				break
			}
			head, _, ok := p.until(maxName, nil, ">")
			if !ok {
				break
			}
			key, rest, _ := strings.Cut(head, "\"")
			value, mark := p.untilEnd(end+"parameter>", "</parameter>")
			if mark == "" { // cut off
				p.arguments(args.member(key, quoteJSON(value)))
				p.end()
				return true
			}
			v := p.tools.value(name, key, value)
			if strings.Contains(rest, `string="true"`) {
				v = quoteJSON(value)
			}
			p.arguments(args.member(key, v))
		}
		p.arguments(args.close())
		p.accept(end + "invoke>")
		p.end()
	}
}

// mistralCalls reads, after "[TOOL_CALLS]", a JSON array, or NAME[ARGS]{...}
// or NAME[CALL_ID]ID[ARGS]{...}.
func (p *Parser) mistralCalls() bool {
	p.skipSpace()
	if c := p.peek(); c == '[' || c == '{' {
		return p.jsonCalls(false)
	}
	name, mark, ok := p.until(maxName, nil, "[ARGS]", "[CALL_ID]", "{")
	id := ""
	if ok && mark == "[CALL_ID]" {
		id, mark, ok = p.until(maxName, nil, "[ARGS]", "{")
	}
	name = strings.TrimSpace(name)
	if !ok || !validName(name) {
		return false
	}
	if mark == "{" {
		p.pos--
	}
	p.skipSpace()
	return p.named(name, strings.TrimSpace(id))
}

// named reads the arguments of a call whose name is known.
func (p *Parser) named(name, id string) bool {
	if p.peek() != '{' {
		return false
	}
	p.begin(name, id)
	if !p.jsonValue(p.arguments) {
		p.broken()
		return true
	}
	p.end()
	return true
}

// deepseekCalls reads the calls between <｜tool▁calls▁begin｜> and its end.
func (p *Parser) deepseekCalls() bool {
	for n := 0; ; n++ {
		p.skipSpaceBefore("<｜tool▁call▁begin｜>", "<｜tool▁calls▁end｜>")
		if !p.accept("<｜tool▁call▁begin｜>") {
			return n > 0 && p.closing([]string{"<｜tool▁calls▁end｜>"})
		}
		if !p.deepseekCall() {
			return n > 0
		}
	}
}

// deepseekCall reads TYPE<｜tool▁sep｜>NAME, a fence and JSON (V3, R1), or
// NAME<｜tool▁sep｜>{...} (V3.1).
func (p *Parser) deepseekCall() bool {
	name, _, ok := p.until(maxName, nil, "<｜tool▁sep｜>")
	if !ok {
		return false
	}
	p.skipSpace()
	if p.peek() != '{' {
		if name, _, ok = p.until(maxName, nil, "\n", "```"); !ok {
			return false
		}
		p.skipSpace()
		_ = p.accept("```json") || p.accept("json")
		p.skipSpace()
	}
	if name = strings.TrimSpace(name); !validName(name) || !p.named(name, "") {
		return false
	}
	p.skipSpaceBefore("```")
	p.accept("```")
	return p.closing([]string{"<｜tool▁call▁end｜>"})
}

// kimiCalls reads <|tool_call_begin|>functions.NAME:0
// <|tool_call_argument_begin|>{...}<|tool_call_end|> ...
func (p *Parser) kimiCalls() bool {
	for n := 0; ; n++ {
		p.skipSpaceBefore("<|tool_call_begin|>", "<|tool_calls_section_end|>")
		if !p.accept("<|tool_call_begin|>") {
			return n > 0 && p.closing([]string{"<|tool_calls_section_end|>"})
		}
		if !p.kimiCall() {
			return n > 0
		}
	}
}

// kimiCall reads one of these calls.
func (p *Parser) kimiCall() bool {
	id, _, ok := p.until(maxName, nil, "<|tool_call_argument_begin|>")
	id = strings.TrimSpace(id)
	name := strings.TrimPrefix(id, "functions.")
	if i := strings.LastIndexByte(name, ':'); i > 0 {
		name = name[:i]
	}
	p.skipSpace()
	return ok && validName(name) && p.named(name, id) && p.closing([]string{"<|tool_call_end|>"})
}

// lfmCalls reads [NAME(KEY=VALUE, ...), ...] or JSON.
func (p *Parser) lfmCalls() bool {
	p.skipSpace()
	return p.pythonCalls("<|tool_call_end|>")
}

// pythonTag reads what Llama 3 writes after <|python_tag|>: JSON calls,
// TOOL.call(KEY=VALUE), or code for a tool called python or the like.
func (p *Parser) pythonTag() bool {
	p.skipSpace()
	if p.peek() == '{' {
		return p.jsonCalls(false)
	}
	for name := range p.tools {
		if p.accept(name + ".call(") {
			return p.pythonArguments(name)
		}
	}
	for _, name := range codeTools {
		if p.tools[name] != nil {
			code, _ := p.untilEnd("<|eom_id|>", "<|eot_id|>")
			p.code(name, code)
			return true
		}
	}
	return false
}

// commandR reads what Command R writes after "Action:": a fenced list of
// calls, of which directly_answer means none.
func (p *Parser) commandR() bool {
	p.skipSpace()
	if !p.accept("```json") {
		return false
	}
	p.skipSpace()
	return p.jsonCalls(false, "```")
}

// recipients reads what functionary writes after ">>>": a recipient and a
// line, then text for all or arguments, and then perhaps ">>>" again. Without
// arguments only a tool that was offered is called: ">>>" begins lines of
// examples too.
func (p *Parser) recipients() {
	space := "" // before the mark
	for n := 0; ; n++ {
		p.keep = p.pos
		to, _, ok := p.until(maxName, nil, "\n")
		to = strings.TrimSpace(to)
		switch {
		case ok && to == "all":
			p.keep = -1
			p.skipSpace()
		case ok && len(p.tools) > 0 && p.recipient(to):
			p.keep = -1
			p.skipSpaceBefore(">>>")
			if !p.accept(">>>") {
				return
			}
			continue
		default: // the line is text, and the mark if the answer has one
			if p.pos, p.keep = p.keep, -1; n == 0 {
				return
			}
			p.text([]byte(space + ">>>"))
		}
		if p.upTo(PartText, ">>>") == "" {
			return
		}
		text := p.buf[:p.pos-len(">>>")]
		space = string(text[len(bytes.TrimRight(text, " \n\r\t")):])
	}
}

// recipient reads a call of the tool whose name has come.
func (p *Parser) recipient(name string) bool {
	if !validName(name) {
		return false
	}
	p.skipSpace()
	if p.named(name, "") {
		return true
	}
	if _, offered := p.tools[name]; !offered {
		return false
	}
	code, mark := p.untilEnd(">>>")
	args := objectWriter{}
	p.whole(name, "", append(args.member("code", quoteJSON(code)), '}'))
	p.pos -= len(mark)
	return true
}

// GenericTools returns the text that tells a model about tools whose template
// has no place for them, and how to call them.
func GenericTools(tools []json.RawMessage) string {
	var b strings.Builder
	b.WriteString("You can call these functions:\n<tools>\n")
	for _, t := range tools {
		b.Write(t)
		b.WriteByte('\n')
	}
	b.WriteString("</tools>\nTo call a function, write a JSON object with its name and arguments within <tool_call> tags:\n" +
		"<tool_call>\n{\"name\": \"FUNCTION\", \"arguments\": {...}}\n</tool_call>\n" +
		"The result will be given to you within <tool_response> tags.")
	return b.String()
}

// FoldTools returns a conversation without tool calls and tool messages, for
// templates that have no place for them (see Caps): calls become the text
// that GenericTools describes, results become turns of the user.
func FoldTools(msgs []Message) []Message {
	var out []Message
	for _, m := range msgs {
		for _, c := range m.ToolCalls {
			_, args, err := c.arguments()
			if err != nil {
				args = string(c.Arguments)
			}
			m.Content = strings.TrimPrefix(m.Content+"\n<tool_call>\n{\"name\": "+string(quoteJSON(c.Name))+", \"arguments\": "+args+"}\n</tool_call>", "\n")
		}
		m.ToolCalls = nil
		if m.Role == "tool" {
			m = Message{Role: "user", Content: "<tool_response>\n" + m.Content + "\n</tool_response>"}
			if n := len(out); n > 0 && out[n-1].Role == "user" && strings.HasSuffix(out[n-1].Content, "</tool_response>") {
				out[n-1].Content += "\n" + m.Content
				continue
			}
		}
		out = append(out, m)
	}
	return out
}
