package kernel

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"ridge/internal/cpu"
	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// Lanes is the number of output rows in a group of packed weights: one lane of
// a 512-bit vector each.
const Lanes = layout.Lanes

// Packed is a weight matrix in the order in which the kernels read it: groups
// of Lanes output rows, each group one contiguous run of bytes that is read
// strictly forward. Rows beyond the last one of the matrix are zero weights.
// docs/kernels.md has the layout of every format.
type Packed struct {
	Type       tensor.DType
	Rows, Cols int
	Groups     int    // ceil(Rows / Lanes)
	GroupBytes int    // bytes of a group in Data
	Data       []byte // Groups * GroupBytes bytes, from the allocator given to NewPacked
	Apart      *Apart // columns that are multiplied with float32 activations, nil for none

	layout *packing // nil for plain numbers and for native rows
	brain  int      // planes of activations rounded to bfloat16 that are read; 0 for others
	native bool     // groups are the rows as they are in the file
	ahead  int      // where bytes lie that are read next, from those that are read; 0: behind them
	adds   bool     // products are added to what is there; plain numbers and bfloat16 only
}

// PackedBytes returns the size of the packed form of m for the tier in use, or
// an error that says why m cannot be packed. It does not look at m.Data.
func PackedBytes(m tensor.Mat) (int, error) {
	p, err := plan(m)
	return p.Groups * p.GroupBytes, err
}

