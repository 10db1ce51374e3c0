package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/kernel/internal/layout"
	"ridge/weights/tensor"
)

// Budgets of the matrix kernels.
const (
	// budgetDot bounds the rounding of a product of quantized weights and
	// quantized activations, relative to Σ|w·x| over the columns.
	budgetDot = 1e-6
	// budgetAct bounds what quantizing the activations may change, relative
	// to |w|·|x|, for activations from a normal distribution; budgetAct2 does
	// so for two planes.
	budgetAct  = 0.012
	budgetAct2 = 5e-5
)

// packedTypes are the formats with a packed layout.
var packedTypes = []tensor.DType{
	tensor.Q8_0, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1,
	tensor.Q4_K, tensor.Q5_K, tensor.Q6_K, tensor.Q3_K, tensor.Q2_K,
	tensor.IQ4_NL, tensor.IQ4_XS, tensor.MXFP4, tensor.TQ1_0, tensor.TQ2_0,
	tensor.IQ3_XXS, tensor.IQ3_S, tensor.IQ2_XXS, tensor.IQ2_XS, tensor.IQ2_S, tensor.IQ1_S, tensor.IQ1_M,
	tensor.F16, tensor.BF16, tensor.F32,
}

// f16Offsets has the offsets of the float16 scales of a block.
var f16Offsets = map[tensor.DType][]int{
	tensor.Q8_0: {0}, tensor.Q4_0: {0}, tensor.Q4_1: {0, 2}, tensor.Q5_0: {0}, tensor.Q5_1: {0, 2},
	tensor.Q4_K: {0, 2}, tensor.Q5_K: {0, 2}, tensor.Q6_K: {208}, tensor.Q3_K: {108}, tensor.Q2_K: {80, 82},
	tensor.IQ4_NL: {0}, tensor.IQ4_XS: {0}, tensor.TQ1_0: {52}, tensor.TQ2_0: {64},
	tensor.IQ3_XXS: {0}, tensor.IQ3_S: {0}, tensor.IQ2_XXS: {0}, tensor.IQ2_XS: {0}, tensor.IQ2_S: {0}, tensor.IQ1_S: {0},
}

// randomMat has random codes and scales: unlike encoded weights it uses every
// code, the most negative ones too.
func randomMat(rng *rand.Rand, t tensor.DType, rows, cols int) tensor.Mat {
	m := tensor.Mat{Type: t, Rows: rows, Cols: cols, Data: make([]byte, rows*t.RowBytes(cols))}
	for i := range m.Data {
		m.Data[i] = byte(rng.Uint32())
	}
	size := t.BlockBytes()
	for at := 0; at < len(m.Data); at += size {
		b := m.Data[at : at+size]
		for _, o := range f16Offsets[t] {
			binary.LittleEndian.PutUint16(b[o:], tensor.F32ToF16(float32(rng.NormFloat64())/16))
		}
		switch t {
		case tensor.MXFP4:
			b[0] = byte(120 + rng.IntN(10))
		case tensor.IQ1_M: // the nibbles of its float16 scale lie apart
			h := tensor.F32ToF16(float32(rng.NormFloat64()) / 16)
			for i := range 4 {
				b[49+2*i] = b[49+2*i]&15 | byte(h>>(4*i)&15)<<4
			}
		case tensor.F32:
			binary.LittleEndian.PutUint32(b, math.Float32bits(float32(rng.NormFloat64())))
		case tensor.F16:
			binary.LittleEndian.PutUint16(b, tensor.F32ToF16(float32(rng.NormFloat64())))
		case tensor.BF16:
			binary.LittleEndian.PutUint16(b, tensor.F32ToBF16(float32(rng.NormFloat64())))
		case tensor.TQ2_0: // code 3 is not a ternary digit
			for i, v := range b[:64] {
				b[i] = v &^ (v >> 1 & 0x55)
			}
		}
	}
	return m
}

func randomActs(rng *rand.Rand, n, k int) *Acts { return randomPlanes(rng, n, k, 1) }

