package ollama

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

type details struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quant        string   `json:"quantization_level"`
	Context      int      `json:"context_length,omitempty"`
	EmbeddingLen int      `json:"embedding_length,omitempty"`
}

type modelCard struct {
	Name         string   `json:"name"`
	Model        string   `json:"model"`
	Modified     string   `json:"modified_at,omitempty"`
	Size         int64    `json:"size"`
	Digest       string   `json:"digest"`
	Details      details  `json:"details"`
	Capabilities []string `json:"capabilities,omitempty"`
	Expires      string   `json:"expires_at,omitempty"`
	VRAM         *int64   `json:"size_vram,omitempty"`
	Context      int      `json:"context_length,omitempty"`
}

func newDetails(m *run.Model) details {
	format := "gguf"
	if m.Info().Meta == nil {
		format = "safetensors"
	}
	return details{Format: format, Family: m.Info().Arch, Families: []string{m.Info().Arch}, Parameters: humanCount(m.Info().Parameters), Quant: m.Info().Quant,
		Context: m.Info().Context, EmbeddingLen: m.Info().Hidden}
}

// humanCount writes a number of parameters as people say it.
func humanCount(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.2fK", float64(n)/1e3)
}

// capabilities are what Ollama's clients look for.
func capabilities(m *run.Model) []string {
	caps := []string{"completion"}
	if m.Caps().Tools {
		caps = append(caps, "tools")
	}
	if m.Syntax().ThinkClose != "" {
		caps = append(caps, "thinking")
	}
	if _, ok := m.FIM(); ok {
		caps = append(caps, "insert")
	}
	return append(caps, "embedding")
}

func newModel(m *run.Model) modelCard {
	return modelCard{Name: m.Info().Name, Model: m.Info().Name, Modified: m.Info().Modified.Format(time.RFC3339Nano), Size: m.Info().Size, Digest: m.Info().Digest,
		Details: newDetails(m), Capabilities: capabilities(m)}
}

// tags lists the models that can be used, those that clients copied under each name.
func (s *API) tags(w http.ResponseWriter, _ *http.Request) error {
	out := []modelCard{}
	for _, x := range s.Models.List() {
		c := s.card(&x)
		out = append(out, c)
		for _, name := range x.Given {
			c.Name, c.Model = name, name
			out = append(out, c)
		}
	}
	for _, v := range s.created.list() {
		out = append(out, s.variantModel(v))
	}
	for _, a := range s.Models.Adapted() {
		out = append(out, s.variantModel(&variant{Name: a.Name, From: a.From, Modified: a.Modified}))
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"models": out})
	return nil
}

// card is a model in the list. Of one that is not loaded the headers of its file
// tell the details.
func (s *API) card(x *run.Listed) modelCard {
	if x.Model != nil {
		return newModel(x.Model)
	}
	c := &x.Config
	return modelCard{Name: x.Name, Model: x.Name, Modified: c.Modified.Format(time.RFC3339Nano), Size: c.Size, Digest: c.Digest, Details: s.outline(c)}
}

// outline are the details of a model that is not loaded, as far as its file tells.
func (s *API) outline(c *run.ModelConfig) details {
	d := details{Format: "safetensors", Families: []string{}, Quant: c.Quant}
	if strings.EqualFold(filepath.Ext(c.Path), ".gguf") {
		d.Format = "gguf"
	}
	if info, err := s.Models.Outline(c); err == nil { // else loading it tells
		d.Family, d.Families, d.Parameters, d.Quant = info.Arch, []string{info.Arch}, humanCount(info.Parameters), info.Quant
		d.Context, d.EmbeddingLen = info.Context, info.Hidden
	}
	return d
}

// ps lists the models that are loaded.
func (s *API) ps(w http.ResponseWriter, _ *http.Request) error {
	out := []modelCard{}
	for _, m := range s.Models.Loaded() {
		x := newModel(m)
		x.Modified, x.Capabilities = "", nil
		x.VRAM, x.Context = new(int64), m.Info().Context
		expires := s.Models.Expiry(m)
		if expires.IsZero() { // never: clients want a time
			expires = time.Now().AddDate(100, 0, 0)
		}
		x.Expires = expires.Format(time.RFC3339Nano)
		out = append(out, x)
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"models": out})
	return nil
}

func (s *API) version(w http.ResponseWriter, _ *http.Request) error {
	// Clients compare this with the version of Ollama that has what they need.
	wire.WriteJSON(w, http.StatusOK, map[string]string{"version": "0.17.4", "ridge": s.Version})
	return nil
}

// nameRequest names a model, as Ollama's routes do.
type nameRequest struct {
	Model   string `json:"model"`
	Name    string `json:"name"`
	Verbose bool   `json:"verbose"`
	Stream  *bool  `json:"stream"`
}

