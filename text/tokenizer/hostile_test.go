package tokenizer_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

// tinyBPE is the metadata of a small byte-level vocabulary.
func tinyBPE() mapMetadata {
	tokens := []string{"<s>", "</s>", "a", "b", "Ġ", "ab", "Ġab"}
	return mapMetadata{
		"tokenizer.ggml.model":        "gpt2",
		"tokenizer.ggml.pre":          "gpt-2",
		"tokenizer.ggml.tokens":       tokens,
		"tokenizer.ggml.token_type":   []int32{3, 3, 1, 1, 1, 1, 1},
		"tokenizer.ggml.merges":       []string{"a b", "Ġ ab"},
		"tokenizer.ggml.bos_token_id": uint32(0),
		"tokenizer.ggml.eos_token_id": uint32(1),
	}
}

// oneLine checks that err is one line that has all of the given words.
func oneLine(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", words)
		return
	}
	if !strings.HasPrefix(err.Error(), "tokenizer: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("not a line of this package: %q", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not name %q", err, w)
		}
	}
}

func TestBadMetadata(t *testing.T) {
	if tok, err := tokenizer.FromGGUF(tinyBPE()); err != nil {
		t.Fatal(err)
	} else if ids := tok.Encode(nil, "ab ab", tokenizer.EncodeOptions{}); fmt.Sprint(ids) != "[5 6]" {
		t.Fatalf("got %v", ids)
	}
	for _, c := range []struct {
		name  string
		key   string
		value any // nil: absent
		words []string
	}{
		{"no model", "model", nil, []string{"tokenizer.ggml.model", "absent"}},
		{"unknown model", "model", "plamo2", []string{"tokenizer.ggml.model", "plamo2", "not supported"}},
		{"model is a number", "model", uint32(1), []string{"tokenizer.ggml.model", "string", "uint32"}},
		{"unknown pre", "pre", "gpt-17", []string{"tokenizer.ggml.pre", "gpt-17"}},
		{"no tokens", "tokens", nil, []string{"tokenizer.ggml.tokens"}},
		{"tokens are numbers", "tokens", []int32{1, 2}, []string{"tokenizer.ggml.tokens", "[]string", "[]int32"}},
		{"few types", "token_type", []int32{1}, []string{"tokenizer.ggml.token_type", "1", "7"}},
		{"types are floats", "token_type", []float32{1}, []string{"tokenizer.ggml.token_type", "[]int32"}},
		{"no merges", "merges", nil, []string{"tokenizer.ggml.merges", "absent"}},
		{"merge without space", "merges", []string{"ab"}, []string{"tokenizer.ggml.merges", "merge 0", `"ab"`}},
		{"empty merge", "merges", []string{""}, []string{"tokenizer.ggml.merges", "merge 0"}},
		{"merge of no token", "merges", []string{"a b", "a x"}, []string{"tokenizer.ggml.merges", "merge 1", `"x"`, "not in the vocabulary"}},
		{"merge into no token", "merges", []string{"b a"}, []string{"tokenizer.ggml.merges", `"ba"`}},
		{"bos out of range", "bos_token_id", uint32(7), []string{"tokenizer.ggml.bos_token_id", "7"}},
		{"bos is negative", "bos_token_id", int32(-2), []string{"tokenizer.ggml.bos_token_id", "-2"}},
		{"bos is a string", "bos_token_id", "<s>", []string{"tokenizer.ggml.bos_token_id", "integer", "string"}},
		{"add_bos is a number", "add_bos_token", uint8(1), []string{"tokenizer.ggml.add_bos_token", "bool"}},
		{"llama without scores", "model", "llama", []string{"tokenizer.ggml.scores", "0", "7"}},
		{"t5 without scores", "model", "t5", []string{"tokenizer.ggml.scores"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			md := maps.Clone(tinyBPE())
			md["tokenizer.ggml."+c.key] = c.value
			if c.value == nil {
				delete(md, "tokenizer.ggml."+c.key)
			}
			_, err := tokenizer.FromGGUF(md)
			oneLine(t, err, c.words...)
		})
	}
	t.Run("charsmap", func(t *testing.T) {
		for _, b := range [][]byte{{}, {1, 2, 3}, {255, 255, 255, 127, 0}, {4, 0, 0, 0, 1, 2, 3}, {4, 0, 0, 0, 1, 2, 3, 4, 'x'}} {
			md := tinyBPE()
			md["tokenizer.ggml.model"] = "t5"
			md["tokenizer.ggml.scores"] = make([]float32, 7)
			md["tokenizer.ggml.precompiled_charsmap"] = b
			_, err := tokenizer.FromGGUF(md)
			oneLine(t, err, "tokenizer.ggml.precompiled_charsmap")
		}
	})
}

