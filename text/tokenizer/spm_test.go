package tokenizer_test

import (
	"encoding/json"
	"os"
	"testing"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
)

// mapMetadata is metadata in a map.
type mapMetadata map[string]any

func (m mapMetadata) Lookup(key string) (any, bool) {
	v, ok := m[key]
	return v, ok
}

// spmGolden is what gen_goldens.py spm records.
type spmGolden struct {
	Chunks map[string][]string
	Small  map[string]struct {
		Tokens   []string
		Scores   []float32
		Types    []int32
		Charsmap []byte
		Trim     bool
		IDs      []string
	}
}

func readSPM(t testing.TB) (g spmGolden) {
	t.Helper()
	b, err := os.ReadFile("testdata/spm.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSentencePiece compares with SentencePiece itself, for real vocabularies.
func TestSentencePiece(t *testing.T) {
	w := mixedWords(t)
	for name, want := range readSPM(t).Chunks {
		t.Run(name, func(t *testing.T) {
			tok := openGGUF(t, testdata.File(t, "tokenizers/"+name+".gguf"))
			for i := range want {
				s := mixedChunk(w, i)
				if got := digest(tok.Encode(nil, s, tokenizer.EncodeOptions{})); got != want[i] {
					t.Errorf("chunk %d: got %s, want %s", i, got, want[i])
				}
			}
		})
	}
}

// TestSentencePieceSmall compares with SentencePiece for small models that are
// made for the test: without byte tokens, one with rules of normalization.
func TestSentencePieceSmall(t *testing.T) {
	texts := fixtureTexts(t)
	for name, m := range readSPM(t).Small {
		t.Run(name, func(t *testing.T) {
			md := mapMetadata{
				"tokenizer.ggml.model":            "llama",
				"tokenizer.ggml.tokens":           m.Tokens,
				"tokenizer.ggml.scores":           m.Scores,
				"tokenizer.ggml.token_type":       m.Types,
				"tokenizer.ggml.add_space_prefix": true,
				"tokenizer.ggml.unknown_token_id": uint32(0),
			}
			if name == "unigram" {
				md["tokenizer.ggml.model"] = "t5"
				md["tokenizer.ggml.precompiled_charsmap"] = m.Charsmap
				md["tokenizer.ggml.remove_extra_whitespaces"] = m.Trim
			}
			tok, err := tokenizer.FromGGUF(md)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range texts {
				ids := tok.Encode(nil, s, tokenizer.EncodeOptions{})
				if got := digest(ids); got != m.IDs[i] {
					t.Errorf("text %d %q: got %s %v, want %s", i, s[:min(len(s), 60)], got, ids[:min(len(ids), 20)], m.IDs[i])
				}
			}
		})
	}
}
