package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// KeyValue is an entry of a GGUF file's metadata.
type KeyValue struct {
	Key   string
	Value any
}

// ToGGUF returns the metadata that describe the tokenizer of a tokenizer.json to
// readers of GGUF files; the arguments are those of FromJSON. The vocabulary is
// filled up to size tokens, the rows of the embedding. ends are tokens that end an
// answer besides the one that config names.
//
// GGUF names the ways in which published tokenizers cut texts, and has no place for
// others: what does not give the same tokens for a text of many kinds of writing is
// an error.
func ToGGUF(tokenizerJSON, config []byte, size int, ends []int32) ([]KeyValue, error) {
	t, err := fromJSON(tokenizerJSON, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	f, err := splitJSON(tokenizerJSON)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	m, err := f.model()
	if err == nil && m.Type != "BPE" && m.Type != "WordPiece" {
		err = fmt.Errorf("tokenizer.json: model.type: expected BPE or WordPiece, found %s: it is not written to GGUF files", m.Type)
	}
	var merges []string
	if err == nil && m.Type == "BPE" {
		merges, err = mergeList(f.Merges)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	w := &ggufWriter{t: t, m: m, unknown: -1}
	w.vocabulary(max(size, t.vocab.size()))
	if m.Type == "WordPiece" {
		err = w.wordPiece(f)
	} else if t.marked != nil || m.ByteFallback {
		err = w.spm(merges)
	} else {
		err = w.bpe(f, merges)
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if len(ends) > 1 {
		w.set("eos_token_ids", ends)
	}
	return w.kvs, nil
}

// ggufWriter collects metadata.
type ggufWriter struct {
	t       *Tokenizer
	m       *jsonModel
	kvs     []KeyValue
	unknown int32 // the token for text that has none, -1 if there is no such token
}

func (w *ggufWriter) set(name string, v any) {
	w.kvs = append(w.kvs, KeyValue{ggufPrefix + name, v})
}

// Lookup implements Metadata.
func (w *ggufWriter) Lookup(key string) (any, bool) {
	i := slices.IndexFunc(w.kvs, func(kv KeyValue) bool { return kv.Key == key })
	if i < 0 {
		return nil, false
	}
	return w.kvs[i].Value, true
}

// mergeList reads model.merges: texts "left right", or pairs.
func mergeList(raw []byte) ([]string, error) {
	if raw == nil {
		return nil, errors.New("tokenizer.json: model.merges: absent")
	}
	var texts []string
	if json.Unmarshal(raw, &texts) == nil {
		return texts, nil
	}
	var pairs [][2]string
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return nil, fmt.Errorf("tokenizer.json: model.merges: %w", err)
	}
	for _, p := range pairs {
		texts = append(texts, p[0]+" "+p[1])
	}
	return texts, nil
}

// vocabulary sets tokens and their types, and the tokens with a use.
func (w *ggufWriter) vocabulary(size int) {
	v := w.t.vocab
	texts, types := make([]string, size), make([]int32, size)
	for i := range texts {
		texts[i], types[i] = fmt.Sprintf("[PAD%d]", i), int32(tokUnused)
		if i < v.size() && v.typ[i] != tokAbsent {
			texts[i], types[i] = v.text[i], int32(v.typ[i])
		}
	}
	w.kvs = append(w.kvs, KeyValue{ggufPrefix + "model", "gpt2"}, KeyValue{ggufPrefix + "pre", "default"})
	w.set("tokens", texts)
	w.set("token_type", types)
	for _, k := range []struct {
		name string
		id   int32
	}{{"bos_token_id", w.t.bos}, {"eos_token_id", w.t.eos}} {
		if k.id >= 0 {
			w.set(k.name, uint32(k.id))
		}
	}
	if w.m.UnkToken != nil {
		if id, ok := w.t.ID(*w.m.UnkToken); ok {
			w.set("unknown_token_id", uint32(id))
			w.unknown = id
		}
	}
	w.set("add_bos_token", len(w.t.prefix) > 0)
	w.set("add_eos_token", len(w.t.suffix) > 0)
}

// put replaces a value.
func (w *ggufWriter) put(name string, v any) {
	i := slices.IndexFunc(w.kvs, func(kv KeyValue) bool { return kv.Key == ggufPrefix+name })
	w.kvs[i].Value = v
}

// firstNames are the names to prefer of those that stand for the same.
var firstNames = []string{"gpt-2", "starcoder", "mpt", "llama-bpe", "dbrx", "qwen2", "hunyuan", "deepseek-v3", "gpt-4o", "bloom", "bailingmoe"}

// bpe names the way in which a byte-level tokenizer cuts texts.
func (w *ggufWriter) bpe(f *jsonFile, merges []string) error {
	w.set("merges", merges)
	names := slices.Sorted(maps.Keys(preTokenizers))
	for _, name := range slices.Concat(firstNames, names) {
		if p := preTokenizers[name]; !p.spm && p.whole == w.m.IgnoreMerges {
			if w.put("pre", name); w.same() == "" {
				return nil
			}
		}
	}
	part := bytes.TrimSpace(f.PreTokenizer)
	return fmt.Errorf("tokenizer.json: pre_tokenizer: expected one of those that GGUF has a name for, found %.200s", part)
}

// spm gives the tokens of a vocabulary with bytes to fall back to the scores that
// stand for the order of its merges.
func (w *ggufWriter) spm(merges []string) error {
	v := w.t.vocab
	types, _ := w.Lookup(ggufPrefix + "token_type")
	scores := make([]float32, len(types.([]int32)))
	for i := range scores {
		scores[i] = -1e6
		if i < v.size() && isByteToken(v.text[i]) {
			scores[i], types.([]int32)[i] = 0, int32(tokByte)
		}
	}
	var both []byte
	for rank, s := range merges {
		for k := 1; k < len(s); k++ { // texts may hold spaces
			if s[k] != ' ' {
				continue
			}
			both = append(append(both[:0], s[:k]...), s[k+1:]...)
			if id := v.find(string(both)); id >= 0 {
				scores[id] = max(scores[id], -float32(rank))
				break
			}
		}
	}
	w.put("model", "llama")
	w.kvs = slices.DeleteFunc(w.kvs, func(kv KeyValue) bool { return kv.Key == ggufPrefix+"pre" })
	w.set("scores", scores)
	w.set("add_space_prefix", true)
	where := ""
	for _, prefix := range []bool{true, false} {
		w.put("add_space_prefix", prefix)
		if where = w.same(); where == "" {
			return nil
		}
	}
	return fmt.Errorf("tokenizer.json: GGUF has no way to cut texts as this tokenizer does: other tokens for %q", where)
}

// isByteToken reports whether a token stands for one byte: <0x0A>.
func isByteToken(s string) bool {
	return len(s) == 6 && s[:3] == "<0x" && s[5] == '>'
}

// probes are texts that tokenizers cut in different ways.
var probes = []string{
	"Hello world! I'm sure they'll say it's 1234567 or 3.14159, 2nd of 10\u00bd.", "  two  spaces\tand\ttabs \n\n\n line\r\nbreaks   ", "SHOUT camelCase snake_case x+=y; a&&b||c // == !=\n",
	"naïve café nai\u0308ve, Straße, ПРИВЕТ мир, 你好世界123，こんにちは、한국어 텍스트", "emoji 👩‍💻🙂 and \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35, العربية ١٢٣, हिन्दी", "'S 'LL don'T we're\u00a0you've (a)[b]{c}<d>…—\"q\"", "0 00 000 0000 00000 000000", "a", " a", "\n", "",
}

// same returns the first probe for which the metadata give other tokens than the
// tokenizer, and "" if there is none.
func (w *ggufWriter) same() (where string) {
	got, err := fromGGUF(w)
	if err != nil {
		return err.Error()
	}
	for _, p := range probes {
		for _, o := range []EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true}} {
			want := w.t.Encode(nil, p, o)
			if w.unknown >= 0 && slices.Contains(want, w.unknown) {
				continue // GGUF's readers leave out what has no token
			}
			if !slices.Equal(got.Encode(nil, p, o), want) {
				return p
			}
		}
	}
	return ""
}
