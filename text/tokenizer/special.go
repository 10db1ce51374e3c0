package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// endNames are the texts of tokens that end an answer, whatever the file says
// about them: end of text, of turn and of message, and the fill-in-the-middle
// marks after which nothing sensible comes.
var endNames = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
	"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
	"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
}

// padNames are those of endNames that are padding in vocabularies that are not
// for code.
var padNames = map[string]bool{"<PAD>": true, "[PAD]": true}

// textNames are marks that belong to the answer's text (the channels of
// gpt-oss), so that readers of the answer can find them.
var textNames = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}

// findEnds fills t.eog from ids, which may be -1, and the names of tokens.
// Tokens found by name are marks from then on.
func (t *Tokenizer) findEnds(ids ...int32) {
	t.eog = make(map[int32]bool)
	for _, id := range ids {
		if id >= 0 {
			t.eog[id] = true
		}
	}
	has := func(name string) int32 {
		if id, ok := t.extra[name]; ok {
			return id
		}
		return t.vocab.find(name)
	}
	for _, name := range endNames {
		id := has(name)
		if id < 0 || padNames[name] && t.vocab.typ[id] != tokControl {
			continue
		}
		typ := t.vocab.typ[id]
		if typ == tokNormal && !t.isMark(id, name) || typ == tokUser && name == "</s>" {
			continue // a piece of text that looks like a mark
		}
		t.eog[id] = true
		t.vocab.typ[id] = tokControl
	}
	for _, name := range textNames {
		if id := has(name); id >= 0 {
			t.vocab.typ[id] = tokUser
		}
	}
	// Where a format ends messages by other marks, these two are text.
	calls := has("<|return|>") >= 0 && has("<|call|>") >= 0
	flush := has("<|flush|>") >= 0 && (has("<|call|>") >= 0 || has("<|calls|>") >= 0)
	if id := has("<|end|>"); id >= 0 && (calls || flush) {
		delete(t.eog, id)
		t.vocab.typ[id] = tokUser
	}
	if id := has("</s>"); id >= 0 && id != t.eos && has("<|tool_response>") >= 0 {
		delete(t.eog, id)
		t.vocab.typ[id] = tokNormal
	}
}

// isMark reports whether a token that the file calls normal, but whose name is
// that of a mark, is one: files with wrong types exist, and so do vocabularies
// that have </s> as a piece of HTML.
func (t *Tokenizer) isMark(id int32, name string) bool {
	switch m := t.model.(type) {
	case *bpe:
		return t.extra == nil && !slices.Contains(m.merges.product, id)
	case *spm, *unigram:
		return t.extra == nil && name != "</s>" // HTML knows it too
	}
	return false
}

// ggufSpecial reads which tokens are special and what goes around a text.
// t.prefix and t.suffix hold a -1 where the kind of vocabulary has BOS and EOS
// by default.
func (t *Tokenizer) ggufSpecial(r *ggufReader) {
	n := t.vocab.size()
	bos, eos := int32(-1), int32(-1)
	switch t.kind {
	case "spm":
		bos, eos = 1, 2
	case "unigram":
		eos = 1
	case "bpe":
		eos = t.vocab.find("<|endoftext|>")
	}
	if t.kind == "wordpiece" {
		t.bos = r.id("cls_token_id", r.id("bos_token_id", 101, n), n)
		sep := r.id("seperator_token_id", r.id("separator_token_id", 102, n), n)
		t.eos = r.id("eos_token_id", -1, n)
		t.setAround(r, t.bos, sep)
	} else {
		t.bos = r.id("bos_token_id", bos, n)
		t.eos = r.id("eos_token_id", eos, n)
		t.setAround(r, t.bos, t.eos)
	}
	t.between, t.behind = t.suffix, t.suffix
	if sep := r.id("seperator_token_id", r.id("separator_token_id", -1, n), n); t.kind == "unigram" && sep >= 0 {
		t.between = append(slices.Clone(t.suffix), sep)
	}
	t.findEnds(append(r.ends(n), t.eos, r.id("eot_token_id", -1, n), r.id("eom_token_id", -1, n))...)
	if m, ok := t.model.(*spm); ok {
		for id := range t.eog {
			m.rank[id] = noRank
		}
	}
	t.ggufAdded(r)
}

// setAround resolves what AddSpecial adds.
func (t *Tokenizer) setAround(r *ggufReader, first, last int32) {
	addFirst := get(r, "add_bos_token", len(t.prefix) > 0)
	addLast := get(r, "add_eos_token", len(t.suffix) > 0)
	if t.kind == "wordpiece" {
		addLast = get(r, "add_sep_token", addLast)
	}
	t.prefix, t.suffix = nil, nil
	if addFirst && first >= 0 {
		t.prefix = []int32{first}
	} else if addFirst {
		if _, set := r.md.Lookup(ggufPrefix + "add_bos_token"); set {
			r.fail(ggufPrefix+"add_bos_token", "true, but there is no bos_token_id")
		}
	}
	if addLast && last >= 0 {
		t.suffix = []int32{last}
	} else if addLast {
		if _, set := r.md.Lookup(ggufPrefix + "add_eos_token"); set {
			r.fail(ggufPrefix+"add_eos_token", "true, but there is no eos_token_id")
		}
	}
}

// ggufAdded collects the tokens that are cut out of the text: marks, and text
// that is always one token.
func (t *Tokenizer) ggufAdded(r *ggufReader) {
	model := strings.ToLower(get(r, "general.name", ""))
	phi3 := strings.Contains(model, "phi-3") || strings.Contains(model, "phi3")
	var found []added
	for id, typ := range t.vocab.typ {
		if typ != tokControl && typ != tokUser && typ != tokUnknown {
			continue
		}
		text := t.vocab.text[id]
		tok := added{text: text, id: int32(id), special: typ != tokUser}
		if phi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>" {
			tok.rstrip = true
		}
		if text == "<mask>" || text == "[MASK]" {
			tok.lstrip = true
		}
		found = append(found, tok)
	}
	var err error
	if t.added, err = newAddedSet(found); err != nil {
		r.fail(ggufPrefix+"tokens", "%v", err)
	}
}

// bertNormalizers returns what Bert does to a text before cutting it.
func bertNormalizers(clean, han, accents, lower bool) []normalizer {
	var out []normalizer
	if clean || han {
		out = append(out, bert{clean, han})
	}
	if accents {
		out = append(out, nfd, dropClass{markNonSpacing})
	}
	if lower {
		out = append(out, lowercase{})
	}
	return out
}

// bertStages cuts at spaces and around each punctuation character.
func bertStages() []stage {
	return []stage{
		{kind: stageSplit, pat: matches{classRun(clSpace)}, behave: removed},
		{kind: stageScan, match: punctuationOne},
	}
}

func (t *Tokenizer) checkIDs(ids []int32, what string) error {
	for _, id := range ids {
		if !t.vocab.valid(id) {
			return fmt.Errorf("%s: token %d is not in the vocabulary", what, id)
		}
	}
	return nil
}
