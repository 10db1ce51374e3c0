package server

import (
	"fmt"
	"net/http"
	"time"
)

type ollamaDetails struct {
	Parent       string   `json:"parent_model"`
	Format       string   `json:"format"`
	Family       string   `json:"family"`
	Families     []string `json:"families"`
	Parameters   string   `json:"parameter_size"`
	Quant        string   `json:"quantization_level"`
	Context      int      `json:"context_length,omitempty"`
	EmbeddingLen int      `json:"embedding_length,omitempty"`
}

type ollamaModel struct {
	Name         string        `json:"name"`
	Model        string        `json:"model"`
	Modified     string        `json:"modified_at,omitempty"`
	Size         int64         `json:"size"`
	Digest       string        `json:"digest"`
	Details      ollamaDetails `json:"details"`
	Capabilities []string      `json:"capabilities,omitempty"`
	Expires      string        `json:"expires_at,omitempty"`
	VRAM         *int64        `json:"size_vram,omitempty"`
	Context      int           `json:"context_length,omitempty"`
}

func (m *Model) details() ollamaDetails {
	format := "gguf"
	if m.info.Meta == nil {
		format = "safetensors"
	}
	return ollamaDetails{Format: format, Family: m.info.Arch, Families: []string{m.info.Arch}, Parameters: humanCount(m.info.Parameters), Quant: m.info.Quant,
		Context: m.context, EmbeddingLen: m.info.Hidden}
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
func (m *Model) capabilities() []string {
	caps := []string{"completion"}
	if m.tmpl.Caps().Tools {
		caps = append(caps, "tools")
	}
	if m.syntax.ThinkClose != "" {
		caps = append(caps, "thinking")
	}
	if _, ok := m.fim(); ok {
		caps = append(caps, "insert")
	}
	return append(caps, "embedding")
}

func (m *Model) ollama() ollamaModel {
	return ollamaModel{Name: m.name, Model: m.name, Modified: m.info.Modified.Format(time.RFC3339Nano), Size: m.info.Size, Digest: m.info.Digest,
		Details: m.details(), Capabilities: m.capabilities()}
}

// ollamaTags lists the models that can be used.
func (s *Server) ollamaTags(w http.ResponseWriter, _ *http.Request) error {
	out := []ollamaModel{}
	for _, x := range s.lib.list() {
		if x.m != nil {
			out = append(out, x.m.ollama())
			continue
		}
		out = append(out, ollamaModel{Name: x.name, Model: x.name, Modified: x.c.Modified.Format(time.RFC3339Nano), Size: x.c.Size, Digest: x.c.Digest,
			Details: ollamaDetails{Format: "gguf", Families: []string{}, Quant: x.c.Quant}})
	}
	for _, v := range s.lib.created.list() {
		out = append(out, s.variantModel(v))
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": out})
	return nil
}

// ollamaPS lists the models that are loaded.
func (s *Server) ollamaPS(w http.ResponseWriter, _ *http.Request) error {
	out := []ollamaModel{}
	for _, m := range s.lib.loaded() {
		x := m.ollama()
		x.Modified, x.Capabilities = "", nil
		x.VRAM, x.Context = new(int64), m.context
		expires := s.lib.expiry(m)
		if expires.IsZero() { // never: clients want a time
			expires = time.Now().AddDate(100, 0, 0)
		}
		x.Expires = expires.Format(time.RFC3339Nano)
		out = append(out, x)
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": out})
	return nil
}

func (s *Server) ollamaVersion(w http.ResponseWriter, _ *http.Request) error {
	// Clients compare this with the version of Ollama that has what they need.
	writeJSON(w, http.StatusOK, map[string]string{"version": "0.17.4", "ridge": s.o.Version})
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
	if err := decodeBody(r, b); err != nil {
		return err
	}
	if b.Model == "" {
		b.Model = b.Name
	}
	if b.Model == "" {
		return badRequest("model", "expected the name of a model, found nothing")
	}
	return nil
}

// ollamaShow describes a model.
func (s *Server) ollamaShow(w http.ResponseWriter, r *http.Request) error {
	var b nameRequest
	if err := b.read(r); err != nil {
		return err
	}
	m, err := s.lib.describe(r.Context(), b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	info := map[string]any{"general.architecture": m.info.Arch, "general.parameter_count": m.info.Parameters}
	if m.info.Meta != nil {
		for k, v := range m.info.Meta() {
			info[k] = v
		}
	}
	info[m.info.Arch+".context_length"] = m.info.Train
	info[m.info.Arch+".embedding_length"] = m.info.Hidden
	v := m.variant
	if v == nil {
		v = &variant{From: m.name}
	}
	details := m.details()
	if m.base != nil {
		details.Parent = v.From
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"license": m.info.License, "modelfile": v.modelfile(), "parameters": v.parameters("", " "), "template": m.source, "system": v.System, "messages": append([]ollamaMessage{}, v.Messages...),
		"details": details, "model_info": info, "capabilities": m.capabilities(), "modified_at": m.info.Modified.Format(time.RFC3339Nano),
	})
	return nil
}

// ollamaEmbed is POST /api/embed.
func (s *Server) ollamaEmbed(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Truncate *bool `json:"truncate"`
		embeddingRequest
	}
	if err := decodeBody(r, &b); err != nil {
		return err
	}
	start := time.Now()
	m, err := s.model(r, b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	load := time.Since(start)
	if b.Truncate != nil && *b.Truncate { // only if it is asked for
		n := integer(m.context)
		b.embeddingRequest.Truncate = &n
	}
	var t totals
	vectors, err := s.embed(r.Context(), m.Model, &b.embeddingRequest, &t)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"model": b.Model, "embeddings": vectors, "total_duration": time.Since(start).Nanoseconds(),
		"load_duration": load.Nanoseconds(), "prompt_eval_count": t.prompt})
	return nil
}

// ollamaEmbeddings is the older POST /api/embeddings.
func (s *Server) ollamaEmbeddings(w http.ResponseWriter, r *http.Request) error {
	var b struct {
		Model  string `json:"model"`
		Prompt string `json:"prompt"`
	}
	m, err := s.lend(r, &b, &b.Model)
	if err != nil {
		return err
	}
	defer m.release()
	var t totals
	vectors, err := s.embed(r.Context(), m.Model, &embeddingRequest{Input: prompts{{text: b.Prompt}}}, &t)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"embedding": vectors[0]})
	return nil
}

// rawEmbedding is llama-server's POST /embedding.
func (s *Server) rawEmbedding(w http.ResponseWriter, r *http.Request) error {
	var b embeddingRequest
	m, err := s.lend(r, &b, &b.Model)
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
		Index     int         `json:"index"`
		Embedding [][]float32 `json:"embedding"`
	}
	out := []item{}
	for i, v := range vectors {
		out = append(out, item{i, [][]float32{v}})
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}
