package kernel

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fenced returns n bytes, a multiple of 64, that end where memory that must
// not be touched begins.
func fenced(t *testing.T, n int) []byte {
	t.Helper()
	page := unix.Getpagesize()
	size := (n+page-1)/page*page + page
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	if err := unix.Mprotect(b[size-page:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return b[size-page-n : size-page : size-page]
}

func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// TestMulStaysInside multiplies with weights, activations and results that end
// at inaccessible memory.
func TestMulStaysInside(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range packedTypes {
			for _, cols := range []int{31, 32, 96, 256, 768} {
				if typ.RowBytes(cols) < 0 {
					continue
				}
				rng := rand.New(rand.NewPCG(uint64(typ), uint64(cols)))
				const rows, n = 48, 30
				m := randomMat(rng, typ, rows, cols)
				src := fenced(t, len(m.Data))
				copy(src, m.Data)
				m.Data = src
				p, err := NewPacked(m, func(n int) []byte { return fenced(t, n) })
				if err != nil {
					t.Fatal(err)
				}
				p.Pack(m, 0, p.Groups)
				x := &Acts{N: n, K: cols, LDF: cols, LDQ: ActRowBytes(cols)}
				x.F32 = floats(fenced(t, n*cols*4))
				x.Q = fenced(t, n*x.LDQ)
				for i := range x.F32 {
					x.F32[i] = float32(rng.NormFloat64())
				}
				for r := range n {
					QuantizeRow(x.Q[r*x.LDQ:], x.F32[r*cols:][:cols])
				}
				dst := floats(fenced(t, n*rows*4))
				for _, r0 := range []int{0, 5, 22, 29} {
					p.Mul(dst, rows, x, r0, n, 0, p.Groups)
				}
			}
		}
	})
}
