// Package badfiles makes model files that are broken in one way each, with the
// message that a reader has to give. Readers test themselves on them, and so
// does the program as a whole. The bytes are put together here, not by the
// writers of the formats: those refuse to lie.
package badfiles

import (
	"fmt"
	"os"
	"path/filepath"
)

// Reader says which part of the program has to find the fault.
type Reader string

// The readers.
const (
	GGUF        Reader = "gguf"        // opening the file with package gguf
	Safetensors Reader = "safetensors" // opening the file with package safetensors
	Model       Reader = "model"       // opening it as a model: the container is in order
)

// Case is a broken model.
type Case struct {
	Name   string            // names the fault, fit for a folder's name
	Reader Reader            // who has to find it
	Files  map[string][]byte // contents by file name
	Open   string            // the file to open; empty for the folder
	// Want is a part of the error, on one line:
	// "FILE: FIELD: expected X, found Y" with the last element of FILE's path.
	Want string
	Path string // what to open; set by Write
}

// All returns the cases of every reader.
func All() []Case {
	all := append(ggufCases(), ggufSplitCases()...)
	all = append(all, safetensorsCases()...)
	all = append(all, safetensorsIndexCases()...)
	return append(all, modelCases()...)
}

// For returns the cases that r has to find.
func For(r Reader) []Case {
	var out []Case
	for _, c := range All() {
		if c.Reader == r {
			out = append(out, c)
		}
	}
	return out
}

// Write writes every case into a folder of its own in dir, and returns them all
// with Path set.
func Write(dir string) ([]Case, error) {
	cases := All()
	for i := range cases {
		c := &cases[i]
		folder := filepath.Join(dir, c.Name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, fmt.Errorf("badfiles: %w", err)
		}
		for name, b := range c.Files {
			if err := os.WriteFile(filepath.Join(folder, name), b, 0o666); err != nil {
				return nil, fmt.Errorf("badfiles: %w", err)
			}
		}
		c.Path = filepath.Join(folder, c.Open)
	}
	return cases, nil
}

// one returns a case of a single file.
func one(r Reader, name, file string, b []byte, want string) Case {
	return Case{Name: name, Reader: r, Files: map[string][]byte{file: b}, Open: file, Want: file + ": " + want}
}
