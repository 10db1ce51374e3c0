package tokenizer_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"ridge/text/tokenizer"
)

// FuzzFromJSON loads any tokenizer.json; what loads must encode and decode.
func FuzzFromJSON(f *testing.F) {
	for _, name := range []string{"words", "t5", "llama2", "roberta", "clip"} {
		b, err := os.ReadFile(filepath.Join("testdata", "fixtures", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "a b")
	}
	for _, s := range []string{
		`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`,
		`{"added_tokens":[{"id":3,"content":"<x>","special":true,"lstrip":true}],"model":{"type":"WordPiece","unk_token":"a","vocab":{"a":0,"##b":1}},"decoder":{"type":"WordPiece","prefix":"##"}}`,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Prepend","prepend":"_"},{"type":"Replace","pattern":{"Regex":"a+"},"content":"b"}]},"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first","split":true},"model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["_",-1.5],["b",-2],["_b",-1]]}}`,
		`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+|\\d{1,3}(?=(\\d{3})*\\b)"},"behavior":"MergedWithNext","invert":true},{"type":"ByteLevel","add_prefix_space":true,"use_regex":true},{"type":"Digits","individual_digits":false}]},"model":{"type":"BPE","vocab":{"a":0,"Ġ":1,"Ġa":2},"merges":[["Ġ","a"]]},"decoder":{"type":"ByteLevel"}}`,
		`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"s"}},{"Sequence":{"id":"A"}}],"special_tokens":{"s":{"ids":[0]}}},"model":{"type":"WordLevel","unk_token":"s","vocab":{"s":0}}}`,
	} {
		f.Add([]byte(s), "ab <x> a 1234 \xff é")
	}
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		if len(b) > 1<<16 || len(text) > 1<<10 {
			return
		}
		tok, err := tokenizer.FromJSON(b, nil)
		if err != nil {
			return
		}
		for _, special := range []bool{false, true} {
			ids := tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: special, ParseSpecial: special})
			for _, id := range ids {
				if id < 0 || int(id) >= tok.VocabSize() {
					t.Fatalf("token %d of a vocabulary of %d", id, tok.VocabSize())
				}
			}
			checkStream(t, tok, ids)
		}
	})
}

// FuzzEncode encodes any bytes with tokenizers of every kind.
func FuzzEncode(f *testing.F) {
	var toks []*tokenizer.Tokenizer
	for _, name := range fixtureNames(f) {
		toks = append(toks, fixture(f, name))
	}
	for _, s := range fixtureTexts(f)[:40] {
		f.Add(s)
	}
	f.Add("\xff\xc2\xe2\x96 \xed\xa0\x80")
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 1<<12 {
			return
		}
		for i, tok := range toks {
			ids := tok.Encode(nil, s, tokenizer.EncodeOptions{ParseSpecial: true})
			checkStream(t, tok, ids)
			// The caches must not change what comes out.
			again := tok.Encode(nil, s, tokenizer.EncodeOptions{ParseSpecial: true})
			if !slices.Equal(ids, again) {
				t.Fatalf("tokenizer %d: %q gives %v, then %v", i, s, ids, again)
			}
			if len(ids) > 4*len(s)+64 {
				t.Fatalf("tokenizer %d: %d tokens of %d bytes", i, len(ids), len(s))
			}
			if tok.Decode(ids); !utf8.ValidString(tok.DecodeSpecial(ids)) {
				t.Fatalf("tokenizer %d: decodes to invalid UTF-8", i)
			}
		}
	})
}

// FuzzFromGGUF loads any small vocabulary.
func FuzzFromGGUF(f *testing.F) {
	f.Add(uint8(0), "gpt-2", "a\nb\nab\n<s>", "a b", "\x01\x01\x01\x03", "ab<s>")
	f.Add(uint8(1), "default", "<unk>\n▁\na\n▁a\n<0x0A>", "", "\x02\x01\x01\x04\x06", " a\n")
	f.Add(uint8(2), "", "<pad>\n</s>\n<unk>\n▁\nb", "", "\x03\x03\x02\x01\x01", "b  b")
	f.Add(uint8(3), "", "[UNK]\n▁a\nb\n[CLS]", "", "\x03\x01\x01\x03", "aB é")
	f.Add(uint8(4), "gemma4", "a\n▁\n▁a\n\n\n", "▁ a", "\x01\x01\x01\x01\x01", "a a")
	f.Fuzz(func(t *testing.T, model uint8, pre, tokens, merges, types, text string) {
		if len(tokens) > 1<<12 || len(text) > 1<<10 {
			return
		}
		names := []string{"gpt2", "llama", "t5", "bert", "gemma4"}
		md := mapMetadata{
			"tokenizer.ggml.model":                    names[int(model)%len(names)],
			"tokenizer.ggml.pre":                      pre,
			"tokenizer.ggml.tokens":                   lines(tokens),
			"tokenizer.ggml.merges":                   lines(merges),
			"tokenizer.ggml.unknown_token_id":         uint32(0),
			"tokenizer.ggml.add_space_prefix":         model&8 != 0,
			"tokenizer.ggml.remove_extra_whitespaces": model&16 != 0,
		}
		var scores []float32
		var kinds []int32
		for i := range md["tokenizer.ggml.tokens"].([]string) {
			k := int32(1)
			if i < len(types) {
				k = int32(types[i])
			}
			kinds = append(kinds, k)
			scores = append(scores, -float32(i*7%11))
		}
		md["tokenizer.ggml.scores"], md["tokenizer.ggml.token_type"] = scores, kinds
		if model&32 != 0 {
			md["tokenizer.ggml.precompiled_charsmap"] = []byte(merges)
		}
		tok, err := tokenizer.FromGGUF(md)
		if err != nil {
			return
		}
		ids := tok.Encode(nil, text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: model&64 != 0})
		for _, id := range ids {
			if id < 0 || int(id) >= tok.VocabSize() {
				t.Fatalf("token %d of a vocabulary of %d", id, tok.VocabSize())
			}
		}
		checkStream(t, tok, ids)
	})
}

func lines(s string) (out []string) {
	for len(s) > 0 {
		n := 0
		for n < len(s) && s[n] != '\n' {
			n++
		}
		out = append(out, s[:n])
		s = s[min(n+1, len(s)):]
	}
	return out
}