func (b *nameRequest) read(r *http.Request) error {
	if err := wire.DecodeBody(r, b); err != nil {
		return err
	}
	if b.Model == "" {
		b.Model = b.Name
	}
	if b.Model == "" {
		return fault.BadRequest("model", "expected the name of a model, found nothing")
	}
	return nil
}

// show describes a model.
func (s *API) show(w http.ResponseWriter, r *http.Request) error {
	var b nameRequest
	if err := b.read(r); err != nil {
		return err
	}
	m, err := s.Models.Describe(r.Context(), b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	info := map[string]any{"general.architecture": m.Info().Arch, "general.parameter_count": m.Info().Parameters}
	if m.Info().Meta != nil {
		for k, v := range m.Info().Meta() {
			info[k] = v
		}
	}
	info[m.Info().Arch+".context_length"] = m.Info().Train
	info[m.Info().Arch+".embedding_length"] = m.Info().Hidden
	v := &variant{From: m.Info().Name}
	details := newDetails(m.Model)
	if own := s.created.find(m.Info().Name); m.Base() != nil && own != nil {
		v, details.Parent = own, own.From
	} else if base := m.Base(); base != nil { // an adapter's
		v.From, details.Parent = base.Info().Name, base.Info().Name
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{
		"license": m.Info().License, "modelfile": v.modelfile(), "parameters": v.recommended(m.Model).parameters("", " "), "template": m.Info().Template, "system": v.System, "messages": append([]message{}, v.Messages...),
		"details": details, "model_info": info, "capabilities": capabilities(m.Model), "modified_at": m.Info().Modified.Format(time.RFC3339Nano),
	})
	return nil
}

// recommended returns v with the parameters that the model's files recommend
// beside its own.
func (v *variant) recommended(m *run.Model) *variant {
	d := m.Defaults(run.Sampling{})
	out := *v
	out.Parameters = map[string]json.RawMessage{}
	add := func(name string, n any) {
		if b, err := json.Marshal(n); err == nil && string(b) != "null" {
			out.Parameters[name] = b
		}
	}
	add("temperature", d.Temperature)
	add("top_k", d.TopK)
	add("top_p", d.TopP)
	add("min_p", d.MinP)
	add("typical_p", d.TypicalP)
	add("repeat_penalty", d.RepetitionPenalty)
	add("repeat_last_n", d.PenaltyLastN)
	add("xtc_probability", d.XTCProbability)
	add("xtc_threshold", d.XTCThreshold)
	add("mirostat", d.Mirostat)
	add("mirostat_tau", d.MirostatTau)
	add("mirostat_eta", d.MirostatEta)
	maps.Copy(out.Parameters, v.Parameters)
	return &out
}

// inputs are texts; an empty one alone, and an empty list, are none.
type inputs struct {
	wire.Prompts
	none bool
}

// UnmarshalJSON reads them.
func (i *inputs) UnmarshalJSON(b []byte) error {
	if i.none = string(b) == `""` || string(b) == "[]"; i.none {
		return nil
	}
	return i.Prompts.UnmarshalJSON(b)
}

// embedRequest is the body of /api/embed.
type embedRequest struct {
	Truncate *bool  `json:"truncate"`
	Input    inputs `json:"input"`
	wire.EmbeddingRequest
}

// embed is POST /api/embed.
func (s *API) embed(w http.ResponseWriter, r *http.Request) error {
	var b embedRequest
	if err := wire.DecodeBody(r, &b); err != nil {
		return err
	}
	b.EmbeddingRequest.Input = b.Input.Prompts
	start := time.Now()
	m, err := s.Model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	load := time.Since(start)
	if b.Truncate != nil && *b.Truncate { // only if it is asked for
		b.Keep = new(wire.Integer(-1))
	}
	var t run.Totals
	vectors := [][]float32{}
	if !b.Input.none {
		if vectors, err = s.Embed(r.Context(), m.Model, b.Embedding(), &t); err != nil {
			return err
		}
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"model": b.Model, "embeddings": vectors, "total_duration": time.Since(start).Nanoseconds(),
		"load_duration": load.Nanoseconds(), "prompt_eval_count": t.Prompt})
	return nil
}

// promptRequest is the body of POST /api/embeddings.
type promptRequest struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
}

// embeddings is the older POST /api/embeddings.
func (s *API) embeddings(w http.ResponseWriter, r *http.Request) error {
	var b promptRequest
	m, err := s.Lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.Release()
	var t run.Totals
	vectors, err := s.Embed(r.Context(), m.Model, &run.Embedding{Texts: []run.Prompt{{Text: b.Prompt}}}, &t)
	if err != nil {
		return err
	}
	wire.WriteJSON(w, http.StatusOK, map[string]any{"embedding": vectors[0]})
	return nil
}
