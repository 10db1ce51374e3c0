package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// licenses is a license or several.
type licenses = stringList

// createRequest is the body of POST /api/create.
type createRequest struct {
	Model      string                     `json:"model"`
	Name       string                     `json:"name"`
	From       string                     `json:"from"`
	Files      map[string]string          `json:"files"`
	Adapters   map[string]string          `json:"adapters"`
	Template   string                     `json:"template"`
	System     string                     `json:"system"`
	License    licenses                   `json:"license"`
	Messages   []ollamaMessage            `json:"messages"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Quantize   string                     `json:"quantize"`
	Quant      string                     `json:"quantization"`
	Modelfile  string                     `json:"modelfile"`
	Stream     *bool                      `json:"stream"`
}

// checkModelName refuses what no created model can be called.
func checkModelName(name string) error {
	if name == "" || len(name) > 100 || strings.ContainsAny(name, " \t\r\n\\") {
		return badRequest("model", "expected a name of 1 to 100 bytes without spaces, found %q", name)
	}
	return nil
}

// check refuses what is not done here, each with the reason.
func (b *createRequest) check() error {
	if b.Model == "" {
		b.Model = b.Name
	}
	switch err := checkModelName(b.Model); {
	case err != nil:
		return err
	case b.Modelfile != "":
		return unsupported("modelfile", "not read; say from, template, system, parameters, messages and license as fields, as Ollama's clients do")
	case b.Quantize != "" || b.Quant != "":
		return unsupported("quantize", "models are not quantized by this server; serve a file that is")
	case len(b.Files) > 0:
		return unsupported("files", "a model is created from one that this server has (from); files of your own are served with ridge serve FILE")
	case len(b.Adapters) > 0:
		return unsupported("adapters", "adapters are not applied by this server")
	case b.From == "":
		return badRequest("from", "expected the name of a model, found nothing")
	}
	return nil
}

// ollamaCreate is POST /api/create: a model of another's files with words and
// numbers of its own.
func (s *Server) ollamaCreate(w http.ResponseWriter, r *http.Request) error {
	var b createRequest
	err := decodeBody(r, &b)
	if err == nil {
		err = b.check()
	}
	if err == nil && s.lib.created.dir == "" {
		err = notImplemented("this server keeps no created models; start it with --data")
	}
	var v *variant
	var base *loan
	if err == nil {
		v, base, err = s.newVariant(r, &b)
	}
	if err != nil {
		return err
	}
	defer base.release()
	e := s.newEvents(w, r)
	e.kind = "application/x-ndjson"
	streams := b.Stream == nil || *b.Stream
	say := func(status string) error {
		if !streams {
			return nil
		}
		return e.line(pullUpdate{Status: status})
	}
	err = say("using existing layer sha256:" + base.info.Digest)
	for _, layer := range v.layers() {
		if err == nil {
			err = say("creating new layer sha256:" + layer)
		}
	}
	if err == nil {
		err = say("writing manifest")
	}
	if err == nil {
		err = s.lib.created.put(v)
	}
	switch {
	case err != nil:
		return lineError(e, err)
	case streams:
		_ = e.line(pullUpdate{Status: "success"}) // a client that is gone is noticed by others
	default:
		writeJSON(w, http.StatusOK, pullUpdate{Status: "success"})
	}
	return nil
}

// newVariant checks a creation against the model that it is made from, which
// must be released.
func (s *Server) newVariant(r *http.Request, b *createRequest) (*variant, *loan, error) {
	if s.lib.taken(b.Model) {
		return nil, nil, badRequest("model", "a model of this server has the name %q already", b.Model)
	}
	base, err := s.model(r, b.From)
	if err != nil {
		return nil, nil, err
	}
	v := &variant{Name: plainName(b.Model), From: base.name, Owner: owner(r), Template: b.Template, System: b.System, License: b.License, Messages: b.Messages,
		Parameters: b.Parameters, Modified: time.Now().UTC()}
	m := base.Model
	if m.variant != nil {
		v.inherit(m.variant)
		m = m.base
	}
	if _, err := m.derive(v); err != nil {
		base.release()
		return nil, nil, err
	}
	return v, base, nil
}

// layers are digests of what a variant says itself, as a store of layers would
// have them.
func (v *variant) layers() []string {
	var out []string
	add := func(x any) {
		b, err := encodeJSON(x)
		if err == nil {
			h := sha256.Sum256(b)
			out = append(out, hex.EncodeToString(h[:]))
		}
	}
	for _, text := range append([]string{v.Template, v.System}, v.License...) {
		if text != "" {
			add(text)
		}
	}
	if len(v.Messages) > 0 {
		add(v.Messages)
	}
	if len(v.Parameters) > 0 {
		add(v.Parameters)
	}
	return out
}

// parameters lists a variant's parameters as Ollama shows them, one a line.
func (v *variant) parameters(before, between string) string {
	var out strings.Builder
	names := make([]string, 0, len(v.Parameters))
	for name := range v.Parameters {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := []json.RawMessage{v.Parameters[name]}
		var list []json.RawMessage
		if json.Unmarshal(v.Parameters[name], &list) == nil {
			values = list
		}
		for _, value := range values {
			fmt.Fprintf(&out, "%s%s%s%s\n", before, name, between, value)
		}
	}
	return out.String()
}

// modelfile describes a variant in Ollama's language.
func (v *variant) modelfile() string {
	var out strings.Builder
	fmt.Fprintf(&out, "FROM %s\n", v.From)
	for name, text := range map[string]string{"TEMPLATE": v.Template, "SYSTEM": v.System} {
		if text != "" {
			fmt.Fprintf(&out, "%s \"\"\"%s\"\"\"\n", name, text)
		}
	}
	out.WriteString(v.parameters("PARAMETER ", " "))
	for _, m := range v.Messages {
		fmt.Fprintf(&out, "MESSAGE %s %s\n", m.Role, m.Content)
	}
	return out.String()
}

// variantModel is a created model in Ollama's list.
func (s *Server) variantModel(v *variant) ollamaModel {
	b, err := encodeJSON(v)
	if err != nil {
		b = []byte(v.Name) // a name for it all the same
	}
	h := sha256.Sum256(b)
	x := ollamaModel{Name: v.Name, Model: v.Name, Modified: v.Modified.Format(time.RFC3339Nano), Digest: hex.EncodeToString(h[:]),
		Details: ollamaDetails{Parent: v.From, Format: "gguf", Families: []string{}}}
	if c, ok := s.lib.find(v.From); ok {
		x.Size, x.Details.Quant = c.Size, c.Quant
	}
	for _, m := range s.lib.loaded() {
		if m.named(v.From) {
			x.Size, x.Details = m.info.Size, m.details()
			x.Details.Parent = v.From
		}
	}
	return x
}

// ollamaPush answers that nothing is sent anywhere.
func (s *Server) ollamaPush(w http.ResponseWriter, r *http.Request) error {
	return notImplemented("push is not offered: this server has no account at a registry and sends models nowhere; copy the model's file, or upload it with the registry's own tools")
}

// ollamaBlob answers that files are not taken: a blob is never there.
func (s *Server) ollamaBlob(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	return notImplemented("blobs are not taken: models are created from models that this server has (from in POST /api/create)")
}
