package tokenizer

// Around puts the tokens of a text between those that the vocabulary asks for, as
// EncodeOptions.AddSpecial does.
func (t *Tokenizer) Around(text []int32) []int32 {
	out := make([]int32, 0, len(t.prefix)+len(text)+len(t.suffix))
	return append(append(append(out, t.prefix...), text...), t.suffix...)
}

// AroundLen returns how many tokens Around adds, AroundPairLen how many
// AroundPair does.
func (t *Tokenizer) AroundLen() int     { return len(t.prefix) + len(t.suffix) }
func (t *Tokenizer) AroundPairLen() int { return len(t.prefix) + len(t.between) + len(t.behind) }

// AroundPair puts the tokens of two texts that are read together, such as a query
// and a document, between those that the vocabulary asks for. It also returns how
// many tokens come before those that are the second text's.
func (t *Tokenizer) AroundPair(a, b []int32) (ids []int32, second int) {
	out := make([]int32, 0, t.AroundPairLen()+len(a)+len(b))
	out = append(append(append(out, t.prefix...), a...), t.between...)
	return append(append(out, b...), t.behind...), len(out)
}
