package grammar

import (
	"slices"
	"unicode/utf8"

	"ridge/internal/diag"
)

// Choice compiles the grammar of a list of texts, for the vocabulary v (nil: no
// masks).
func Choice(v *Vocabulary, texts []string) (*Grammar, error) {
	b := &builder{source: "choice"}
	root, err := choiceRule(b, texts)
	if err != nil {
		return nil, err
	}
	return compile(b, root, v, 0)
}

func choiceRule(b *builder, texts []string) (*ruleGraph, error) {
	if len(texts) == 0 {
		return nil, &Error{Kind: Invalid, Source: "choice", Why: "expected at least one text"}
	}
	if len(texts) > maxChoices {
		return nil, tooLarge("choice", "", "more than %d texts", maxChoices)
	}
	root := b.rule("root")
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return nil, &Error{Kind: Invalid, Source: "choice", Keyword: t, Why: "not valid UTF-8"}
		}
		root.text(root.start, t, root.end)
	}
	return root, b.err
}

// Tool is a function that a model may call.
type Tool struct {
	Name       string
	Parameters []byte // JSON schema of the arguments; empty: any object
}

// ToolOptions describe how a family of models writes calls. The text is
//
//	Before, Begin CALL End, Between Begin CALL End ..., After
//
// where CALL is {"name": NAME, "arguments": ARGUMENTS}.
type ToolOptions struct {
	Options
	NameKey, ArgumentsKey string // names of the two members; "" for "name" and "arguments"
	Before, After         string // around all calls
	Begin, End            string // around each call
	Between               string // between two calls
	MinCalls, MaxCalls    int    // number of calls; 0 and 0 for exactly one, MaxCalls < 0: no bound
	Only                  string // the one tool that may be called; "" for any
}

// Tools compiles the grammar of calls of the given tools, each with arguments
// that meet its schema, for the vocabulary v (nil: no masks).
func Tools(v *Vocabulary, tools []Tool, o ToolOptions) (*Grammar, error) {
	b := &builder{source: "tools"}
	root, err := toolsRule(&jsonText{b: b, space: o.Whitespace}, tools, o)
	if err != nil {
		return nil, err
	}
	return compile(b, root, v, o.MaxDepth)
}

func toolsRule(j *jsonText, tools []Tool, o ToolOptions) (*ruleGraph, error) {
	b := j.b
	call := b.rule("call")
	if err := addTools(j, call, tools, o); err != nil {
		return nil, err
	}
	least, most := o.MinCalls, o.MaxCalls
	if least == 0 && most == 0 {
		least, most = 1, 1
	}
	if least < 0 || most >= 0 && most < least || max(least, most) > maxRepeat {
		return nil, &Error{Kind: Invalid, Source: "tools", Keyword: "MaxCalls", Why: "expected 0 <= MinCalls <= MaxCalls"}
	}
	root := b.rule("calls")
	at, done := root.state(), root.state()
	root.text(root.start, o.Before, at)
	root.text(done, o.After, root.end)
	if least == 0 {
		root.skip(at, done)
	}
	if most != 0 {
		first := root.state()
		root.call(at, call, first)
		more := b.rule("further calls")
		begin := more.state()
		more.text(more.start, o.Between, begin)
		more.call(begin, call, more.end)
		if most > 0 {
			most--
		}
		root.call(first, b.loop("calls", more, max(0, least-1), most), done)
	}
	return root, b.err
}

func addTools(j *jsonText, call *ruleGraph, tools []Tool, o ToolOptions) error {
	if o.NameKey == "" {
		o.NameKey = "name"
	}
	if o.ArgumentsKey == "" {
		o.ArgumentsKey = "arguments"
	}
	var names []string
	for _, t := range tools {
		if t.Name == "" || !utf8.ValidString(t.Name) || slices.Contains(names, t.Name) {
			return &Error{Kind: Invalid, Source: "tools", Keyword: t.Name, Why: "expected names that are not empty, each once"}
		}
		names = append(names, t.Name)
		if o.Only != "" && o.Only != t.Name {
			continue
		}
		arguments := j.anyObject()
		if len(t.Parameters) > 0 {
			r, err := schemaRule(j, t.Parameters, o.Options, "tool "+diag.Quote(t.Name))
			if err != nil {
				return err
			}
			arguments = r
		}
		open := call.state()
		call.text(call.start, o.Begin, open)
		closing := call.state()
		j.list(call, open, "{}", 2, closing, func(i int, from, to int32) {
			key := o.NameKey
			if i == 1 {
				key = o.ArgumentsKey
			}
			colon, value := call.state(), call.state()
			call.text(from, quote(key)+":", colon)
			j.gap(call, colon, afterColon, value)
			if i == 0 {
				call.text(value, quote(t.Name), to)
			} else {
				call.call(value, arguments, to)
			}
		})
		call.text(closing, o.End, call.end)
	}
	if o.Only != "" && !slices.Contains(names, o.Only) {
		return &Error{Kind: Invalid, Source: "tools", Keyword: o.Only, Why: "no such tool"}
	}
	if len(names) == 0 {
		return &Error{Kind: Invalid, Source: "tools", Why: "expected at least one tool"}
	}
	return nil
}
