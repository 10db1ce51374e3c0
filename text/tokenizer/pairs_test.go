package tokenizer_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// openGGUF makes the tokenizer of a GGUF file.
func openGGUF(t testing.TB, path string) *tokenizer.Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	return tok
}

// readPairs returns the texts of an .inp file and the ids of its .out file.
func readPairs(t testing.TB, inp, out string) (texts []string, ids [][]int32) {
	t.Helper()
	a, err := os.ReadFile(inp)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	texts = strings.Split(strings.TrimSuffix(string(a), "\n__ggml_vocab_test__\n"), "\n__ggml_vocab_test__\n")
	for line := range strings.Lines(string(b)) {
		var row []int32
		for f := range strings.FieldsSeq(line) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, int32(n))
		}
		ids = append(ids, row)
	}
	if len(texts) != len(ids) {
		t.Fatalf("%d texts, %d lines of ids", len(texts), len(ids))
	}
	return texts, ids
}

// TestPairs compares with the ids that the original tokenizers gave.
func TestPairs(t *testing.T) {
	dir := filepath.Join(testdata.Dir(t), "tokenizers")
	for _, name := range testdata.Vocabularies(t) {
		if name == "baichuan" {
			continue // no ids are recorded; TestSentencePiece has them
		}
		t.Run(name, func(t *testing.T) {
			tok := openGGUF(t, testdata.File(t, "tokenizers/"+name+".gguf"))
			pairs := filepath.Join(dir, name+".gguf")
			if name == "gpt-neox" {
				// The same vocabulary, by the same tokenizer.
				pairs = filepath.Join(dir, "mpt.gguf")
			}
			texts, ids := readPairs(t, pairs+".inp", pairs+".out")
			for i, text := range texts {
				got := tok.Encode(nil, text, tokenizer.EncodeOptions{})
				if !slices.Equal(got, ids[i]) {
					t.Errorf("%q:\n got %v\nwant %v", text, got, ids[i])
				}
			}
		})
	}
}
