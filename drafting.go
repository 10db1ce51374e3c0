package ridge

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"ridge/hub"
	"ridge/model"
	"ridge/spec"
	"ridge/spec/skip"
	"ridge/text/tokenizer"
)

// Drafting returns who guesses the next tokens of m as s asks for it, nil for nobody.
// A model that drafts is found as Open finds one; whoever uses the Drafting closes it.
func Drafting(ctx context.Context, s spec.Setting, m *model.Model, o hub.Options) (*spec.Drafting, error) {
	d := s.Drafting()
	switch s.Kind {
	case spec.Draft, spec.Cascade:
	case spec.Recycled:
		d.Texts = spec.NewRecycling(m.Config().Vocab).Drafter
		return d, nil
	case spec.Stored:
		return d, stored(d, s.File, m)
	case spec.Skipped, spec.Exit:
		return d, skipped(d, s, m)
	default:
		return d, nil
	}
	found, err := hub.Resolve(ctx, s.Model, o)
	if err != nil {
		return nil, fmt.Errorf("ridge: model that drafts: %w", err)
	}
	mo := model.DefaultOptions()
	mo.Workers, mo.BatchWorkers = m.Widths()
	mo.MaxContext = m.Context()
	small, err := model.Open(found.Path(), mo)
	if err != nil {
		return nil, fmt.Errorf("ridge: model that drafts: %w", err)
	}
	mine, theirs := small.Tokenizer(), m.Tokenizer()
	if mine == nil || theirs == nil {
		small.Close()
		return nil, fmt.Errorf("ridge: model that drafts: expected tokenizers in both files, found none")
	}
	if spec.Vocabulary(mine.VocabSize(), mine.Piece) != spec.Vocabulary(theirs.VocabSize(), theirs.Piece) {
		if err := foreign(d, s, small, speller(mine), speller(theirs)); err != nil {
			return nil, err
		}
		return d, nil
	}
	drafter, err := spec.NewSmall(small, theirs.VocabSize(), func(id int32) bool { return bytes.Equal(mine.Piece(id), theirs.Piece(id)) })
	if err != nil {
		small.Close()
		return nil, err
	}
	d.Slow, d.Close = drafter.Drafter, drafter.Close
	if s.Kind == spec.Cascade {
		d.Slow = drafter.Cascade
	}
	return d, nil
}

// speller returns how a tokenizer spells.
func speller(tok *tokenizer.Tokenizer) spec.Speller {
	return spec.Speller{Tokens: tok, Encode: func(dst []int32, text string) []int32 {
		return tok.Encode(dst, text, tokenizer.EncodeOptions{})
	}}
}

// foreign has a model with another vocabulary guess.
func foreign(d *spec.Drafting, s spec.Setting, small *model.Model, mine, theirs spec.Speller) error {
	if s.Kind == spec.Cascade {
		small.Close()
		return fmt.Errorf("ridge: cascade=%s: expected a model with the vocabulary of the other one, found another vocabulary", s.Model)
	}
	f, err := spec.NewForeign(small, mine, theirs, s.ByTokens)
	if err != nil {
		small.Close()
		return err
	}
	d.Slow, d.Close, d.Width = f, small.Close, 1
	return nil
}

// skipped has m itself guess, without parts of its layers.
func skipped(d *spec.Drafting, s spec.Setting, m *model.Model) (err error) {
	var parts []uint8
	if s.Kind == spec.Exit {
		parts, err = skip.Exit(m, s.Layers)
	} else {
		var f *os.File
		if f, err = os.Open(s.File); err == nil {
			defer f.Close()
			parts, err = skip.Read(f, m)
		}
	}
	if err != nil {
		return fmt.Errorf("ridge: layers that draft: %w", err)
	}
	drafters, err := skip.New(m, parts)
	if err != nil {
		return fmt.Errorf("ridge: layers that draft: %w", err)
	}
	d.Slow = drafters.Drafter
	return nil
}

// stored has d look up the texts of a file.
func stored(d *spec.Drafting, file string, m *model.Model) error {
	tok := m.Tokenizer()
	if tok == nil {
		return fmt.Errorf("ridge: %s: expected a model with a tokenizer, found none", file)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("ridge: datastore: %w", err)
	}
	store, err := spec.ReadDatastore(b, spec.Vocabulary(tok.VocabSize(), tok.Piece))
	if err != nil {
		return fmt.Errorf("ridge: %s: %w", file, err)
	}
	d.Texts = store.Drafter
	return nil
}
