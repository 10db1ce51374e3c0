package hub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// store is ridge's own folder of models. Each model is a folder below it:
//
//	<slug>/model.json              what the model is; written last, so that it exists only if all files do
//	<slug>/<files>
//	<slug>/*.incomplete[.json]     downloads in progress and the record of what they have
//	.locks/<slug>.lock             held by the process that downloads or removes the model
type store struct{ root string }

const (
	manifestName = "model.json"
	journalName  = manifestName + incompleteSuffix
)

// manifest is model.json, and, with only some of its files, the journal of an
// unfinished download.
type manifest struct {
	Version  int            `json:"version"`
	Ref      string         `json:"ref"`
	Source   string         `json:"source"`
	Revision string         `json:"revision,omitempty"`
	License  string         `json:"license,omitempty"`
	Quant    string         `json:"quant,omitempty"`
	Open     string         `json:"open"` // the file to open, or "." for the folder
	Created  time.Time      `json:"created"`
	Files    []manifestFile `json:"files"`
}

type manifestFile struct {
	Path   string `json:"path"` // slash-separated, inside the model's folder
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Key    string `json:"key,omitempty"` // in the journal: which content was asked for
}

// slug is the folder name for a reference: readable, and unlike any other
// reference's even on a file system that ignores case.
func slug(ref string) string {
	var b strings.Builder
	for _, c := range ref {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
		if b.Len() >= 100 {
			break
		}
	}
	sum := sha256.Sum256([]byte(ref))
	return strings.Trim(b.String(), ".") + "-" + hex.EncodeToString(sum[:4])
}

func (s store) modelDir(ref string) string { return filepath.Join(s.root, slug(ref)) }

// find returns the complete model of that reference, nil if there is none.
func (s store) find(ref string) *Model {
	dir := s.modelDir(ref)
	m, err := readManifest(filepath.Join(dir, manifestName))
	if err != nil || m.Ref != ref {
		return nil
	}
	model, err := m.model(dir)
	if err != nil {
		return nil
	}
	return model
}

func readManifest(path string) (*manifest, error) {
	b, err := readSmall(path, 4<<20)
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if m.Version != 1 {
		return nil, fmt.Errorf("%s: version: expected 1, found %d", path, m.Version)
	}
	for _, f := range m.Files {
		if err := safeName(f.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if m.Open != "." && safeName(m.Open) != nil {
		return nil, fmt.Errorf("%s: open: unsafe file name %q", path, m.Open)
	}
	return m, nil
}

// model checks that the files are there and describes them.
func (m *manifest) model(dir string) (*Model, error) {
	out := &Model{Name: m.Ref, Ref: m.Ref, Source: m.Source, Revision: m.Revision, License: m.License, Quant: m.Quant, Owner: OwnerRidge}
	open := filepath.Join(dir, filepath.FromSlash(m.Open))
	out.Files = append(out.Files, open)
	for _, f := range m.Files {
		p := filepath.Join(dir, filepath.FromSlash(f.Path))
		fi, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if fi.Size() != f.Size {
			return nil, fmt.Errorf("%s: size: expected %d, found %d", p, f.Size, fi.Size())
		}
		out.Size += f.Size
		if fi.ModTime().After(out.Modified) {
			out.Modified = fi.ModTime()
		}
		if p != open {
			out.Files = append(out.Files, p)
		}
	}
	if len(m.Files) == 1 {
		out.SHA256 = m.Files[0].SHA256
	}
	if e := lookupCatalog(m.Ref); e != nil && e.Name == m.Ref {
		out.Note, out.Base = e.Note, e.Base
	}
	return out, nil
}

func (m *manifest) write(path string) error {
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return writeAtomic(path, append(b, '\n'))
}

// list returns the complete models, sorted by name.
func (s store) list() ([]Model, error) {
	entries, err := os.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hub: list: %w", err)
	}
	var out []Model
	for _, e := range entries {
		dir := filepath.Join(s.root, e.Name())
		m, err := readManifest(filepath.Join(dir, manifestName))
		if err != nil || slug(m.Ref) != e.Name() {
			continue
		}
		if model, err := m.model(dir); err == nil {
			out = append(out, *model)
		}
	}
	slices.SortFunc(out, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// remove deletes the model's folder. It reports whether there was one.
func (s store) remove(ref string) (bool, error) {
	dir := s.modelDir(ref)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	l, err := s.lockFile(ref)
	if err != nil {
		return false, fmt.Errorf("hub: remove %s: %w", ref, err)
	}
	got, err := l.TryLock()
	if err != nil {
		return false, fmt.Errorf("hub: remove %s: %w", ref, err)
	}
	if !got {
		return false, fmt.Errorf("hub: remove %s: another process is downloading it", ref)
	}
	defer l.Unlock()
	// First what makes it a model, so that half a removal leaves none.
	if err := os.Remove(filepath.Join(dir, manifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("hub: remove %s: %w", ref, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return false, fmt.Errorf("hub: remove %s: %w", ref, err)
	}
	return true, nil
}

func (s store) lockFile(ref string) (*flock.Flock, error) {
	dir := filepath.Join(s.root, ".locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return flock.New(filepath.Join(dir, slug(ref)+".lock")), nil
}

// tidy deletes from a finished model's folder what does not belong to it: the
// leftovers of other sources and earlier runs.
func (m *manifest) tidy(dir string) {
	keep := map[string]bool{manifestName: true}
	for _, f := range m.Files {
		keep[f.Path] = true
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(dir, p)
		if err == nil && rerr == nil && !e.IsDir() && !keep[filepath.ToSlash(rel)] {
			os.Remove(p)
		}
		return nil
	})
}
