package schema

import "ridge/text/grammar"

// Part is a language that Union joins with others. One field says which; the
// functions of the same name say what it means.
type Part struct {
	Object  bool // any JSON object
	Schema  []byte
	Regex   string
	Choice  []string
	GBNF    string
	Lark    string
	Tools   []Tool
	Calling ToolOptions // of Tools
	Strict  bool        // despite Loose, refuses what of Schema cannot be enforced

	style string // in which Schema is written, a key of markups; "" for JSON
}

// Union compiles the grammar of the texts that one of the parts allows, for the
// vocabulary v (nil: no masks). Which one it is need not be decided by the first
// token.
func Union(v *grammar.Vocabulary, parts []Part, o Options) (*grammar.Grammar, error) {
	if len(parts) == 0 {
		return nil, &grammar.Error{Kind: grammar.Invalid, Source: "union", Why: "expected at least one part"}
	}
	return loosely(o, func(o Options) (*grammar.Grammar, error) { return union(v, parts, o) })
}

func union(v *grammar.Vocabulary, parts []Part, o Options) (*grammar.Grammar, error) {
	b := o.builder("union")
	j := &jsonText{b: b, space: o.Whitespace}
	root := b.Rule("union")
	for i := range parts {
		r, err := parts[i].rule(j, o)
		if err != nil {
			return nil, err
		}
		root.Call(root.Start, r, root.End)
	}
	return b.Compile(root, v, o.MaxDepth)
}

// rule adds the rule of a part. Errors name the part's own source.
func (p *Part) rule(j *jsonText, o Options) (*grammar.Rule, error) {
	b := j.b
	defer func(source string) { b.Source = source }(b.Source)
	switch {
	case p.Object:
		b.Source = "json"
		return j.anyObject(), b.Err()
	case p.Schema != nil:
		b.Source = "schema"
		if p.Strict {
			o.left = nil
		}
		if p.style != "" {
			return markupRule(j, p.Schema, p.style, o)
		}
		return schemaRule(j, p.Schema, o, "")
	case p.Regex != "":
		b.Source = "regex"
		return b.Regex(p.Regex)
	case p.Choice != nil:
		b.Source = "choice"
		return b.Choice(p.Choice)
	case p.GBNF != "":
		b.Source = "gbnf"
		return b.GBNF(p.GBNF)
	case p.Lark != "":
		b.Source = "lark"
		return larkRule(j, p.Lark, o)
	case p.Tools != nil:
		b.Source = "tools"
		calling := p.Calling
		calling.left, calling.Context = o.left, o.Context
		return toolsRule(j, p.Tools, calling)
	}
	return nil, &grammar.Error{Kind: grammar.Invalid, Source: "union", Why: "expected a part that says something"}
}
