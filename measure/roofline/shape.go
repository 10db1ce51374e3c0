// Package roofline says what a model costs and how fast it can be. It counts the
// bytes and operations of a forward pass from the headers of the model's files,
// and divides them by what a machine can do, measured or published: the
// roofline of Williams, Waterman and Patterson (2009), with the few constants
// of constants.go for what the roofline leaves out.
package roofline

import (
	"fmt"
	"slices"
	"strings"

	"ridge/kernel"
	"ridge/kvcache"
	"ridge/model"
	"ridge/weights/tensor"
)

// Shape is what a forward pass of a model costs. It is made from the model's
// headers; no weight is read.
type Shape struct {
	Outline *model.Outline
	KV      tensor.DType // element type of keys and values
	Act     model.Act    // how activations are kept that quantized matrices read

	WeightBytes int64 // packed matrices: what a decoded token reads
	HeadBytes   int64 // of these, the output matrix, read only for rows of logits
	KVBytes     int64 // keys and values that one position takes in all layers

	regions []region // of a layer stack, in order
	head    region
}

// region is a parallel region of the forward pass: matrices that are
// multiplied with the same rows, and split over the workers together.
type region struct {
	mats []matrix
	unit int // groups of 16 rows that stay together when the region is split
}

type matrix struct {
	model.Matrix
	bytes  int64
	groups int
}

func (m *matrix) elems() float64 { return float64(m.Rows) * float64(m.Cols) }

// groupsPerUnit is how many groups of an MLP's hidden layer stay together: see
// package nn.
const groupsPerUnit = 4

// Read reads the shape of the model at path, for keys and values of type kv.
func Read(path string, kv tensor.DType) (*Shape, error) {
	o, err := model.ReadOutline(path)
	if err != nil {
		return nil, err
	}
	return NewShape(o, kv)
}

// NewShape counts what a model costs, for keys and values of type kv (F16, F32
// or Q8_0).
func NewShape(o *model.Outline, kv tensor.DType) (*Shape, error) {
	if kvcache.TileBytes(1, kv) == 0 {
		return nil, fmt.Errorf("roofline: type of keys and values: expected F16, F32 or Q8_0, found %v", kv)
	}
	s := &Shape{Outline: o, KV: kv}
	for _, n := range o.Config.KVHeads {
		s.KVBytes += 2 * int64(n) * s.kvHead()
	}
	kind := ""
	for _, m := range o.Matrices {
		n, err := kernel.PackedBytes(tensor.Mat{Type: m.Type, Rows: m.Rows, Cols: m.Cols})
		if err != nil {
			return nil, fmt.Errorf("roofline: tensor %q: %w", m.Name, err)
		}
		x := matrix{m, int64(n), (m.Rows + kernel.Lanes - 1) / kernel.Lanes}
		s.WeightBytes += x.bytes
		if m.Name == "output" || m.Name == "token_embd" {
			s.HeadBytes = x.bytes
			s.head = region{mats: []matrix{x}, unit: 1}
			continue
		}
		k, unit := regionOf(m.Name)
		if k != kind || k == "" {
			s.regions = append(s.regions, region{unit: unit})
		}
		kind = k
		last := &s.regions[len(s.regions)-1]
		last.mats = append(last.mats, x)
	}
	return s, nil
}

// Name names the model as llama-bench does, "llama 135M Q4_1", with the real
// number of parameters.
func (s *Shape) Name() string {
	o := s.Outline
	p, unit := float64(o.Parameters)/1e6, "M"
	if p >= 1000 {
		p, unit = p/1000, "B"
	}
	size := fmt.Sprintf("%.0f", p)
	if p < 10 {
		size = fmt.Sprintf("%.1f", p)
	}
	kind := o.FileType
	if kind == "" {
		kind = s.commonType().String()
	}
	return fmt.Sprintf("%s %s%s %s", o.Config.Arch, size, unit, kind)
}

// commonType is the element type of most weights.
func (s *Shape) commonType() (most tensor.DType) {
	elems := map[tensor.DType]int64{}
	for _, m := range s.Outline.Matrices {
		elems[m.Type] += int64(m.Rows) * int64(m.Cols)
		if elems[m.Type] > elems[most] {
			most = m.Type
		}
	}
	return most
}

// Types returns the element types of the matrices, each once.
func (s *Shape) Types() (types []tensor.DType) {
	for _, m := range s.Outline.Matrices {
		if !slices.Contains(types, m.Type) {
			types = append(types, m.Type)
		}
	}
	return types
}

// regionOf returns a name that the neighbouring matrices of a region share, ""
// for a matrix that is a region of its own, and the region's unit.
func regionOf(name string) (kind string, unit int) {
	layer, part := "", name
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		layer, part = name[:i], name[i+1:]
	}
	switch part {
	case "attn_q", "attn_k", "attn_v", "attn_qkv":
		return layer + ".qkv", 1
	case "ffn_gate", "ffn_up":
		return layer + ".hidden", groupsPerUnit
	}
	return "", 1
}

