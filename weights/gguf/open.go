package gguf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"

	"ridge/internal/builtin"
	"ridge/internal/diag"
	"ridge/internal/mmap"
)

const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
	maxSplits       = 1<<16 - 1 // split.count is a uint16 where it is written
)

// splitName matches the file name of one part of a split model.
var splitName = regexp.MustCompile(`^(.+)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// splitPath returns the path of part no (from 0) of count.
func splitPath(prefix string, no, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no+1, count)
}

// Open maps the GGUF file at path and reads its metadata and tensor directory.
// If path is one part of a split model, in the naming NAME-00001-of-0000N.gguf,
// all parts are opened, whichever was given. The path of a model that is part
// of the program, see internal/builtin, opens it in memory.
func Open(path string) (*File, error) {
	if b, ok := builtin.Data(path); ok {
		return OpenBytes(path, b)
	}
	f, err := openOne(path)
	if err != nil {
		return nil, err
	}
	count, err := f.splitCount()
	if err == nil && count > 1 {
		return openParts(f, count)
	}
	if err == nil {
		err = f.checkWhole()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenBytes is Open for a file in memory; name stands for it in messages. It
// takes one part of a split model for a model by itself. The caller must not
// modify b while the file is in use.
func OpenBytes(name string, b []byte) (*File, error) { return decode(name, b) }

func openOne(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, mmap.Explain("gguf", err)
	}
	f, err := decode(path, m.Bytes())
	if err != nil {
		_ = m.Close() // the first error is the one to report
		return nil, err
	}
	f.maps = mmap.Files{m}
	return f, nil
}

// splitCount returns the number of files of the model, 1 if it is not split.
func (f *File) splitCount() (int, error) {
	v, ok := f.Lookup(keySplitCount)
	if !ok {
		return 1, nil
	}
	n, ok := asUint(v)
	if !ok || n > maxSplits {
		return 0, fault(f.name, metadataField(keySplitCount), fmt.Sprintf("an integer from 0 to %d", maxSplits), describe(v))
	}
	return int(n), nil
}

// checkWhole refuses a file that is not split but whose name says that it is
// one of several: the rest of the model would be missing without a word.
func (f *File) checkWhole() error {
	m := splitName.FindStringSubmatch(filepath.Base(f.name))
	if m == nil {
		return nil
	}
	if n, err := strconv.Atoi(m[3]); err != nil || n <= 1 {
		return nil
	}
	return fault(f.name, metadataField(keySplitCount), m[3]+" as in the file name", "a model that is not split")
}

// openParts opens the other parts of a model of count parts, of which one is
// one, and joins them. It closes all on an error, one included.
func openParts(one *File, count int) (_ *File, err error) {
	parts := make([]*File, 0, min(count, 64))
	used := false
	defer func() {
		if err == nil {
			return
		}
		if !used {
			parts = append(parts, one)
		}
		for _, p := range parts {
			p.Close()
		}
	}()
	dir, base := filepath.Split(one.name)
	m := splitName.FindStringSubmatch(base)
	if m == nil {
		return nil, fault(one.name, "file name", fmt.Sprintf("NAME-00001-of-%05d.gguf for a split model", count), diag.Quote(base))
	}
	if named, _ := strconv.Atoi(m[3]); named != count {
		return nil, fault(one.name, metadataField(keySplitCount), m[3]+" as in the file name", fmt.Sprint(count))
	}
	for no := range count {
		path := splitPath(dir+m[1], no, count)
		part := one
		if path == one.name {
			used = true
		} else if part, err = openOne(path); err != nil {
			return nil, err
		}
		parts = append(parts, part)
		if err := part.checkPart(no, count); err != nil {
			return nil, err
		}
	}
	if !used {
		return nil, fault(one.name, "file name", fmt.Sprintf("a number from 00001 to %05d", count), m[2])
	}
	return join(parts)
}

// checkPart checks that the metadata of a part says the same as its name.
func (f *File) checkPart(no, count int) error {
	for _, k := range []struct {
		key  string
		want int
	}{{keySplitNo, no}, {keySplitCount, count}} {
		v, ok := f.Lookup(k.key)
		if !ok {
			return fault(f.name, metadataField(k.key), fmt.Sprint(k.want), "no such key")
		}
		if n, ok := asUint(v); !ok || n != uint64(k.want) {
			return fault(f.name, metadataField(k.key), fmt.Sprint(k.want), describe(v))
		}
	}
	return nil
}

// join makes one file of the parts of a split model, in order: the metadata of
// the first, the tensors of all.
func join(parts []*File) (*File, error) {
	f := parts[0]
	total := 0
	for _, p := range parts {
		total += len(p.tensors)
	}
	if v, ok := f.Lookup(keySplitTensors); ok {
		if n, ok := asUint(v); !ok || n != uint64(total) {
			return nil, fault(f.name, metadataField(keySplitTensors), fmt.Sprintf("%d, the tensors in all parts", total), describe(v))
		}
	}
	for i, p := range parts[1:] {
		for _, t := range p.tensors {
			if first, ok := f.Tensor(t.Name); ok {
				return nil, fault(p.name, tensorField(t.Name), "each name once", "it in "+diag.Path(f.shards[first.Shard].name)+" too")
			}
			t.Shard = i + 1
			f.byName[t.Name] = len(f.tensors)
			f.tensors = append(f.tensors, t)
		}
		f.shards, f.maps = append(f.shards, p.shards...), append(f.maps, p.maps...)
	}
	return f, nil
}