// PackedShape returns the packed form of m without its bytes, for who only asks
// what would be read.
func PackedShape(m tensor.Mat) (*Packed, error) {
	p, err := plan(m)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// plan checks the shape of m and returns its packed form without the memory.
func plan(m tensor.Mat) (Packed, error) {
	rb := m.Type.RowBytes(m.Cols)
	switch {
	case m.Rows <= 0 || m.Cols <= 0:
		return Packed{}, fmt.Errorf("kernel: pack %s matrix: shape %d x %d is empty", m.Type, m.Rows, m.Cols)
	case rb < 0:
		return Packed{}, fmt.Errorf("kernel: pack %s matrix: %d columns are not a multiple of the block of %d", m.Type, m.Cols, m.Type.BlockSize())
	case !m.Type.CanDecode():
		return Packed{}, fmt.Errorf("kernel: pack %s matrix: element type has no decoder", m.Type)
	case m.Rows > maxPacked/m.Cols:
		return Packed{}, fmt.Errorf("kernel: pack %s matrix: shape %d x %d is too large", m.Type, m.Rows, m.Cols)
	}
	p := Packed{Type: m.Type, Rows: m.Rows, Cols: m.Cols, Groups: (m.Rows + Lanes - 1) / Lanes}
	switch p.layout = packings[m.Type]; {
	case cpu.Current() == cpu.Ref, p.layout == nil && plainSize(m.Type) == 0:
		p.layout, p.native = nil, true
		p.GroupBytes = Lanes * rb
	case p.layout != nil:
		p.GroupBytes = p.layout.Supers(m.Cols) * p.layout.SuperBytes()
	case m.Type == tensor.BF16:
		p.GroupBytes = (m.Cols + 31) / 32 * brainBlock
	default:
		p.GroupBytes = (Lanes*rb + 63) &^ 63
	}
	return p, nil
}

// maxPacked bounds the values of a matrix so that no size computed from its
// shape overflows.
const maxPacked = math.MaxInt / 64

// NewPacked plans the packed form of m for the tier in use and allocates it:
// alloc returns n zeroed bytes aligned to 64, or nil when there are none.
// Nothing is read from m.Data; call Pack for all groups before Mul.
func NewPacked(m tensor.Mat, alloc func(n int) []byte) (*Packed, error) {
	p, err := plan(m)
	if err != nil {
		return nil, err
	}
	return p.take(alloc)
}

// take returns p with memory.
func (p Packed) take(alloc func(n int) []byte) (*Packed, error) {
	n := p.Size()
	data := alloc(n)
	if len(data) < n {
		return nil, fmt.Errorf("kernel: pack %s matrix %d x %d: no memory for %d bytes", p.Type, p.Rows, p.Cols, n)
	}
	p.Data = data[:n:n]
	return &p, nil
}

// NewAdded is NewPacked for a matrix of plain numbers whose products Mul adds to what
// there is. Its columns are not filled up to whole blocks, so SetBrain does not take it.
func NewAdded(m tensor.Mat, alloc func(n int) []byte) (*Packed, error) {
	if plainSize(m.Type) == 0 {
		return nil, fmt.Errorf("kernel: pack %s matrix whose products are added: expected plain numbers", m.Type)
	}
	p, err := plan(m)
	if err != nil {
		return nil, err
	}
	p.adds = true
	if m.Type == tensor.BF16 && !p.native {
		p.GroupBytes = (m.Cols + 1) / 2 * 4 * Lanes
	}
	return p.take(alloc)
}

// Pack converts the groups [g0, g1) of src, the matrix given to NewPacked.
// Calls for different groups may run at the same time.
func (p *Packed) Pack(src tensor.Mat, g0, g1 int) {
	switch {
	case p.native:
		rb := p.Type.RowBytes(p.Cols)
		lo, hi := g0*Lanes, min(g1*Lanes, p.Rows)
		copy(p.Data[lo*rb:hi*rb], src.Data[lo*rb:hi*rb])
	case p.layout == nil:
		for o := g0 * Lanes; o < min(g1*Lanes, p.Rows); o++ {
			dst, lane := p.Data[o/Lanes*p.GroupBytes:], o%Lanes
			if p.Type == tensor.BF16 {
				packBrain(dst, lane, src.Row(o))
			} else {
				packPlain(dst, lane, plainSize(p.Type), src.Row(o))
			}
		}
	default:
		for g := g0; g < g1; g++ {
			p.packGroup(src, g)
		}
	}
}

// packGroup packs one group, superblock by superblock, so that what is written
// stays in the first-level cache while its rows are added.
func (p *Packed) packGroup(src tensor.Mat, g int) {
	var rows [Lanes][]byte
	n := min(Lanes, p.Rows-g*Lanes)
	for i := range n {
		rows[i] = src.Row(g*Lanes + i)
	}
	l := p.layout
	size := l.SuperBytes()
	chunk := p.Type.RowBytes(max(p.Type.BlockSize(), 64*l.Pairs))
	data := p.Data[g*p.GroupBytes:][:p.GroupBytes]
	for len(data) > 0 {
		for lane := range n {
			c := min(chunk, len(rows[lane]))
			l.pack(l, data[:size:size], lane, rows[lane][:c])
			rows[lane] = rows[lane][c:]
		}
		data = data[size:]
	}
}

// Size returns the bytes of all groups.
func (p *Packed) Size() int { return p.Groups * p.GroupBytes }

// UsesQuant reports whether Mul reads the quantized rows of its activations
// (Acts.Q) rather than the float32 ones (Acts.F32).
func (p *Packed) UsesQuant() bool { return p.layout != nil || p.brain > 0 }

// reads counts the bytes of the groups that Mul reads, if somebody asked for it.
var reads atomic.Pointer[atomic.Int64]

// CountReads makes Mul add the bytes of the groups that it multiplies to n, once
// for each call, until it is called with nil. It is for tests and measurements.
func CountReads(n *atomic.Int64) { reads.Store(n) }

// Mul computes dst[r*ldd+o] = Σₖ W[o][k]·x[r][k] for the activation rows
// [r0, r1) of x and all outputs o of the groups [g0, g1). It writes whole
// groups: dst needs ldd >= Lanes*Groups floats per row, and outputs beyond
// p.Rows come out as zero. A matrix of NewAdded adds the sums to what dst has. Calls that write different parts of dst may run at
// the same time; a result does not depend on the split.
func (p *Packed) Mul(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	if r0 >= r1 || g0 >= g1 {
		return
	}
	p.check(dst, ldd, x, r1, g1)
	if n := reads.Load(); n != nil {
		n.Add(int64(g1-g0) * int64(p.GroupBytes))
	}
	if p.layout != nil && x.Planes > 1 {
		p.mulPlanes(dst, ldd, x, r0, r1, g0, g1)
	} else {
		p.mul(dst, ldd, x, r0, r1, g0, g1)
	}
	if p.Apart != nil {
		p.mulApart(dst, ldd, x, r0, r1, g0, g1)
	}
}

// MulThen is Mul for who multiplies the same groups of next afterwards: their bytes are
// brought near meanwhile, if both are plain numbers.
func (p *Packed) MulThen(next *Packed, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	w := *p
	if p.layout == nil && next.layout == nil && g0 < min(p.Groups, next.Groups) {
		w.ahead = int(addressOf(next.Data[g0*next.GroupBytes:]) - addressOf(p.Data[g0*p.GroupBytes:]))
	}
	w.Mul(dst, ldd, x, r0, r1, g0, g1)
}

// mul is Mul for rows of one plane.
func (p *Packed) mul(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	switch {
	case p.native:
		p.mulNative(dst, ldd, x, r0, r1, g0, g1)
	case p.brain > 0:
		p.mulBrain(dst, ldd, x, r0, r1, g0, g1)
	case gemmTier(p, dst, ldd, x, r0, r1, g0, g1):
	case p.layout == nil:
		p.mulPlainGeneric(dst, ldd, x, r0, r1, g0, g1)
	default:
		p.mulGeneric(dst, ldd, x, r0, r1, g0, g1)
	}
}

// check panics if the assembly would read or write beyond what it is given.
func (p *Packed) check(dst []float32, ldd int, x *Acts, r1, g1 int) {
	have, need := len(x.F32), (r1-1)*x.LDF+p.Cols
	if p.UsesQuant() {
		have, need = len(x.Q), r1*x.LDQ-x.LDQ/x.planes()+ActRowBytes(p.Cols)
	}
	if found := x.brain(); p.UsesQuant() && p.brain != found {
		panic(fmt.Sprintf("kernel: multiply %s %d x %d: planes of activations as bfloat16: expected %d, found %d", p.Type, p.Rows, p.Cols, p.brain, found))
	}
	if g1 > p.Groups || g1*Lanes > ldd || have < need || len(dst) < (r1-1)*ldd+g1*Lanes || len(p.Data) < p.Groups*p.GroupBytes {
		panic(fmt.Sprintf("kernel: multiply %s %d x %d: %d rows, %d of %d groups, row distance %d: have %d of %d activations and %d outputs",
			p.Type, p.Rows, p.Cols, r1, g1, p.Groups, ldd, have, need, len(dst)))
	}
}

// rowPool lends the rows that weights are decoded into.
var rowPool = sync.Pool{New: func() any { return new([]float32) }}

// mulNative decodes each weight row to float32 and multiplies it with the
// float32 activations: the definition of Mul, and the only way for formats
// without a packed layout.
func (p *Packed) mulNative(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	rb := p.Type.RowBytes(p.Cols)
	buf := rowPool.Get().(*[]float32)
	defer rowPool.Put(buf)
	if cap(*buf) < p.Cols {
		*buf = make([]float32, p.Cols)
	}
	w := (*buf)[:p.Cols]
	for o := g0 * Lanes; o < g1*Lanes; o++ {
		w := w
		if o < p.Rows {
			p.Type.Decode(w, p.Data[o*rb:(o+1)*rb])
		} else {
			w = w[:0] // whose product is zero
		}
		for r := r0; r < r1; r++ {
			sum := dotRef(w, x.F32[r*x.LDF:])
			if p.adds {
				sum += dst[r*ldd+o]
			}
			dst[r*ldd+o] = sum
		}
	}
}

// dotRef is the dot product of a with the first len(a) values of b, summed in
// float64.
func dotRef(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float64(a[0]) * float64(b[0])
		s1 += float64(a[1]) * float64(b[1])
		s2 += float64(a[2]) * float64(b[2])
		s3 += float64(a[3]) * float64(b[3])
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += float64(a[i]) * float64(b[i])
	}
	return float32(s0 + s1 + s2 + s3)
}