func randomPlanes(rng *rand.Rand, n, k, planes int) *Acts {
	x := &Acts{N: n, K: k, LDF: k + 3, LDQ: planes * (ActRowBytes(k) + 64), Planes: planes}
	x.F32 = make([]float32, n*x.LDF)
	x.Q = make([]byte, n*x.LDQ)
	for r := range n {
		row := x.F32[r*x.LDF:][:k]
		for i := range row {
			row[i] = float32(rng.NormFloat64() * math.Exp(rng.NormFloat64()/2))
		}
		x.Quantize(r, 0, k)
	}
	return x
}

func packTest(t testing.TB, m tensor.Mat) *Packed {
	t.Helper()
	p, err := NewPacked(m, aligned)
	if err != nil {
		t.Fatal(err)
	}
	p.Pack(m, 0, p.Groups)
	return p
}

// aligned is an allocator of 64-byte aligned memory.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	for i := 0; ; i++ {
		if addr(b[i:])%64 == 0 {
			return b[i : i+n]
		}
	}
}

// codedRow returns the activations that the planes of row r stand for.
func codedRow(x *Acts, r int) []float64 {
	sum := make([]float64, x.K)
	for p := range x.planes() {
		for i, v := range actValues(x.Q[r*x.LDQ+p*x.LDQ/x.planes():], x.K) {
			sum[i] += v
		}
	}
	return sum
}

// actValues returns the activations that the quantized row q stands for.
func actValues(q []byte, k int) []float64 {
	x := make([]float64, k)
	for i := range x {
		b := q[i/32*layout.ActBlock:][:layout.ActBlock]
		x[i] = float64(int8(b[i%32])) * float64(actFloat(b, layout.ActD))
	}
	return x
}

func tiers(t *testing.T, run func(t *testing.T)) {
	for _, tier := range cpu.Tiers()[1:] {
		t.Run(tier.String(), func(t *testing.T) {
			defer cpu.Set(tier)()
			run(t)
		})
	}
}

func TestMulAgainstDefinition(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range packedTypes {
			for _, cols := range []int{1, 7, 32, 64, 96, 256, 576, 896, 2048} {
				if typ.RowBytes(cols) < 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%d", typ, cols), func(t *testing.T) {
					mulAgainstDefinition(t, typ, cols, 1, budgetAct)
					mulAgainstDefinition(t, typ, cols, 2, budgetAct2)
				})
			}
		}
	})
}

func mulAgainstDefinition(t *testing.T, typ tensor.DType, cols, planes int, budget float64) {
	rng := rand.New(rand.NewPCG(uint64(typ), uint64(cols)))
	const rows, n = 35, 3
	m := randomMat(rng, typ, rows, cols)
	p := packTest(t, m)
	x := randomPlanes(rng, n, cols, planes)
	ldd := p.Groups * Lanes
	dst := make([]float32, n*ldd)
	p.Mul(dst, ldd, x, 0, n, 0, p.Groups)
	w := make([]float32, cols)
	for r := range n {
		exact := make([]float64, cols)
		for i, v := range x.F32[r*x.LDF:][:cols] {
			exact[i] = float64(v)
		}
		coded := exact
		if p.UsesQuant() {
			coded = codedRow(x, r)
		}
		for o := range ldd {
			got := float64(dst[r*ldd+o])
			if o >= rows {
				if got != 0 {
					t.Fatalf("row %d: output %d beyond the matrix is %v", r, o, got)
				}
				continue
			}
			typ.Decode(w, m.Row(o))
			var want, size, full, ww, xx float64
			for k, v := range w {
				want += float64(v) * coded[k]
				full += float64(v) * exact[k]
				size += math.Abs(float64(v) * coded[k])
				ww += float64(v) * float64(v)
				xx += exact[k] * exact[k]
			}
			if !(math.Abs(got-want) <= budgetDot*size*budgetMin(typ)) {
				t.Fatalf("row %d output %d: got %v, want %v: off by %g of %g", r, o, got, want, math.Abs(got-want)/size, budgetDot)
			}
			if !(math.Abs(got-full) <= budget*math.Sqrt(ww*xx)) {
				t.Fatalf("row %d output %d, %d planes: got %v, %v without activation quantization: off by %g of %g",
					r, o, planes, got, full, math.Abs(got-full)/math.Sqrt(ww*xx), budget)
			}
		}
	}
}

