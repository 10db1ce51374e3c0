// Package quantized reads safetensors checkpoints whose matrices are quantized in
// a way of their own. It shows such a file as one with a tensor for each weight:
// a matrix in an element type of package tensor that has the values, which are
// those that the method's own library computes.
//
// Where the values of a method lie on the grid of a block format with the
// precision that its scales have, weights are brought into that format: codes of
// 4 bits less their zero point into Q4_0 or Q5_0, of 8 bits into Q8_0, MXFP4 as it
// is. Other values are rounded to the type that the library computes in.
//
// Files come from strangers: shapes are checked against each other before
// anything is read. Errors are "quantized: FILE: FIELD: expected X, found Y".
// docs/formats/quantized.md has the formats.
package quantized

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"

	"ridge/internal/diag"
	"ridge/weights/safetensors"
	"ridge/weights/tensor"
)

// A method knows one way of quantizing.
type method interface {
	// weight says which weight a tensor belongs to, if it is the tensor by which
	// a quantized weight is known; ok is false for all others.
	weight(t safetensors.TensorInfo) (name string, ok bool)
	// open checks the shapes of a weight's tensors, without reading them.
	open(p *parts) unpacker
}

// An unpacker has the values of one weight.
type unpacker interface {
	// plan reads what the element type depends on.
	plan() error
	// mat returns the shape, and the type once plan has been called.
	mat() tensor.Mat
	// wide says why the type is not a block format, "" if it is one.
	wide() string
	// rows writes the rows [lo, hi) to dst, which is large enough for them.
	// Calls for different rows may run at the same time.
	rows(dst []byte, lo, hi int)
}

// methods has what reads the configuration of each method.
var methods = map[string]func(*Config) method{
	"gptq":               openGPTQ,
	"awq":                openAWQ,
	"fp8":                openFP8,
	"fbgemm_fp8":         openFP8,
	"compressed-tensors": openCompressed,
	"mxfp4":              openMXFP4,
	"bitsandbytes":       openBitsAndBytes,
	"modelopt":           openModelOpt,
	"bitnet":             openBitNet,
}

// File is an open checkpoint with quantized weights. Methods other than those of
// safetensors.File must not be called at the same time.
type File struct {
	*safetensors.File
	config  *Config
	infos   []safetensors.TensorInfo
	weights map[string]*weight
	outline bool
	zeros   []byte // data of matrices whose values nobody wants
	last    struct {
		name string
		mat  tensor.Mat
	}
	copied  int64
	widened map[string]*widening // by reason
}

// weight is a quantized weight.
type weight struct {
	unpacker
	parts   []string // the tensors that it is read from
	planned bool
}

// Open shows the quantized weights of st, which becomes part of the result:
// closing either closes both.
func Open(st *safetensors.File, c *Config) (*File, error) {
	f := &File{File: st, config: c, weights: map[string]*weight{}, widened: map[string]*widening{}}
	hidden := map[string]bool{}
	names := map[string]string{}
	for _, t := range st.Tensors() {
		name, ok := c.method.weight(t)
		if !ok {
			continue
		}
		p := &parts{st: st, first: t, name: name}
		u := c.method.open(p)
		if p.err != nil {
			return nil, p.err
		}
		if f.weights[name] != nil {
			return nil, fault(st.Name(), tensorField(t.Name), "one form of weight "+diag.Quote(name), "two")
		}
		f.weights[name] = &weight{unpacker: u, parts: p.used}
		names[t.Name] = name
		for _, n := range p.used {
			hidden[n] = true
		}
	}
	for _, t := range st.Tensors() {
		if name, ok := names[t.Name]; ok {
			m := f.weights[name].mat()
			f.infos = append(f.infos, safetensors.TensorInfo{Name: name, Shape: []uint64{uint64(m.Rows), uint64(m.Cols)}, Size: f.sizeOf(name)})
		} else if !hidden[t.Name] {
			f.infos = append(f.infos, t)
		}
	}
	return f, nil
}

func (f *File) sizeOf(weight string) (n uint64) {
	for _, part := range f.weights[weight].parts {
		t, _ := f.Tensor(part)
		n += t.Size
	}
	return n
}

// Outline makes Mat leave out values: matrices come with the right types and
// shapes, and zeros.
func (f *File) Outline() { f.outline = true }

// Tensors returns all tensors, with one for each quantized weight in place of
// those that it is read from. Its type is left open.
func (f *File) Tensors() []safetensors.TensorInfo { return f.infos }

// Quantized returns the number of quantized weights.
func (f *File) Quantized() int { return len(f.weights) }

// Copied returns the bytes of all copies that Mat has made.
func (f *File) Copied() int64 { return f.copied }

