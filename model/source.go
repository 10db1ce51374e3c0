package model

import (
	"fmt"

	"ridge/weights/gguf"
	"ridge/weights/quantized"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// source gives an architecture's weights by the names that GGUF uses.
type source interface {
	// mat returns a matrix; ok is false when the file has none of that name.
	// A vector is a matrix of one row.
	mat(name string) (m tensor.Mat, ok bool, err error)
	has(name string) bool // whether mat would return one
	// names returns what the file calls the weight of a name: those of its tensors
	// that it lies in, or would. None are known of a weight that such a file cannot
	// have.
	names(name string) []string
	tensors() []string       // the names of all, as the file has them
	layer(tensor string) int // of a tensor of that name, -1 if it has none
	name() string            // of the file, for errors
	size() int64             // bytes of all weights
	// read copies data, as mat gave it, without bringing the file's pages into memory.
	read(dst, data []byte) error
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

type ggufSource struct {
	f       *gguf.File
	aliases map[string]string // of parts: see architecture
	judge   *judge            // nil for none
}

func (s *ggufSource) mat(name string) (tensor.Mat, bool, error) {
	judged := s.judge != nil && name == classWeight
	if name = s.alias(name); judged {
		if name = "output.weight"; !s.has(name) {
			name = "token_embd.weight"
		}
	}
	if _, ok := s.f.Tensor(name); !ok {
		return tensor.Mat{}, false, nil
	}
	m, err := s.f.Mat(name)
	if judged && err == nil {
		m, err = s.judge.rows(m)
	}
	return m, true, err
}

func (s *ggufSource) has(name string) bool {
	_, ok := s.f.Tensor(s.alias(name))
	return ok || s.judge != nil && name == classWeight
}

// alias returns what the file calls a weight.
func (s *ggufSource) alias(name string) string {
	layer, part, suffix := splitName(name)
	as, whole := s.aliases[part+suffix]
	if !whole {
		as = s.aliases[part]
	} else {
		suffix = ""
	}
	switch {
	case as == "":
		return name
	case layer >= 0:
		return fmt.Sprintf("blk.%d.%s%s", layer, as, suffix)
	default:
		return as + suffix
	}
}

func (s *ggufSource) names(name string) []string { return []string{s.alias(name)} }
func (s *ggufSource) layer(name string) int {
	layer, _, _ := splitName(name)
	return layer
}

func (s *ggufSource) tensors() (names []string) {
	for _, t := range s.f.Tensors() {
		names = append(names, t.Name)
	}
	return names
}

func (s *ggufSource) name() string           { return s.f.Name() }
func (s *ggufSource) read(d, b []byte) error { return s.f.Read(d, b) }
func (s *ggufSource) release(b []byte)       { s.f.Release(b) }
func (s *ggufSource) drop()                  { s.f.DropPages() }
func (s *ggufSource) check() error           { return s.f.Check() }
func (s *ggufSource) copied() int64          { return 0 }
func (s *ggufSource) id() (string, bool)     { return s.f.ID() }
func (s *ggufSource) close() error           { return s.f.Close() }

func (s *ggufSource) size() int64 {
	n := int64(0)
	for _, t := range s.f.Tensors() {
		n += int64(t.Size)
	}
	return n
}

// hfTensor says where a weight lies in a Hugging Face checkpoint.
type hfTensor struct {
	names []string                             // one, or vectors that are the rows of a matrix
	stack bool                                 // they are vectors
	found bool                                 // they are there
	fix   func(tensor.Mat) (tensor.Mat, error) // nil: as it is
}

// hfFiles are the files of a checkpoint: safetensors.File, or quantized.File if
// its weights are quantized.
type hfFiles interface {
	Tensors() []safetensors.TensorInfo
	Mat(name string) (tensor.Mat, error)
	Read(dst, data []byte) error
	Release(data []byte)
	DropPages()
	Check() error
	ID() (id string, settled bool)
	Close() error
}

type hfSource struct {
	st    hfFiles
	dir   string
	at    func(name string) hfTensor
	depth func(tensor string) int // of the layer that it lies in

	copies int64 // bytes of weights that were changed
}

func (s *hfSource) mat(name string) (tensor.Mat, bool, error) {
	t := s.at(name)
	switch {
	case !t.found:
		return tensor.Mat{}, false, nil
	case t.stack:
		return s.stacked(t.names)
	}
	m, err := s.st.Mat(t.names[0])
	if err != nil {
		return m, true, err
	}
	if t.fix == nil {
		return m, true, nil
	}
	fixed, err := t.fix(m)
	if err != nil {
		return m, true, fmt.Errorf("model: %s: tensor %q: %w", s.dir, t.names[0], err)
	}
	s.release(m.Data) // fixed is a copy
	s.copies += int64(len(fixed.Data))
	return fixed, true, nil
}

func (s *hfSource) copied() int64 {
	n := s.copies
	if q, ok := s.st.(*quantized.File); ok {
		n += q.Copied()
	}
	return n
}

func (s *hfSource) has(name string) bool { return s.at(name).found }

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

// outline leaves out values that would have to be computed.
func (s *hfSource) outline() {
	if q, ok := s.st.(*quantized.File); ok {
		q.Outline()
	}
}

func (s *hfSource) names(name string) []string { return s.at(name).names }
func (s *hfSource) layer(name string) int      { return s.depth(name) }

func (s *hfSource) tensors() (names []string) {
	for _, t := range s.st.Tensors() {
		names = append(names, t.Name)
	}
	return names
}

func (s *hfSource) name() string           { return s.dir }
func (s *hfSource) read(d, b []byte) error { return s.st.Read(d, b) }
func (s *hfSource) release(b []byte)       { s.st.Release(b) }
func (s *hfSource) drop()                  { s.st.DropPages() }
func (s *hfSource) check() error           { return s.st.Check() }
func (s *hfSource) id() (string, bool)     { return s.st.ID() }
func (s *hfSource) close() error           { return s.st.Close() }

func (s *hfSource) size() int64 {
	n := int64(0)
	for _, t := range s.st.Tensors() {
		n += int64(t.Size)
	}
	return n
}
