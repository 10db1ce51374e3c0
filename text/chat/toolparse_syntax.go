package chat

import (
	"slices"
	"strings"
)

// Syntax says how a family of models writes its reasoning and its tool
// calls. SyntaxOf finds the one of a template.
type Syntax struct {
	Name string // of the family, for people
	// ThinkOpen and ThinkClose are the tags around reasoning, "" if the
	// family has none.
	ThinkOpen, ThinkClose string
	// Call is how one call is written as JSON, for a grammar.
	Call CallForm

	harmony    bool // messages with channels
	recipients bool // ">>>name\n"
	bare       bool // an answer may be a call without any mark
	openers    []opener
	drops      []opener // marks that are left out of the text
	closers    []string
}

// CallForm is the text around a call and the keys in it:
// Begin {NameKey: ..., ArgumentsKey: ...} End.
type CallForm struct {
	Begin, End, Between   string
	NameKey, ArgumentsKey string
}

// opener is a mark that begins a call, and what reads the call after it.
type opener struct {
	mark  string
	parse func(*Parser) bool
}

// openers are the marks that are looked for in the answers of every model:
// a model that was trained on another family's calls writes these.
var openers = []opener{
	{"<tool_call>", (*Parser).taggedCalls},
	{"<|tool_call|>", func(p *Parser) bool { return p.jsonCalls(false, "<|/tool_call|>", "</tool_call>") }},
	{"<|tool_call>", func(p *Parser) bool { return p.colonCalls("<tool_call|>") }},
	{"<TOOLCALL>", func(p *Parser) bool { return p.jsonCalls(false, "</TOOLCALL>") }},
	{"[TOOL_CALLS]", (*Parser).mistralCalls},
	{"<|python_tag|>", (*Parser).pythonTag},
	{"<|python_start|>", func(p *Parser) bool { return p.pythonCalls("<|python_end|>") }},
	{"<function=", func(p *Parser) bool { return p.functionTag() && p.closing([]string{"</tool_call>"}) }},
	{"<function name=\"", (*Parser).functionParams},
	{"<｜tool▁calls▁begin｜>", (*Parser).deepseekCalls},
	{"<｜tool▁call▁begin｜>", (*Parser).deepseekCall},
	{"<|tool_call_begin|>", (*Parser).kimiCall},
	{"<function_call>", func(p *Parser) bool { return p.jsonCalls(false, "</function_call>") }},
	{"<|action_start|>", (*Parser).internCalls},
	{"<|tools_prefix|>", (*Parser).keyedCalls},
	{"]<]minimax[>[<tool_call>", (*Parser).minimaxCalls},
	{"<|open|>tools<|sep|>", (*Parser).kimi3Calls},
	{"<atem:function_calls>", func(p *Parser) bool { return p.invokes("<atem:", "</atem:function_calls>") }},
	{"<|message_sep|>\n\nfunction call<|role_sep|>", func(p *Parser) bool { return p.jsonCalls(false) }},
	{"```tool_code", func(p *Parser) bool { return p.codeCalls("```") }},
	{"```json", func(p *Parser) bool { return p.jsonCalls(true, "```") }},
	{"```tool_call", func(p *Parser) bool { return p.jsonCalls(true, "```") }},
	{"```\n{", func(p *Parser) bool { p.pos--; return p.jsonCalls(true, "```") }},
	{"<tools>", func(p *Parser) bool { return p.jsonCalls(true, "</tools>") }}, // Qwen 2.5 Coder
	{"<｜DSML｜function_calls>", func(p *Parser) bool { return p.invokes("<｜DSML｜", "</｜DSML｜function_calls>") }},
	{"<｜DSML｜tool_calls>", func(p *Parser) bool { return p.invokes("<｜DSML｜", "</｜DSML｜tool_calls>") }},
	{"<tool_calls>", func(p *Parser) bool { return p.jsonCalls(false, "</tool_calls>") }},
	{"<|function_call|>", func(p *Parser) bool { return p.jsonCalls(false) }},
	{"<|START_ACTION|>", func(p *Parser) bool { return p.jsonCalls(false, "<|END_ACTION|>") }},
	{"<|tool_calls_section_begin|>", (*Parser).kimiCalls},
	{"<|tool_call_start|>", (*Parser).lfmCalls},
	{"<minimax:tool_call>", func(p *Parser) bool { return p.invokes("<", "</minimax:tool_call>") }},
	{"<seed:tool_call>", (*Parser).taggedCalls},
	{"<function_calls>", (*Parser).functionCalls},
	{"<start_function_call>", func(p *Parser) bool { return p.colonCalls("<end_function_call>") }},
}

// closers end calls whose arguments are not JSON.
var closers = []string{
	"</tool_call>", "<|/tool_call|>", "</TOOLCALL>", "</function>", "<｜tool▁call▁end｜>", "<|END_ACTION|>", "<|tool_call_end|>",
	"<|call|>", "<|end|>", "</function_call>", "<|action_end|>",
}

