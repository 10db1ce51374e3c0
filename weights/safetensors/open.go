package safetensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ridge/internal/diag"
	"ridge/internal/mmap"
)

const (
	singleName  = "model.safetensors"
	indexName   = "model.safetensors.index.json"
	indexSuffix = ".index.json"
)

// Open maps the tensors at path and reads their headers. The path is a
// .safetensors file, an index (NAME.index.json) of several in the same folder,
// or a folder with model.safetensors or, else, model.safetensors.index.json.
func Open(path string) (*File, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, mmap.Explain("safetensors", err)
	}
	switch {
	case st.IsDir():
		return openDir(path)
	case strings.HasSuffix(path, indexSuffix):
		return openIndex(path)
	}
	return openOne(path)
}

// OpenBytes is Open for one .safetensors file in memory; name stands for it in
// messages. The caller must not modify b while the file is in use.
func OpenBytes(name string, b []byte) (*File, error) { return decode(name, b) }

func openDir(dir string) (*File, error) {
	for _, c := range []struct {
		name string
		open func(string) (*File, error)
	}{{singleName, openOne}, {indexName, openIndex}} {
		path := filepath.Join(dir, c.name)
		_, err := os.Stat(path)
		if err == nil {
			return c.open(path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, mmap.Explain("safetensors", err)
		}
	}
	return nil, fault(dir, "folder", singleName+" or "+indexName, "neither")
}

func openOne(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, mmap.Explain("safetensors", err)
	}
	f, err := decode(path, m.Bytes())
	if err != nil {
		_ = m.Close() // the first error is the one to report
		return nil, err
	}
	f.maps = mmap.Files{m}
	return f, nil
}

// openIndex opens all files that the index at path names, in the order it first
// names them, and checks that they hold what it says.
func openIndex(path string) (_ *File, err error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, mmap.Explain("safetensors", err)
	}
	entries, err := readIndex(path, m.Bytes())
	_ = m.Close() // only read; entries are copies
	if err != nil {
		return nil, err
	}
	f := &File{name: path, metadata: map[string]string{}, byName: map[string]int{}}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	shards := map[string]int{}
	for _, e := range entries {
		if _, ok := shards[e.file]; ok {
			continue
		}
		part, err := openOne(filepath.Join(filepath.Dir(path), e.file))
		if err != nil {
			return nil, err
		}
		shards[e.file] = len(f.shards)
		if err := f.join(part); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		t, ok := f.Tensor(e.tensor)
		switch {
		case !ok:
			return nil, fault(path, tensorField(e.tensor), "it in "+diag.Quote(e.file), "no tensor of that name")
		case t.Shard != shards[e.file]:
			return nil, fault(path, tensorField(e.tensor), "it in "+diag.Quote(e.file), "it in "+diag.Path(f.shards[t.Shard].name))
		}
	}
	return f, nil
}

// join adds the tensors of part, one file, to f, and takes its mapping over.
func (f *File) join(part *File) error {
	no := len(f.shards)
	f.shards, f.maps = append(f.shards, part.shards...), append(f.maps, part.maps...)
	for _, t := range part.tensors {
		if first, ok := f.Tensor(t.Name); ok {
			return fault(part.name, tensorField(t.Name), "each name once", "it in "+diag.Path(f.shards[first.Shard].name)+" too")
		}
		t.Shard = no
		f.byName[t.Name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
	}
	for k, v := range part.metadata {
		if _, ok := f.metadata[k]; !ok {
			f.metadata[k] = v
		}
	}
	return nil
}

// indexEntry says which file of the folder holds a tensor.
type indexEntry struct{ tensor, file string }

func readIndex(path string, b []byte) ([]indexEntry, error) {
	var entries []indexEntry
	seen := map[string]bool{}
	maps := 0
	s := &scanner{file: path, what: "index", b: b}
	err := s.object(func(key string) error {
		if key != "weight_map" {
			return s.skip(1)
		}
		maps++
		return s.object(func(tensor string) error {
			if seen[tensor] {
				return fault(path, tensorField(tensor), "each name once", "it a second time")
			}
			seen[tensor] = true
			file, err := s.str()
			if err != nil {
				return err
			}
			// A name with a folder in it could reach any file of the machine.
			if file != filepath.Base(file) || !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) {
				return fault(path, tensorField(tensor), "the name of a file in the same folder", diag.Quote(file))
			}
			entries = append(entries, indexEntry{tensor, file})
			return nil
		})
	})
	if err == nil {
		err = s.end()
	}
	if err == nil && maps != 1 {
		err = fault(path, "weight_map", "it once", fmt.Sprintf("it %d times", maps))
	}
	if err == nil && len(entries) == 0 {
		err = fault(path, "weight_map", "at least one tensor", "none")
	}
	return entries, err
}
