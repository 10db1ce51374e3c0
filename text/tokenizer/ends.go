package tokenizer

// AddEnds makes tokens end an answer beside those that the vocabulary says, as
// other files of a model may name them. Ids that are no tokens are passed over. It
// must be called before the tokenizer is used.
func (t *Tokenizer) AddEnds(ids ...int32) {
	for _, id := range ids {
		if id >= 0 && int(id) < t.vocab.size() {
			t.eog[id] = true
		}
	}
}

// ends are the tokens of the key that has all that end an answer, where a
// file has it beside the one of its vocabulary.
func (r *ggufReader) ends(n int) []int32 {
	v, _ := r.md.Lookup(ggufPrefix + "eos_token_ids")
	var out []int32
	add := func(id int64) {
		if id >= 0 && id < int64(n) {
			out = append(out, int32(id))
		}
	}
	switch ids := v.(type) {
	case []int32:
		for _, id := range ids {
			add(int64(id))
		}
	case []uint32:
		for _, id := range ids {
			add(int64(id))
		}
	case []int64:
		for _, id := range ids {
			add(id)
		}
	}
	return out
}
