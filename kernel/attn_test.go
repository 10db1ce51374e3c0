package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// attnBudget bounds the error of attention against float64 arithmetic on the
// same (rounded) keys and values, relative to the largest value in the range.
// Scores of magnitude s carry an error of about s·2^-23, which the exponential
// makes a relative error of the weights; the tests keep s below about 40.
const attnBudget = 1e-5

// kvTypes are the element types of tiles.
var kvTypes = []tensor.DType{tensor.F16, tensor.F32, tensor.Q8_0}

// forTiers runs f once for every tier that this machine has.
func forTiers(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for _, tier := range cpu.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			defer cpu.Set(tier)()
			f(t)
		})
	}
}

// randomRow returns n normal values times scale.
func randomRow(r *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * scale)
	}
	return x
}

// kvSeq is a sequence whose keys and values are kept in tiles and as float32.
type kvSeq struct {
	k, v  [][]float32 // as rounded by the tiles
	tiles Tiles
	keep  [][]byte
}

// newKVSeq stores random keys and values in pages of perPage tiles. Slots
// after the last token hold NaN.
func newKVSeq(r *rand.Rand, s *AttnSpec, n, perPage int) *kvSeq {
	var k, v [][]float32
	for range n {
		k, v = append(k, randomRow(r, s.HeadDim, 1)), append(v, randomRow(r, s.VHeadDim, 1))
	}
	return newKVSeqOf(s, k, v, perPage)
}

// newKVSeqOf is newKVSeq for given keys and values, which it rounds. Values that
// are part of the keys are taken from these.
func newKVSeqOf(s *AttnSpec, ks, vs [][]float32, perPage int) *kvSeq {
	seq := &kvSeq{}
	kb, vb := s.KeyTileBytes(), s.ValueTileBytes()
	seq.tiles = Tiles{PerPage: perPage, K: 64, V: 64 + kb, Step: kb + vb}
	tile := func(p int) (k, v []byte) {
		mem := seq.keep[p/TileTokens/perPage][64+p/TileTokens%perPage*(kb+vb):]
		return mem[:kb:kb], mem[kb : kb+vb : kb+vb]
	}
	for p, k := range ks {
		if p%(TileTokens*perPage) == 0 {
			page := make([]byte, 64+perPage*(kb+vb))
			for i := range page {
				page[i] = 0xff
			}
			seq.keep = append(seq.keep, page)
			seq.tiles.Pages = append(seq.tiles.Pages, &page[0])
		}
		kt, vt := tile(p)
		v := vs[p]
		if s.ValuesInKeys {
			v = nil
		}
		StoreKV(kt, vt, p%TileTokens, k, v, s.KV)
		loadKV(k, v, kt, vt, p%TileTokens, s.KV)
		if s.ValuesInKeys {
			v = k[:s.VHeadDim]
		}
		seq.k, seq.v = append(seq.k, k), append(seq.v, v)
	}
	return seq
}

// naiveAttention is the definition in the comment of AttnCall, in float64.
func naiveAttention(c *AttnCall, seq *kvSeq, r, h int) []float64 {
	s := c.Spec
	q := c.Q[r*c.LDQ+h*s.HeadDim:][:s.HeadDim]
	lo, hi := int(c.Start[r]), int(c.End[r])
	out := make([]float64, s.VHeadDim)
	if lo >= hi {
		return out
	}
	scores := make([]float64, hi-lo)
	top := math.Inf(-1)
	if c.Sink != nil {
		top = float64(c.Sink[h])
	}
	for j := range scores {
		var dot float64
		for d, x := range q {
			dot += float64(x) * float64(seq.k[lo+j][d])
		}
		dot *= float64(s.Scale)
		if s.Softcap > 0 {
			dot = float64(s.Softcap) * math.Tanh(dot/float64(s.Softcap))
		}
		if c.Slope != nil {
			dot += float64(c.Slope[h]) * float64(lo+j-(hi-1))
		}
		scores[j] = dot
		top = max(top, dot)
	}
	if math.IsInf(top, -1) {
		return out
	}
	var sum float64
	if c.Sink != nil {
		sum = math.Exp(float64(c.Sink[h]) - top)
	}
	for j, x := range scores {
		w := math.Exp(x - top)
		sum += w
		for d := range out {
			out[d] += w * float64(seq.v[lo+j][d])
		}
	}
	for d := range out {
		out[d] /= sum
	}
	return out
}

