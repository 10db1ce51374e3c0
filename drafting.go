package ridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"ridge/hub"
	"ridge/model"
	"ridge/spec"
	"ridge/spec/lookahead"
	"ridge/spec/many"
	"ridge/spec/skip"
	"ridge/text/tokenizer"
)

// Drafting returns who guesses the next tokens of m as s asks for it, nil for nobody.
// A model that drafts is found as Open finds one. Whoever uses the Drafting closes it,
// before m.
func Drafting(ctx context.Context, s spec.Setting, m *model.Model, o hub.Options) (*spec.Drafting, error) {
	d := s.Drafting()
	switch s.Kind {
	case spec.Draft, spec.Cascade:
	case spec.Recycled:
		d.Texts = spec.NewRecycling(m.Config().Vocab).Drafter
		return d, nil
	case spec.Trained:
		return d, trained(ctx, d, s.Model, m, o)
	case spec.Lookahead:
		d.Texts = func(string) spec.Drafter { return lookahead.New(lookahead.Usual) }
		return d, nil
	case spec.Jacobi:
		d.Texts = func(string) spec.Drafter { return lookahead.New(lookahead.Jacobi) }
		return d, nil
	case spec.Stored:
		return d, stored(d, s.File, m)
	case spec.Skipped, spec.Exit:
		return d, skipped(d, s, m)
	default:
		return d, nil
	}
	return d, models(ctx, d, s, m, o)
}

// models has models guess, whose names commas part.
func models(ctx context.Context, d *spec.Drafting, s spec.Setting, m *model.Model, o hub.Options) error {
	names := []string{s.Model}
	if _, err := os.Stat(s.Model); err != nil {
		names = strings.Split(s.Model, ",")
	}
	var open []*model.Model
	d.Close = func() (err error) {
		for _, small := range open {
			err = errors.Join(err, small.Close())
		}
		return err
	}
	var all []func() spec.Costly
	for _, name := range names {
		found, err := hub.Resolve(ctx, strings.TrimSpace(name), o)
		if err != nil {
			return errors.Join(fmt.Errorf("ridge: model that drafts: %w", err), d.Close())
		}
		mo := model.DefaultOptions()
		mo.Workers, mo.BatchWorkers = m.Widths()
		mo.MaxContext = m.Context()
		small, err := model.Open(found.Path(), mo)
		if err != nil {
			return errors.Join(fmt.Errorf("ridge: model that drafts: %w", err), d.Close())
		}
		open = append(open, small)
		drafter, err := drafterOf(small, m, s)
		if err != nil {
			return errors.Join(fmt.Errorf("ridge: %s=%s: %w", s.Kind, name, err), d.Close())
		}
		all = append(all, drafter)
	}
	if d.Slow = all[0]; len(all) > 1 {
		d.Slow = many.Of(all...)
	}
	return nil
}

// drafterOf returns how to make drafters of small for m.
func drafterOf(small, m *model.Model, s spec.Setting) (func() spec.Costly, error) {
	mine, theirs := small.Tokenizer(), m.Tokenizer()
	if mine == nil || theirs == nil {
		return nil, fmt.Errorf("expected tokenizers in both files, found none")
	}
	if spec.Vocabulary(mine.VocabSize(), mine.Piece) != spec.Vocabulary(theirs.VocabSize(), theirs.Piece) {
		if s.Kind == spec.Cascade {
			return nil, fmt.Errorf("expected a model with the vocabulary of the other one, found another vocabulary")
		}
		return spec.NewForeign(small, speller(mine), speller(theirs), s.ByTokens)
	}
	drafter, err := spec.NewSmall(small, theirs.VocabSize(), func(id int32) bool { return bytes.Equal(mine.Piece(id), theirs.Piece(id)) })
	if err != nil {
		return nil, err
	}
	if s.Kind == spec.Cascade {
		return drafter.Cascade, nil
	}
	return drafter.Drafter, nil
}

// speller returns how a tokenizer spells.
func speller(tok *tokenizer.Tokenizer) spec.Speller {
	return spec.Speller{Tokens: tok, Encode: func(dst []int32, text string) []int32 {
		return tok.Encode(dst, text, tokenizer.EncodeOptions{})
	}}
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

// trained has d ask a head that was trained for m: that at a path, or one that is found as
// models are, or with "" the layers of m's own files.
func trained(ctx context.Context, d *spec.Drafting, path string, m *model.Model, o hub.Options) error {
	if _, err := os.Stat(path); path != "" && err != nil {
		found, err := hub.Resolve(ctx, path, o)
		if err != nil {
			return fmt.Errorf("ridge: draft head: %w", err)
		}
		path = found.Path()
	}
	head, err := m.OpenDraftHead(path)
	if err != nil {
		return fmt.Errorf("ridge: %w", err)
	}
	d.Ask(head)
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
