package model

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"ridge/weights/gguf"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// source gives an architecture's weights by the names that GGUF uses.
type source interface {
	// mat returns a matrix; ok is false when the file has none of that name.
	// A vector is a matrix of one row.
	mat(name string) (m tensor.Mat, ok bool, err error)
	name() string // of the file, for errors
	size() int64  // bytes of all weights
	// release gives back the file pages of data that was read.
	release(data []byte)
	drop()        // release of all
	check() error // whether the files are what they were
	// id tells the content of the files from any other, see mmap.Map.ID.
	id() (id string, settled bool)
	// copied returns how many bytes were copied to change them on the way.
	copied() int64
	close() error
}

type ggufSource struct{ f *gguf.File }

func (s ggufSource) mat(name string) (tensor.Mat, bool, error) {
	if _, ok := s.f.Tensor(name); !ok {
		return tensor.Mat{}, false, nil
	}
	m, err := s.f.Mat(name)
	return m, true, err
}
func (s ggufSource) name() string       { return s.f.Name() }
func (s ggufSource) release(b []byte)   { s.f.Release(b) }
func (s ggufSource) drop()              { s.f.DropPages() }
func (s ggufSource) check() error       { return s.f.Check() }
func (s ggufSource) copied() int64      { return 0 }
func (s ggufSource) id() (string, bool) { return s.f.ID() }
func (s ggufSource) close() error       { return s.f.Close() }

func (s ggufSource) size() int64 {
	n := int64(0)
	for _, t := range s.f.Tensors() {
		n += int64(t.Size)
	}
	return n
}

// ggufMeta reads the metadata of one architecture and keeps the first error.
type ggufMeta struct {
	f    *gguf.File
	arch string
	err  error
}

func (m *ggufMeta) fail(key, want string, found any) {
	if m.err == nil {
		m.err = fmt.Errorf("model: %s: metadata %q: expected %s, found %v", m.f.Name(), key, want, found)
	}
}

// required marks a value that a file must have.
const required = math.MinInt

func (m *ggufMeta) int(key string, def int) int {
	key = m.arch + "." + key
	v, ok := m.f.Lookup(key)
	if !ok {
		if def == required {
			m.fail(key, "a number", "nothing")
		}
		return def
	}
	n, ok := asInt(v)
	if !ok {
		m.fail(key, "an integer", describe(v))
	}
	return n
}

func (m *ggufMeta) float(key string, def float64) float64 {
	key = m.arch + "." + key
	v, ok := m.f.Lookup(key)
	if !ok {
		return def
	}
	switch x := v.(type) {
	case float32:
		return float64(x)
	case float64:
		return x
	}
	if n, ok := asInt(v); ok {
		return float64(n)
	}
	m.fail(key, "a number", describe(v))
	return def
}

func (m *ggufMeta) str(key, def string) string {
	key = m.arch + "." + key
	v, ok := m.f.Lookup(key)
	if !ok {
		return def
	}
	s, ok := v.(string)
	if !ok {
		m.fail(key, "a string", describe(v))
	}
	return s
}

func (m *ggufMeta) bool(key string, def bool) bool {
	key = m.arch + "." + key
	v, ok := m.f.Lookup(key)
	if !ok {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		m.fail(key, "true or false", describe(v))
	}
	return b
}

// perLayer reads a number that is either the same for all layers or an array.
func (m *ggufMeta) perLayer(key string, layers, def int) []int {
	full := m.arch + "." + key
	v, ok := m.f.Lookup(full)
	if !ok {
		return everyLayer(layers, def)
	}
	if n, ok := asInt(v); ok {
		return everyLayer(layers, n)
	}
	var out []int
	switch x := v.(type) {
	case []int32:
		for _, n := range x {
			out = append(out, int(n))
		}
	case []uint32:
		for _, n := range x {
			out = append(out, int(n))
		}
	}
	if len(out) != layers {
		m.fail(full, fmt.Sprintf("an integer or %d integers", layers), describe(v))
		return everyLayer(layers, def)
	}
	return out
}

func asInt(v any) (int, bool) {
	switch x := v.(type) {
	case uint8:
		return int(x), true
	case int8:
		return int(x), true
	case uint16:
		return int(x), true
	case int16:
		return int(x), true
	case uint32:
		return int(x), true
	case int32:
		return int(x), true
	case uint64:
		if x > math.MaxInt64 {
			return 0, false
		}
		return int(x), true
	case int64:
		return int(x), true
	case float64: // JSON
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			return int(x), true
		}
	}
	return 0, false
}

// describe names a value briefly for an error.
func describe(v any) string {
	s := fmt.Sprintf("%v", v)
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return fmt.Sprintf("%s (%T)", s, v)
}

// hfMeta reads a config.json and keeps the first error.
type hfMeta struct {
	path string
	m    map[string]any
	err  error
}

