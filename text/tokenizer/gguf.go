package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
)

const ggufPrefix = "tokenizer.ggml."

// FromGGUF makes the tokenizer that the metadata of a GGUF file describes.
// Errors name the key, what was expected and what was found.
func FromGGUF(md Metadata) (*Tokenizer, error) {
	t, err := fromGGUF(md)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

// ggufReader reads typed values of metadata and keeps the first error.
type ggufReader struct {
	md  Metadata
	err error
}

func (r *ggufReader) fail(key, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("metadata %s: %s", key, fmt.Sprintf(format, args...))
	}
}

// get returns the value of a key of the tokenizer, of type T, or def.
func get[T any](r *ggufReader, name string, def T) T {
	key := name
	if !strings.Contains(name, ".") {
		key = ggufPrefix + name
	}
	v, ok := r.md.Lookup(key)
	if !ok {
		return def
	}
	x, ok := v.(T)
	if !ok {
		r.fail(key, "expected a %T, found a %T", def, v)
		return def
	}
	return x
}

// id returns the token that a key names, or def where it is absent. A token
// that the vocabulary does not have is an error.
func (r *ggufReader) id(name string, def int32, tokens int) int32 {
	if int(def) >= tokens {
		def = -1
	}
	key := ggufPrefix + name
	v, ok := r.md.Lookup(key)
	if !ok {
		return def
	}
	n, ok := asInt(v)
	if !ok {
		r.fail(key, "expected an integer, found a %T", v)
		return def
	}
	if n == 1<<32-1 || n == -1 {
		return -1 // writers' way to say none
	}
	if n < 0 || n >= int64(tokens) {
		r.fail(key, "token %d is not one of the %d of the vocabulary", n, tokens)
		return def
	}
	return int32(n)
}

func asInt(v any) (int64, bool) {
	switch n := v.(type) {
	case uint8:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int32:
		return int64(n), true
	case uint64:
		return int64(min(n, 1<<62)), true
	case int64:
		return n, true
	}
	return 0, false
}

func fromGGUF(md Metadata) (*Tokenizer, error) {
	classes()
	r := &ggufReader{md: md}
	model := get(r, "model", "")
	texts := get[[]string](r, "tokens", nil)
	if r.err != nil {
		return nil, r.err
	}
	if model == "" {
		return nil, fmt.Errorf("metadata %smodel: absent: the file has no tokenizer", ggufPrefix)
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("metadata %stokens: absent or empty", ggufPrefix)
	}
	types := r.types(texts)
	if r.err != nil {
		return nil, r.err
	}
	var err error
	if model == "rwkv" {
		texts, err = unescapeWorld(texts)
	}
	var v *vocab
	if err == nil {
		v, err = newVocab(texts, types)
	}
	if err != nil {
		return nil, fmt.Errorf("metadata %stokens: %w", ggufPrefix, err)
	}
	t := &Tokenizer{vocab: v, bos: -1, eos: -1}
	switch model {
	case "gpt2", "gemma4":
		err = t.ggufBPE(r, model)
	case "llama":
		err = t.ggufSPM(r)
	case "t5":
		err = t.ggufUnigram(r)
	case "bert":
		err = t.ggufWordPiece(r)
	case "rwkv":
		err = t.ggufWorld()
	default:
		return nil, fmt.Errorf("metadata %smodel: %.60q is not supported (gpt2, llama, t5, bert, gemma4 and rwkv are)", ggufPrefix, model)
	}
	if err == nil {
		err = r.err
	}
	if err != nil {
		return nil, err
	}
	t.ggufSpecial(r)
	if r.err != nil {
		return nil, r.err
	}
	t.initSingle()
	return t, nil
}

// types reads the token types; all are normal where the file has none.
func (r *ggufReader) types(texts []string) []tokenType {
	types := make([]tokenType, len(texts))
	raw := get[[]int32](r, "token_type", nil)
	if raw == nil {
		for i := range types {
			types[i] = tokNormal
		}
		return types
	}
	if len(raw) != len(texts) {
		r.fail(ggufPrefix+"token_type", "%d values for %d tokens", len(raw), len(texts))
		return nil
	}
	for i, n := range raw {
		if types[i] = tokenType(n); n < int32(tokNormal) || n > int32(tokByte) {
			types[i] = tokNormal
		}
		if n == int32(tokUser) && isPadding(texts[i], i) {
			types[i] = tokUnused
		}
	}
	return types
}

