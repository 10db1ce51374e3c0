// Package roofline says what a model costs and how fast it can be. It counts the
// bytes and operations of a forward pass from the headers of the model's files,
// and divides them by what a machine can do, measured or published: the
// roofline of Williams, Waterman and Patterson (2009), with the few constants
// of constants.go for what the roofline leaves out.
package roofline

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"ridge/kvcache"
	"ridge/model"
	"ridge/nn"
	"ridge/weights/tensor"
)

// Shape is what a forward pass of a model costs. It is made from the model's
// headers; no weight is read.
type Shape struct {
	Outline *model.Outline
	KV      tensor.DType // element type of keys and values
	Act     model.Act    // how activations are kept that quantized matrices read

	Program     int64 // the memory of ridge itself, with the tokenizer
	PackedBytes int64 // packed matrices
	WeightBytes int64 // what a decoded token reads of them: of experts only those that it chooses
	HeadBytes   int64 // of these, the output matrix, read only for rows of logits
	KVBytes     int64 // keys and values that one position takes in all layers

	layers  []layer
	regions []region // of all layers, in order
	head    region
}

// layer is what a layer keeps of a sequence, and what so many query heads read: that,
// or what another layer keeps.
type layer struct {
	keeps, reads kvcache.LayerShape
	queries      int
	values       int // elements of a value, which may be part of the key
}

func newLayer(m nn.Mixer) layer {
	if m == nil {
		return layer{}
	}
	reads := m.Reads()
	l := layer{m.Keeps(), m.Keeps(), reads.Queries, reads.ValueDim}
	if reads.Shared.Heads > 0 {
		l.reads = reads.Shared
	}
	if l.values == 0 {
		l.values = l.reads.VDim
	}
	return l
}

// attnOps are the operations of a query row with one key and value: a
// multiplication and an addition per element, in all heads.
func (l *layer) attnOps() float64 { return 2 * float64(l.queries*(l.reads.KDim+l.values)) }

// kvBytes returns the bytes of the keys and values of a token in a layer.
func (s *Shape) kvBytes(k kvcache.LayerShape) int64 {
	return int64(k.Heads) * int64((kvcache.TileBytes(k.KDim, s.KV)+kvcache.TileBytes(k.VDim, s.KV))/kvcache.TileTokens)
}

// region is a parallel region of the forward pass: matrices that are
// multiplied with the same rows, and split over the workers together.
type region struct {
	mats []matrix
	unit int // groups of 16 rows that stay together when the region is split
}

type matrix struct {
	typ    tensor.DType
	elems  float64 // that a row reads
	bytes  int64
	active float64 // the part of the bytes that a row reads
	groups int
	rows   map[model.Act]int // that are multiplied for a row of activations
}

// read returns the bytes that a step of so many rows reads. Rows that choose
// experts are taken to choose them at random: more rows read more of them.
func (m *matrix) read(rows int) int64 {
	if m.active == 1 {
		return m.bytes
	}
	return int64(float64(m.bytes) * (1 - math.Pow(1-m.active, float64(rows))))
}

// newRegion asks a region of a network what it reads.
func newRegion(r nn.Region, planes map[model.Act]map[*nn.Linear]int) region {
	out := region{unit: r.Unit}
	for _, m := range r.Mats {
		rows := map[model.Act]int{}
		for a, of := range planes {
			rows[a] = 1
			if quantized(m.W.Type) {
				rows[a] = of[m]
			}
		}
		out.mats = append(out.mats, matrix{
			m.W.Type, r.Active * float64(m.W.Rows) * float64(m.W.Cols), int64(m.W.Size()), r.Active, m.W.Groups, rows,
		})
	}
	return out
}

// Read reads the shape of the model at path, for keys and values of type kv.
func Read(path string, kv tensor.DType) (*Shape, error) {
	o, err := model.ReadOutline(path)
	if err != nil {
		return nil, err
	}
	return NewShape(o, kv)
}