// Mat returns a tensor as a matrix. That of a quantized weight is a copy which is
// valid for as long as it is held, but not to be written to; the last one is kept.
func (f *File) Mat(name string) (tensor.Mat, error) {
	w := f.weights[name]
	if w == nil {
		return f.File.Mat(name)
	}
	if f.last.name == name {
		return f.last.mat, nil
	}
	if !w.planned {
		if err := w.plan(); err != nil {
			return tensor.Mat{}, err
		}
		w.planned = true
	}
	m := w.mat()
	size := m.Type.RowBytes(m.Cols)
	if size < 0 {
		return tensor.Mat{}, fault(f.Name(), tensorField(name), "whole blocks of "+m.Type.String(), fmt.Sprintf("%d columns", m.Cols))
	}
	if f.outline {
		if n := m.Rows * size; n > len(f.zeros) {
			f.zeros = make([]byte, n)
		}
		m.Data = f.zeros[:m.Rows*size]
		return m, nil
	}
	m.Data = make([]byte, m.Rows*size)
	unpack(w.unpacker, m.Data, m.Rows, size)
	for _, part := range w.parts {
		f.Release(f.Data(part))
	}
	f.copied += int64(len(m.Data))
	if why := w.wide(); why != "" {
		f.widen(why, m, int64(f.sizeOf(name)))
	}
	f.last.name, f.last.mat = name, m
	return m, nil
}

// widening counts the weights that take more memory than in the file.
type widening struct {
	n            int
	typ          tensor.DType
	file, memory int64
}

func (f *File) widen(why string, m tensor.Mat, size int64) {
	w := f.widened[why]
	if w == nil {
		w = &widening{typ: m.Type}
		f.widened[why] = w
	}
	w.n, w.file, w.memory = w.n+1, w.file+size, w.memory+int64(len(m.Data))
}

// Notes says, for people, what is computed otherwise than by other programs, and
// which of the weights that Mat has returned take more memory than in the file.
func (f *File) Notes() []string {
	notes := slices.Clone(f.config.Notes)
	for _, why := range slices.Sorted(maps.Keys(f.widened)) {
		w := f.widened[why]
		notes = append(notes, fmt.Sprintf("%d weights are kept as %v, %.1f times as large as in the file: %s", w.n, w.typ, float64(w.memory)/float64(w.file), why))
	}
	return notes
}

// rowsAtOnce are rows that are unpacked together: 16 words of a column-major
// matrix are one cache line.
const rowsAtOnce = 16

// unpack writes all rows, on as many threads as there are processors.
func unpack(u unpacker, dst []byte, rows, size int) {
	workers := max(1, min(runtime.GOMAXPROCS(0), rows/rowsAtOnce))
	var wg sync.WaitGroup
	for w := range workers {
		lo, hi := rows*w/workers, rows*(w+1)/workers
		lo, hi = lo/rowsAtOnce*rowsAtOnce, hi/rowsAtOnce*rowsAtOnce
		if w == workers-1 {
			hi = rows
		}
		wg.Go(func() { u.rows(dst[lo*size:hi*size], lo, hi) })
	}
	wg.Wait()
}

// parts finds the tensors of one weight. It keeps the first error.
type parts struct {
	st    *safetensors.File
	first safetensors.TensorInfo
	name  string // of the weight
	used  []string
	err   error
}

func (p *parts) fail(tensor, expected, found string) {
	if p.err == nil {
		p.err = fault(p.st.Name(), tensorField(tensor), expected, found)
	}
}

// has reports whether there is a tensor of that name.
func (p *parts) has(name string) bool {
	_, ok := p.st.Tensor(name)
	return ok
}

// get returns a tensor of one of the types, with so many extents, none of which
// is 0.
func (p *parts) get(name string, extents int, types ...string) part {
	t, ok := p.st.Tensor(name)
	if !ok {
		p.fail(name, "it beside "+diag.Quote(p.first.Name), "no tensor of that name")
		return part{}
	}
	p.used = append(p.used, name)
	known := false
	for _, typ := range types {
		known = known || t.Type == typ
	}
	x := part{TensorInfo: t, data: p.st.Data(name), p: p}
	if !known {
		p.fail(name, "type "+orList(types), t.Type)
	}
	if extents >= 0 && len(t.Shape) != extents {
		p.fail(name, fmt.Sprintf("%d extents", extents), diag.Shape(t.Shape))
		x.Shape = make([]uint64, extents)
	}
	for _, n := range t.Shape {
		if n == 0 || n > 1<<31 {
			p.fail(name, "a shape without 0", diag.Shape(t.Shape))
		}
	}
	return x
}

// part is a tensor of a weight.
type part struct {
	safetensors.TensorInfo
	data []byte
	p    *parts
}

// dim returns an extent, at least 1.
func (x part) dim(i int) int {
	if i >= len(x.Shape) {
		return 1
	}
	return max(1, int(min(x.Shape[i], 1<<31)))
}

// count returns the number of values.
func (x part) count() int {
	n := 1
	for i := range x.Shape {
		n *= x.dim(i)
	}
	return n
}

// expect fails unless the tensor has a shape.
func (x part) expect(shape ...int) {
	ok := len(shape) == len(x.Shape)
	for i := 0; ok && i < len(shape); i++ {
		ok = x.dim(i) == shape[i]
	}
	if !ok && x.p != nil {
		want := make([]uint64, len(shape))
		for i, n := range shape {
			want[i] = uint64(n)
		}
		x.p.fail(x.Name, "shape "+diag.Shape(want), diag.Shape(x.Shape))
	}
}

func orList(names []string) (s string) {
	for i, n := range names {
		switch {
		case i > 0 && i == len(names)-1:
			s += " or "
		case i > 0:
			s += ", "
		}
		s += n
	}
	return s
}

// fault is the error of this package.
func fault(file, field, expected, found string) error {
	return fmt.Errorf("quantized: %s: %s: expected %s, found %s", diag.Path(file), field, expected, found)
}

func tensorField(name string) string { return "tensor " + diag.Quote(name) }
