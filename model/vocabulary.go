package model

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ridge/internal/builtin"
	"ridge/text/tokenizer"
	"ridge/weights/gguf"
)

// OpenTokenizer reads only the tokenizer of the model at path, which is as for
// Open. It returns nil if the files carry none.
func OpenTokenizer(path string) (*tokenizer.Tokenizer, error) {
	dir, err := isDir(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if dir {
		return readTokenizer(path, nil)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readTokenizer(path, f)
}

// checkVocabulary refuses a tokenizer with tokens that the embedding has no row
// for. Checkpoints may have such marks, of images for one: these tokens alone are
// refused when they come.
func (m *Model) checkVocabulary() error {
	if m.tok == nil {
		return nil
	}
	for id := m.cfg.Vocab; id < m.tok.VocabSize(); id++ {
		mark := m.tok.IsControl(int32(id)) || len(m.tok.Piece(int32(id))) == 0
		if m.gg != nil || !mark {
			return fmt.Errorf("model: %s: vocabulary: expected at most %d tokens, the rows of the embedding, found %d", m.path, m.cfg.Vocab, m.tok.VocabSize())
		}
	}
	return nil
}

// isDir reports whether a model's path is a directory rather than a file.
func isDir(path string) (bool, error) {
	if builtin.Is(path) {
		return false, nil
	}
	st, err := os.Stat(path)
	return err == nil && st.IsDir(), err
}

// readTokenizer reads the tokenizer of f or, without a file, of the directory
// at path.
func readTokenizer(path string, f *gguf.File) (*tokenizer.Tokenizer, error) {
	if f != nil {
		if _, ok := f.Lookup("tokenizer.ggml.model"); !ok {
			return nil, nil
		}
		t, err := tokenizer.FromGGUF(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return t, nil
	}
	b, err := os.ReadFile(filepath.Join(path, "tokenizer.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	cfg, err := os.ReadFile(filepath.Join(path, "tokenizer_config.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("model: %w", err)
	}
	t, err := tokenizer.FromJSON(b, strictJSON(cfg))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	ends, err := hfEnds(path)
	t.AddEnds(ends...)
	return t, err
}
