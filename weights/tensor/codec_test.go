package tensor

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// quantizes selects the encoders of formats whose values share scales.
func quantizes(d DType) bool { return d.codec().quantizes }

func encode(t testing.TB, d DType, x []float32) []byte {
	t.Helper()
	b := make([]byte, d.RowBytes(len(x)))
	if err := d.Encode(b, x); err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(d DType, b []byte) []float32 {
	x := make([]float32, len(b)/d.BlockBytes()*d.BlockSize())
	d.Decode(x, b)
	return x
}

// rmsError returns the root of Σ(a-b)² / Σb².
func rmsError(a, b []float32) float64 {
	var diff, norm float64
	for i := range a {
		diff += (float64(a[i]) - float64(b[i])) * (float64(a[i]) - float64(b[i]))
		norm += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(diff / norm)
}

// errorBounds has the largest accepted relative RMS error on normally
// distributed values, about 3% above what was measured when it was written.
var errorBounds = map[DType]float64{
	F64: 0, F32: 0, F16: 2.2e-4, BF16: 1.75e-3,
	Q4_0: 0.089, Q4_1: 0.081, Q5_0: 0.0445, Q5_1: 0.0395, Q8_0: 0.0056,
	Q2_K: 0.305, Q3_K: 0.155, Q4_K: 0.074, Q5_K: 0.0375, Q6_K: 0.0185, Q8_K: 0.0074,
	IQ4_NL: 0.0795, IQ4_XS: 0.08, MXFP4: 0.117,
	IQ2_S: 0.275, IQ3_XXS: 0.22, IQ3_S: 0.171,
	TQ1_0: 0.843, TQ2_0: 0.843, NVFP4: 0.106, Q1_0: 0.62, Q2_0: 0.9,
}

func TestEncodeErrorBounds(t *testing.T) {
	x := gaussian(rand.New(rand.NewPCG(3, 4)), 64*256)
	each(t, DType.CanEncode, func(t *testing.T, d DType) {
		bound, ok := errorBounds[d]
		if !ok {
			t.Fatal("no bound")
		}
		if got := rmsError(decode(d, encode(t, d, x)), x); got > bound {
			t.Errorf("relative RMS error %.4g, want at most %g", got, bound)
		}
	})
}

// TestEncodeStable encodes what was decoded: formats that only round do not
// move at all, those that search for a scale little against the first error.
func TestEncodeStable(t *testing.T) {
	x := gaussian(rand.New(rand.NewPCG(5, 6)), 64*256)
	each(t, DType.CanEncode, func(t *testing.T, d DType) {
		once := decode(d, encode(t, d, x))
		twice := decode(d, encode(t, d, once))
		bound := 0.25 * rmsError(once, x)
		switch d {
		case F64, F32, F16, BF16, Q4_0, Q5_0, Q8_0, TQ1_0, TQ2_0, MXFP4:
			bound = 0
		}
		if got := rmsError(twice, once); got > bound {
			t.Errorf("encoding again moves the values by %.4g, want at most %.4g", got, bound)
		}
	})
}

func TestEncodeZeros(t *testing.T) {
	x := make([]float32, 512)
	each(t, DType.CanEncode, func(t *testing.T, d DType) {
		b := make([]byte, d.RowBytes(len(x)))
		for i := range b {
			b[i] = 0xa5 // what was in the buffer must not show
		}
		if err := d.Encode(b, x); err != nil {
			t.Fatal(err)
		}
		for i, v := range decode(d, b) {
			if v != 0 {
				t.Fatalf("value %d is %v", i, v)
			}
		}
	})
}

// TestEncodeOverwrites runs every golden input through a dirty buffer.
func TestEncodeOverwrites(t *testing.T) {
	inputs := floats(goldens(t)["inputs"])
	each(t, DType.CanEncode, func(t *testing.T, d DType) {
		want := encode(t, d, inputs)
		got := make([]byte, len(want)+1)
		for i := range got {
			got[i] = 0xa5
		}
		if err := d.Encode(got, inputs); err != nil {
			t.Fatal(err)
		}
		if string(got[:len(want)]) != string(want) || got[len(want)] != 0xa5 {
			t.Error("the result depends on, or reaches beyond, what was in the buffer")
		}
	})
}

func TestEncodeRejects(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	each(t, DType.CanEncode, func(t *testing.T, d DType) {
		for _, bad := range []float32{nan, inf, -inf, 3e38, -3e38, 2e9, 3e8} {
			x := make([]float32, 256)
			x[7], x[77] = 0.5, bad
			err := d.Encode(make([]byte, d.RowBytes(256)), x)
			fits := !quantizes(d) || len(d.codec().scales) == 0 && abs32(bad) <= largestScaled
			switch {
			case fits && err != nil:
				t.Errorf("%v: %v", bad, err)
			case !fits && err == nil:
				t.Errorf("%v: accepted", bad)
			case err != nil && !strings.Contains(err.Error(), d.String()):
				t.Errorf("%v: error does not name the format: %v", bad, err)
			case err != nil && abs32(bad) > largestF16Scaled && !strings.Contains(err.Error(), "value 77 "):
				t.Errorf("%v: error does not name the value: %v", bad, err)
			}
		}
		if n := d.BlockSize(); n > 1 {
			if err := d.Encode(make([]byte, 1000), make([]float32, n+1)); err == nil {
				t.Error("a partial block was accepted")
			}
		}
		if err := d.Encode(make([]byte, d.RowBytes(256)-1), make([]float32, 256)); err == nil {
			t.Error("a short buffer was accepted")
		}
	})
	for _, d := range []DType{IQ1_S, IQ2_XXS, I32, DType(4), DType(1000)} {
		if d.CanEncode() {
			t.Errorf("%v: CanEncode", d)
		}
		if err := d.Encode(make([]byte, 4096), make([]float32, 256)); err == nil {
			t.Errorf("%v: accepted", d)
		}
	}
}

func TestDecodePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"no decoder":    func() { I8.Decode(make([]float32, 1), make([]byte, 1)) },
		"unknown type":  func() { DType(77).Decode(nil, nil) },
		"partial block": func() { Q4_0.Decode(make([]float32, 31), make([]byte, 18)) },
		"short source":  func() { Q4_0.Decode(make([]float32, 64), make([]byte, 35)) },
	} {
		func() {
			defer func() {
				if s, _ := recover().(string); !strings.HasPrefix(s, "tensor: ") {
					t.Errorf("%s: panicked with %q", name, s)
				}
			}()
			f()
		}()
	}
}

