package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// wordPiece gives the tokens of a WordPiece vocabulary the spelling that GGUF has for
// them: a mark before those that begin a word, and none before the others.
func (w *ggufWriter) wordPiece(f *jsonFile) error {
	const mark = "▁"
	t := w.t
	if p := w.m.Prefix; p != nil && *p != "##" {
		return fmt.Errorf("tokenizer.json: model.continuing_subword_prefix: expected ##, found %q", *p)
	}
	if len(t.prefix) != 1 || len(t.suffix) != 1 || w.unknown < 0 {
		return fmt.Errorf("tokenizer.json: expected a token before a text, one behind it and one for unknown words, as BERT has them, found %d, %d and %v", len(t.prefix), len(t.suffix), optional(w.m.UnkToken))
	}
	tokens, _ := w.Lookup(ggufPrefix + "tokens")
	texts := slices.Clone(tokens.([]string))
	for i := range min(len(texts), t.vocab.size()) {
		if typ := t.vocab.typ[i]; typ == tokControl || typ == tokAbsent {
			continue
		}
		if rest, ok := strings.CutPrefix(texts[i], "##"); ok {
			texts[i] = rest
		} else {
			texts[i] = mark + texts[i]
		}
	}
	w.put("model", "bert")
	w.put("tokens", texts)
	w.kvs = slices.DeleteFunc(w.kvs, func(kv KeyValue) bool { return kv.Key == ggufPrefix+"pre" })
	w.set("cls_token_id", uint32(t.prefix[0]))
	w.set("seperator_token_id", uint32(t.suffix[0])) // as GGUF spells it
	for name, text := range map[string]string{"padding_token_id": "[PAD]", "mask_token_id": "[MASK]"} {
		if id, ok := t.ID(text); ok {
			w.set(name, uint32(id))
		}
	}
	var n struct {
		Accents *bool `json:"strip_accents"`
		Lower   *bool `json:"lowercase"`
	}
	if err := json.Unmarshal(f.Normalizer, &n); err != nil && f.Normalizer != nil {
		return fmt.Errorf("tokenizer.json: normalizer: %w", err)
	}
	if lower := n.Lower == nil || *n.Lower; !lower || n.Accents != nil && *n.Accents != lower {
		w.set("normalizer.lowercase", lower)
		w.set("normalizer.strip_accents", n.Accents != nil && *n.Accents)
	}
	w.unknown = -1 // both readers have it for words without tokens
	if where := w.same(); where != "" {
		return fmt.Errorf("tokenizer.json: GGUF has no way to cut texts as this tokenizer does: other tokens for %q", where)
	}
	return nil
}
