package kernel

import (
	"fmt"
	"math"
	"unsafe"

	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// Attention with an online softmax over tiles of keys and values.
//
// Keys are processed in blocks of attnBlock at absolute positions, and blocks
// in splits of AttnSplit keys, again at absolute positions. Within a split a
// query keeps a running maximum, a sum and an accumulator that are rescaled
// from block to block; the results of the splits are folded in order. All this
// depends on the query and its own key range alone, so its result is the same,
// bit for bit, whatever other queries are in the call, however rows are cut
// into calls, whatever the page size, and whether splits are computed in one
// call (Attend) or by several threads (AttendSplits, then MergeSplits).

const (
	attnBlock = layout.AttnBlock // keys whose scores are computed together

	// AttnSplit is the number of keys of a split: the unit in which the keys
	// of one query can be divided among threads.
	AttnSplit = 256
)

// AttnSpec is what all calls for a layer share.
type AttnSpec struct {
	HeadDim, VHeadDim int          // values per head in queries and keys, and in values
	Scale             float32      // factor of the scores, positive, usually 1/√HeadDim
	Softcap           float32      // scores become Softcap·tanh(score/Softcap); 0 for none
	KV                tensor.DType // element type of the tiles: F16, F32, BF16 or Q8_0; keys as BF16 need an even HeadDim
	// ValuesInKeys says that a value is the first VHeadDim elements of its key:
	// tiles have keys alone. With Q8_0 both share the key's scale.
	ValuesInKeys bool
}

// KeyTileBytes returns the size of the keys of a tile.
func (s *AttnSpec) KeyTileBytes() int { return KVTileBytes(s.HeadDim, s.KV) }

// ValueTileBytes returns the size of the values of a tile.
func (s *AttnSpec) ValueTileBytes() int {
	if s.ValuesInKeys {
		return 0
	}
	return KVTileBytes(s.VHeadDim, s.KV)
}

// AttnCall is attention of Rows query rows of one sequence, each with the Heads
// query heads that share one kv head. For row r and head h, with the scores
//
//	s[j] = Scale · q·k[j], soft-capped, + Slope[h]·(j - (End[r]-1)) + bias, Start[r] <= j < End[r]
//
// the output is Σ exp(s[j])·v[j] / (Σ exp(s[j]) + exp(Sink[h])). A row with an
// empty range gives zeros. Not-a-number in a query, or in a key or value of its
// range, gives NaN for that query.
type AttnCall struct {
	Spec        *AttnSpec
	Rows, Heads int
	Q           []float32 // query (r, h) starts at Q[r·LDQ + h·HeadDim]
	LDQ         int
	Out         []float32 // result (r, h) starts at Out[r·LDO + h·VHeadDim]; must not overlap Q
	LDO         int
	Start, End  []int32   // per row, the range of absolute key positions it sees
	Slope       []float32 // per head, the ALiBi slope; nil for none
	Sink        []float32 // per head, a logit without a key (attention sink); nil for none
	Bias        *AttnBias // of scores by the distance of key and query; nil for none
	Tiles       Tiles
}

// AttnBias is what is added to the score of key j and query row r of an AttnCall,
// whose rows are at the positions First, First + 1, …: by the distance
// j - (First + r) alone. With it there are no ALiBi slopes.
type AttnBias struct {
	// Table has Stride numbers for each head of the call, in units of log2: that of
	// distance d is number Zero + d of its head. It has all distances of keys that rows
	// see, and AttnBiasPad more at its end.
	Table        []float32
	Stride, Zero int
	First        int
}

// AttnBiasPad is how many distances an AttnBias has beyond those that matter.
const AttnBiasPad = attnBlock

// Splits returns the range [lo, hi) of splits that the rows of c read; lo == hi
// if all ranges are empty.
func (c *AttnCall) Splits() (lo, hi int) {
	start, end := c.keys(0, c.Rows*c.Heads)
	if start >= end {
		return 0, 0
	}
	return start / AttnSplit, (end-1)/AttnSplit + 1
}

// PartFloats returns the floats that AttendSplits writes for one split.
func (c *AttnCall) PartFloats() int { return c.Rows * c.Heads * attnStride(c.Spec) }

// keys returns the union of the key ranges of the queries [q0, q1).
func (c *AttnCall) keys(q0, q1 int) (start, end int) {
	start = math.MaxInt
	for r := q0 / c.Heads; r*c.Heads < q1; r++ {
		if c.Start[r] < c.End[r] {
			start, end = min(start, int(c.Start[r])), max(end, int(c.End[r]))
		}
	}
	return start, end
}

// check panics unless the slices of c are as long as its shape says: the
// kernels do not look.
func (c *AttnCall) check() {
	s, n := c.Spec, c.Rows-1
	kvElem(s.KV) // panics if it is none
	if c.Rows <= 0 || c.Heads <= 0 || s.HeadDim <= 0 || s.VHeadDim <= 0 {
		panic(fmt.Sprintf("kernel: attention: shape: %d rows, %d heads of %d and %d", c.Rows, c.Heads, s.HeadDim, s.VHeadDim))
	}
	if s.ValuesInKeys && s.VHeadDim > s.HeadDim {
		panic(fmt.Sprintf("kernel: attention: values in keys of %d: expected at most as many elements, found %d", s.HeadDim, s.VHeadDim))
	}
	if s.KV == tensor.BF16 && s.HeadDim%2 != 0 {
		panic(fmt.Sprintf("kernel: attention: BF16 keys: expected an even number of values, found %d", s.HeadDim))
	}
	_ = c.Q[n*c.LDQ+c.Heads*s.HeadDim-1]
	_ = c.Out[n*c.LDO+c.Heads*s.VHeadDim-1]
	_, _ = c.Start[n], c.End[n]
	if c.Slope != nil {
		_ = c.Slope[c.Heads-1]
	}
	if c.Sink != nil {
		_ = c.Sink[c.Heads-1]
	}
	if b := c.Bias; b != nil {
		_ = b.Table[c.Heads*b.Stride-1]
	}
}

// Attend computes c on the calling thread. It allocates only when s has never
// seen heads of this size.
func Attend(c *AttnCall, s *AttnScratch) {
	if c.Rows == 0 {
		return
	}
	c.check()
	s.reserve(c.Spec)
	for q0 := 0; q0 < c.Rows*c.Heads; q0 += s.group.n {
		g := s.load(c, q0)
		total := g.states(s.total)
		total.reset()
		for split, end := g.splits(); split < end; split++ {
			part := g.states(s.part)
			g.attend(split, part)
			total.fold(part)
		}
		g.finish(total)
	}
}

// AttendSplits computes the splits [lo, hi) of c into parts, c.PartFloats()
// floats for each. Calls for different splits may run on different threads,
// each with its own scratch.
func AttendSplits(c *AttnCall, s *AttnScratch, lo, hi int, parts []float32) {
	if c.Rows == 0 {
		return
	}
	c.check()
	s.reserve(c.Spec)
	n := c.PartFloats()
	for q0 := 0; q0 < c.Rows*c.Heads; q0 += s.group.n {
		g := s.load(c, q0)
		for split := lo; split < hi; split++ {
			part := parts[(split-lo)*n : (split-lo+1)*n]
			g.attend(split, g.states(part[q0*attnStride(c.Spec):]))
		}
	}
}

// MergeSplits folds the parts of all splits of c, in order as computed by
// AttendSplits, and writes c.Out. It uses parts as working memory. With no
// parts (an empty range of splits) the output is zero.
func MergeSplits(c *AttnCall, parts []float32) {
	if c.Rows == 0 {
		return
	}
	c.check()
	n := c.PartFloats()
	g := attnGroupState{call: c, n: c.Rows * c.Heads}
	if len(parts) < n {
		for r := 0; r < c.Rows; r++ {
			clear(c.Out[r*c.LDO:][:c.Heads*c.Spec.VHeadDim])
		}
		return
	}
	total := g.states(parts[:n])
	for parts = parts[n:]; len(parts) >= n; parts = parts[n:] {
		total.fold(g.states(parts[:n]))
	}
	g.finish(total)
}

// attnGroup is the number of queries that are processed together: they share
// the conversion of keys and values to float32. It is bounded so that their
// states stay in the L2 cache.
const attnGroup = 96

// attnWideGroup is the same with tile registers: all that a block touches stays
// in the first-level cache.
const attnWideGroup = 48

// attnTile is the number of queries whose scores are computed at once, attnWide
// that with tile registers.
const (
	attnTile = layout.AttnTile
	attnWide = 16
)

// attnHead is the head of a query's state, one cache line; the accumulator
// follows it.
type attnHead struct {
	max    float32   // running maximum of the scores, in units of log2
	sum    float32   // Σ 2^(score - max)
	alpha  float32   // factor for the accumulator in the block at hand
	slope  float32   // ALiBi slope, in units of log2
	ramp   float32   // distance of the first key of the block from the last key of the query
	mask   [2]uint32 // bit j: key j of the block is in the range of the query
	unused [9]float32
}

const attnHeadFloats = int(unsafe.Sizeof(attnHead{}) / 4)

// padded returns the floats of an accumulator: whole vectors of 16.
func padded(dim int) int { return (dim + 15) &^ 15 }

// attnStride returns the floats of a query's state.
func attnStride(s *AttnSpec) int { return attnHeadFloats + padded(s.VHeadDim) }

// attnStates are the states of n queries.
type attnStates struct {
	mem    []float32
	n      int
	stride int
}

func (s attnStates) head(i int) *attnHead {
	return (*attnHead)(unsafe.Pointer(&s.mem[i*s.stride]))
}

func (s attnStates) acc(i int) []float32 {
	return s.mem[i*s.stride+attnHeadFloats : (i+1)*s.stride]
}

// reset makes the states those of queries that have seen no keys. The maximum
// starts at a finite value so that differences from it are never NaN.
func (s attnStates) reset() {
	clear(s.mem[:s.n*s.stride])
	for i := range s.n {
		s.head(i).max = -math.MaxFloat32
	}
}

// fold adds the later part p to s. A state without keys takes p as it is, so
// that it does not matter whether splits without keys are computed.
func (s attnStates) fold(p attnStates) {
	for i := range s.n {
		a, b := s.head(i), p.head(i)
		switch {
		case b.sum == 0:
		case a.sum == 0:
			a.max, a.sum = b.max, b.sum
			copy(s.acc(i), p.acc(i))
		default:
			// One of the factors is 1.
			fa, fb := float32(1), float32(1)
			if a.max < b.max {
				fa = exp2(a.max - b.max)
				a.max = b.max
				Scale(s.acc(i), fa)
			} else {
				fb = exp2(b.max - a.max)
			}
			a.sum = float32(a.sum*fa) + float32(b.sum*fb) // not fused, on any architecture
			AddScaled(s.acc(i), p.acc(i), fb)
		}
	}
}

// exp2 returns 2^x.
func exp2(x float32) float32 { return weight(float64(x)) }
