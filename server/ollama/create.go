package ollama

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ridge/server/caller"
	"ridge/server/fault"
	"ridge/server/run"
	"ridge/server/wire"
)

// licenses is a license or several.
type licenses = wire.StringList

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
	Messages   []message                  `json:"messages"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Quantize   string                     `json:"quantize"`
	Quant      string                     `json:"quantization"`
	Modelfile  string                     `json:"modelfile"`
	Stream     *bool                      `json:"stream"`
}

// checkModelName refuses what no created model can be called.
func checkModelName(name string) error {
	if name == "" || len(name) > 100 || strings.ContainsAny(name, " \t\r\n\\") {
		return fault.BadRequest("model", "expected a name of 1 to 100 bytes without spaces, found %q", name)
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
		return fault.Unsupported("modelfile", "not read; say from, template, system, parameters, messages and license as fields, as Ollama's clients do")
	case b.Quantize != "" || b.Quant != "":
		return fault.Unsupported("quantize", "a server quantizes no models; the command ridge quantize MODEL TYPE writes a file that ridge serve FILE has, and ridge pull hf:ORG/REPO:Q4_K_M fetches one that is quantized already")
	case len(b.Files) > 0:
		return fault.Unsupported("files", "a model is created from one that this server has (from); files of your own are served with ridge serve FILE")
	case len(b.Adapters) > 0:
		return fault.Unsupported("adapters", "models are not created with adapters; a server names one as a model with ridge serve --lora NAME=FILE, or POST /v1/load_lora_adapter")
	case b.From == "":
		return fault.BadRequest("from", "expected the name of a model, found nothing")
	}
	return nil
}

// create is POST /api/create: a model of another's files with words and
// numbers of its own.
func (s *API) create(w http.ResponseWriter, r *http.Request) error {
	var b createRequest
	err := wire.DecodeBody(r, &b)
	if err == nil {
		err = b.check()
	}
	if err == nil && s.created.dir == "" {
		err = fault.NotImplemented("this server keeps no created models; start it with --data")
	}
	var v *variant
	var base *run.Loan
	if err == nil {
		v, base, err = s.newVariant(r, &b)
	}
	if err != nil {
		return err
	}
	defer base.Release()
	e := s.Lines(w, r)
	streams := b.Stream == nil || *b.Stream
	say := func(status string) error {
		if !streams {
			return nil
		}
		return e.Line(pullUpdate{Status: status})
	}
	err = say("using existing layer sha256:" + base.Info().Digest)
	for _, layer := range v.layers() {
		if err == nil {
			err = say("creating new layer sha256:" + layer)
		}
	}
	if err == nil {
		err = say("writing manifest")
	}
	if err == nil {
		err = s.created.put(v)
	}
	switch {
	case err != nil:
		return lineError(e, err)
	case streams:
		_ = e.Line(pullUpdate{Status: "success"}) // a client that is gone is noticed by others
	default:
		wire.WriteJSON(w, http.StatusOK, pullUpdate{Status: "success"})
	}
	return nil
}

// newVariant checks a creation against the model that it is made from, which
// must be released.
func (s *API) newVariant(r *http.Request, b *createRequest) (*variant, *run.Loan, error) {
	if s.Models.Taken(b.Model) {
		return nil, nil, fault.BadRequest("model", "a model of this server has the name %q already", b.Model)
	}
	base, err := s.Model(r, b.From)
	if err != nil {
		return nil, nil, err
	}
	v := &variant{Name: run.PlainName(b.Model), From: base.Info().Name, Owner: caller.Owner(r.Context()), Template: b.Template, System: b.System, License: b.License, Messages: b.Messages,
		Parameters: b.Parameters, Modified: time.Now().UTC()}
	m := base.Model
	if from := s.created.find(m.Info().Name); m.Base() != nil && from != nil {
		v.inherit(from)
		m = m.Base()
	}
	if _, err := derive(m, v); err != nil {
		base.Release()
		return nil, nil, err
	}
	return v, base, nil
}

// layers are digests of what a variant says itself, as a store of layers would
// have them.
func (v *variant) layers() []string {
	var out []string
	add := func(x any) {
		b, err := wire.EncodeJSON(x)
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
	for _, x := range [][2]string{{"TEMPLATE", v.Template}, {"SYSTEM", v.System}} {
		if x[1] != "" {
			fmt.Fprintf(&out, "%s \"\"\"%s\"\"\"\n", x[0], x[1])
		}
	}
	out.WriteString(v.parameters("PARAMETER ", " "))
	for _, m := range v.Messages {
		fmt.Fprintf(&out, "MESSAGE %s %s\n", m.Role, m.Content)
	}
	return out.String()
}

// variantModel is a created model in Ollama's list.
func (s *API) variantModel(v *variant) modelCard {
	b, err := wire.EncodeJSON(v)
	if err != nil {
		b = []byte(v.Name) // a name for it all the same
	}
	h := sha256.Sum256(b)
	x := modelCard{Name: v.Name, Model: v.Name, Modified: v.Modified.Format(time.RFC3339Nano), Digest: hex.EncodeToString(h[:]),
		Details: details{Parent: v.From, Format: "gguf", Families: []string{}}}
	if c, ok := s.Models.Find(v.From); ok {
		x.Size, x.Details = c.Size, s.outline(&c)
		x.Details.Parent = v.From
	}
	for _, m := range s.Models.Loaded() {
		if m.Named(v.From) {
			x.Size, x.Details = m.Info().Size, newDetails(m)
			x.Details.Parent = v.From
		}
	}
	return x
}

// push answers that nothing is sent anywhere.
func (s *API) push(w http.ResponseWriter, r *http.Request) error {
	return fault.NotImplemented("push is not offered: this server has no account at a registry and sends models nowhere; ridge show NAME says where the model's file is, to be copied or uploaded with the registry's own tools")
}

// blob answers that files are not taken: a blob is never there.
func (s *API) blob(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusNotFound)
		return nil
	}
	return fault.NotImplemented("blobs are not taken: models are created from models that this server has (from in POST /api/create)")
}
