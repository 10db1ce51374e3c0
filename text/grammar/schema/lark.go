package schema

import "ridge/text/grammar"

// Lark compiles a grammar in the variant of Lark's notation that llguidance reads,
// with JSON schemas in it, for the vocabulary v (nil: no masks). See
// docs/grammars.md for the syntax. The options are those of the schemas.
func Lark(v *grammar.Vocabulary, source string, o Options) (*grammar.Grammar, error) {
	return loosely(o, func(o Options) (*grammar.Grammar, error) {
		b := o.builder("lark")
		root, err := larkRule(&jsonText{b: b, space: o.Whitespace}, source, o)
		if err != nil {
			return nil, err
		}
		return b.Compile(root, v, o.MaxDepth)
	})
}

// larkRule adds the rule of a grammar in Lark.
func larkRule(j *jsonText, source string, o Options) (*grammar.Rule, error) {
	return j.b.Lark(source, grammar.LarkOptions{JSON: func(b *grammar.Builder, schema []byte) (*grammar.Rule, error) {
		defer func(source string) { b.Source = source }(b.Source)
		b.Source = "schema"
		return schemaRule(j, schema, o, "")
	}})
}
