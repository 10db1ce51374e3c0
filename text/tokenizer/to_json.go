package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// object is a JSON object.
type object = map[string]any

// ToJSON returns the files tokenizer.json and tokenizer_config.json of the tokenizer
// that the metadata of a GGUF file describe: byte-level BPE with a way of cutting
// texts that consists of regular expressions. Others are an error, and so is a file
// that would give other tokens for a text of many kinds of writing.
func ToJSON(md Metadata) (map[string][]byte, error) {
	files, err := toJSON(md)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return files, nil
}

func toJSON(md Metadata) (map[string][]byte, error) {
	t, err := fromGGUF(md)
	if err != nil {
		return nil, err
	}
	r := &ggufReader{md: md}
	if model := get(r, "model", ""); model != "gpt2" {
		return nil, fmt.Errorf("metadata %smodel: expected gpt2, which is written as tokenizer.json, found %.60q", ggufPrefix, model)
	}
	name := get(r, "pre", "default")
	p := preTokenizers[name]
	pre, err := stagesJSON(name, p)
	if err != nil {
		return nil, err
	}
	merges := get[[]string](r, "merges", nil)
	if r.err != nil {
		return nil, r.err
	}
	vocab, added := object{}, []object{}
	for i := range int32(t.vocab.size()) {
		text := t.vocab.text[i]
		switch kind := t.vocab.typ[i]; kind {
		case tokControl, tokUser:
			added = append(added, object{"id": i, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
				"normalized": false, "special": kind == tokControl})
		}
		vocab[text] = i
	}
	doc := object{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil, "pre_tokenizer": pre, "post_processor": t.wrapJSON(),
		"decoder": object{"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": p.whole, "vocab": vocab, "merges": merges}}
	if p.nfc {
		doc["normalizer"] = object{"type": "NFC"}
	}
	config := object{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	for key, id := range map[string]int32{"bos_token": t.bos, "eos_token": t.eos} {
		if id >= 0 {
			config[key] = t.vocab.text[id]
		}
	}
	return t.checkJSON(doc, config)
}

// stagesJSON returns a pre-tokenizer that cuts by regular expressions, one after the
// other.
func stagesJSON(name string, p preTokenizer) (any, error) {
	var list []object
	for _, stage := range p.stages {
		if stage[0] != '@' {
			list = append(list, object{"type": "Split", "pattern": object{"Regex": stage}, "behavior": "Isolated", "invert": false})
			continue
		}
		if stage != stageDigitsGPT2 {
			return nil, fmt.Errorf("metadata %spre: expected a way of cutting texts that is written as tokenizer.json, found %.60q", ggufPrefix, name)
		}
		list = append(list, object{"type": "Digits", "individual_digits": true},
			object{"type": "Split", "pattern": object{"Regex": reGPT2}, "behavior": "Isolated", "invert": false})
	}
	list = append(list, object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})
	return object{"type": "Sequence", "pretokenizers": list}, nil
}

// wrapJSON returns the post-processor that adds tokens around a text, nil for none.
func (t *Tokenizer) wrapJSON() any {
	if len(t.prefix)+len(t.suffix) == 0 {
		return nil
	}
	single, special := []object{}, object{}
	add := func(ids []int32) {
		for _, id := range ids {
			text := t.vocab.text[id]
			single = append(single, object{"SpecialToken": object{"id": text, "type_id": 0}})
			special[text] = object{"id": text, "ids": []int32{id}, "tokens": []string{text}}
		}
	}
	add(t.prefix)
	single = append(single, object{"Sequence": object{"id": "A", "type_id": 0}})
	add(t.suffix)
	pair := append(slices.Clone(single), object{"Sequence": object{"id": "B", "type_id": 1}})
	return object{"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
}

// checkJSON writes the files, and compares what is read of them with t.
func (t *Tokenizer) checkJSON(doc, config object) (map[string][]byte, error) {
	file, err := json.Marshal(doc)
	side, err2 := json.MarshalIndent(config, "", "  ")
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	got, err := fromJSON(file, side)
	if err != nil {
		return nil, err
	}
	for _, p := range probes {
		for _, o := range []EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true}} {
			if !slices.Equal(got.Encode(nil, p, o), t.Encode(nil, p, o)) {
				return nil, fmt.Errorf("tokenizer.json has no way to cut texts as this tokenizer does: other tokens for %q", p)
			}
		}
	}
	return map[string][]byte{"tokenizer.json": file, "tokenizer_config.json": side}, nil
}