// Cost counts what one or more forward passes read and compute.
type Cost struct {
	Weights  int64   `json:"weight_bytes"`  // bytes of packed matrices read
	KVRead   int64   `json:"kv_read_bytes"` // bytes of keys and values read
	KVWrite  int64   `json:"kv_write_bytes"`
	IntOps   float64 `json:"int_ops"`   // multiplications and additions with quantized matrices
	FloatOps float64 `json:"float_ops"` // with plain matrices
	AttnOps  float64 `json:"attn_ops"`  // of queries with keys, and of weights with values
}

// Bytes returns what is read from memory.
func (c Cost) Bytes() int64 { return c.Weights + c.KVRead }

// Ops returns all multiplications and additions.
func (c Cost) Ops() float64 { return c.IntOps + c.FloatOps + c.AttnOps }

// Add adds d to c.
func (c *Cost) Add(d Cost) {
	c.Weights += d.Weights
	c.KVRead += d.KVRead
	c.KVWrite += d.KVWrite
	c.IntOps += d.IntOps
	c.FloatOps += d.FloatOps
	c.AttnOps += d.AttnOps
}

// planes returns how many rows are multiplied for a row of activations with a
// matrix of type t.
func (s *Shape) planes(t tensor.DType) int {
	if quantized(t) {
		return s.Act.Planes()
	}
	return 1
}

// quantized reports whether matrices of type t are multiplied as integers.
func quantized(t tensor.DType) bool {
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.F64:
		return false
	}
	return true
}

// Cost counts one forward pass. Weights are read once however many rows there
// are; the keys and values of a sequence are read once by all its rows.
func (s *Shape) Cost(st Step) Cost {
	rows, outputs := st.Rows(), st.Outputs()
	c := Cost{KVWrite: int64(rows) * s.KVBytes}
	for i := range s.regions {
		c.region(s, &s.regions[i], rows)
	}
	c.region(s, &s.head, outputs)
	for _, g := range st {
		c.AttnOps += s.attnOps(g)
		c.KVRead += s.kvRead(g)
	}
	return c
}

func (c *Cost) region(s *Shape, r *region, rows int) {
	if rows == 0 {
		return
	}
	for i := range r.mats {
		m := &r.mats[i]
		c.Weights += m.bytes
		ops := 2 * float64(rows*s.planes(m.Type)) * m.elems()
		if quantized(m.Type) {
			c.IntOps += ops
		} else {
			c.FloatOps += ops
		}
	}
}

// attnOps counts a multiplication and an addition per element of each key and
// each value that a query sees.
func (s *Shape) attnOps(g Segment) float64 {
	c := &s.Outline.Config
	sum := 0.0
	for _, w := range s.windows() {
		sum += float64(w.layers) * keysSeen(g, w.size)
	}
	return sum * 4 * float64(c.Heads*c.HeadDim)
}

// kvRead counts the bytes of keys and values that the rows of g see.
func (s *Shape) kvRead(g Segment) int64 {
	c := &s.Outline.Config
	sum := int64(0)
	for i, n := range c.KVHeads {
		first := 0
		if w := c.Window[i]; w > 0 {
			first = max(0, g.Pos+1-w)
		}
		sum += int64(2*n) * int64(g.Pos+g.Rows-first)
	}
	return sum * s.kvHead()
}

// working returns the bytes that a step in the middle of w reads again and
// again: weights, keys and values.
func (s *Shape) working(w Work) int64 {
	middle := Segment{Pos: w.Depth + (w.Prompt+w.Gen)/2, Rows: 1}
	return s.WeightBytes + int64(w.seqs())*s.kvRead(middle)
}

// kvHead returns the bytes of the key, or of the value, of a token in one head.
func (s *Shape) kvHead() int64 {
	return int64(kvcache.TileBytes(s.Outline.Config.HeadDim, s.KV) / kvcache.TileTokens)
}

// layerWindow is how many layers have a window of one size.
type layerWindow struct{ size, layers int }

// windows counts the layers by the size of their sliding window.
func (s *Shape) windows() []layerWindow {
	var out []layerWindow
next:
	for _, w := range s.Outline.Config.Window {
		for i := range out {
			if out[i].size == w {
				out[i].layers++
				continue next
			}
		}
		out = append(out, layerWindow{w, 1})
	}
	return out
}

// keysSeen adds up the keys that each row of g sees in a layer with the given
// window, 0 for none: row i sees its own and all earlier positions.
func keysSeen(g Segment, window int) float64 {
	first, last := g.Pos+1, g.Pos+g.Rows // keys of the first and last row
	if window > 0 && last > window {
		full := min(g.Rows, last-window) // rows whose window is full
		last -= full
		return float64(full)*float64(window) + sumRange(first, last)
	}
	return sumRange(first, last)
}

// sumRange returns lo + (lo+1) + … + hi.
func sumRange(lo, hi int) float64 {
	if hi < lo {
		return 0
	}
	return float64(lo+hi) * float64(hi-lo+1) / 2
}
