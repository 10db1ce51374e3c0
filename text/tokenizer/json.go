package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// FromJSON makes the tokenizer of a tokenizer.json, the format of the Hugging
// Face tokenizers library. config is the tokenizer_config.json beside it, which
// says what BOS and EOS are; it may be nil. What is in the file and would
// change ids but is not supported is an error that names it.
func FromJSON(tokenizerJSON, config []byte) (*Tokenizer, error) {
	t, err := fromJSON(tokenizerJSON, config)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

// jsonFile has the parts of a tokenizer.json that are read here, unparsed.
type jsonFile struct {
	AddedTokens   []byte
	Normalizer    []byte
	PreTokenizer  []byte
	PostProcessor []byte
	Decoder       []byte

	Vocab, Merges []byte            // model.vocab and model.merges
	Model         map[string][]byte // the other keys of model
}

// splitJSON finds the parts of a tokenizer.json.
func splitJSON(b []byte) (*jsonFile, error) {
	s := &jsonScanner{b: b}
	f := &jsonFile{Model: map[string][]byte{}}
	err := s.object(func(key []byte) (err error) {
		switch string(key) {
		case "added_tokens":
			f.AddedTokens, err = s.raw()
		case "normalizer":
			f.Normalizer, err = s.raw()
		case "pre_tokenizer":
			f.PreTokenizer, err = s.raw()
		case "post_processor":
			f.PostProcessor, err = s.raw()
		case "decoder":
			f.Decoder, err = s.raw()
		case "model":
			err = s.object(func(key []byte) (err error) {
				switch name := string(key); name {
				case "vocab":
					f.Vocab, err = s.raw()
				case "merges":
					f.Merges, err = s.raw()
				default:
					f.Model[name], err = s.raw()
				}
				return err
			})
		default:
			_, err = s.raw()
		}
		return err
	})
	if err == nil && s.peek() != 0 {
		err = s.errorf("expected the end, found %s", s.found())
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if f.Vocab == nil {
		return nil, errors.New("tokenizer.json: model.vocab: absent")
	}
	return f, nil
}

// jsonModel has the small fields of the model of a tokenizer.json.
type jsonModel struct {
	Type                                string
	Dropout                             *float64
	UnkToken                            *string
	UnkID                               *int32
	Prefix, Suffix                      *string // of subwords and of the ends of words
	FuseUnk, ByteFallback, IgnoreMerges bool
	MaxChars                            *int
}

// field returns where the value of a field goes; unknown ones are ignored.
func (m *jsonModel) field(name string) any {
	switch name {
	case "type":
		return &m.Type
	case "dropout":
		return &m.Dropout
	case "unk_token":
		return &m.UnkToken
	case "unk_id":
		return &m.UnkID
	case "continuing_subword_prefix":
		return &m.Prefix
	case "end_of_word_suffix":
		return &m.Suffix
	case "fuse_unk":
		return &m.FuseUnk
	case "byte_fallback":
		return &m.ByteFallback
	case "ignore_merges":
		return &m.IgnoreMerges
	case "max_input_chars_per_word":
		return &m.MaxChars
	}
	return new(json.RawMessage)
}

// model parses the small fields and infers the type that old files lack.
func (f *jsonFile) model() (*jsonModel, error) {
	m := &jsonModel{}
	for name, raw := range f.Model {
		if err := json.Unmarshal(raw, m.field(name)); err != nil {
			return nil, fmt.Errorf("tokenizer.json: model.%s: %w", name, err)
		}
	}
	if m.Type == "" {
		switch {
		case f.Merges != nil:
			m.Type = "BPE"
		case m.MaxChars != nil:
			m.Type = "WordPiece"
		case bytes.HasPrefix(bytes.TrimLeft(f.Vocab, " \t\r\n"), []byte("[")):
			m.Type = "Unigram"
		default:
			m.Type = "WordLevel"
		}
	}
	return m, nil
}

// jsonAdded is an entry of added_tokens.
type jsonAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

func fromJSON(b, config []byte) (*Tokenizer, error) {
	classes()
	f, err := splitJSON(b)
	if err != nil {
		return nil, err
	}
	m, err := f.model()
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{bos: -1, eos: -1}
	tokens, err := f.tokens(m.Type == "Unigram")
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: model.vocab: %w", err)
	}
	var addedTokens []jsonAdded
	if f.AddedTokens != nil {
		if err := json.Unmarshal(f.AddedTokens, &addedTokens); err != nil {
			return nil, fmt.Errorf("tokenizer.json: added_tokens: %w", err)
		}
	}
	if err := t.jsonVocab(tokens, addedTokens); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if err := t.jsonParts(f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	if err := t.jsonModel(f, m, tokens.scores); err != nil {
		return nil, fmt.Errorf("tokenizer.json: model: %w", err)
	}
	if err := t.jsonAdded(addedTokens); err != nil {
		return nil, fmt.Errorf("tokenizer.json: added_tokens: %w", err)
	}
	t.simplify()
	if err := t.jsonConfig(config); err != nil {
		return nil, fmt.Errorf("tokenizer_config.json: %w", err)
	}
	t.initSingle()
	return t, nil
}

// tokenList is the vocabulary of a tokenizer.json.
type tokenList struct {
	text   []string
	id     []int32
	scores []float64 // unigram only, by id
	most   int32     // highest id
}

// tokens reads model.vocab: pairs of text and score in the order of ids, or an
// object from text to id.
func (f *jsonFile) tokens(pairs bool) (*tokenList, error) {
	l := &tokenList{most: -1}
	var mem arena
	s := &jsonScanner{b: f.Vocab}
	add := func(text []byte, id int32) {
		l.text = append(l.text, mem.add(text))
		l.id = append(l.id, id)
		l.most = max(l.most, id)
	}
	if !pairs {
		err := s.object(func(key []byte) error {
			text := len(l.text)
			add(key, 0)
			id, err := s.id()
			l.id[text] = id
			l.most = max(l.most, id)
			return err
		})
		return l, err
	}
	err := s.array(func(i int) error {
		if i >= maxTokens {
			return s.errorf("more than %d tokens", maxTokens)
		}
		fields := 0
		err := s.array(func(k int) error {
			fields++
			switch k {
			case 0:
				text, err := s.str()
				add(text, int32(i))
				return err
			case 1:
				score, err := s.number()
				l.scores = append(l.scores, score)
				return err
			}
			return s.errorf("expected a text and a score")
		})
		if err == nil && fields != 2 {
			err = s.errorf("expected a text and a score")
		}
		return err
	})
	return l, err
}

// jsonVocab makes t.vocab, with the added tokens in their places. Those that
// are not in the model's vocabulary are not found by it: the model does not
// know them.
func (t *Tokenizer) jsonVocab(l *tokenList, addedTokens []jsonAdded) error {
	size := int(l.most) + 1
	// Ids may have holes, but a file may not ask for much more than it has.
	limit := 4*(len(l.text)+len(addedTokens)) + 1<<16
	for i := range addedTokens {
		if id := addedTokens[i].ID; id < 0 || id >= maxTokens {
			return fmt.Errorf("added_tokens: token %d of %.60q: expected at most %d", id, addedTokens[i].Content, maxTokens-1)
		} else if int(id) >= size {
			size = int(id) + 1
		}
	}
	if size > limit {
		return fmt.Errorf("the highest token id is %d, but there are %d tokens", size-1, len(l.text)+len(addedTokens))
	}
	texts, types := make([]string, size), make([]tokenType, size)
	for i, id := range l.id {
		if types[id] != tokAbsent {
			return fmt.Errorf("model.vocab: token %d is both %.60q and %.60q", id, texts[id], l.text[i])
		}
		texts[id], types[id] = l.text[i], tokNormal
	}
	special := make(map[string]bool, len(addedTokens))
	for _, a := range addedTokens {
		special[a.Content] = special[a.Content] || a.Special
	}
	for i, id := range l.id {
		if special[l.text[i]] {
			types[id] = tokControl
		}
	}
	v, err := newVocab(texts, types)
	if err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	t.vocab, t.extra = v, make(map[string]int32, len(addedTokens))
	for i := range addedTokens {
		a := &addedTokens[i]
		if id := v.find(a.Content); id >= 0 {
			a.ID = id
		} else if types[a.ID] == tokAbsent {
			texts[a.ID], types[a.ID] = a.Content, tokUser
			if a.Special {
				types[a.ID] = tokControl
			}
		} else if texts[a.ID] != a.Content {
			return fmt.Errorf("added_tokens: token %d is both %.60q and %.60q", a.ID, texts[a.ID], a.Content)
		}
		t.extra[a.Content] = a.ID
	}
	return nil
}

// jsonModel makes t.model.
func (t *Tokenizer) jsonModel(f *jsonFile, m *jsonModel, scores []float64) error {
	unk := int32(-1)
	if m.UnkToken != nil {
		if unk = t.vocab.find(*m.UnkToken); unk < 0 {
			if id, ok := t.extra[*m.UnkToken]; ok && m.Type == "BPE" {
				unk = id
			}
		}
	}
	switch m.Type {
	case "BPE":
		t.kind = "bpe"
		return t.jsonBPE(f, m, unk)
	case "Unigram":
		t.kind = "unigram"
		if m.UnkID != nil {
			unk = *m.UnkID
			if !t.vocab.valid(unk) {
				return fmt.Errorf("unk_id: token %d is not in the vocabulary", unk)
			}
		}
		wide := make([]float64, t.vocab.size())
		copy(wide, scores)
		u, err := newUnigram(t.vocab, wide, unk, m.ByteFallback)
		t.model = u
		return err
	case "WordPiece", "WordLevel":
		t.kind = strings.ToLower(m.Type)
		if unk < 0 {
			return fmt.Errorf("unk_token: %s is not in the vocabulary", optional(m.UnkToken))
		}
		if m.Type == "WordLevel" {
			t.model = &wordLevel{t.vocab, unk}
			return nil
		}
		cont, most := "##", 100
		if m.Prefix != nil {
			cont = *m.Prefix
		}
		if m.MaxChars != nil {
			most = *m.MaxChars
		}
		t.model = newWordPiece(t.vocab, "", cont, unk, most)
		return nil
	}
	return fmt.Errorf("type: %.60q is not supported (BPE, Unigram, WordPiece and WordLevel are)", m.Type)
}

func optional(s *string) string {
	if s == nil {
		return "null"
	}
	return fmt.Sprintf("%.60q", *s)
}

func (t *Tokenizer) jsonBPE(f *jsonFile, m *jsonModel, unk int32) error {
	if m.Dropout != nil && *m.Dropout != 0 {
		return fmt.Errorf("dropout: expected none or 0, found %v: it makes ids random", *m.Dropout)
	}
	b := &bpe{v: t.vocab, longest: t.vocab.longest(), unk: unk, fuseUnk: m.FuseUnk, byteFallback: m.ByteFallback, wholeFirst: m.IgnoreMerges}
	if m.Prefix != nil {
		b.prefix = *m.Prefix
	}
	if m.Suffix != nil {
		b.suffix = *m.Suffix
	}
	t.model = b
	merges := f.Merges
	if merges == nil {
		merges = []byte("[]")
	}
	if err := b.jsonMerges(merges); err != nil {
		return fmt.Errorf("merges: %w", err)
	}
	b.initChars()
	return nil
}

// jsonMerges reads the merges: "left right", or [left, right].
func (m *bpe) jsonMerges(raw []byte) error {
	// The shortest merge takes five bytes: "a b" and its quotes.
	table, err := newPairTable(min(bytes.Count(raw, []byte(`"`))/2, len(raw)/5+1))
	if err != nil {
		return err
	}
	m.merges = table
	s := &jsonScanner{b: raw}
	buf := make([]byte, 0, 128)
	var pair []byte // left and right, one after the other
	p := int32(-1)
	return s.array(func(i int) error {
		if i >= cap(m.merges.product) {
			return s.errorf("expected a pair of tokens")
		}
		mid := 0
		pair = pair[:0]
		if s.peek() == '[' {
			fields := 0
			err := s.array(func(k int) error {
				text, err := s.str()
				pair = append(pair, text...)
				if fields++; k == 0 {
					mid = len(pair)
				}
				return err
			})
			if err == nil && fields != 2 {
				err = s.errorf("expected a pair of tokens")
			}
			if err != nil {
				return err
			}
		} else {
			text, err := s.str()
			if err != nil {
				return err
			}
			if mid = bytes.IndexByte(text, ' '); mid < 0 || bytes.IndexByte(text[mid+1:], ' ') >= 0 {
				return s.errorf("expected two tokens and a space between, found %.60q", text)
			}
			pair = append(append(pair, text[:mid]...), text[mid+1:]...)
		}
		var err error
		buf, p, err = m.addMerge(view(pair[:mid]), view(pair[mid:]), buf, p)
		if err != nil {
			return fmt.Errorf("merge %d: %w", i, err)
		}
		return nil
	})
}

// jsonAdded sets up the tokens that are cut out of the text.
func (t *Tokenizer) jsonAdded(tokens []jsonAdded) (err error) {
	var plain, normal []added
	sc := t.pool.get(len(t.stages))
	for _, a := range tokens {
		tok := added{text: a.Content, id: a.ID, special: a.Special, word: a.SingleWord, lstrip: a.LStrip, rstrip: a.RStrip}
		if a.Normalized {
			tok.text = strings.Clone(t.normalize(sc, a.Content))
			normal = append(normal, tok)
		} else {
			plain = append(plain, tok)
		}
	}
	t.pool.put(sc)
	if t.added, err = newAddedSet(plain); err != nil {
		return err
	}
	t.addedNorm, err = newAddedSet(normal)
	return err
}