// TestPreByArch loads files from before the pre-tokenizer was named.
func TestPreByArch(t *testing.T) {
	md := tinyBPE()
	delete(md, "tokenizer.ggml.pre")
	for _, arch := range []string{"gptneox", "llama", ""} {
		md["general.architecture"] = arch
		if _, err := tokenizer.FromGGUF(md); err != nil {
			t.Errorf("%s: %v", arch, err)
		}
	}
}

func TestBadJSON(t *testing.T) {
	good := `{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`
	if _, err := tokenizer.FromJSON([]byte(good), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		json, config string
		words        []string
	}{
		{``, ``, []string{"offset 0"}},
		{`{"model":`, ``, []string{"offset 9", "the end"}},
		{`{"model":{}}`, ``, []string{"model.vocab", "absent"}},
		{good + `x`, ``, []string{"offset", "'x'"}},
		{`{"model":{"type":"Magic","vocab":{}}}`, ``, []string{"model", "Magic"}},
		{`{"model":{"type":"BPE","vocab":{"a":-1}}}`, ``, []string{"model.vocab", "token id"}},
		{`{"model":{"type":"BPE","vocab":{"a":2000000}}}`, ``, []string{"2000000"}},
		{`{"model":{"type":"BPE","vocab":{"a":99999999999999}}}`, ``, []string{"model.vocab"}},
		{`{"model":{"type":"BPE","vocab":{"a":1,"b":1}}}`, ``, []string{"token 1", `"a"`, `"b"`}},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}`, ``, []string{"merges", `"a"`}},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}}`, ``, []string{"merges", "pair"}},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`, ``, []string{"merge 0", `"aa"`}},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[1,2,3]}}`, ``, []string{"merges"}},
		{`{"model":{"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]}}`, ``, []string{"dropout", "0.1"}},
		{`{"model":{"type":"BPE","vocab":{},"unk_token":7,"merges":[]}}`, ``, []string{"model.unk_token"}},
		{`{"model":{"type":"Unigram","vocab":[["a"]]}}`, ``, []string{"model.vocab", "score"}},
		{`{"model":{"type":"Unigram","vocab":[["a",-1]],"unk_id":4}}`, ``, []string{"unk_id", "4"}},
		{`{"model":{"type":"Unigram","vocab":[["a",1e999]]}}`, ``, []string{"offset", "number"}},
		{`{"model":{"type":"WordPiece","vocab":{"a":0}}}`, ``, []string{"unk_token", "null"}},
		{`{"normalizer":{"type":"Foo"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"normalizer", "Foo", "not supported"}},
		{`{"normalizer":{"type":"Replace","content":"x"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"normalizer", "Replace", "pattern"}},
		{`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"normalizer", "charsmap"}},
		{`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"UnicodeScripts"}]},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"pre_tokenizer[1]", "UnicodeScripts"}},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"pre_tokenizer", "Split", "(a"}},
		{`{"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Sideways"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"pre_tokenizer", "behavior", "Sideways"}},
		{`{"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"prepend_scheme", "last"}},
		{`{"decoder":{"type":"CTC"},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"decoder", "CTC"}},
		{`{"decoder":{"type":"Sequence","decoders":[{"type":"ByteLevel"},{"type":"Strip","content":" ","start":1,"stop":0}]},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"decoder[1]", "ByteLevel"}},
		{`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"post_processor", `"x"`}},
		{`{"post_processor":{"type":"TemplateProcessing","single":[]},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"post_processor", "0 times"}},
		{`{"post_processor":{"type":"BertProcessing","sep":["x",9],"cls":["y",9]},"model":{"type":"BPE","vocab":{},"merges":[]}}`, ``, []string{"post_processor", "cls", "9"}},
		{`{"added_tokens":[{"id":0,"content":"x"}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, ``, []string{"added_tokens", `"a"`, `"x"`}},
		{`{"added_tokens":[{"id":-5,"content":"x"}],"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, ``, []string{"added_tokens", "-5"}},
		{`{"added_tokens":{},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, ``, []string{"added_tokens"}},
		{good, `{"add_bos_token":true}`, []string{"tokenizer_config.json", "bos_token"}},
		{good, `[`, []string{"tokenizer_config.json"}},
		{strings.Repeat(`{"x":`, 100) + `1` + strings.Repeat(`}`, 100), ``, []string{"nested"}},
	} {
		var config []byte
		if c.config != "" {
			config = []byte(c.config)
		}
		_, err := tokenizer.FromJSON([]byte(c.json), config)
		if err == nil {
			t.Errorf("%.100s: no error", c.json)
			continue
		}
		oneLine(t, err, c.words...)
	}
}

// TestTruncatedJSON cuts a real file at many places.
func TestTruncatedJSON(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "fixtures", "roberta.json"))
	if err != nil {
		t.Fatal(err)
	}
	b = []byte(strings.TrimSpace(string(b)))
	for n := 0; n < len(b); n += 97 {
		if _, err := tokenizer.FromJSON(b[:n], nil); err == nil {
			t.Fatalf("%d bytes of %d load", n, len(b))
		} else {
			oneLine(t, err)
		}
	}
}

func TestConfig(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "fixtures", "llama3.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config, ids string
	}{
		{``, "bos=0 eos=-1 [0 x]"},
		{`{"bos_token":"<s>","eos_token":{"content":"</s>"}}`, "bos=0 eos=1 [0 x]"},
		{`{"bos_token":"<s>","eos_token":"</s>","add_bos_token":false}`, "bos=0 eos=1 [x]"},
		{`{"bos_token":"<s>","eos_token":"</s>","add_eos_token":true}`, "bos=0 eos=1 [0 x 1]"},
		{`{"bos_token":null,"add_bos_token":null}`, "bos=-1 eos=-1 [0 x]"},
	} {
		tok, err := tokenizer.FromJSON(b, []byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		x, _ := tok.ID("x")
		got := fmt.Sprintf("bos=%d eos=%d %v", tok.BOS(), tok.EOS(), tok.Encode(nil, "x", tokenizer.EncodeOptions{AddSpecial: true}))
		if want := strings.ReplaceAll(c.ids, "x", fmt.Sprint(x)); got != want {
			t.Errorf("%s: got %s, want %s", c.config, got, want)
		}
	}
}

// TestMemory checks that what loading takes grows with the file and not with
// what the file claims.
func TestMemory(t *testing.T) {
	var vocab, pairs, added strings.Builder
	for i := range 20000 {
		if i > 0 {
			vocab.WriteByte(',')
			pairs.WriteByte(',')
			added.WriteByte(',')
		}
		fmt.Fprintf(&vocab, `"%x":%d`, i, i)
		fmt.Fprintf(&pairs, `["%x",-%d]`, i, i)
		fmt.Fprintf(&added, `{"id":%d,"content":"%x"}`, i, i)
	}
	bpe := `{"model":{"type":"BPE","vocab":{` + vocab.String() + `},"merges":[`
	for name, s := range map[string]string{
		"vocabulary":    bpe + `]}}`,
		"merges":        bpe + strings.Repeat(`"0 0",`, 50000) + `"1 0"]}}`,
		"empty merges":  bpe + strings.Repeat(`"",`, 50000) + `""]}}`,
		"unigram":       `{"model":{"type":"Unigram","vocab":[` + pairs.String() + `]}}`,
		"added":         `{"added_tokens":[` + added.String() + `],"model":{"type":"BPE","vocab":{},"merges":[]}}`,
		"high id":       `{"model":{"type":"BPE","vocab":{"a":2000000},"merges":[]}}`,
		"high added":    `{"added_tokens":[{"id":2000000,"content":"x"}],"model":{"type":"BPE","vocab":{},"merges":[]}}`,
		"many brackets": strings.Repeat("[", 1<<20),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = tokenizer.FromJSON([]byte(s), nil)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(32*len(s)+4<<20); got > most {
			t.Errorf("%s: a file of %d bytes takes %d bytes, more than %d", name, len(s), got, most)
		}
	}
}