// budgetMin widens budgetDot for formats with minima: their two sums may
// cancel, so that Σ|w·x| is smaller than what was rounded.
func budgetMin(t tensor.DType) float64 {
	switch t {
	case tensor.Q4_1, tensor.Q5_1, tensor.Q2_K, tensor.Q4_K, tensor.Q5_K:
		return 4
	}
	return 1
}

// TestMulSameBits compares every tier, number of rows and split with the
// plain Go of one row and one group at a time.
func TestMulSameBits(t *testing.T) {
	for _, typ := range packedTypes {
		for _, cols := range []int{32, 96, 256, 576, 2304} {
			if typ.RowBytes(cols) < 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", typ, cols), func(t *testing.T) {
				mulSameBits(t, typ, cols, 1)
				if plainSize(typ) == 0 && cols <= 576 {
					mulSameBits(t, typ, cols, 2)
				}
			})
		}
	}
}

func mulSameBits(t *testing.T, typ tensor.DType, cols, planes int) {
	rng := rand.New(rand.NewPCG(uint64(typ), uint64(cols)))
	const rows, n = 16*2 + 5, 37
	p := packTest(t, randomMat(rng, typ, rows, cols))
	x := randomPlanes(rng, n, cols, planes)
	ldd := p.Groups*Lanes + 5
	want := make([]float32, n*ldd)
	restore := cpu.Set(cpu.Generic)
	p.Mul(want, ldd, x, 0, n, 0, p.Groups)
	restore()
	const guard = float32(12345)
	for _, tier := range cpu.Tiers()[2:] {
		defer cpu.Set(tier)()
		for lo := 0; lo < n; lo += 1 + rng.IntN(3) {
			for cnt := 1; lo+cnt <= n; cnt += 1 + rng.IntN(4) {
				got := make([]float32, n*ldd)
				for i := range got {
					got[i] = guard
				}
				g0 := rng.IntN(p.Groups)
				g1 := g0 + 1 + rng.IntN(p.Groups-g0)
				p.Mul(got, ldd, x, lo, lo+cnt, g0, g1)
				for i, v := range got {
					r, o := i/ldd, i%ldd
					w := guard
					if r >= lo && r < lo+cnt && o >= g0*Lanes && o < g1*Lanes {
						w = want[i]
					}
					if math.Float32bits(v) != math.Float32bits(w) {
						t.Fatalf("%s: %d planes, rows %d to %d, groups %d to %d: row %d output %d is %v, want %v", tier, planes, lo, lo+cnt, g0, g1, r, o, v, w)
					}
				}
			}
		}
	}
}

// TestMulManyRows multiplies more rows, and more columns, than are worked on
// at a time.
func TestMulManyRows(t *testing.T) {
	const rows, cols, n = 3 * Lanes, 6144, 300
	for _, typ := range []tensor.DType{tensor.Q8_0, tensor.Q4_K, tensor.Q6_K} {
		rng := rand.New(rand.NewPCG(uint64(typ), 11))
		p := packTest(t, randomMat(rng, typ, rows, cols))
		x := randomActs(rng, n, cols)
		one, all := make([]float32, n*rows), make([]float32, n*rows)
		for r := range n {
			p.Mul(one, rows, x, r, r+1, 0, p.Groups)
		}
		p.Mul(all, rows, x, 0, n, 0, p.Groups)
		for i, v := range all {
			if math.Float32bits(v) != math.Float32bits(one[i]) {
				t.Fatalf("%s: row %d output %d is %v with %d rows, %v alone", typ, i/rows, i%rows, v, n, one[i])
			}
		}
	}
}

