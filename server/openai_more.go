package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"ridge/engine"
)

// modelCard is a model in OpenAI's list, with what vLLM adds.
type modelCard struct {
	ID      string  `json:"id"`
	Object  string  `json:"object"`
	Created int64   `json:"created"`
	OwnedBy string  `json:"owned_by"`
	Root    string  `json:"root,omitempty"`
	Parent  *string `json:"parent"`
	MaxLen  int     `json:"max_model_len,omitempty"`
	Loaded  bool    `json:"loaded"`
	// Anthropic's clients look for these, on the same route.
	Type    string `json:"type"`
	Display string `json:"display_name"`
	Date    string `json:"created_at"` // RFC 3339
}

// newCard is what a list says of a model of a name.
func newCard(name, root string, created time.Time) modelCard {
	if created.Unix() < 0 {
		created = time.Unix(0, 0) // of a model that is part of the program
	}
	return modelCard{ID: name, Object: "model", Created: created.Unix(), OwnedBy: "ridge", Root: root, Type: "model", Display: name, Date: created.UTC().Format(time.RFC3339)}
}

// cards are the models that clients may name: those loaded, and those that can
// be.
func (s *Server) cards() []modelCard {
	var out []modelCard
	seen := map[string]bool{}
	for _, x := range s.lib.list() {
		for _, name := range x.names {
			if seen[name] {
				continue
			}
			seen[name] = true
			c := newCard(name, x.name, x.c.Modified)
			if x.m != nil {
				c = newCard(name, x.name, x.m.created)
				c.MaxLen, c.Loaded = x.m.context, true
			}
			out = append(out, c)
		}
	}
	for _, v := range s.lib.created.list() {
		if !seen[v.Name] {
			c := newCard(v.Name, v.From, v.Modified)
			c.Parent = &v.From
			out = append(out, c)
		}
	}
	return out
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) error {
	list := struct {
		Object string      `json:"object"`
		Data   []modelCard `json:"data"`
		More   bool        `json:"has_more"`
		First  *string     `json:"first_id"`
		Last   *string     `json:"last_id"`
	}{Object: "list", Data: append([]modelCard{}, s.cards()...)}
	if n := len(list.Data); n > 0 {
		list.First, list.Last = &list.Data[0].ID, &list.Data[n-1].ID
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	cards := s.cards()
	i := slices.IndexFunc(cards, func(c modelCard) bool { return strings.EqualFold(plainName(c.ID), plainName(id)) })
	if i < 0 {
		return modelNotFound(id)
	}
	writeJSON(w, http.StatusOK, cards[i])
	return nil
}

// embeddingRequest is the body of POST /v1/embeddings. llama-server says
// content for input.
type embeddingRequest struct {
	Model      string   `json:"model"`
	Input      prompts  `json:"input"`
	Content    prompts  `json:"content"`
	Format     string   `json:"encoding_format"`
	Dimensions *integer `json:"dimensions"`
	Truncate   *integer `json:"truncate_prompt_tokens"`
	Pooling    string   `json:"pooling"`
}

// embed returns the embeddings of texts.
func (s *Server) embed(ctx context.Context, m *Model, b *embeddingRequest, t *totals) ([][]float32, error) {
	if len(b.Input) == 0 {
		b.Input = b.Content
	}
	if len(b.Input) == 0 {
		return nil, badRequest("input", "expected a text, found nothing")
	}
	if len(b.Input) > maxPrompts {
		return nil, badRequest("input", "expected at most %d texts, found %d", maxPrompts, len(b.Input))
	}
	pooling := m.pooling
	switch b.Pooling {
	case "":
	case "mean":
		pooling = engine.PoolingMean
	case "last":
		pooling = engine.PoolingLast
	default:
		return nil, badRequest("pooling", "expected mean or last, found %q", b.Pooling)
	}
	if pooling == engine.NoPooling {
		pooling = engine.PoolingMean
	}
	size := b.Dimensions.value(m.info.Hidden)
	if size < 1 || size > m.info.Hidden {
		return nil, badRequest("dimensions", "expected 1 to %d, found %d", m.info.Hidden, size)
	}
	var plans []*plan
	for i, in := range b.Input {
		if err := m.checkIDs("input", in.tokens); err != nil {
			return nil, err
		}
		p := &plan{m: m, text: in.text}
		if p.req.Tokens = in.tokens; in.tokens == nil {
			p.req.Tokens = m.encode(in.text, true)
		}
		if n := b.Truncate; n != nil && *n > 0 {
			p.req.Tokens = p.req.Tokens[:min(len(p.req.Tokens), int(*n))]
		}
		if len(p.req.Tokens) == 0 {
			return nil, badRequest("input", "text %d: expected at least one token, found none", i)
		}
		p.req.Embed = pooling
		plans = append(plans, p)
	}
	out := make([][]float32, len(plans))
	err := s.runAll(ctx, plans, t, func(i int, d *delta) error {
		if d.embedding != nil {
			out[i] = shorten(d.embedding, size)
		}
		return nil
	}, nil)
	return out, err
}

// shorten keeps the first n numbers of an embedding, scaled to length 1 again.
func shorten(v []float32, n int) []float32 {
	if n >= len(v) {
		return v
	}
	sum := 0.0
	for _, x := range v[:n] {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, n)
	for i, x := range v[:n] {
		if sum > 0 {
			out[i] = float32(float64(x) / math.Sqrt(sum))
		}
	}
	return out
}

// embeddings is POST /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var b embeddingRequest
	if err := decodeBody(r, &b); err != nil {
		return err
	}
	if b.Format != "" && b.Format != "float" && b.Format != "base64" {
		return badRequest("encoding_format", "expected float or base64, found %q", b.Format)
	}
	m, err := s.model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	var t totals
	vectors, err := s.embed(r.Context(), m.Model, &b, &t)
	if err != nil {
		return err
	}
	type item struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	type count struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	data := make([]item, len(vectors))
	for i, v := range vectors {
		data[i] = item{"embedding", i, v}
		if b.Format == "base64" {
			data[i].Embedding = base64.StdEncoding.EncodeToString(littleEndian(v))
		}
	}
	writeJSON(w, http.StatusOK, struct {
		Object string `json:"object"`
		Data   []item `json:"data"`
		Model  string `json:"model"`
		Usage  count  `json:"usage"`
	}{"list", data, m.name, count{t.prompt, t.prompt}})
	return nil
}

func littleEndian(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
