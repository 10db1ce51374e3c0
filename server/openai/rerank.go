package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"time"

	"ridge/engine"
	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// passage is a text to be scored: a string, or an object with one.
type passage string

// Wants says what the field may be.
func (passage) Wants() string { return "a string, or an object with a text" }

func (p *passage) UnmarshalJSON(b []byte) error {
	var text *string
	if len(b) > 0 && b[0] == '{' {
		var o struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(b, &o); err != nil {
			return wire.WrongType[passage](b)
		}
		text = o.Text
	} else if err := json.Unmarshal(b, &text); err != nil {
		text = nil
	}
	if text == nil {
		return wire.WrongType[passage](b)
	}
	*p = passage(*text)
	return nil
}

// passages is one text or a list of them.
type passages []passage

// Wants says what the field may be.
func (passages) Wants() string { return "a string, an object with a text, or a list of these" }

func (p *passages) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '[' {
		var many []passage
		if err := json.Unmarshal(b, &many); err != nil {
			return err
		}
		*p = many
		return nil
	}
	var one passage
	if err := one.UnmarshalJSON(b); err != nil {
		return err
	}
	*p = passages{one}
	return nil
}

// relevance are the fields that requests for scores share.
type relevance struct {
	Model   string    `json:"model"`
	Pooling string    `json:"pooling"`
	User    wire.Idle `json:"user"`
	// Activate says whether scores go through a model's last function, as they do
	// where nothing is said.
	Activate *bool `json:"use_activation"`
	// Instruction says what makes a text relevant, for rerankers that are told it.
	Instruction string `json:"instruction"`
	wire.TruncationFields
	raw bool // scores before that function, by the name of another API
}

// isRaw says whether scores are wanted before a model's last function.
func (b *relevance) isRaw() bool { return b.raw || b.Activate != nil && !*b.Activate }

// cosines returns the cosine of the angle between the embeddings of each pair
// of texts: what vLLM's routes give for models that were made for embeddings.
// Every text is computed once.
func (s *API) cosines(ctx context.Context, m *run.Model, b *relevance, pairs [][2]passage, t *run.Totals) ([]float64, error) {
	if m.Info().Labels != nil {
		return s.crossed(ctx, m, b, pairs, t)
	}
	if b.Instruction != "" {
		return nil, fault.BadRequest("instruction", "expected none: %s is not told what makes a text relevant", m.Info().Name)
	}
	if m.Info().Pooling == engine.NoPooling && b.Pooling == "" {
		return nil, fault.Unsupported("model", "%s does not say how its states become an embedding, so its similarities mean little; choose a model made for embeddings, or say pooling: \"mean\" or \"last\"", m.Info().Name)
	}
	at := map[passage]int{}
	req := run.Embedding{Pooling: b.Pooling, Truncate: b.Keep.Pointer(), TruncateSide: b.Side}
	for _, p := range pairs {
		for _, text := range p {
			if text == "" {
				return nil, fault.BadRequest("documents", "expected texts that are not empty")
			}
			if _, ok := at[text]; !ok {
				at[text] = len(req.Texts)
				req.Texts = append(req.Texts, run.Prompt{Text: string(text)})
			}
		}
	}
	vectors, err := s.Embed(ctx, m, &req, t)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(pairs))
	for i, p := range pairs {
		out[i] = cosine(vectors[at[p[0]]], vectors[at[p[1]]])
	}
	return out, nil
}

