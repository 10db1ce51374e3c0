package openai

import (
	"strings"

	"ridge/server/wire"
)

// teiFields are those of a request for ranks in the form of Hugging Face's
// text-embeddings-inference, which has texts where others have documents.
type teiFields struct {
	Texts      passages `json:"texts"`
	ReturnText bool     `json:"return_text"`
	Truncate   bool     `json:"truncate"`
	Direction  string   `json:"truncation_direction"` // left or right
	// Raw asks for scores before a sigmoid. A cosine is no logit: it is the same
	// either way.
	Raw bool `json:"raw_scores"`
}

// cut says in vLLM's fields how texts are cut.
func (f *teiFields) cut(b *relevance) {
	b.raw = f.Raw
	if f.Truncate {
		b.Keep = new(wire.Integer(-1))
	}
	if f.Direction != "" {
		b.Side = strings.ToLower(f.Direction)
	}
}

// rank is a text's score in that form.
type rank struct {
	Index int     `json:"index"`
	Text  *string `json:"text,omitempty"`
	Score float64 `json:"score"`
}

// newRanks is the whole answer: a list, the best text first.
func newRanks(results []rerankResult, texts passages, whole bool) []rank {
	out := make([]rank, len(results))
	for i, r := range results {
		out[i] = rank{Index: r.Index, Score: r.Score}
		if whole {
			out[i].Text = (*string)(&texts[r.Index])
		}
	}
	return out
}