func readHF(dir string) (*hfMeta, error) {
	path := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", dir, err)
	}
	h := &hfMeta{path: path}
	if err := json.Unmarshal(b, &h.m); err != nil {
		return nil, fmt.Errorf("model: %s: expected a JSON object: %w", path, err)
	}
	// Multi-modal checkpoints keep the language model's numbers one level down.
	if t, ok := h.m["text_config"].(map[string]any); ok {
		for k, v := range t {
			h.m[k] = v
		}
	}
	return h, nil
}

func (h *hfMeta) fail(key, want string, found any) {
	if h.err == nil {
		h.err = fmt.Errorf("model: %s: %s: expected %s, found %v", h.path, key, want, found)
	}
}

// int reads the first of the keys that is there: the same number has different
// names in different configurations.
func (h *hfMeta) int(def int, keys ...string) int {
	for _, key := range keys {
		v, ok := h.m[key]
		if !ok || v == nil {
			continue
		}
		n, ok := asInt(v)
		if !ok {
			h.fail(key, "an integer", describe(v))
		}
		return n
	}
	if def == required {
		h.fail(keys[0], "a number", "nothing")
	}
	return def
}

func (h *hfMeta) float(def float64, keys ...string) float64 {
	for _, key := range keys {
		v, ok := h.m[key]
		if !ok || v == nil {
			continue
		}
		f, ok := v.(float64)
		if !ok {
			h.fail(key, "a number", describe(v))
		}
		return f
	}
	return def
}

func (h *hfMeta) bool(def bool, key string) bool {
	v, ok := h.m[key]
	if !ok || v == nil {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		h.fail(key, "true or false", describe(v))
	}
	return b
}

func (h *hfMeta) str(def string, keys ...string) string {
	for _, key := range keys {
		v, ok := h.m[key]
		if !ok || v == nil {
			continue
		}
		s, ok := v.(string)
		if !ok {
			h.fail(key, "a string", describe(v))
		}
		return s
	}
	return def
}

func (h *hfMeta) strings(key string) []string {
	list, _ := h.m[key].([]any)
	var out []string
	for _, v := range list {
		s, _ := v.(string)
		out = append(out, s)
	}
	return out
}

// object returns the object at key as an hfMeta that shares the error.
func (h *hfMeta) object(key string) (map[string]any, bool) {
	o, ok := h.m[key].(map[string]any)
	return o, ok
}

// hfTensor says where a weight lies in a Hugging Face checkpoint.
type hfTensor struct {
	name  string
	stack []string                             // vectors that are the rows of a matrix, in place of name
	fix   func(tensor.Mat) (tensor.Mat, error) // nil: as it is
}

type hfSource struct {
	st  *safetensors.File
	dir string
	at  func(name string) hfTensor

	copies int64 // bytes of weights that were changed
}

func (s *hfSource) mat(name string) (tensor.Mat, bool, error) {
	t := s.at(name)
	if len(t.stack) > 0 {
		return s.stacked(t.stack)
	}
	if t.name == "" {
		return tensor.Mat{}, false, nil
	}
	m, err := s.st.Mat(t.name)
	if err != nil {
		return m, true, err
	}
	if t.fix == nil {
		return m, true, nil
	}
	fixed, err := t.fix(m)
	if err != nil {
		return m, true, fmt.Errorf("model: %s: tensor %q: %w", s.dir, t.name, err)
	}
	s.release(m.Data) // fixed is a copy
	s.copies += int64(len(fixed.Data))
	return fixed, true, nil
}

// stacked returns vectors of equal length as the rows of a matrix.
func (s *hfSource) stacked(names []string) (out tensor.Mat, ok bool, err error) {
	for _, name := range names {
		m, err := s.st.Mat(name)
		switch {
		case err != nil:
			return m, true, err
		case m.Rows != 1 || out.Rows > 0 && (m.Cols != out.Cols || m.Type != out.Type):
			return m, true, fmt.Errorf("model: %s: tensor %q: expected a vector like %q, found %d x %d", s.dir, name, names[0], m.Rows, m.Cols)
		}
		out.Type, out.Cols, out.Rows = m.Type, m.Cols, out.Rows+1
		out.Data = append(out.Data[:len(out.Data):len(out.Data)], m.Data...)
	}
	return out, true, nil
}

func (s *hfSource) name() string       { return s.dir }
func (s *hfSource) release(b []byte)   { s.st.Release(b) }
func (s *hfSource) drop()              { s.st.DropPages() }
func (s *hfSource) check() error       { return s.st.Check() }
func (s *hfSource) copied() int64      { return s.copies }
func (s *hfSource) id() (string, bool) { return s.st.ID() }
func (s *hfSource) close() error       { return s.st.Close() }

func (s *hfSource) size() int64 {
	n := int64(0)
	for _, t := range s.st.Tensors() {
		n += int64(t.Size)
	}
	return n
}
