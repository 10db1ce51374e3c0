package ridge

import (
	"bytes"
	"context"
	"fmt"

	"ridge/hub"
	"ridge/model"
	"ridge/spec"
)

// Drafting returns who guesses the next tokens of m as s asks for it, nil for nobody.
// A model that drafts is found as Open finds one; it must have the vocabulary of m, and
// whoever uses the Drafting closes it.
func Drafting(ctx context.Context, s spec.Setting, m *model.Model, o hub.Options) (*spec.Drafting, error) {
	d := s.Drafting()
	if s.Kind != spec.Draft {
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
	mine, theirs := m.Tokenizer(), small.Tokenizer()
	if mine == nil || theirs == nil {
		small.Close()
		return nil, fmt.Errorf("ridge: model that drafts: expected tokenizers in both files, found none")
	}
	drafter, err := spec.NewSmall(small, mine.VocabSize(), func(id int32) bool { return bytes.Equal(mine.Piece(id), theirs.Piece(id)) })
	if err != nil {
		small.Close()
		return nil, err
	}
	d.Slow, d.Close = drafter.Drafter, drafter.Close
	return d, nil
}
