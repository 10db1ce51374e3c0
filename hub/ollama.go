package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

const (
	ollamaManifestType = "application/vnd.docker.distribution.manifest.v2+json"
	ollamaLayerPrefix  = "application/vnd.ollama.image."
	maxManifestLayers  = 4096
)

// A digest becomes part of a path and of a URL: nothing but this form passes.
var digestForm = regexp.MustCompile(`^sha256[:-]([0-9a-f]{64})$`)

// ollamaManifest is a manifest of the registry and of Ollama's own folder.
type ollamaManifest struct {
	SchemaVersion int           `json:"schemaVersion"`
	Config        ollamaLayer   `json:"config"`
	Layers        []ollamaLayer `json:"layers"`
}

type ollamaLayer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

// sum is the digest's hex part.
func (l ollamaLayer) sum() (string, error) {
	m := digestForm.FindStringSubmatch(l.Digest)
	if m == nil {
		return "", fmt.Errorf("manifest: digest: expected sha256 and 64 hex digits, found %q", l.Digest)
	}
	return m[1], nil
}

// parseOllamaManifest reads a manifest and checks what it says.
func parseOllamaManifest(b []byte) (*ollamaManifest, error) {
	m := &ollamaManifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if m.SchemaVersion != 2 {
		return nil, fmt.Errorf("manifest: schemaVersion: expected 2, found %d", m.SchemaVersion)
	}
	if len(m.Layers) > maxManifestLayers {
		return nil, fmt.Errorf("manifest: layers: expected at most %d, found %d", maxManifestLayers, len(m.Layers))
	}
	for _, l := range m.Layers {
		if _, err := l.sum(); err != nil {
			return nil, err
		}
		if l.Size < 0 {
			return nil, fmt.Errorf("manifest: size: expected at least 0, found %d", l.Size)
		}
	}
	return m, nil
}

// model returns the layer that holds the GGUF file.
func (m *ollamaManifest) model() (ollamaLayer, error) {
	var found []ollamaLayer
	tensors := 0
	for _, l := range m.Layers {
		switch strings.TrimPrefix(l.MediaType, ollamaLayerPrefix) {
		case "model":
			found = append(found, l)
		case "tensor":
			tensors++
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && tensors > 0:
		return ollamaLayer{}, fmt.Errorf("manifest: model is stored as %d separate tensors, not as a GGUF file", tensors)
	}
	return ollamaLayer{}, fmt.Errorf("manifest: expected one layer of type %smodel, found %d", ollamaLayerPrefix, len(found))
}

func (m *ollamaManifest) layer(kind string) (ollamaLayer, bool) {
	for _, l := range m.Layers {
		if l.MediaType == ollamaLayerPrefix+kind {
			return l, true
		}
	}
	return ollamaLayer{}, false
}

// ollamaFile is the file name under which a model of a registry is stored.
func ollamaFile(r reference) string {
	_, name, _ := strings.Cut(r.model, "/")
	return name + "-" + r.tag + ".gguf"
}

// planOllama reads the manifest of a registry that speaks Docker's protocol.
func (c *client) planOllama(ctx context.Context, r reference) (*plan, error) {
	base := "https://" + r.host + "/v2/" + r.model
	header := http.Header{"Accept": {ollamaManifestType}}
	b, _, err := c.document(ctx, c.plain, base+"/manifests/"+r.tag, header)
	if isStatus(err, http.StatusNotFound) {
		return nil, fmt.Errorf("%s has no model %s:%s: HTTP 404", r.host, r.model, r.tag)
	}
	if err != nil {
		return nil, err
	}
	m, err := parseOllamaManifest(b)
	if err != nil {
		return nil, err
	}
	layer, err := m.model()
	if err != nil {
		return nil, err
	}
	sum, _ := layer.sum()
	name := ollamaFile(r)
	obj := object{url: base + "/blobs/sha256:" + sum, http: c.plain, size: layer.Size, sha256: sum}
	p := &plan{source: r.text, open: name, files: []planFile{{
		name: name, size: layer.Size, sha256: sum, pieces: []piece{{obj: obj, raw: name, size: layer.Size}},
	}}}
	if l, ok := m.layer("license"); ok && l.Size < maxDocument {
		if sum, err := l.sum(); err == nil {
			if b, _, err := c.document(ctx, c.plain, base+"/blobs/sha256:"+sum, nil); err == nil {
				p.license = licenseTitle(b)
			}
		}
	}
	p.quant = quantOf(r.tag)
	if sum, err := m.Config.sum(); err == nil && p.quant == "" {
		if b, _, err := c.document(ctx, c.plain, base+"/blobs/sha256:"+sum, nil); err == nil {
			p.quant = ollamaQuant(b)
		}
	}
	return p, nil
}

// ollamaQuant reads the quantization from a model's config layer.
func ollamaQuant(config []byte) string {
	var c struct {
		FileType string `json:"file_type"`
	}
	if json.Unmarshal(config, &c) != nil {
		return ""
	}
	return quantOf(c.FileType)
}

// licenseTitle is the first line of a licence text, shortened.
func licenseTitle(text []byte) string {
	for line := range strings.SplitSeq(string(text), "\n") {
		line = strings.Join(strings.Fields(strings.ToValidUTF8(line, "")), " ")
		if line == "" {
			continue
		}
		if len(line) > 80 {
			line = strings.ToValidUTF8(line[:80], "")
		}
		return line
	}
	return ""
}