// family is a way of writing calls, found by what its template contains.
type family struct {
	name  string
	all   []string // the template contains all of these
	think [2]string
	form  CallForm
	more  []opener
	drops []string // marks around the text
	set   func(*Syntax)
}

var families = []family{
	{name: "harmony", all: []string{"<|channel|>", "<|message|>"}, set: func(s *Syntax) { s.harmony = true }},
	{name: "glimmer", all: []string{"<|message|>", "to=self"}, set: func(s *Syntax) { s.harmony = true }},
	{name: "deepseek", all: []string{"<｜tool▁calls▁begin｜>"}, think: [2]string{"<think>", "</think>"}},
	{name: "mistral", all: []string{"[TOOL_CALLS]"}, form: CallForm{Begin: "[TOOL_CALLS][", End: "]", Between: ""}},
	{name: "functionary", all: []string{">>>all"}, set: func(s *Syntax) { s.recipients = true }},
	{name: "command-r7b", all: []string{"<|START_ACTION|>"}, form: CallForm{Begin: "<|START_ACTION|>[", End: "]<|END_ACTION|>", NameKey: "tool_name", ArgumentsKey: "parameters"},
		drops: []string{"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"}},
	{name: "command-r", all: []string{"Action:", "```json", `"tool_name"`}, form: CallForm{Begin: "Action: ```json\n[", End: "]\n```", NameKey: "tool_name", ArgumentsKey: "parameters"},
		more: []opener{{"Action:", (*Parser).commandR}}},
	{name: "firefunction", all: []string{"functools["}, form: CallForm{Begin: " functools[", End: "]"},
		more: []opener{{"functools", func(p *Parser) bool { return p.peek() == '[' && p.jsonCalls(false) }}}},
	{name: "granite", all: []string{"<|tool_call|>"}, form: CallForm{Begin: "<|tool_call|>[", End: "]"}},
	{name: "nemotron", all: []string{"<TOOLCALL>"}, form: CallForm{Begin: "<TOOLCALL>[", End: "]</TOOLCALL>"}},
	{name: "kimi", all: []string{"<|tool_calls_section_begin|>"}},
	{name: "lfm2", all: []string{"<|tool_call_start|>"}},
	{name: "seed-oss", all: []string{"<seed:tool_call>"}, think: [2]string{"<seed:think>", "</seed:think>"}},
	{name: "minimax-m3", all: []string{"]<]minimax[>["}, think: [2]string{"<mm:think>", "</mm:think>"}},
	{name: "kimi-k3", all: []string{"<|open|>", "<|sep|>"}, think: [2]string{"<|open|>think<|sep|>", "<|close|>think<|sep|>"},
		drops: []string{"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"}},
	{name: "apertus", all: []string{"<|tools_prefix|>"}, think: [2]string{"<|inner_prefix|>", "<|inner_suffix|>"}},
	{name: "apriel", all: []string{"[BEGIN FINAL RESPONSE]"}, think: [2]string{"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
		drops: []string{"[END FINAL RESPONSE]", "<|end|>"}},
	{name: "internlm", all: []string{"<|action_start|>"}},
	{name: "ling", all: []string{"<role>", "<|role_end|>"}, form: CallForm{Begin: "<tool_call>\n", End: "\n</tool_call>", Between: "\n"}, drops: []string{"<|role_end|>"}},
	{name: "minimax", all: []string{"<minimax:tool_call>"}},
	{name: "functiongemma", all: []string{"<start_function_call>"}},
	{name: "gemma4", all: []string{"<|tool_call>"}, think: [2]string{"<|channel>thought", "<channel|>"},
		drops: []string{"<|channel>thought\n<channel|>", "<channel|>", "<|channel>"}},
	{name: "functionary-llama", all: []string{"<function=", "<|python_tag|>"}},
	{name: "smollm3", all: []string{"<tool_call>", "<code>"}, form: CallForm{Begin: "<tool_call>\n", End: "\n</tool_call>", Between: "\n"},
		more: []opener{{"<code>", func(p *Parser) bool { return p.codeCalls("</code>") }}}},
	{name: "hermes", all: []string{"<tool_call>"}, form: CallForm{Begin: "<tool_call>\n", End: "\n</tool_call>", Between: "\n"}},
	{name: "qwen-coder", all: []string{"<function=", "<parameter="}},
	{name: "llama3", all: []string{"<|start_header_id|>", `"parameters"`}, form: CallForm{ArgumentsKey: "parameters", Between: "; "}},
}

// thinkTags are the tags around reasoning that templates speak of.
var thinkTags = [][2]string{
	{"<think>", "</think>"},
	{"<|START_THINKING|>", "<|END_THINKING|>"},
	{"[THINK]", "[/THINK]"},
	{"<seed:think>", "</seed:think>"},
	{"<reasoning>", "</reasoning>"},
}

// Generic is the syntax of models whose template says nothing of tools: a
// prompt has to tell them how to write a call, as GenericTools does.
func Generic() Syntax {
	return Syntax{Name: "generic", bare: true, openers: openers, closers: closers,
		Call: CallForm{Begin: "<tool_call>\n", End: "\n</tool_call>", Between: "\n", NameKey: "name", ArgumentsKey: "arguments"}}
}

// SyntaxOf returns the syntax of the models that a template was written for.
func SyntaxOf(template string) Syntax {
	s := Generic()
	for _, t := range thinkTags {
		if strings.Contains(template, t[1]) {
			s.ThinkOpen, s.ThinkClose = t[0], t[1]
			break
		}
	}
	for _, f := range families {
		if slices.ContainsFunc(f.all, func(m string) bool { return !strings.Contains(template, m) }) {
			continue
		}
		s.Name = f.name
		if f.form != (CallForm{}) {
			s.Call = f.form
		}
		if f.think[0] != "" {
			s.ThinkOpen, s.ThinkClose = f.think[0], f.think[1]
		}
		s.openers = append(slices.Clip(openers), f.more...)
		for _, d := range f.drops {
			s.drops = append(s.drops, opener{d, func(p *Parser) bool { p.drops = true; return true }})
		}
		if f.set != nil {
			f.set(&s)
		}
		break
	}
	if s.Call.NameKey == "" {
		s.Call.NameKey = "name"
	}
	if s.Call.ArgumentsKey == "" {
		s.Call.ArgumentsKey = "arguments"
	}
	return s
}

// WithReasoning returns s with the tags of reasoning that name stands for, such
// as "think", for models whose template does not show them: "none" for none, so
// that all reasoning stays in the text, and "" for those that s has.
func (s Syntax) WithReasoning(name string) Syntax {
	switch name {
	case "":
	case "none":
		s.ThinkOpen, s.ThinkClose = "", ""
	default:
		s.ThinkOpen, s.ThinkClose = "<"+name+">", "</"+name+">"
	}
	return s
}

// Thinks reports whether an answer to prompt begins inside a reasoning
// section, because the prompt ends with its opening tag.
func (s Syntax) Thinks(prompt string) bool {
	open, _, _ := s.Reasoning()
	return open != "" && strings.HasSuffix(strings.TrimRight(prompt, " \n\r\t"), open)
}

// Reasoning returns the texts that begin and end a section of reasoning, and
// what closes one from outside, in pieces that are encoded each for itself; ""
// and nil if the family has none.
func (s Syntax) Reasoning() (open, closing string, forced []string) {
	switch {
	case s.Name == "harmony":
		return harmonyAnalysis, "<|end|>", []string{"<|end|><|start|>assistant<|channel|>final<|message|>"}
	case s.ThinkClose == "":
		return "", "", nil
	case strings.HasPrefix(s.ThinkClose, "<|") || strings.HasPrefix(s.ThinkClose, "<｜"):
		return s.ThinkOpen, s.ThinkClose, []string{s.ThinkClose}
	}
	return s.ThinkOpen, s.ThinkClose, []string{"\n", s.ThinkClose}
}

// InThinking reports whether prompt ends within a reasoning section, of which
// it may have more than the opening tag: a prompt that begins the answer.
func (s Syntax) InThinking(prompt string) bool {
	open, closing, _ := s.Reasoning()
	return open != "" && strings.LastIndex(prompt, open) > strings.LastIndex(prompt, closing)
}

// ClosedThinking reports whether the prompt already ended the reasoning
// section of the answer, as templates do when thinking is turned off.
func (s Syntax) ClosedThinking(prompt string) bool {
	return s.ThinkClose != "" && strings.HasSuffix(strings.TrimRight(prompt, " \n\r\t"), s.ThinkClose)
}

// Marks returns the texts that a parser looks for. Where a vocabulary has
// tokens for them that are not text, a decoder must write them out.
func (s Syntax) Marks() []string {
	marks := []string{
		"<tool_call|>", "<end_function_call>", "<|\"|>", "<escape>", "[ARGS]", "[CALL_ID]",
		"<｜tool▁sep｜>", "<｜tool▁calls▁end｜>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_calls_section_end|>",
		"</minimax:tool_call>", "</seed:tool_call>", "</function_calls>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
	}
	for _, o := range append(slices.Clip(s.openers), s.drops...) {
		marks = append(marks, o.mark)
	}
	switch s.Name {
	case "kimi-k3":
		marks = append(marks, "<|open|>", "<|close|>", "<|sep|>")
	case "minimax-m3":
		marks = append(marks, "]<]minimax[>[")
	case "internlm":
		marks = append(marks, "<|plugin|>", "<|interpreter|>")
	}
	marks = append(marks, s.closers...)
	if s.ThinkClose != "" {
		marks = append(marks, s.ThinkOpen, s.ThinkClose)
	}
	if s.Name == "gemma4" {
		marks = append(marks, "<|channel>")
	}
	if s.harmony {
		marks = append(marks, "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|return|>", "<|eom|>")
	}
	return marks
}

// Harmony reports whether a message's end mark, <|end|>, does not end the
// answer in this syntax: another message of the same answer follows it.
func (s Syntax) Harmony() bool { return s.harmony }