// TestMulExtremes multiplies weights with scales at the ends of what the
// formats can store. A number must come out where the definition has one.
func TestMulExtremes(t *testing.T) {
	scales := []uint16{0, 0x8000, 1, 0x03ff, 0x8001, 0x7bff, 0xfbff, 0x0400} // zeros, subnormals, largest, smallest normal
	tiers(t, func(t *testing.T) {
		for _, typ := range packedTypes {
			if f16Offsets[typ] == nil {
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(typ), 9))
			const rows, cols, n = 16, 512, 9
			m := randomMat(rng, typ, rows, cols)
			for at, i := 0, 0; at < len(m.Data); at += typ.BlockBytes() {
				for _, o := range f16Offsets[typ] {
					binary.LittleEndian.PutUint16(m.Data[at+o:], scales[i%len(scales)])
					i++
				}
			}
			p := packTest(t, m)
			x := randomActs(rng, n, cols)
			dst := make([]float32, n*Lanes)
			p.Mul(dst, Lanes, x, 0, n, 0, 1)
			w := make([]float32, cols)
			for r := range n {
				acts := actValues(x.Q[r*x.LDQ:], cols)
				for o := range rows {
					typ.Decode(w, m.Row(o))
					var want, size float64
					for k, v := range w {
						want += float64(v) * acts[k]
						size += math.Abs(float64(v) * acts[k])
					}
					if got := float64(dst[r*Lanes+o]); !(math.Abs(got-want) <= budgetDot*size*8) {
						t.Errorf("%s row %d output %d: got %v, want %v of %v", typ, r, o, got, want, size)
					}
				}
			}
		}
	})
}

// TestMulNotFinite checks that an infinite or NaN scale or activation makes
// its own results NaN or infinite and no others.
func TestMulNotFinite(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range packedTypes {
			if f16Offsets[typ] == nil {
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(typ), 10))
			const rows, cols, n = 16, 512, 5
			m := randomMat(rng, typ, rows, cols)
			binary.LittleEndian.PutUint16(m.Row(3)[f16Offsets[typ][0]:], 0x7c00)
			p := packTest(t, m)
			x := randomActs(rng, n, cols)
			x.F32[2*x.LDF+100] = float32(math.Inf(-1))
			QuantizeRow(x.Q[2*x.LDQ:], x.F32[2*x.LDF:][:cols])
			dst := make([]float32, n*Lanes)
			p.Mul(dst, Lanes, x, 0, n, 0, 1)
			for i, v := range dst {
				finite := !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0)
				if want := i/Lanes != 2 && i%Lanes != 3; finite != want {
					t.Errorf("%s row %d output %d: %v", typ, i/Lanes, i%Lanes, v)
				}
			}
		}
	})
}

// TestRefTier checks that the Ref tier keeps the native rows.
func TestRefTier(t *testing.T) {
	defer cpu.Set(cpu.Ref)()
	rng := rand.New(rand.NewPCG(1, 2))
	m := randomMat(rng, tensor.Q4_K, 19, 512)
	p := packTest(t, m)
	if p.UsesQuant() || !bytes.Equal(p.Data[:len(m.Data)], m.Data) {
		t.Fatal("weights are not in their native rows")
	}
	x := randomActs(rng, 2, 512)
	dst := make([]float32, 2*32)
	p.Mul(dst, 32, x, 0, 2, 0, 2)
	w := make([]float32, 512)
	for o := range 32 {
		var want float64
		if o < 19 {
			m.Type.Decode(w, m.Row(o))
			for k, v := range w {
				want += float64(v) * float64(x.F32[x.LDF+k])
			}
		}
		if got := dst[32+o]; got != float32(want) && math.Abs(float64(got)-want) > 1e-6*math.Abs(want) {
			t.Errorf("output %d: got %v, want %v", o, got, want)
		}
	}
}

func TestPackErrors(t *testing.T) {
	none := func(int) []byte { return nil }
	for _, m := range []tensor.Mat{
		{Type: tensor.Q8_0, Rows: 0, Cols: 32},
		{Type: tensor.Q8_0, Rows: 1, Cols: 0},
		{Type: tensor.Q8_0, Rows: 1, Cols: 33},
		{Type: tensor.Q4_K, Rows: 1, Cols: 32},
		{Type: tensor.DType(99), Rows: 1, Cols: 32},
		{Type: tensor.F32, Rows: 1 << 40, Cols: 1 << 30},
		{Type: tensor.F32, Rows: 1 << 4, Cols: 1 << 4},
	} {
		if _, err := NewPacked(m, none); err == nil {
			t.Errorf("%s %d x %d: no error", m.Type, m.Rows, m.Cols)
		}
	}
}
