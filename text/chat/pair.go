package chat

import (
	"encoding/json"
	"strings"
)

// Pairs reports whether a template's source asks for a query and a document, as those
// of rerankers that read both at once do.
func Pairs(source string) bool {
	has := func(role string) bool {
		return strings.Contains(source, "'"+role+"'") || strings.Contains(source, `"`+role+`"`)
	}
	return has("query") && has("document")
}

// PairSource returns the source of a template for a query and a document whose places
// in text are {query} and {document}. What a line begins with <Instruct>: says holds
// where no other instruction is given.
func PairSource(text string) string {
	const instruct = "<Instruct>: "
	quote := func(s string) string {
		b, _ := json.Marshal(s) // of a string there is no error
		return string(b)
	}
	var out strings.Builder
	say := func(s string) {
		if s != "" {
			out.WriteString("{{ " + quote(s) + " }}")
		}
	}
	for text != "" {
		at, mark := len(text), ""
		for _, m := range []string{"{query}", "{document}", instruct} {
			if i := strings.Index(text, m); i >= 0 && i < at {
				at, mark = i, m
			}
		}
		say(text[:at])
		text = text[min(len(text), at+len(mark)):]
		switch mark {
		case "{query}":
			out.WriteString("{{ messages[-2].content }}")
		case "{document}":
			out.WriteString("{{ messages[-1].content }}")
		case instruct:
			own, rest, _ := strings.Cut(text, "\n")
			say(instruct)
			out.WriteString("{{ messages[0].content if messages[0].role == 'system' else " + quote(own) + " }}")
			text = "\n" + rest
		}
	}
	return out.String()
}

// Pair returns the prompt of a query and a document, which a template that [Pairs] has
// as messages of these roles. instruction, if there is one, is the system's message
// before them. No tokens go around the prompt but those that the template prints.
func (t *Template) Pair(instruction, query, document string, tok Tokenizer) (Prompt, error) {
	in := Input{Messages: []Message{{Role: "query", Content: query}, {Role: "document", Content: document}}, AddGenerationPrompt: true}
	if instruction != "" {
		in.Messages = append([]Message{{Role: "system", Content: instruction}}, in.Messages...)
	}
	r, err := t.rendering(in)
	if err != nil {
		return Prompt{}, err
	}
	p := Prompt{Text: r.text, plain: r.given, given: r.given}
	if t.opts.TrustMarks {
		p.plain = nil
	}
	p.Tokens = p.Encode(tok, false)
	return p, nil
}
