package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// jsonPiece is an element of a template: a special token or the text.
type jsonPiece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

// text returns which text a piece stands for, "" if none.
func (p *jsonPiece) text() string {
	if p.Sequence == nil {
		return ""
	}
	return p.Sequence.ID
}

// jsonSpecial says which ids a special token of a template stands for.
type jsonSpecial struct {
	IDs []int32 `json:"ids"`
}

// jsonAround adds what a post-processor puts around a text to t.prefix and
// t.suffix.
func (t *Tokenizer) jsonAround(p *jsonPart) error {
	switch p.Type {
	case "ByteLevel":
		return nil // changes offsets only
	case "BertProcessing", "RobertaProcessing":
		cls, err := t.nameAndID(p.Cls, "cls")
		if err != nil {
			return err
		}
		sep, err := t.nameAndID(p.Sep, "sep")
		if err != nil {
			return err
		}
		t.prefix = append([]int32{cls}, t.prefix...)
		t.suffix = append(t.suffix, sep)
		t.between, t.behind = []int32{sep}, []int32{sep}
		if p.Type == "RobertaProcessing" {
			t.between = append(t.between, sep)
		}
		return nil
	case "TemplateProcessing":
		return t.template(p)
	}
	return errUnknownPart
}

// nameAndID reads a pair of the text of a token and its id.
func (t *Tokenizer) nameAndID(raw json.RawMessage, what string) (int32, error) {
	var text string
	var id int32
	pair := [2]any{&text, &id}
	if err := json.Unmarshal(raw, &pair); err != nil {
		return -1, fmt.Errorf("%s: %w", what, err)
	}
	return id, t.checkIDs([]int32{id}, what)
}

// template reads the template of a single text.
func (t *Tokenizer) template(p *jsonPart) error {
	var before, after []int32
	texts := 0
	for _, piece := range p.Single {
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A":
			texts++
		case piece.SpecialToken != nil:
			name := piece.SpecialToken.ID
			sp, ok := p.Special[name]
			if !ok {
				return fmt.Errorf("special_tokens: %.60q is in the template but not here", name)
			}
			if err := t.checkIDs(sp.IDs, fmt.Sprintf("special_tokens: %.60q", name)); err != nil {
				return err
			}
			if texts == 0 {
				before = append(before, sp.IDs...)
			} else {
				after = append(after, sp.IDs...)
			}
		default:
			return errors.New("single: expected a SpecialToken or the Sequence A")
		}
	}
	if texts != 1 {
		return fmt.Errorf("single: expected the text once, found it %d times", texts)
	}
	t.prefix = append(before, t.prefix...)
	t.suffix = append(t.suffix, after...)
	t.pairTemplate(p)
	return nil
}

// pairTemplate reads the template of two texts, as far as it begins as that of one
// does; others are not used.
func (t *Tokenizer) pairTemplate(p *jsonPart) {
	var parts [3][]int32
	at := 0
	for _, piece := range p.Pair {
		switch text := piece.text(); {
		case text == "A" && at == 0, text == "B" && at == 1:
			at++
		case piece.SpecialToken != nil:
			ids := p.Special[piece.SpecialToken.ID].IDs
			if t.checkIDs(ids, "pair") != nil {
				return
			}
			parts[at] = append(parts[at], ids...)
		default:
			return
		}
	}
	if at == 2 && slices.Equal(parts[0], t.prefix) {
		t.between, t.behind = parts[1], parts[2]
	}
}

// jsonToken is a token in tokenizer_config.json: a text or an object with one.
type jsonToken struct{ text string }

func (k *jsonToken) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var o struct{ Content string }
		err := json.Unmarshal(b, &o)
		k.text = o.Content
		return err
	}
	return json.Unmarshal(b, &k.text)
}