func TestDecodeEmpty(t *testing.T) {
	each(t, DType.CanDecode, func(t *testing.T, d DType) { d.Decode(nil, nil) })
}

func TestDecodeRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	x := gaussian(rng, 3*256)
	m := Mat{Type: Q5_K, Rows: 3, Cols: 256, Data: encode(t, Q5_K, x)}
	all := decode(Q5_K, m.Data)
	got := make([]float32, 300)
	for i := range m.Rows {
		m.DecodeRow(got, i)
		for j, v := range got[:256] {
			if v != all[i*256+j] {
				t.Fatalf("row %d value %d: %v, want %v", i, j, v, all[i*256+j])
			}
		}
	}
}

func TestAllocs(t *testing.T) {
	x := gaussian(rand.New(rand.NewPCG(9, 10)), 512)
	each(t, DType.CanDecode, func(t *testing.T, d DType) {
		b, y := make([]byte, d.RowBytes(len(x))), make([]float32, len(x))
		if n := testing.AllocsPerRun(10, func() { d.Decode(y, b) }); n != 0 {
			t.Errorf("Decode allocates %v times", n)
		}
		if !d.CanEncode() {
			return
		}
		encode(t, d, x) // prepares codebooks
		if n := testing.AllocsPerRun(2, func() { _ = d.Encode(b, x) }); n != 0 {
			t.Errorf("Encode allocates %v times", n)
		}
	})
}

func TestDTypes(t *testing.T) {
	for id := range uint32(64) {
		d := DType(id)
		if !d.Valid() {
			if d.RowBytes(0) != -1 || d.BlockSize() != 0 || d.BlockBytes() != 0 || d.CanDecode() || !strings.HasPrefix(d.String(), "type ") {
				t.Errorf("%v: unknown, but has properties", d)
			}
			continue
		}
		for _, name := range []string{d.String(), strings.ToLower(d.String())} {
			if got, err := ParseDType(name); got != d || err != nil {
				t.Errorf("ParseDType(%q) = %v, %v", name, got, err)
			}
		}
		n := d.BlockSize()
		if got := d.RowBytes(3 * n); got != 3*d.BlockBytes() {
			t.Errorf("%v: RowBytes(%d) = %d", d, 3*n, got)
		}
		for _, cols := range []int{-1, -n, 3*n + 1} {
			if got := d.RowBytes(cols); got != -1 && n > 1 {
				t.Errorf("%v: RowBytes(%d) = %d", d, cols, got)
			}
		}
		if got := d.RowBytes(math.MaxInt / n * n); n > 0 && d.BlockBytes() > n && got != -1 {
			t.Errorf("%v: RowBytes of a huge row = %d", d, got)
		}
	}
	if _, err := ParseDType("Q4_X"); err == nil || !strings.Contains(err.Error(), "Q4_K") {
		t.Errorf("ParseDType of an unknown name: %v", err)
	}
}

