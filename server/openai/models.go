package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// modelCard is a model in OpenAI's list, with what vLLM adds.
type modelCard struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	Root    string `json:"root,omitempty"`
	// Aliases are the other names of the model, as llama-server has them.
	Aliases []string `json:"aliases"`
	Parent  *string  `json:"parent"`
	MaxLen  int      `json:"max_model_len,omitempty"`
	Loaded  bool     `json:"loaded"`
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
	return modelCard{ID: name, Object: "model", Created: created.Unix(), OwnedBy: "ridge", Root: root, Aliases: []string{}, Type: "model", Display: name, Date: created.UTC().Format(time.RFC3339)}
}

// cards are the models that clients may name: those loaded, and those that can
// be.
func (s *API) cards() []modelCard {
	var out []modelCard
	seen := map[string]bool{}
	for _, x := range s.Models.List() {
		for _, name := range x.Names {
			if seen[name] {
				continue
			}
			seen[name] = true
			c := newCard(name, x.Name, x.Config.Modified)
			if x.Model != nil {
				c = newCard(name, x.Name, x.Model.Info().Created)
				c.MaxLen, c.Loaded = x.Model.Info().Context, true
			}
			for _, other := range x.Names {
				if other != name {
					c.Aliases = append(c.Aliases, other)
				}
			}
			out = append(out, c)
		}
	}
	for _, v := range s.Models.Derived() {
		if !seen[v.Name] {
			c := newCard(v.Name, v.From, v.Modified)
			c.Parent = &v.From
			out = append(out, c)
		}
	}
	return out
}

func (s *API) listModels(w http.ResponseWriter, _ *http.Request) error {
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
	wire.WriteJSON(w, http.StatusOK, list)
	return nil
}

func (s *API) getModel(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	cards := s.cards()
	i := slices.IndexFunc(cards, func(c modelCard) bool { return strings.EqualFold(run.PlainName(c.ID), run.PlainName(id)) })
	if i < 0 {
		return fault.ModelNotFound(id)
	}
	wire.WriteJSON(w, http.StatusOK, cards[i])
	return nil
}

// embeddings is POST /v1/embeddings.
func (s *API) embeddings(w http.ResponseWriter, r *http.Request) error {
	var b wire.EmbeddingRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	if b.Format != "" && b.Format != "float" && b.Format != "base64" {
		return fault.BadRequest("encoding_format", "expected float or base64, found %q", b.Format)
	}
	m, err := s.Model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	var t run.Totals
	vectors, err := s.Embed(r.Context(), m.Model, b.Embedding(), &t)
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
	wire.WriteJSON(w, http.StatusOK, struct {
		Object string `json:"object"`
		Data   []item `json:"data"`
		Model  string `json:"model"`
		Usage  count  `json:"usage"`
	}{"list", data, m.Info().Name, count{t.Prompt, t.Prompt}})
	return nil
}

func littleEndian(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// pool is vLLM's POST /pooling: the embeddings of texts, in a form of its own.
func (s *API) pool(w http.ResponseWriter, r *http.Request) error {
	var b wire.EmbeddingRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	if b.Format != "" && b.Format != "float" {
		return fault.BadRequest("encoding_format", "expected float, found %q", b.Format)
	}
	var t run.Totals
	vectors, err := s.Embed(r.Context(), m.Model, b.Embedding(), &t)
	if err != nil {
		return err
	}
	type item struct {
		Index  int       `json:"index"`
		Object string    `json:"object"`
		Data   []float32 `json:"data"`
	}
	data := make([]item, len(vectors))
	for i, v := range vectors {
		data[i] = item{i, "pooling", v}
	}
	writeList(w, "pool-", m.Model, data, &t)
	return nil
}