// crossed returns what a model that reads both texts of a pair at once says of how
// they go together.
func (s *API) crossed(ctx context.Context, m *run.Model, b *relevance, pairs [][2]passage, t *run.Totals) ([]float64, error) {
	if b.Pooling != "" {
		return nil, fault.BadRequest("pooling", "expected none: %s gives scores, found %q", m.Info().Name, b.Pooling)
	}
	var texts [][]string
	for _, p := range pairs {
		texts = append(texts, []string{string(p[0]), string(p[1])})
	}
	all, err := s.Scores(ctx, m, texts, b.Instruction, b.Keep.Pointer(), b.Side, t)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(all))
	for i, scores := range all {
		if out[i], err = m.Relevance(scores, b.isRaw()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// classifyRequest is the body of POST /classify.
type classifyRequest struct {
	Model    string    `json:"model"`
	Input    passages  `json:"input"`
	User     wire.Idle `json:"user"`
	Activate *bool     `json:"use_activation"` // as for scores
	wire.TruncationFields
}

// classify is vLLM's POST /classify: the probabilities of a classifier's labels.
func (s *API) classify(w http.ResponseWriter, r *http.Request) error {
	var b classifyRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	labels := m.Info().Labels
	switch {
	case labels == nil:
		return fault.Unsupported("model", "%s has no classifier", m.Info().Name)
	case len(b.Input) == 0:
		return fault.BadRequest("input", "expected at least one text, found none")
	}
	var texts [][]string
	for _, text := range b.Input {
		texts = append(texts, []string{string(text)})
	}
	var t run.Totals
	all, err := s.Scores(r.Context(), m.Model, texts, "", b.Keep.Pointer(), b.Side, &t)
	if err != nil {
		return err
	}
	type item struct {
		Index  int       `json:"index"`
		Label  string    `json:"label"`
		Probs  []float64 `json:"probs"`
		Labels int       `json:"num_classes"`
	}
	data := make([]item, len(all))
	for i, scores := range all {
		probs, best := m.Probabilities(scores), 0
		if b.Activate != nil && !*b.Activate {
			for j, v := range scores {
				probs[j] = float64(v)
			}
		}
		for j, p := range probs {
			if p > probs[best] {
				best = j
			}
		}
		data[i] = item{i, labels[best], probs, len(labels)}
	}
	writeList(w, "classify-", m.Model, data, &t)
	return nil
}

// cosine is the cosine of the angle between two vectors of the same length; 0
// if one of them is 0.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		ab, aa, bb = ab+float64(x)*y, aa+float64(x)*float64(x), bb+y*y
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return max(-1, min(1, ab/math.Sqrt(aa*bb)))
}

type rerankDocument struct {
	Text string `json:"text"`
}

// rerankResult is a text's score, in the form of Cohere, Jina and vLLM.
type rerankResult struct {
	Index    int             `json:"index"`
	Document *rerankDocument `json:"document,omitempty"`
	Score    float64         `json:"relevance_score"`
}

// scoreUsage counts tokens; scores generate none.
type scoreUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// rerankRequest is the body of POST /v1/rerank.
type rerankRequest struct {
	relevance
	Query     *passage      `json:"query"`
	Documents passages      `json:"documents"`
	TopN      *wire.Integer `json:"top_n"`
	Return    *bool         `json:"return_documents"`
	teiFields
}

// rerank is POST /v1/rerank and its other names. Texts come back with their
// scores, the best first.
func (s *API) rerank(w http.ResponseWriter, r *http.Request) error {
	var b rerankRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	tei := b.Texts != nil
	if tei {
		if b.Documents != nil {
			return fault.BadRequest("texts", "expected one of documents and texts, found both")
		}
		b.Documents = b.Texts
		b.teiFields.cut(&b.relevance)
	}
	var err error
	switch top := b.TopN.Value(0); {
	case b.Query == nil:
		err = fault.BadRequest("query", "expected a text, found nothing")
	case len(b.Documents) == 0:
		err = fault.BadRequest("documents", "expected at least one text, found none")
	case len(b.Documents) >= run.MaxPrompts:
		err = fault.BadRequest("documents", "expected at most %d texts, found %d", run.MaxPrompts-1, len(b.Documents))
	case top < 0:
		err = fault.BadRequest("top_n", "expected 0 (all) or more, found %d", top)
	}
	if err != nil {
		return err
	}
	m, err := s.Model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	pairs := make([][2]passage, len(b.Documents))
	for i, d := range b.Documents {
		pairs[i] = [2]passage{*b.Query, d}
	}
	var t run.Totals
	scores, err := s.cosines(r.Context(), m.Model, &b.relevance, pairs, &t)
	if err != nil {
		return err
	}
	// Cohere's newer form has no documents unless they are asked for.
	whole := r.URL.Path != "/v2/rerank"
	if b.Return != nil {
		whole = *b.Return
	}
	results := make([]rerankResult, len(scores))
	for i, score := range scores {
		results[i] = rerankResult{Index: i, Score: score}
		if whole {
			results[i].Document = &rerankDocument{string(b.Documents[i])}
		}
	}
	slices.SortStableFunc(results, func(x, y rerankResult) int { return cmp.Compare(y.Score, x.Score) })
	if n := b.TopN.Value(0); n > 0 {
		results = results[:min(n, len(results))]
	}
	if tei {
		wire.WriteJSON(w, http.StatusOK, newRanks(results, b.Documents, b.ReturnText))
		return nil
	}
	wire.WriteJSON(w, http.StatusOK, struct {
		ID      string         `json:"id"`
		Object  string         `json:"object"`
		Model   string         `json:"model"`
		Results []rerankResult `json:"results"`
		Usage   scoreUsage     `json:"usage"`
	}{caller.NewID("rerank-"), "list", m.Info().Name, results, scoreUsage{t.Prompt, 0, t.Prompt}})
	return nil
}

// scorePairs are the pairs that a request for scores asks for: one text against
// each of many, or two lists side by side.
func scorePairs(first, second passages) ([][2]passage, error) {
	switch n := len(second); {
	case len(first) == 0:
		return nil, fault.BadRequest("text_1", "expected at least one text, found none")
	case n == 0:
		return nil, fault.BadRequest("text_2", "expected at least one text, found none")
	case len(first) != 1 && len(first) != n:
		return nil, fault.BadRequest("text_2", "expected as many texts as text_1 has (%d), or one text_1, found %d", len(first), n)
	case n > run.MaxPrompts/2:
		return nil, fault.BadRequest("text_2", "expected at most %d texts, found %d", run.MaxPrompts/2, n)
	}
	pairs := make([][2]passage, len(second))
	for i, t := range second {
		pairs[i] = [2]passage{first[min(i, len(first)-1)], t}
	}
	return pairs, nil
}

// scoreRequest is the body of POST /v1/score: the texts under the names that vLLM has
// for them.
type scoreRequest struct {
	relevance
	Text1   passages `json:"text_1"`
	Text2   passages `json:"text_2"`
	Data1   passages `json:"data_1"`
	Data2   passages `json:"data_2"`
	Queries passages `json:"queries"`
	Docs    passages `json:"documents"`
	Items   passages `json:"items"`
}

// score is POST /v1/score.
func (s *API) score(w http.ResponseWriter, r *http.Request) error {
	var b scoreRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	pairs, err := scorePairs(slices.Concat(b.Text1, b.Data1, b.Queries), slices.Concat(b.Text2, b.Data2, b.Docs, b.Items))
	if err != nil {
		return err
	}
	m, err := s.Model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	var t run.Totals
	scores, err := s.cosines(r.Context(), m.Model, &b.relevance, pairs, &t)
	if err != nil {
		return err
	}
	type item struct {
		Index  int     `json:"index"`
		Object string  `json:"object"`
		Score  float64 `json:"score"`
	}
	data := make([]item, len(scores))
	for i, v := range scores {
		data[i] = item{i, "score", v}
	}
	writeList(w, "score-", m.Model, data, &t)
	return nil
}

// writeList answers with vLLM's list of what a model found in texts; ids begin
// with prefix.
func writeList[T any](w http.ResponseWriter, prefix string, m *run.Model, data []T, t *run.Totals) {
	wire.WriteJSON(w, http.StatusOK, struct {
		ID      string     `json:"id"`
		Object  string     `json:"object"`
		Created int64      `json:"created"`
		Model   string     `json:"model"`
		Data    []T        `json:"data"`
		Usage   scoreUsage `json:"usage"`
	}{caller.NewID(prefix), "list", time.Now().Unix(), m.Info().Name, data, scoreUsage{t.Prompt, 0, t.Prompt}})
}
