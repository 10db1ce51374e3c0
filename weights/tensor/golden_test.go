package tensor

import (
	"archive/zip"
	"bytes"
	"io"
	"math"
	"os"
	"testing"

	"ridge/internal/cpu"
)

// goldens reads testdata/goldens.zip (see testdata/gen_goldens.py), or the file
// named by $RIDGE_GOLDENS.
func goldens(t testing.TB) map[string][]byte {
	t.Helper()
	path := os.Getenv("RIDGE_GOLDENS")
	if path == "" {
		path = "testdata/goldens.zip"
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if files[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		r.Close()
	}
	return files
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	decodeF32(out, b)
	return out
}

// sameFloat tells whether a and b have the same bits or are both NaN.
func sameFloat(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// each runs f as a subtest for every type that has.
func each(t *testing.T, has func(DType) bool, f func(t *testing.T, d DType)) {
	t.Helper()
	for id := range dtypes {
		if d := DType(id); has(d) {
			t.Run(d.String(), func(t *testing.T) { f(t, d) })
		}
	}
}

// eachTier runs f as a subtest for every type that has and for every tier, those without
// kernels of encoders once.
func eachTier(t *testing.T, has func(DType) bool, f func(t *testing.T, d DType)) {
	t.Helper()
	for _, tier := range []cpu.Tier{cpu.Ref, cpu.AVX2, cpu.AVX512} {
		if !tier.Runs() {
			continue
		}
		t.Run(tier.String(), func(t *testing.T) {
			defer cpu.Set(tier)()
			each(t, has, f)
		})
	}
}

func TestGoldenDecode(t *testing.T) {
	files := goldens(t)
	each(t, DType.CanDecode, func(t *testing.T, d DType) {
		blocks, ok := files[d.String()+".blocks"]
		later := d == NVFP4 || d == Q1_0 || d == Q2_0 // see TestGoldenWeighted
		if !ok && d != F32 && d != F64 && !later {
			t.Fatal("no golden")
		}
		want := floats(files[d.String()+".values"])
		if len(blocks) != d.RowBytes(len(want)) {
			t.Fatalf("golden has %d bytes for %d values", len(blocks), len(want))
		}
		got := make([]float32, len(want))
		d.Decode(got, blocks)
		bad := 0
		for i := range want {
			if !sameFloat(got[i], want[i]) {
				if bad++; bad < 5 {
					t.Errorf("block %d value %d: got %v, want %v", i/d.BlockSize(), i%d.BlockSize(), got[i], want[i])
				}
			}
		}
		if bad > 0 {
			t.Errorf("%d of %d values differ", bad, len(want))
		}
	})
}

func TestGoldenEncode(t *testing.T) {
	files := goldens(t)
	inputs := floats(files["inputs"])
	eachTier(t, DType.CanEncode, func(t *testing.T, d DType) {
		want, ok := files[d.String()+".encoded"]
		later := d == NVFP4 || d == Q1_0 || d == Q2_0 // see TestGoldenWeighted
		if !ok && d != F32 && d != F64 && !later {
			t.Fatal("no golden")
		}
		if !ok {
			return
		}
		got := make([]byte, len(want))
		if err := d.Encode(got, inputs); err != nil {
			t.Fatal(err)
		}
		n, bad := d.BlockBytes(), 0
		for b := 0; b < len(want)/n; b++ {
			g, w := got[b*n:][:n], want[b*n:][:n]
			x := inputs[b*d.BlockSize():][:d.BlockSize()]
			if bytes.Equal(g, w) || deviates(d, x) {
				continue
			}
			if bad++; bad < 4 {
				t.Errorf("block %d of %.4g...\n got %x\nwant %x", b, x[:4], g, w)
			}
		}
		if bad > 0 {
			t.Errorf("%d of %d blocks differ", bad, len(want)/n)
		}
	})
}

// deviates tells on which blocks Encode is documented to differ from ggml.
func deviates(d DType, x []float32) bool {
	switch d {
	case MXFP4:
		return abs32(farthest(x)) < 0x1p-125
	case IQ3_S:
		for i := 0; i < len(x); i += 32 {
			if farthest(x[i:i+32]) == 0 {
				return true
			}
		}
	}
	return false
}

// TestGoldenF16Codes compares every binary16 code with its definition.
func TestGoldenF16Codes(t *testing.T) {
	for code := range 1 << 16 {
		h := uint16(code)
		sign, exponent, fraction := float64(1), int(h>>10&31), float64(h&0x3ff)
		if h>>15 != 0 {
			sign = -1
		}
		var want float64
		switch exponent {
		case 0:
			want = sign * fraction * 0x1p-24
			if fraction == 0 {
				want = math.Copysign(0, sign)
			}
		case 31:
			want = math.Inf(int(sign))
			if fraction != 0 {
				want = math.NaN()
			}
		default:
			want = sign * (1 + fraction/1024) * math.Ldexp(1, exponent-15)
		}
		got := F16ToF32(h)
		if !sameFloat(got, float32(want)) {
			t.Fatalf("F16ToF32(%#04x) = %v, want %v", h, got, want)
		}
		if back := F32ToF16(got); back != h && (got == got || back != h|0x200) {
			t.Fatalf("F32ToF16(F16ToF32(%#04x)) = %#04x", h, back)
		}
		b := BF16ToF32(h)
		if math.Float32bits(b) != uint32(h)<<16 {
			t.Fatalf("BF16ToF32(%#04x) = %v", h, b)
		}
		if back := F32ToBF16(b); back != h && (b == b || back != h|0x40) {
			t.Fatalf("F32ToBF16(BF16ToF32(%#04x)) = %#04x", h, back)
		}
	}
}
