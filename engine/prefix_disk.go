package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"ridge/internal/atomicfile"
)

// PrefixStore keeps what was computed of prefixes beyond the life of an engine.
// Its methods may be called from any goroutine.
type PrefixStore interface {
	// Lengths are those of the prefixes that are there, in ascending order.
	Lengths() []int
	// Has says whether the prefix of a key and a length is there.
	Has(key string, tokens int) bool
	// Put keeps what write writes, of size bytes, of which nothing is there if it
	// fails. There may be no room: what was not used for longest goes.
	Put(key string, tokens int, size int64, write func(io.Writer) error) error
	// Open opens what was kept, for a use. The error is fs.ErrNotExist if it is
	// not there any more.
	Open(key string, tokens int) (io.ReadSeekCloser, error)
	// Found counts a use.
	Found(tokens int)
	// Refuse removes what cannot be used, and tells why.
	Refuse(key string, tokens int, why error)
	// PrefixStats describe what is there.
	PrefixStats() PrefixStats
}

// PrefixDisk is a folder for the prefixes of several models, which outlives the
// process. Files are those of sessions; processes may share the folder.
type PrefixDisk struct {
	Bytes int64                        // at most
	Dir   string                       // made if it is not there
	Warn  func(file string, why error) // is told of files that cannot be used

	mu   sync.Mutex // of what changes in the folder
	used int64
}

// prefixEnd ends the names of files.
const prefixEnd = ".kv"

// prefixFile is a file of the folder.
type prefixFile struct {
	path string
	size int64
	used time.Time
}

// shrink removes the files that were not used for longest until there is room for
// size bytes, and what was left half-written long ago. The folder is locked.
func (d *PrefixDisk) shrink(size int64) {
	var files []prefixFile
	d.used = 0
	// What cannot be read is not counted: others may be removing it.
	_ = filepath.WalkDir(d.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		switch {
		case strings.HasSuffix(path, prefixEnd):
			files = append(files, prefixFile{path, info.Size(), info.ModTime()})
			d.used += info.Size()
		case strings.HasSuffix(path, atomicfile.Suffix) && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(path)
		}
		return nil
	})
	slices.SortFunc(files, func(a, b prefixFile) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.path, b.path)) })
	for _, f := range files {
		if d.used+size <= d.Bytes {
			return
		}
		if os.Remove(f.path) == nil {
			d.used -= f.size
		}
	}
}

// Store returns the part of the model whose keys and values are named so: by
// weights, arithmetic and type of elements.
func (d *PrefixDisk) Store(identity string) (PrefixStore, error) {
	sum := sha256.Sum256([]byte(identity))
	s := &prefixStore{d: d, dir: filepath.Join(d.Dir, hex.EncodeToString(sum[:8])), files: map[string]int{}}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("engine: prefixes: %w", err)
	}
	d.mu.Lock()
	d.shrink(0)
	d.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("engine: prefixes: %w", err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), prefixEnd); ok && e.Type().IsRegular() {
			if _, tokens, ok := strings.Cut(name, "-"); ok {
				if n, err := strconv.Atoi(tokens); err == nil && n > 0 {
					s.files[e.Name()] = n
				}
			}
		}
	}
	return s, nil
}

// prefixStore is the part of one model.
type prefixStore struct {
	d   *PrefixDisk
	dir string

	mu    sync.Mutex
	files map[string]int // lengths by name
	stats PrefixStats
}

func fileOf(key string, tokens int) string { return key + "-" + strconv.Itoa(tokens) + prefixEnd }

// Lengths are those of the files.
func (s *prefixStore) Lengths() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]int, 0, len(s.files))
	for _, n := range s.files {
		out = append(out, n)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Has looks for a file.
func (s *prefixStore) Has(key string, tokens int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[fileOf(key, tokens)] > 0
}

// Put writes a file.
func (s *prefixStore) Put(key string, tokens int, size int64, write func(io.Writer) error) error {
	if size > s.d.Bytes {
		return fmt.Errorf("engine: prefixes: expected at most %d bytes, found %d", s.d.Bytes, size)
	}
	s.d.mu.Lock()
	s.d.shrink(size)
	s.d.mu.Unlock()
	path := filepath.Join(s.dir, fileOf(key, tokens))
	if err := atomicfile.Write(path, write); err != nil {
		return fmt.Errorf("engine: prefixes: %w", err)
	}
	s.d.mu.Lock()
	s.d.shrink(0) // another may have written meanwhile
	s.d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[filepath.Base(path)] = tokens
	s.stats.Written++
	return nil
}

// Open opens a file.
func (s *prefixStore) Open(key string, tokens int) (io.ReadSeekCloser, error) {
	path := filepath.Join(s.dir, fileOf(key, tokens))
	f, err := os.Open(path)
	if err != nil {
		s.forget(path)
		return nil, fmt.Errorf("engine: prefixes: %w", err)
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // else it is removed earlier
	return f, nil
}

func (s *prefixStore) forget(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, filepath.Base(path))
}

// Found counts a file that was read.
func (s *prefixStore) Found(tokens int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Hits++
	s.stats.Tokens += int64(tokens)
}

// Refuse removes a file.
func (s *prefixStore) Refuse(key string, tokens int, why error) {
	path := filepath.Join(s.dir, fileOf(key, tokens))
	s.forget(path)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		why = errors.Join(why, err)
	}
	s.d.mu.Lock()
	s.d.shrink(0)
	s.d.mu.Unlock()
	s.mu.Lock()
	s.stats.Refused++
	s.mu.Unlock()
	s.d.Warn(path, why)
}

// PrefixStats describe the files.
func (s *prefixStore) PrefixStats() PrefixStats {
	s.d.mu.Lock()
	bytes := s.d.used
	s.d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Files, st.Bytes = len(s.files), bytes
	return st
}