// isPadding reports whether a token only fills up the vocabulary, as writers
// name such tokens: [PAD32022].
func isPadding(text string, id int) bool {
	rest, ok := strings.CutPrefix(text, "[PAD")
	if !ok || !strings.HasSuffix(rest, "]") {
		return false
	}
	n, err := strconv.Atoi(rest[:len(rest)-1])
	return err == nil && n == id
}

// scores reads the scores of the tokens.
func (r *ggufReader) scores(n int) []float32 {
	scores := get[[]float32](r, "scores", nil)
	if r.err == nil && len(scores) != n {
		r.fail(ggufPrefix+"scores", "%d values for %d tokens", len(scores), n)
	}
	return scores
}

func (t *Tokenizer) ggufBPE(r *ggufReader, model string) error {
	t.kind = "bpe"
	name := get(r, "pre", "")
	if name == "" {
		name = "default"
		if model == "gemma4" {
			name = "gemma4"
		} else if known, ok := preByArch[get(r, "general.architecture", "")]; ok {
			name = known
		}
	}
	pre, ok := preTokenizers[name]
	if !ok {
		return fmt.Errorf("metadata %spre: the pre-tokenizer %.60q is not known", ggufPrefix, name)
	}
	m := &bpe{v: t.vocab, longest: t.vocab.longest(), unk: -1, wholeFirst: pre.whole}
	t.model = m
	merges := get[[]string](r, "merges", nil)
	if r.err != nil {
		return r.err
	}
	if merges == nil {
		return fmt.Errorf("metadata %smerges: absent", ggufPrefix)
	}
	if err := m.ggufMerges(merges); err != nil {
		return fmt.Errorf("metadata %smerges: %w", ggufPrefix, err)
	}
	if pre.bos {
		t.prefix = []int32{-1} // resolved by ggufSpecial
	}
	if pre.spm {
		m.byteFallback = true
		m.unk = r.id("unknown_token_id", -1, t.vocab.size())
		m.initChars()
		t.useMark("▁", prefixNever)
		t.marked.learnJoins(t.vocab)
		if pre.newline {
			t.marked.cutNewlines()
		}
		return nil
	}
	// A byte without a token is dropped, as the original tokenizers do.
	m.initBytes()
	if pre.nfc {
		t.norm = []normalizer{nfc}
	}
	for _, s := range pre.stages {
		st, err := stageFor(s)
		if err != nil {
			return fmt.Errorf("pre-tokenizer %.60q: %w", name, err)
		}
		t.stages = append(t.stages, st)
	}
	t.decode.byteLevel = true
	return nil
}

// ggufMerges reads the merges "left right", where both may hold spaces in
// vocabularies that are not byte-level: the first space after the first
// character separates.
func (m *bpe) ggufMerges(merges []string) error {
	var err error
	if m.merges, err = newPairTable(len(merges)); err != nil {
		return err
	}
	buf := make([]byte, 0, 128)
	p := int32(-1)
	for i, s := range merges {
		k := -1
		if len(s) > 1 {
			k = strings.IndexByte(s[1:], ' ') + 1
		}
		if k <= 0 {
			return fmt.Errorf("merge %d: expected two tokens, found %.60q", i, s)
		}
		if buf, p, err = m.addMerge(s[:k], s[k+1:], buf, p); err != nil {
			return fmt.Errorf("merge %d: %w", i, err)
		}
	}
	return nil
}

// stageFor returns the stage of one entry of preTokenizer.stages: what it
// matches is isolated.
func stageFor(s string) (stage, error) {
	switch s {
	case stageDigitsGPT2:
		return stage{kind: stageScan, match: gpt2Digits}, nil
	case stagePunctuation:
		return stage{kind: stageScan, match: punctuationRun}, nil
	case stageByteNumbers:
		return stage{kind: stageScan, match: byteNumbers, byteSteps: true}, nil
	}
	if m, ok := scanners[s]; ok {
		return stage{kind: stageScan, match: m}, nil
	}
	re, err := compileRegex(s)
	if err != nil {
		return stage{}, err
	}
	return stage{kind: stageSplit, pat: re}, nil
}

