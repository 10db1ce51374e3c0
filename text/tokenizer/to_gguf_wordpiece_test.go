package tokenizer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

// A WordPiece tokenizer as metadata of a GGUF file gives the same tokens, with capital
// letters and accents kept or not, and what GGUF cannot say is an error.
func TestWordPieceToGGUF(t *testing.T) {
	const file = `{"added_tokens":[{"id":0,"content":"[PAD]","special":true},{"id":1,"content":"[UNK]","special":true},{"id":2,"content":"[CLS]","special":true},{"id":3,"content":"[SEP]","special":true}],
"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":%s,"lowercase":%v},"pre_tokenizer":{"type":"BertPreTokenizer"},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],"pair":[],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},"[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}},
"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"%s","max_input_chars_per_word":100,"vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"a":4,"##b":5,"A":6,"e":7,"é":8,"##é":9,"##e":10,".":11,"ab":12,"\n":13,"0":14,"##0":15}}}`
	for _, c := range []struct {
		accents, prefix, err string
		lower                bool
	}{
		{"null", "##", "", true}, {"null", "##", "", false}, {"true", "##", "", false}, {"false", "##", "", true},
		{"null", "@@", "continuing_subword_prefix: expected ##", true},
	} {
		json := []byte(fmt.Sprintf(file, c.accents, c.lower, c.prefix))
		want, err := tokenizer.FromJSON(json, nil)
		if err != nil {
			t.Fatal(err)
		}
		kvs, err := tokenizer.ToGGUF(json, nil, 20, nil)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("prefix %s: %v", c.prefix, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		md := mapMetadata{}
		for _, kv := range kvs {
			md[kv.Key] = kv.Value
		}
		got, err := tokenizer.FromGGUF(md)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"abb a.é Aé", "éb ab", "000 A", "é e", "[SEP] a"} {
			o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}
			a, b := got.Encode(nil, text, o), want.Encode(nil, text, o)
			if !slices.Equal(a, b) {
				t.Errorf("%+v: %q: tokens %v, want %v", c, text, a, b)
			}
		}
		if a, b := got.Decode([]int32{4, 5, 11, 12}), want.Decode([]int32{4, 5, 11, 12}); a != b {
			t.Errorf("%+v: text %q, want %q", c, a, b)
		}
	}
}
