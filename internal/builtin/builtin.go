// Package builtin holds the models that are part of the program, as files in
// memory. They have names of their own that stand where a path is expected:
// what opens model files asks here first.
package builtin

import (
	_ "embed"
	"strings"
)

// Prefix starts the path of every embedded model. No file system path of the
// systems ridge runs on is taken for one: see Data.
const Prefix = "builtin:"

// Model describes an embedded model.
type Model struct {
	Name    string // "tiny"
	Path    string // what to open: Prefix and the name
	Title   string
	Source  string // what it was made from, and how
	License string // SPDX id
	Note    string // what a person should know before using it
	Quant   string // the format of most of its weights
	Size    int64  // bytes
}

// The licence covers what the teacher's licence may reach: its tokenizer, and
// the embedding that training started from.
//
//go:embed tiny.gguf
var tiny []byte

var models = []struct {
	Model
	data []byte
}{
	{Model{
		Name: "tiny", Path: Prefix + "tiny", Title: "ridge tiny, a model of 8M parameters for trying ridge, for tests and for drafting",
		Source: "distilled from SmolLM2-135M-Instruct by tools/tinymodel", License: "apache-2.0",
		Note:  "tiny is part of the program: it writes short simple English and knows next to nothing",
		Quant: "Q5_1", Size: int64(len(tiny)),
	}, tiny},
}

// List returns the embedded models.
func List() []Model {
	out := make([]Model, len(models))
	for i, m := range models {
		out[i] = m.Model
	}
	return out
}

// Lookup returns the embedded model of a name, in any case, with or without
// Prefix.
func Lookup(name string) (Model, bool) {
	name = strings.TrimPrefix(strings.ToLower(name), Prefix)
	for _, m := range models {
		if m.Name == name {
			return m.Model, true
		}
	}
	return Model{}, false
}

// Data returns the bytes of the model file at path, if path is that of an
// embedded model. They must not be changed.
func Data(path string) ([]byte, bool) {
	for _, m := range models {
		if m.Path == path {
			return m.data, true
		}
	}
	return nil, false
}

// Is reports whether path is that of an embedded model.
func Is(path string) bool {
	_, ok := Data(path)
	return ok
}
