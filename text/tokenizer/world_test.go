package tokenizer_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"ridge/text/tokenizer"
)

// RWKV's tokenizer gives the ids of its authors', and the bytes again, of texts that are
// no UTF-8 too.
func TestWorld(t *testing.T) {
	var g struct {
		Tokens []string
		Texts  []struct {
			Text []byte
			IDs  []int32
		}
	}
	b, err := os.ReadFile("testdata/world.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	types := slices.Repeat([]int32{1}, len(g.Tokens))
	types[0] = 3
	meta := mapMetadata{"tokenizer.ggml.model": "rwkv", "tokenizer.ggml.tokens": g.Tokens, "tokenizer.ggml.token_type": types}
	tok, err := tokenizer.FromGGUF(meta)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range g.Texts {
		ids := tok.Encode(nil, string(c.Text), tokenizer.EncodeOptions{})
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("%q: got %v, want %v", c.Text, ids, c.IDs)
		}
		var back []byte
		for _, id := range ids {
			back = tok.AppendPiece(back, id)
		}
		if string(back) != string(c.Text) {
			t.Errorf("%q comes back as %q", c.Text, back)
		}
	}
	for text, want := range map[string]string{`\`: "expected a character behind", `\x1`: "expected two digits", `\xzz`: `found "zz"`} {
		bad := slices.Clone(g.Tokens)
		bad[5] = text
		meta["tokenizer.ggml.tokens"] = bad
		if _, err := tokenizer.FromGGUF(meta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