func (t *Tokenizer) ggufSPM(r *ggufReader) error {
	t.kind = "spm"
	scores := r.scores(t.vocab.size())
	if r.err != nil {
		return r.err
	}
	unk := r.id("unknown_token_id", 0, t.vocab.size())
	m := newSPM(t.vocab, scores, unk)
	t.model = m
	prefix := prefixNever
	if get(r, "add_space_prefix", true) {
		prefix = prefixAlways
	}
	t.useMark("▁", prefix)
	t.marked.prefixSpaces = true
	if m.hasBytes { // else a run of unknown text must not be cut
		t.marked.learnJoins(t.vocab)
	}
	t.prefix = []int32{-1}
	return nil
}

// useMark sets up the way to and from text of vocabularies where mark stands
// for a space.
func (t *Tokenizer) useMark(mark string, prefix prefixRule) {
	t.marked = &marked{mark: mark, prefix: prefix}
	t.decode.mark = mark
	t.decode.ops = []decodeOp{{kind: opReplace, old: mark, new: " "}, {kind: opByte}}
	t.decode.eachByte = true
	if prefix != prefixNever {
		t.decode.lead, t.decode.leadByte = 1, ' '
	}
}

func (t *Tokenizer) ggufUnigram(r *ggufReader) error {
	t.kind = "unigram"
	n := t.vocab.size()
	scores := r.scores(n)
	unk := r.id("unknown_token_id", 2, n)
	if r.err != nil {
		return r.err
	}
	wide := make([]float64, n)
	for i, s := range scores {
		if t.vocab.typ[i] != tokUser { // else 0, so that it wins
			wide[i] = float64(s)
		}
	}
	m, err := newUnigram(t.vocab, wide, unk, false)
	if err != nil {
		return fmt.Errorf("metadata %sscores: %w", ggufPrefix, err)
	}
	t.model = m
	if raw, ok := r.md.Lookup(ggufPrefix + "precompiled_charsmap"); ok {
		b, ok := asBytes(raw)
		if !ok {
			return fmt.Errorf("metadata %sprecompiled_charsmap: expected bytes, found a %T", ggufPrefix, raw)
		}
		cm, err := newCharsmap(b, false)
		if err != nil {
			return fmt.Errorf("metadata %sprecompiled_charsmap: %w", ggufPrefix, err)
		}
		t.norm = append(t.norm, cm)
	}
	prefix := prefixNever
	if get(r, "add_space_prefix", false) {
		prefix = prefixAlways
	}
	if get(r, "remove_extra_whitespaces", false) {
		t.norm = append(t.norm, oneSpace{})
	}
	t.stages = []stage{{kind: stageMeta, mark: "▁", prefix: prefix, prefixSpaces: true}}
	t.decode.mark = "▁"
	t.decode.ops = []decodeOp{{kind: opReplace, old: "▁", new: " "}, {kind: opByte}}
	if prefix != prefixNever {
		t.decode.lead, t.decode.leadByte = 1, ' '
	}
	t.suffix = []int32{-1}
	return nil
}

func asBytes(v any) ([]byte, bool) {
	switch b := v.(type) {
	case []byte:
		return b, true
	case []int8:
		out := make([]byte, len(b))
		for i, x := range b {
			out[i] = byte(x)
		}
		return out, true
	}
	return nil, false
}

func (t *Tokenizer) ggufWordPiece(r *ggufReader) error {
	t.kind = "wordpiece"
	n := t.vocab.size()
	unk := r.id("unknown_token_id", 100, n)
	if r.err == nil && unk < 0 {
		return fmt.Errorf("metadata %sunknown_token_id: absent, and a word without tokens needs it", ggufPrefix)
	}
	t.model = newWordPiece(t.vocab, "▁", "", unk, 100)
	lower := get(r, ggufPrefix+"normalizer.lowercase", true)
	t.norm = bertNormalizers(true, true, get(r, ggufPrefix+"normalizer.strip_accents", lower), lower)
	t.stages = bertStages()
	t.decode.mark = "▁"
	t.decode.ops = []decodeOp{{kind: opReplace, old: "▁", new: " "}}
	t.decode.lead, t.decode.leadByte = 1, ' '
	t.decode.cleanup = true
	t.prefix, t.suffix = []int32{-1}, []int32{-1}
	return nil
}