// jsonConfig applies tokenizer_config.json, if any: what BOS and EOS are, and
// whether they are added.
func (t *Tokenizer) jsonConfig(raw []byte) error {
	var c struct {
		BOS    *jsonToken `json:"bos_token"`
		EOS    *jsonToken `json:"eos_token"`
		CLS    *jsonToken `json:"cls_token"`
		AddBOS *bool      `json:"add_bos_token"`
		AddEOS *bool      `json:"add_eos_token"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
	}
	find := func(k *jsonToken) int32 {
		if k == nil || k.text == "" {
			return -1
		}
		if id, ok := t.extra[k.text]; ok {
			return id
		}
		return t.vocab.find(k.text)
	}
	t.bos, t.eos = find(c.BOS), find(c.EOS)
	if t.bos < 0 {
		t.bos = find(c.CLS)
	}
	if t.bos < 0 && len(t.prefix) > 0 && len(raw) == 0 {
		t.bos = t.prefix[0] // what the template starts texts with
	}
	var err error
	if t.prefix, err = around(t.prefix, t.bos, c.AddBOS, "bos_token"); err != nil {
		return err
	}
	if t.suffix, err = around(t.suffix, t.eos, c.AddEOS, "eos_token"); err != nil {
		return err
	}
	if t.eos >= 0 {
		t.findEnds(t.eos)
	} else {
		t.findEnds()
	}
	return nil
}

// around applies add_bos_token or add_eos_token, which go before what the
// template of tokenizer.json says.
func around(ids []int32, id int32, add *bool, what string) ([]int32, error) {
	if add == nil {
		return ids, nil
	}
	has := false
	for _, x := range ids {
		has = has || x == id
	}
	switch {
	case *add && id < 0:
		return ids, fmt.Errorf("add_%s: true, but %s is not a token of the vocabulary", what, what)
	case *add && !has:
		return append(ids, id), nil
	case !*add && has && len(ids) == 1:
		return nil, nil
	}
	return ids, nil
}

// jsonDecoders reads how tokens become text.
func (t *Tokenizer) jsonDecoders(raw []byte) error {
	d := &t.decode
	if absent(raw) {
		d.between = " "
		return nil
	}
	fused := false
	return walk(raw, "decoder", func(p *jsonPart) []json.RawMessage { return p.Decoders }, func(p *jsonPart) error {
		if d.byteLevel && p.Type != "Fuse" {
			return errors.New("nothing may follow ByteLevel")
		}
		switch p.Type {
		case "ByteLevel":
			d.byteLevel = true
		case "Fuse":
			fused = true
		case "ByteFallback":
			d.ops = append(d.ops, decodeOp{kind: opByte})
			d.eachByte = true
		case "Replace":
			if p.Pattern == nil || p.Pattern.String == nil || *p.Pattern.String == "" {
				return errors.New("pattern: only a String is supported")
			}
			d.ops = append(d.ops, decodeOp{kind: opReplace, old: *p.Pattern.String, new: p.Content})
			if p.Content == " " {
				d.mark = *p.Pattern.String
			}
		case "Metaspace":
			if p.Mark == "" {
				return errors.New("replacement: absent")
			}
			d.mark = p.Mark
			op := decodeOp{kind: opMeta, old: p.Mark}
			if p.Scheme == "never" || p.Scheme == "" && !yes(p.AddPrefix) {
				op = decodeOp{kind: opReplace, old: p.Mark, new: " "}
			}
			d.ops = append(d.ops, op)
		case "Strip":
			return d.strip(p, fused)
		case "WordPiece":
			d.isWords, d.wordMark, d.cleanup = true, "##", yes(p.Cleanup)
			if p.Prefix != nil {
				d.wordMark = *p.Prefix
			}
		case "BPEDecoder":
			d.suffix = "</w>"
			if p.Suffix != nil {
				d.suffix = *p.Suffix
			}
		default:
			return errUnknownPart
		}
		return nil
	})
}

// strip reads the decoder Strip, which works on each token or, after Fuse, on
// the whole text.
func (d *decoding) strip(p *jsonPart, fused bool) error {
	const most = 1 << 10
	switch {
	case p.Content == "":
		return errors.New("content: absent")
	case p.Start < 0 || p.Start > most || p.Stop < 0 || p.Stop > most:
		return fmt.Errorf("start, stop: expected 0 to %d, found %d, %d", most, p.Start, p.Stop)
	case !fused:
		d.ops = append(d.ops, decodeOp{kind: opStrip, old: p.Content, start: p.Start, stop: p.Stop})
	case p.Stop > 0 || len(p.Content) != 1:
		return errors.New("stripping the end of a text is not supported")
	default:
		d.lead, d.leadByte = p.Start, p.Content[0]
	}
	return nil
}