// randomCall returns a call of rows × heads queries at random places in seq.
func randomCall(r *rand.Rand, s *AttnSpec, seq *kvSeq, rows, heads int) *AttnCall {
	c := &AttnCall{Spec: s, Rows: rows, Heads: heads, Tiles: seq.tiles}
	c.LDQ, c.LDO = heads*s.HeadDim+r.IntN(5), heads*s.VHeadDim+r.IntN(5)
	c.Q, c.Out = randomRow(r, rows*c.LDQ, 1), make([]float32, rows*c.LDO)
	n := len(seq.k)
	for range rows {
		end := r.IntN(n + 1)
		start := 0
		if end > 0 && r.IntN(2) == 0 {
			start = r.IntN(end + 1) // may be empty
		}
		c.Start, c.End = append(c.Start, int32(start)), append(c.End, int32(end))
	}
	return c
}

// decorate turns on a random choice of the optional parts of attention.
func decorate(r *rand.Rand, c *AttnCall) string {
	name := ""
	if r.IntN(3) == 0 {
		c.Spec.Softcap = 5 + 20*r.Float32()
		name += " softcap"
	}
	if r.IntN(4) == 0 {
		c.Slope = AlibiSlopes(c.Heads, 8)
		name += " alibi"
	}
	if r.IntN(3) == 0 {
		c.Sink = randomRow(r, c.Heads, 2)
		name += " sink"
	}
	return name
}

func TestAttendAgainstNaive(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		var scratch AttnScratch
		for _, dims := range [][2]int{{16, 16}, {32, 32}, {64, 64}, {80, 80}, {96, 96}, {128, 128}, {256, 256}, {20, 20}, {1, 1}, {7, 33}, {192, 128}, {24, 50}} {
			for _, kv := range kvTypes {
				for _, shape := range [][2]int{{1, 1}, {1, 3}, {1, 7}, {1, 8}, {3, 4}, {17, 3}, {40, 5}, {5, 1}} {
					s := &AttnSpec{HeadDim: dims[0], VHeadDim: dims[1], Scale: float32(1 / math.Sqrt(float64(dims[0]))), KV: kv}
					seq := newKVSeq(r, s, 1+r.IntN(600), 1+r.IntN(5))
					c := randomCall(r, s, seq, shape[0], shape[1])
					name := decorate(r, c)
					Attend(c, &scratch)
					checkNaive(t, fmt.Sprint(dims, kv, shape, name), c, seq)
				}
			}
		}
	})
}

func checkNaive(t *testing.T, name string, c *AttnCall, seq *kvSeq) {
	t.Helper()
	for row := range c.Rows {
		for _, x := range c.Out[row*c.LDO+c.Heads*c.Spec.VHeadDim : (row+1)*c.LDO] {
			if x != 0 {
				t.Fatalf("%s: row %d: wrote outside", name, row)
			}
		}
		for h := range c.Heads {
			got := c.Out[row*c.LDO+h*c.Spec.VHeadDim:]
			for d, want := range naiveAttention(c, seq, row, h) {
				if e := math.Abs(float64(got[d]) - want); !(e <= 4*attnBudget) {
					t.Fatalf("%s: row %d head %d keys [%d,%d) dim %d: got %g want %g", name, row, h, c.Start[row], c.End[row], d, got[d], want)
				}
			}
		}
	}
}

// TestAttendLargeScores has scores up to about 100: the softmax is nearly hard.
func TestAttendLargeScores(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 7))
		var scratch AttnScratch
		s := &AttnSpec{HeadDim: 64, VHeadDim: 64, Scale: 3, KV: tensor.F32}
		seq := newKVSeq(r, s, 500, 4)
		c := randomCall(r, s, seq, 9, 3)
		Attend(c, &scratch)
		for row := range c.Rows {
			for h := range c.Heads {
				for d, want := range naiveAttention(c, seq, row, h) {
					if got := float64(c.Out[row*c.LDO+h*64+d]); math.Abs(got-want) > 3e-4 {
						t.Fatalf("row %d head %d dim %d: got %g want %g", row, h, d, got, want)
					}
				}
			}
		}
	})
}

// TestAttendLaw1 compares, bit for bit, a batch with its queries one by one,
// with other page sizes, with any cut into rows, and with split computation.
func TestAttendLaw1(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		var scratch AttnScratch
		for i := range 40 {
			kv := kvTypes[i%len(kvTypes)]
			s := &AttnSpec{HeadDim: 1 + r.IntN(100), VHeadDim: 1 + r.IntN(100), Scale: 0.2, KV: kv}
			seed := r.Uint64()
			n := 1 + r.IntN(900)
			seq := newKVSeq(rand.New(rand.NewPCG(seed, 0)), s, n, 1)
			c := randomCall(r, s, seq, 1+r.IntN(60), 1+r.IntN(8))
			decorate(r, c)
			Attend(c, &scratch)
			want := append([]float32(nil), c.Out...)
			compare := func(what string) {
				t.Helper()
				for row := range c.Rows {
					for d := range c.Heads * s.VHeadDim {
						a, b := c.Out[row*c.LDO+d], want[row*c.LDO+d]
						if math.Float32bits(a) != math.Float32bits(b) {
							t.Fatalf("case %d %s: row %d value %d: %g and %g", i, what, row, d, a, b)
						}
					}
				}
				clear(c.Out)
			}
			seq = newKVSeq(rand.New(rand.NewPCG(seed, 0)), s, n, 4)
			c.Tiles = seq.tiles
			clear(c.Out)
			Attend(c, &scratch)
			compare("page of 4 tiles")
			attendRows(c, &scratch, 1)
			compare("rows one by one")
			attendRows(c, &scratch, 7)
			compare("rows by 7")
			attendHeads(c, &scratch)
			compare("heads one by one")
			lo, hi := c.Splits()
			parts := make([]float32, (hi-lo)*c.PartFloats())
			for split := hi - 1; split >= lo; split-- {
				AttendSplits(c, &scratch, split, split+1, parts[(split-lo)*c.PartFloats():])
			}
			MergeSplits(c, parts)
			compare("splits")
		}
	})
}

