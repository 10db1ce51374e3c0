package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// jsonPart has the fields of all normalizers, pre-tokenizers, post-processors
// and decoders of a tokenizer.json.
type jsonPart struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	Pretokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`
	Decoders      []json.RawMessage `json:"decoders"`

	Pattern   *jsonPattern    `json:"pattern"`
	Content   string          `json:"content"`
	Behavior  string          `json:"behavior"`
	Invert    bool            `json:"invert"`
	Prepend   string          `json:"prepend"`
	Left      *bool           `json:"strip_left"`
	Right     *bool           `json:"strip_right"`
	Start     int             `json:"start"`
	Stop      int             `json:"stop"`
	Charsmap  []byte          `json:"precompiled_charsmap"`
	Clean     *bool           `json:"clean_text"`
	Han       *bool           `json:"handle_chinese_chars"`
	Accents   *bool           `json:"strip_accents"`
	Lower     *bool           `json:"lowercase"`
	AddPrefix *bool           `json:"add_prefix_space"`
	UseRegex  *bool           `json:"use_regex"`
	Mark      string          `json:"replacement"`
	Scheme    string          `json:"prepend_scheme"`
	Split     *bool           `json:"split"`
	Digits    bool            `json:"individual_digits"`
	Delimiter string          `json:"delimiter"`
	Prefix    *string         `json:"prefix"`
	Suffix    *string         `json:"suffix"`
	Cleanup   *bool           `json:"cleanup"`
	Sep       json.RawMessage `json:"sep"`
	Cls       json.RawMessage `json:"cls"`

	Single  []jsonPiece            `json:"single"`
	Pair    []jsonPiece            `json:"pair"`
	Special map[string]jsonSpecial `json:"special_tokens"`
}

// jsonPattern is a text or a regular expression.
type jsonPattern struct {
	String *string
	Regex  *string
}

// compile returns the matcher or else the pattern that p stands for.
func (p *jsonPattern) compile() (matcher, pattern, error) {
	switch {
	case p == nil:
	case p.String != nil:
		return literal(*p.String), nil, nil
	case p.Regex != nil:
		if m, ok := scanners[*p.Regex]; ok {
			return m, nil, nil
		}
		re, err := compileRegex(*p.Regex)
		return nil, re, err
	}
	return nil, nil, errors.New("pattern: expected a String or a Regex")
}

// yes is the value of an optional flag that is on by default.
func yes(b *bool) bool { return b == nil || *b }

// absent reports whether a part of the file is missing or null.
func absent(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// walk calls fn for a part and, where it is a Sequence, for its parts instead.
func walk(raw []byte, what string, list func(*jsonPart) []json.RawMessage, fn func(*jsonPart) error) error {
	if absent(raw) {
		return nil
	}
	var p jsonPart
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if p.Type != "Sequence" {
		if err := fn(&p); err != nil {
			return fmt.Errorf("%s: %s: %w", what, p.Type, err)
		}
		return nil
	}
	for i, sub := range list(&p) {
		if err := walk(sub, fmt.Sprintf("%s[%d]", what, i), list, fn); err != nil {
			return err
		}
	}
	return nil
}

var errUnknownPart = errors.New("this type is not supported")

// jsonParts reads normalizer, pre_tokenizer, decoder and post_processor.
func (t *Tokenizer) jsonParts(f *jsonFile) error {
	err := walk(f.Normalizer, "normalizer", func(p *jsonPart) []json.RawMessage { return p.Normalizers }, t.jsonNormalizer)
	if err != nil {
		return err
	}
	err = walk(f.PreTokenizer, "pre_tokenizer", func(p *jsonPart) []json.RawMessage { return p.Pretokenizers }, t.jsonStage)
	if err != nil {
		return err
	}
	err = walk(f.PostProcessor, "post_processor", func(p *jsonPart) []json.RawMessage { return p.Processors }, t.jsonAround)
	if err != nil {
		return err
	}
	return t.jsonDecoders(f.Decoder)
}

func (t *Tokenizer) jsonNormalizer(p *jsonPart) error {
	add := func(n ...normalizer) error { t.norm = append(t.norm, n...); return nil }
	switch p.Type {
	case "NFC":
		return add(nfc)
	case "NFD":
		return add(nfd)
	case "NFKC":
		return add(unicodeForm{norm.NFKC})
	case "NFKD":
		return add(unicodeForm{norm.NFKD})
	case "Lowercase":
		return add(lowercase{})
	case "StripAccents":
		return add(dropClass{markAny})
	case "Prepend":
		return add(prepend(p.Prepend))
	case "Strip":
		return add(trim{yes(p.Left), yes(p.Right)})
	case "Nmt":
		return add(nmt{})
	case "ByteLevel":
		return add(byteTextNorm{})
	case "BertNormalizer":
		lower := yes(p.Lower)
		accents := lower
		if p.Accents != nil {
			accents = *p.Accents
		}
		return add(bertNormalizers(yes(p.Clean), yes(p.Han), accents, lower)...)
	case "Replace":
		if p.Pattern != nil && p.Pattern.String != nil {
			return add(replaceText{*p.Pattern.String, p.Content})
		}
		m, pat, err := p.Pattern.compile()
		if err != nil {
			return err
		}
		if m != nil {
			pat = matches{m}
		}
		return add(replacePattern{pat, p.Content})
	case "Precompiled":
		if len(p.Charsmap) == 0 {
			return nil
		}
		cm, err := newCharsmap(p.Charsmap, true)
		if err != nil {
			return err
		}
		return add(cm)
	}
	return errUnknownPart
}

func (t *Tokenizer) jsonStage(p *jsonPart) error {
	add := func(st stage) error { t.stages = append(t.stages, st); return nil }
	behave, err := parseBehavior(p.Behavior)
	if err != nil {
		return err
	}
	switch p.Type {
	case "BertPreTokenizer":
		t.stages = append(t.stages, bertStages()...)
		return nil
	case "ByteLevel":
		if yes(p.AddPrefix) {
			add(stage{kind: stageSpace})
		}
		if yes(p.UseRegex) {
			add(stage{kind: stageScan, match: gpt2})
		}
		return add(stage{kind: stageBytes})
	case "Split":
		m, pat, err := p.Pattern.compile()
		if err != nil {
			return err
		}
		if p.Pattern.String != nil && *p.Pattern.String == " " && t.replacesSpaces() {
			return nil // nothing left to split
		}
		if m != nil && behave == isolated {
			st := stage{kind: stageScan, match: m}
			if p.Pattern.Regex != nil && *p.Pattern.Regex == reDigits3 {
				st.onBytes = digits3
			}
			return add(st)
		}
		if m != nil {
			pat = matches{m}
		}
		return add(stage{kind: stageSplit, pat: pat, behave: behave, invert: p.Invert})
	case "CharDelimiterSplit":
		return add(stage{kind: stageSplit, pat: matches{literal(p.Delimiter)}, behave: removed})
	case "Whitespace":
		return add(stage{kind: stageSplit, pat: matches{words}, behave: removed, invert: true})
	case "WhitespaceSplit":
		return add(stage{kind: stageSplit, pat: matches{classRun(clSpace)}, behave: removed})
	case "Punctuation":
		if behave == isolated {
			return add(stage{kind: stageScan, match: punctuationOne})
		}
		return add(stage{kind: stageSplit, pat: matches{punctuationOne}, behave: behave})
	case "Digits":
		if p.Digits {
			return add(stage{kind: stageScan, match: classOne(clN), onBytes: byteNumber})
		}
		return add(stage{kind: stageScan, match: classRun(clN), onBytes: byteNumbers})
	case "Metaspace":
		st := stage{kind: stageMeta, mark: p.Mark, cut: yes(p.Split), prefix: prefixAlways}
		if st.mark == "" {
			return errors.New("replacement: absent")
		}
		switch {
		case p.Scheme == "first":
			st.prefix = prefixFirst
		case p.Scheme == "never", p.Scheme == "" && !yes(p.AddPrefix):
			st.prefix = prefixNever
		case p.Scheme != "always" && p.Scheme != "":
			return fmt.Errorf("prepend_scheme: expected always, first or never, found %.60q", p.Scheme)
		}
		return add(st)
	}
	return errUnknownPart
}

// replacesSpaces reports whether normalization leaves no space in a text.
func (t *Tokenizer) replacesSpaces() bool {
	for _, n := range t.norm {
		if r, ok := n.(replaceText); ok && r.old == " " {
			return true
		}
	}
	return false
}

func parseBehavior(s string) (behavior, error) {
	switch s {
	case "", "Isolated":
		return isolated, nil
	case "Removed":
		return removed, nil
	case "MergedWithPrevious":
		return mergedPrev, nil
	case "MergedWithNext":
		return mergedNext, nil
	case "Contiguous":
		return contiguous, nil
	}
	return 0, fmt.Errorf("behavior: %.60q is not known", s)
}
