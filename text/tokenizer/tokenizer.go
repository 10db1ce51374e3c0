// Package tokenizer turns text into the token ids of a model and back.
//
// It knows byte-level and character BPE, SentencePiece's BPE and unigram
// models, WordPiece, whole-word vocabularies and RWKV's World, read from GGUF metadata or
// from a tokenizer.json. The ids are those that the original tokenizer of the
// model gives; docs/formats/tokenizers.md says what is supported and where
// this package differs.
package tokenizer

import (
	"maps"
	"slices"

	"ridge/internal/spans"
)

// Metadata is the part of a GGUF file that describes its tokenizer. Lookup
// returns the value of a metadata key with its Go type: string, bool, a number
// type, or a slice of one of these.
type Metadata interface {
	Lookup(key string) (value any, ok bool)
}

// Tokenizer turns text into token ids and back. It is safe for use by several
// goroutines at once. The metadata or JSON that it was made from must stay
// valid and unchanged while it is in use.
type Tokenizer struct {
	kind  string
	vocab *vocab
	extra map[string]int32 // tokens that vocab does not find: added ones

	// The way from text to ids: added tokens are cut out, the rest is
	// normalized, cut by the stages and given to the model.
	added     *addedSet // looked for in the text as it is
	addedNorm *addedSet // looked for in the normalized text
	norm      []normalizer
	stages    []stage
	marked    *marked // instead of stages
	model     model
	single    [256]int32 // ids of pieces of one byte, -1: ask the model

	prefix, suffix []int32 // what AddSpecial puts around a text
	// What stands between two texts that are read together, and behind the second one.
	between, behind []int32
	bos, eos        int32 // -1: none
	eog             map[int32]bool

	decode decoding
	pool   scratchPool
	short  shortest

	overlaps overlapCache
}

// model turns a piece of text into ids.
type model interface {
	// encode appends the ids of piece, which is not empty, to dst.
	encode(sc *scratch, dst []int32, piece string) []int32
}

// EncodeOptions says what Encode does besides turning text into tokens.
type EncodeOptions struct {
	// AddSpecial puts the tokens around the text that the vocabulary asks
	// for: BOS and EOS, or CLS and SEP.
	AddSpecial bool
	// ParseSpecial makes the text of a special token, such as <|im_end|>,
	// that token. Leave it off for text that is not trusted.
	ParseSpecial bool
	// Plain are parts of the text, in order and apart from each other, in which
	// ParseSpecial does not count: what a user wrote into a prompt. No special
	// token, and no other that looks like <|this|>, takes bytes of them.
	Plain []Span
}

// Span is the part of a text from byte Lo up to byte Hi.
type Span = spans.Span

// Encode appends the tokens of text to dst and returns it. Bytes that are not
// valid UTF-8 become byte tokens where the vocabulary has them, else what it
// uses for unknown text.
func (t *Tokenizer) Encode(dst []int32, text string, o EncodeOptions) []int32 {
	if o.AddSpecial {
		dst = append(dst, t.prefix...)
	}
	if text != "" {
		sc := t.pool.get(len(t.stages))
		sc.most = len(dst) + len(text) + cacheIDs
		sc.out = sc.begin(dst, len(text)/3)
		t.encodeText(sc, text, marks{o.ParseSpecial, o.Plain})
		dst = sc.out
		t.pool.put(sc)
	}
	if o.AddSpecial {
		dst = append(dst, t.suffix...)
	}
	return dst
}

// encodeText cuts out the added tokens and encodes what lies between.
func (t *Tokenizer) encodeText(sc *scratch, text string, m marks) {
	at := 0
	for t.added != nil {
		lo, hi, tok := t.added.next(text, at, m)
		if tok == nil {
			break
		}
		if lo > at {
			t.encodeSegment(sc, text[at:lo], at == 0, m.cut(at, lo))
		}
		sc.out = append(sc.out, tok.id)
		at = hi
	}
	if at < len(text) {
		t.encodeSegment(sc, text[at:], at == 0, m.cut(at, len(text)))
	}
}

// encodeSegment normalizes a text without added tokens, cuts out those that
// are found after that, and encodes what lies between. first: it starts the
// text.
func (t *Tokenizer) encodeSegment(sc *scratch, s string, first bool, m marks) {
	whole := s
	s = t.normalize(sc, s)
	sc.most += max(0, len(s)-len(whole))
	if len(m.plain) > 0 && t.addedNorm != nil {
		// Where plain text is after normalizing is not known.
		if t.addedNorm.nextMark(s) {
			t.encodePlain(sc, whole, first, m)
			return
		}
		m = marks{}
	}
	at := 0
	for t.addedNorm != nil && s != "" {
		lo, hi, tok := t.addedNorm.next(s, at, m)
		if tok == nil {
			break
		}
		if lo > at {
			t.encodeNormal(sc, s[at:lo], first && at == 0)
		}
		sc.out = append(sc.out, tok.id)
		at = hi
	}
	if at < len(s) {
		t.encodeNormal(sc, s[at:], first && at == 0)
	}
}

// encodePlain is encodeSegment with cuts around the plain parts.
func (t *Tokenizer) encodePlain(sc *scratch, s string, first bool, m marks) {
	at := 0
	piece := func(to int, m marks) {
		if at < to {
			t.encodeSegment(sc, s[at:to], first && at == 0, m)
			at = to
		}
	}
	for _, p := range m.plain {
		piece(p.Lo, marks{special: m.special})
		if at < p.Hi {
			t.encodeNormal(sc, t.normalize(sc, s[at:p.Hi]), first && at == 0)
			at = p.Hi
		}
	}
	piece(len(s), marks{special: m.special})
}

func (t *Tokenizer) encodeNormal(sc *scratch, s string, first bool) {
	if t.marked != nil {
		t.encodeMarked(sc, s, first)
		return
	}
	t.pretokenize(sc, 0, s, first)
}

// Kind names the algorithm: "bpe", "spm", "unigram", "wordpiece", "wordlevel" or
// "world".
func (t *Tokenizer) Kind() string { return t.kind }

// VocabSize returns the number of token ids, including those that no token has.
func (t *Tokenizer) VocabSize() int { return t.vocab.size() }

// BOS returns the token that starts a text, or -1.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS returns the token that ends a text, or -1.
func (t *Tokenizer) EOS() int32 { return t.eos }

// AddsBOS reports whether AddSpecial puts BOS in front of a text.
func (t *Tokenizer) AddsBOS() bool {
	return t.bos >= 0 && len(t.prefix) > 0 && t.prefix[0] == t.bos
}

// IsEOG reports whether a model that produces id has ended its answer: id ends
// the text, the turn or the message.
func (t *Tokenizer) IsEOG(id int32) bool { return t.eog[id] }

// Ends returns the tokens of which IsEOG is true, in order.
func (t *Tokenizer) Ends() []int32 { return slices.Sorted(maps.Keys(t.eog)) }

// IsControl reports whether id is a mark and not text.
func (t *Tokenizer) IsControl(id int32) bool {
	return t.vocab.valid(id) && (t.vocab.typ[id] == tokControl || t.vocab.typ[id] == tokUnknown)
}

// ID returns the token with the given text: the text of a mark, or text as it
// is written, with spaces.
func (t *Tokenizer) ID(text string) (id int32, ok bool) {
	if id, ok := t.extra[text]; ok {
		return id, true
	}
	if id := t.vocab.find(text); id >= 0 {
		return id, true
	}
	if form := t.decode.vocabForm(text); form != text {
		if id := t.vocab.find(form); id >= 0 {
			return id, true
		}
	}
	return -1, false
}