// attendRows runs c in calls of n rows.
func attendRows(c *AttnCall, s *AttnScratch, n int) {
	for r := 0; r < c.Rows; r += n {
		part := *c
		part.Rows = min(n, c.Rows-r)
		part.Q, part.Out = c.Q[r*c.LDQ:], c.Out[r*c.LDO:]
		part.Start, part.End = c.Start[r:], c.End[r:]
		Attend(&part, s)
	}
}

// attendHeads runs c in calls of one head.
func attendHeads(c *AttnCall, s *AttnScratch) {
	for h := range c.Heads {
		part := *c
		part.Heads = 1
		part.Q, part.Out = c.Q[h*c.Spec.HeadDim:], c.Out[h*c.Spec.VHeadDim:]
		if c.Slope != nil {
			part.Slope = c.Slope[h:]
		}
		if c.Sink != nil {
			part.Sink = c.Sink[h:]
		}
		Attend(&part, s)
	}
}

// TestAttendMissingPages: pages outside all ranges may be nil, and what other
// slots hold does not matter.
func TestAttendMissingPages(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		s := &AttnSpec{HeadDim: 32, VHeadDim: 32, Scale: 0.2, KV: tensor.F16}
		seq := newKVSeq(r, s, 320, 1)
		c := randomCall(r, s, seq, 2, 2)
		c.Start, c.End = []int32{100, 130}, []int32{131, 140}
		var scratch AttnScratch
		for i := range seq.tiles.Pages {
			if i < 100/16 || i > 139/16 {
				seq.tiles.Pages[i] = nil
			}
		}
		Attend(c, &scratch)
		checkNaive(t, "missing pages", c, seq)
		c.Tiles.Pages = c.Tiles.Pages[:140/16+1]
		Attend(c, &scratch)
		checkNaive(t, "short table", c, seq)
	})
}

func TestAttendNaN(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		s := &AttnSpec{HeadDim: 32, VHeadDim: 32, Scale: 0.2, KV: tensor.F16}
		seq := newKVSeq(r, s, 100, 1)
		c := randomCall(r, s, seq, 1, 3)
		c.Start[0], c.End[0] = 0, 100
		c.Q[32+5] = float32(math.NaN())
		var scratch AttnScratch
		Attend(c, &scratch)
		for h := range 3 {
			for _, x := range c.Out[h*32 : (h+1)*32] {
				if math.IsNaN(float64(x)) != (h == 1) {
					t.Fatalf("head %d: %g", h, x)
				}
			}
		}
	})
}

func TestAttendAllocates(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		s := &AttnSpec{HeadDim: 64, VHeadDim: 64, Scale: 0.2, Softcap: 30, KV: tensor.F16}
		seq := newKVSeq(r, s, 600, 4)
		c := randomCall(r, s, seq, 4, 3)
		c.Start[0], c.End[0] = 0, 600
		var scratch AttnScratch
		lo, hi := c.Splits()
		parts := make([]float32, (hi-lo)*c.PartFloats())
		Attend(c, &scratch)
		if n := testing.AllocsPerRun(5, func() {
			Attend(c, &scratch)
			AttendSplits(c, &scratch, lo, hi, parts)
			MergeSplits(c, parts)
		}); n != 0 {
			t.Errorf("%g allocations", n)
		}
	})
}

func TestAlibiSlopes(t *testing.T) {
	for _, c := range []struct {
		heads int
		want  []float64
	}{
		{8, []float64{1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256}},
		{6, []float64{1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8}}, // 4 of 4, then every second of 8
	} {
		for h, got := range AlibiSlopes(c.heads, 8) {
			if math.Abs(float64(got)-c.want[h]) > 1e-7 {
				t.Errorf("%d heads, head %d: got %g want %g", c.heads, h, got, c.want[h])
			}
		}
	}
	if AlibiSlopes(0, 8) != nil {
		t.Error("slopes of no heads")
	}
}
