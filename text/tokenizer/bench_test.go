package tokenizer_test

import (
	"os"
	"strings"
	"testing"

	"ridge/internal/testdata"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// BenchmarkEncode encodes the mixed text chunk by chunk, as `gen_goldens.py
// speed` does with Hugging Face tokenizers.
func BenchmarkEncode(b *testing.B) {
	texts := mixedText(b)
	size := len(strings.Join(texts, ""))
	for _, name := range realModels {
		b.Run(name, func(b *testing.B) {
			tok := openGGUF(b, testdata.Model(b, name))
			var ids []int32
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				for _, s := range texts {
					ids = tok.Encode(ids[:0], s, tokenizer.EncodeOptions{ParseSpecial: true})
				}
			}
		})
	}
}

// BenchmarkEnglish encodes English prose in one piece.
func BenchmarkEnglish(b *testing.B) {
	text, err := os.ReadFile(testdata.File(b, "wikitext2_test.txt"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range realModels {
		b.Run(name, func(b *testing.B) {
			tok := openGGUF(b, testdata.Model(b, name))
			var ids []int32
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				ids = tok.Encode(ids[:0], string(text), tokenizer.EncodeOptions{})
			}
		})
	}
}

// BenchmarkLoad builds tokenizers from metadata that is in memory.
func BenchmarkLoad(b *testing.B) {
	for _, name := range realModels {
		b.Run(name, func(b *testing.B) {
			f, err := gguf.Open(testdata.Model(b, name))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokenizer.FromGGUF(f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