// TestF32ToF16 compares rounding with a search for the nearest code.
func TestF32ToF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 1_000_000 {
		f := math.Float32frombits(rng.Uint32())
		if rng.IntN(2) == 0 { // in the range of float16
			f = float32(math.Ldexp(rng.Float64()*2-1, rng.IntN(46)-28))
		}
		if rng.IntN(4) == 0 { // half way between two codes
			h := uint16(rng.IntN(0x7bff))
			f = F16ToF32(h) + (F16ToF32(h+1)-F16ToF32(h))/2
		}
		if f != f {
			continue
		}
		h := F32ToF16(f)
		if math.Signbit(float64(f)) != (h>>15 != 0) {
			t.Fatalf("F32ToF16(%v) = %#04x: wrong sign", f, h)
		}
		abs, code := math.Abs(float64(f)), h&0x7fff
		if code > 0x7c00 {
			t.Fatalf("F32ToF16(%v) = %#04x: NaN", f, h)
		}
		value := func(code uint16) float64 { // infinity counts as the next power of two
			if code == 0x7c00 {
				return 65536
			}
			return float64(F16ToF32(code))
		}
		for _, other := range []int{int(code) - 1, int(code) + 1} {
			if other < 0 || other > 0x7c00 {
				continue
			}
			mine, its := math.Abs(value(code)-abs), math.Abs(value(uint16(other))-abs)
			if its < mine || its == mine && code&1 != 0 {
				t.Fatalf("F32ToF16(%v) = %#04x, but %#04x is as near or nearer", f, h, other)
			}
		}
	}
}

// TestF32ToBF16 compares rounding with arithmetic on the bits.
func TestF32ToBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 1_000_000 {
		bits := rng.Uint32()
		if rng.IntN(4) == 0 {
			bits = bits&^0xffff | 0x8000 // half way
		}
		f := math.Float32frombits(bits)
		if f != f {
			continue
		}
		want := bits >> 16
		if rest := bits & 0xffff; rest > 0x8000 || rest == 0x8000 && want&1 != 0 {
			want++
		}
		if got := F32ToBF16(f); uint32(got) != want {
			t.Fatalf("F32ToBF16(%v) = %#04x, want %#04x", f, got, want)
		}
	}
}

// FuzzDecode: any bytes decode, and the values depend on their blocks only.
func FuzzDecode(f *testing.F) {
	f.Add(uint32(Q4_K), []byte(strings.Repeat("\xff", 300)))
	f.Add(uint32(IQ1_M), []byte(strings.Repeat("\x00", 112)))
	f.Fuzz(func(t *testing.T, id uint32, data []byte) {
		d := DType(id)
		if !d.CanDecode() {
			d = DType(id % uint32(len(dtypes)))
		}
		if !d.CanDecode() {
			return
		}
		n := d.BlockBytes()
		data = data[:len(data)/n*n]
		all := decode(d, data)
		for i := 0; i < len(data); i += n {
			for j, v := range decode(d, data[i:i+n]) {
				if !sameFloat(v, all[i/n*d.BlockSize()+j]) {
					t.Fatalf("%v block %d value %d: alone %v, in a row %v", d, i/n, j, v, all[i/n*d.BlockSize()+j])
				}
			}
		}
	})
}

// FuzzEncode: any values are encoded or rejected, and what was encoded decodes
// to finite values in a format that shares scales.
func FuzzEncode(f *testing.F) {
	for _, c := range []*codebook{&iq2sBook, &iq3xxsBook, &iq3sBook} {
		c.prepare() // or the first input to need one looks like a discovery
	}
	f.Add(uint32(Q6_K), []byte(strings.Repeat("\x00\x00\x80\x3f", 256)))
	f.Add(uint32(IQ3_XXS), []byte(strings.Repeat("\x01\x00\x00\x00\xff\xff\xff\x4d", 128)))
	f.Fuzz(func(t *testing.T, id uint32, data []byte) {
		d := DType(id)
		if !d.CanEncode() {
			d = DType(id % uint32(len(dtypes)))
		}
		if !d.CanEncode() || len(data) < 4 {
			return
		}
		x := make([]float32, 256) // repeats short data
		for i := range x {
			var word [4]byte
			for j := range word {
				word[j] = data[(4*i+j)%len(data)]
			}
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(word[:]))
		}
		b := make([]byte, d.RowBytes(len(x)))
		if err := d.Encode(b, x); err != nil || !quantizes(d) {
			return
		}
		for i, v := range decode(d, b) {
			if !(abs32(v) <= math.MaxFloat32) {
				t.Fatalf("%v: value %d, %v, decodes to %v", d, i, x[i], v)
			}
		}
	})
}