// NewShape counts what a model costs, for keys and values of type kv (F16, F32,
// BF16 or Q8_0); those of encoders are F32 whatever it is.
func NewShape(o *model.Outline, kv tensor.DType) (*Shape, error) {
	if kvcache.TileBytes(1, kv) == 0 {
		return nil, fmt.Errorf("roofline: type of keys and values: expected F16, F32, BF16 or Q8_0, found %v", kv)
	}
	if o.Config.Encoder.Both {
		kv = tensor.F32 // as such models keep them while a layer runs
	}
	s := &Shape{Outline: o, KV: kv}
	for i := range o.Net.Layers {
		mix := o.Net.Layers[i].Mix
		s.layers = append(s.layers, newLayer(mix))
		s.KVBytes += s.kvBytes(s.layers[i].keeps)
	}
	planes := map[model.Act]map[*nn.Linear]int{}
	for _, a := range model.Acts() {
		planes[a] = o.Net.Planes(a)
	}
	for r := range o.Net.Regions() {
		s.regions = append(s.regions, newRegion(r, planes))
		for _, m := range s.regions[len(s.regions)-1].mats {
			s.PackedBytes += m.bytes
			s.WeightBytes += m.read(1)
		}
	}
	last := len(s.regions) - 1 // the output matrix
	s.head, s.regions = s.regions[last], s.regions[:last]
	for _, m := range s.head.mats {
		s.HeadBytes += m.bytes
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

// matrices gives the matrices of all regions.
func (s *Shape) matrices() iter.Seq[*matrix] {
	return func(yield func(*matrix) bool) {
		for _, regions := range [2][]region{s.regions, {s.head}} {
			for i := range regions {
				for k := range regions[i].mats {
					if !yield(&regions[i].mats[k]) {
						return
					}
				}
			}
		}
	}
}

// commonType is the element type of most weights.
func (s *Shape) commonType() (most tensor.DType) {
	elems := map[tensor.DType]float64{}
	for m := range s.matrices() {
		elems[m.typ] += m.elems
		if elems[m.typ] > elems[most] {
			most = m.typ
		}
	}
	return most
}

// Types returns the element types of the matrices, each once.
func (s *Shape) Types() (types []tensor.DType) {
	for m := range s.matrices() {
		if !slices.Contains(types, m.typ) {
			types = append(types, m.typ)
		}
	}
	return types
}

// Cost counts what one or more forward passes read and compute.
type Cost struct {
	Weights  int64   `json:"weight_bytes"`  // bytes of packed matrices read
	KVRead   int64   `json:"kv_read_bytes"` // bytes of keys and values read
	KVWrite  int64   `json:"kv_write_bytes"`
	IntOps   float64 `json:"int_ops"`   // multiplications and additions with quantized matrices
	FloatOps float64 `json:"float_ops"` // with plain matrices and columns apart
	AttnOps  float64 `json:"attn_ops"`  // of queries with keys, and of weights with values

	// Of activations rounded to bfloat16 with bfloat16 matrices, and of queries
	// with bfloat16 keys; they are in none of the above.
	BrainOps  float64 `json:"bf16_ops,omitempty"`
	BrainAttn float64 `json:"bf16_attn_ops,omitempty"`
}

// Bytes returns what is read from memory.
func (c Cost) Bytes() int64 { return c.Weights + c.KVRead }

// Ops returns all multiplications and additions.
func (c Cost) Ops() float64 { return c.IntOps + c.Floats() + c.Brains() }

// Floats returns the operations on float32 values.
func (c Cost) Floats() float64 { return c.FloatOps + c.AttnOps }

// Brains returns the operations on bfloat16 values, which are float32 ones where
// the processor has no products of these.
func (c Cost) Brains() float64 { return c.BrainOps + c.BrainAttn }

// Add adds d to c.
func (c *Cost) Add(d Cost) {
	c.Weights += d.Weights
	c.KVRead += d.KVRead
	c.KVWrite += d.KVWrite
	c.IntOps += d.IntOps
	c.FloatOps += d.FloatOps
	c.AttnOps += d.AttnOps
	c.BrainOps += d.BrainOps
	c.BrainAttn += d.BrainAttn
}

// apart returns how many weights of m, which may be a fraction, are kept apart.
// The columns that a model has apart are in all its matrices, here in equal
// parts; which ones is not known before it is opened.
func (s *Shape) apart(m *matrix) float64 {
	if !quantized(m.typ) || m.active < 1 {
		return 0
	}
	return s.Act.Apart() * m.elems
}

// apartSize is the bytes of a weight apart: a float16.
const apartSize = 2

// quantized reports whether matrices of type t are multiplied as integers.
func quantized(t tensor.DType) bool {
	switch t {
	case tensor.F32, tensor.F16, tensor.BF16, tensor.F64:
		return false
	}
	return true
}

// Cost counts one forward pass. Weights are read once however many rows there
// are; the keys and values of a sequence are read once by all its rows, and so is
// its state, which is also written.
func (s *Shape) Cost(st Step) Cost {
	rows, outputs := st.Rows(), st.Outputs()
	c := Cost{KVWrite: int64(rows) * s.KVBytes}
	for i := range s.regions {
		c.region(s, &s.regions[i], rows)
	}
	c.region(s, &s.head, outputs)
	for _, g := range st {
		if ops := s.attnOps(g); s.KV == tensor.BF16 {
			c.BrainAttn += ops
		} else {
			c.AttnOps += ops
		}
		c.KVRead += s.kvRead(g)
		for i := range s.layers {
			state := int64(s.layers[i].keeps.State)
			c.KVRead += state
			c.KVWrite += state
		}
	}
	return c
}

func (c *Cost) region(s *Shape, r *region, rows int) {
	if rows == 0 {
		return
	}
	for i := range r.mats {
		m := &r.mats[i]
		apart := s.apart(m)
		c.Weights += m.read(rows) + int64(apartSize*apart)
		c.FloatOps += 2 * float64(rows) * apart
		ops := 2 * float64(rows*m.rows[s.Act]) * m.elems
		switch {
		case quantized(m.typ):
			c.IntOps += ops
		case brainProducts(s.Act, m.typ) > 0:
			c.BrainOps += brainProducts(s.Act, m.typ) * ops
		default:
			c.FloatOps += ops
		}
	}
}

// brainProducts returns how many products of bfloat16 values stand for one with a
// weight of type t, 0 if it is not multiplied so.
func brainProducts(a model.Act, t tensor.DType) float64 {
	switch {
	case a == model.ActBF16 && t == tensor.BF16:
		return 1
	case a == model.ActBF16x2 && t == tensor.BF16:
		return 2
	case a == model.ActBF16x2 && t == tensor.F32:
		return 3
	}
	return 0
}

// attnOps counts the operations of all queries of g with the keys that they see.
func (s *Shape) attnOps(g Run) float64 {
	sum := 0.0
	for _, w := range s.windows() {
		sum += w.attnOps * keysSeen(g, w.size)
	}
	return sum
}

// kvRead counts the bytes of keys and values that the rows of g see.
func (s *Shape) kvRead(g Run) int64 {
	sum := int64(0)
	for i := range s.layers {
		l, first := &s.layers[i], 0
		if w := l.reads.Window; w > 0 {
			first = max(0, g.Pos+1-w)
		}
		sum += s.kvBytes(l.reads) * int64(g.Pos+g.Rows-first)
	}
	return sum
}

// working returns the bytes that a step in the middle of w reads again and
// again: weights, keys and values.
func (s *Shape) working(w Work) int64 {
	middle := Run{Pos: w.Depth + (w.Prompt+w.Gen)/2, Rows: 1}
	return s.WeightBytes + int64(w.seqs())*s.kvRead(middle)
}

// layerWindow is the attention of the layers that have a window of one size.
type layerWindow struct {
	size    int
	attnOps float64 // of a query row with one key and value in each of them
}

// windows groups the layers by the size of their sliding window.
func (s *Shape) windows() []layerWindow {
	var out []layerWindow
	for i := range s.layers {
		l := &s.layers[i]
		k := slices.IndexFunc(out, func(w layerWindow) bool { return w.size == l.reads.Window })
		if k < 0 {
			k = len(out)
			out = append(out, layerWindow{size: l.reads.Window})
		}
		out[k].attnOps += l.attnOps()
	}
	return out
}

// keysSeen adds up the keys that each row of g sees in a layer with the given
// window, 0 for none: row i sees its own and all earlier positions.
func keysSeen(g Run, window int) float64 {
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
