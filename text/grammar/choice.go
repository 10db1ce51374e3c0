package grammar

import (
	"slices"
	"unicode/utf8"
)

// Choice compiles the grammar of a list of texts, for the vocabulary v (nil: no
// masks).
func Choice(v *Vocabulary, texts []string) (*Grammar, error) {
	b := &Builder{Source: "choice"}
	root, err := b.Choice(texts)
	if err != nil {
		return nil, err
	}
	return b.Compile(root, v, 0)
}

// Choice adds the rule of a list of texts.
func (b *Builder) Choice(texts []string) (*Rule, error) {
	if len(texts) == 0 {
		return nil, &Error{Kind: Invalid, Source: "choice", Why: "expected at least one text"}
	}
	if len(texts) > maxChoices {
		return nil, tooLarge("choice", "", "more than %d texts", maxChoices)
	}
	root := b.Rule("root")
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return nil, &Error{Kind: Invalid, Source: "choice", Keyword: t, Why: "not valid UTF-8"}
		}
	}
	root.Texts(root.Start, slices.Clone(texts), root.End)
	return root, b.err
}
