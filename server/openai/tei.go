package openai

import (
	"net/http"
	"strings"

	"ridge/server/run"
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

// teiEmbedRequest is the body of that server's POST /embed.
type teiEmbedRequest struct {
	Model      string        `json:"model"`
	Inputs     wire.Prompts  `json:"inputs"`
	Normalize  *bool         `json:"normalize"`
	PromptName string        `json:"prompt_name"`
	Dimensions *wire.Integer `json:"dimensions"`
	Truncate   bool          `json:"truncate"`
	Direction  string        `json:"truncation_direction"` // left or right
}

// embedTEI is POST /embed: the answer is the list of embeddings alone, of one text too.
func (s *API) embedTEI(w http.ResponseWriter, r *http.Request) error {
	var b teiEmbedRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	e := &run.Embedding{Texts: b.Inputs, Prompt: b.PromptName, Raw: b.Normalize != nil && !*b.Normalize, Dimensions: b.Dimensions.Pointer(),
		TruncateSide: strings.ToLower(b.Direction)}
	if b.Truncate {
		e.Truncate = new(-1)
	}
	var t run.Totals
	vectors, err := s.Embed(r.Context(), m.Model, e, &t)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, vectors)
	return nil
}
