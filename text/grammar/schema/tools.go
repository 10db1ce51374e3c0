package schema

import (
	"slices"
	"unicode/utf8"

	"ridge/internal/diag"
	"ridge/text/grammar"
)

// Tool is a function that a model may call.
type Tool struct {
	Name       string
	Parameters []byte // JSON schema of the arguments; empty: any object
	// Strict refuses a schema with keywords that cannot be enforced or are not
	// written correctly. With Loose, they are left out of the other tools' schemas.
	Strict bool
	// Left says why no schema holds the arguments; "" if one does.
	Left string
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
func Tools(v *grammar.Vocabulary, tools []Tool, o ToolOptions) (*grammar.Grammar, error) {
	return loosely(o.Options, func(p Options) (*grammar.Grammar, error) {
		o := o
		o.Options = p
		b := o.builder("tools")
		root, err := toolsRule(&jsonText{b: b, space: o.Whitespace}, tools, o)
		if err != nil {
			return nil, err
		}
		return b.Compile(root, v, o.MaxDepth)
	})
}

func toolsRule(j *jsonText, tools []Tool, o ToolOptions) (*grammar.Rule, error) {
	b := j.b
	call := b.Rule("call")
	if err := addTools(j, call, tools, o); err != nil {
		return nil, err
	}
	least, most := o.MinCalls, o.MaxCalls
	if least == 0 && most == 0 {
		least, most = 1, 1
	}
	if least < 0 || most >= 0 && most < least || max(least, most) > grammar.MaxRepeat {
		return nil, &grammar.Error{Kind: grammar.Invalid, Source: "tools", Keyword: "MaxCalls", Why: "expected 0 <= MinCalls <= MaxCalls"}
	}
	root := b.Rule("calls")
	at, done := root.State(), root.State()
	root.Text(root.Start, o.Before, at)
	root.Text(done, o.After, root.End)
	if least == 0 {
		root.Skip(at, done)
	}
	if most != 0 {
		first := root.State()
		root.Call(at, call, first)
		more := b.Rule("further calls")
		begin := more.State()
		more.Text(more.Start, o.Between, begin)
		more.Call(begin, call, more.End)
		if most > 0 {
			most--
		}
		root.Call(first, b.Loop("calls", more, max(0, least-1), most), done)
	}
	return root, b.Err()
}

func addTools(j *jsonText, call *grammar.Rule, tools []Tool, o ToolOptions) error {
	b := j.b
	if o.NameKey == "" {
		o.NameKey = "name"
	}
	if o.ArgumentsKey == "" {
		o.ArgumentsKey = "arguments"
	}
	var names []string
	for _, t := range tools {
		if t.Name == "" || !utf8.ValidString(t.Name) || slices.Contains(names, t.Name) {
			return &grammar.Error{Kind: grammar.Invalid, Source: "tools", Keyword: t.Name, Why: "expected names that are not empty, each once"}
		}
		names = append(names, t.Name)
		if o.Only != "" && o.Only != t.Name {
			continue
		}
		arguments := j.anyObject()
		if t.Left != "" {
			b.Note(grammar.Unenforced{Where: "tool " + diag.Quote(t.Name), Why: "its schema is left out: " + t.Left})
		}
		if len(t.Parameters) > 0 {
			p := o.Options
			if p.object = true; t.Strict {
				p.left = nil
			}
			r, err := schemaRule(j, t.Parameters, p, "tool "+diag.Quote(t.Name))
			if err != nil {
				return err
			}
			arguments = r
		}
		open := call.State()
		call.Text(call.Start, o.Begin, open)
		closing := call.State()
		j.list(call, open, "{}", 2, closing, func(i int, from, to int32) {
			key := o.NameKey
			if i == 1 {
				key = o.ArgumentsKey
			}
			colon, value := call.State(), call.State()
			call.Text(from, quote(key)+":", colon)
			j.gap(call, colon, afterColon, value)
			if i == 0 {
				call.Text(value, quote(t.Name), to)
			} else {
				call.Call(value, arguments, to)
			}
		})
		call.Text(closing, o.End, call.End)
	}
	if o.Only != "" && !slices.Contains(names, o.Only) {
		return &grammar.Error{Kind: grammar.Invalid, Source: "tools", Keyword: o.Only, Why: "no such tool"}
	}
	if len(names) == 0 {
		return &grammar.Error{Kind: grammar.Invalid, Source: "tools", Why: "expected at least one tool"}
	}
	return nil
}
