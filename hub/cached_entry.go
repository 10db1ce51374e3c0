package hub

import (
	"path"
	"path/filepath"
	"strings"
)

// findEntry looks for a model of the catalogue that is on this machine under
// another name: that of one of its sources, or the catalogue's own in Ollama, or
// any at all if the bytes are those of a source.
func findEntry(e *Entry, st store) *Model {
	for i := range e.Sources {
		s := &e.Sources[i]
		r, err := parseRef(s.Ref)
		if err != nil {
			continue
		}
		m := st.find(r.text)
		if m == nil {
			m = findCached(r)
		}
		if m != nil && s.fits(m) {
			return e.describe(m)
		}
	}
	here, _ := st.list()
	here = append(here, listCached()...)
	for i := range here {
		for j := range e.Sources {
			if e.Sources[j].is(&here[i]) {
				return e.describe(&here[i])
			}
		}
	}
	// Ollama's model of that name may be another quantization, or, for a base
	// model, the one that was trained to chat: it is described as what it is.
	if m := findOllama(reference{kind: kindBare, text: e.Name}); m != nil {
		m.Name = e.Name
		return m
	}
	return nil
}

// describe says of a model that it is the catalogue's.
func (e *Entry) describe(m *Model) *Model {
	m.Name, m.License, m.Note, m.Base = e.Name, e.License, e.Note, e.Base
	return m
}

// is tells whether a model on this machine has the source's bytes: the same sum,
// or where the machine does not tell the sum, the same size and file name.
func (s *CatalogSource) is(m *Model) bool {
	if s.Size == 0 || m.Size != s.Size {
		return false
	}
	if s.SHA256 != "" && m.SHA256 != "" {
		return s.SHA256 == m.SHA256
	}
	return strings.EqualFold(filepath.Base(m.Path()), s.fileName())
}

// fileName is the name of the file that the source has; "" if it does not tell.
func (s *CatalogSource) fileName() string {
	if s.File != "" {
		return s.File
	}
	if name := path.Base(s.Ref[strings.LastIndexByte(s.Ref, ':')+1:]); strings.HasSuffix(name, ".gguf") {
		return name
	}
	return ""
}
