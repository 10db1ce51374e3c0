package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// withApart keeps the columns cols of p apart.
func withApart(t *testing.T, p *Packed, cols []int32, wide bool) {
	t.Helper()
	a, err := ApartShape(p, cols, wide)
	if err != nil {
		t.Fatal(err)
	}
	a.W.Data = aligned(a.W.Size())
	a.Fill(p, 0, p.Groups)
	p.Apart = a
}

// apartActs returns random rows whose columns cols are large and kept apart.
func apartActs(rng *rand.Rand, n, k int, cols []int32, planes int) *Acts {
	x := randomPlanes(rng, n, k, planes)
	x.Apart, x.LDA = cols, len(cols)+3
	x.A = make([]float32, n*x.LDA)
	for r := range n {
		for _, c := range cols {
			x.F32[r*x.LDF+int(c)] *= 50
		}
		for c := 0; c < k; {
			end := min(k, c+64*(1+rng.IntN(4)))
			x.Quantize(r, c, end)
			c = end
		}
	}
	return x
}

// budgetApart bounds the error of products with large columns kept apart,
// relative to the sizes of the row without these columns and of the weights.
const budgetApart = budgetAct

// What is kept apart is multiplied nearly exactly, and the rest as if nothing
// had been there.
func TestApartAgainstDefinition(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range packedTypes {
			if plainSize(typ) != 0 || typ.RowBytes(256) < 0 {
				continue
			}
			for _, wide := range []bool{false, true} {
				rng := rand.New(rand.NewPCG(uint64(typ), 5))
				const rows, n, k = 35, 3, 256
				cols := []int32{0, 31, 32, 40, 200, 255}
				m := randomMat(rng, typ, rows, k)
				p := packTest(t, m)
				withApart(t, p, cols, wide)
				x := apartActs(rng, n, k, cols, 1)
				dst := make([]float32, n*p.Groups*Lanes)
				p.Mul(dst, p.Groups*Lanes, x, 0, n, 0, p.Groups)
				w := make([]float32, k)
				for r := range n {
					for o := range rows {
						typ.Decode(w, m.Row(o))
						var want, ww, xx, kept float64
						for c, v := range w {
							y := float64(x.F32[r*x.LDF+c])
							want += float64(v) * y
							ww += float64(v) * float64(v)
							xx += y * y
						}
						for _, c := range cols {
							y := float64(x.F32[r*x.LDF+int(c)])
							xx -= y * y
							kept += math.Abs(y * float64(w[c]))
						}
						got := float64(dst[r*p.Groups*Lanes+o])
						if e := math.Abs(got - want); !(e <= budgetApart*math.Sqrt(ww*xx)+kept*0x1p-10) {
							t.Fatalf("%s, wide %v: row %d output %d: got %v want %v", typ, wide, r, o, got, want)
						}
					}
				}
			}
		}
	})
}

// Every tier, number of rows and split gives the bits of plain Go.
func TestApartSameBits(t *testing.T) {
	for _, typ := range []tensor.DType{tensor.Q4_1, tensor.Q8_0, tensor.Q6_K} {
		for _, number := range []int{1, 2, 3, 7, 12} {
			for planes := 1; planes <= 2; planes++ {
				t.Run(fmt.Sprintf("%s/%d/%d", typ, number, planes), func(t *testing.T) { apartSameBits(t, typ, number, planes) })
			}
		}
	}
}

func apartSameBits(t *testing.T, typ tensor.DType, number, planes int) {
	rng := rand.New(rand.NewPCG(uint64(typ), uint64(number)))
	const rows, n, k = 16*2 + 5, 29, 512
	var cols []int32
	for i := range number {
		cols = append(cols, int32(i*k/number+rng.IntN(k/number)))
	}
	p := packTest(t, randomMat(rng, typ, rows, k))
	withApart(t, p, cols, number == 3)
	x := apartActs(rng, n, k, cols, planes)
	ldd := p.Groups*Lanes + 5
	want := make([]float32, n*ldd)
	restore := cpu.Set(cpu.Generic)
	for r := range n {
		p.Mul(want, ldd, x, r, r+1, 0, p.Groups)
	}
	restore()
	for _, tier := range cpu.Tiers()[2:] {
		defer cpu.Set(tier)()
		for cnt := 1; cnt <= n; cnt++ {
			lo := rng.IntN(n - cnt + 1)
			g0 := rng.IntN(p.Groups)
			g1 := g0 + 1 + rng.IntN(p.Groups-g0)
			got := make([]float32, n*ldd)
			p.Mul(got, ldd, x, lo, lo+cnt, g0, g1)
			for i, v := range got {
				r, o, w := i/ldd, i%ldd, float32(0)
				if r >= lo && r < lo+cnt && o >= g0*Lanes && o < g1*Lanes {
					w = want[i]
				}
				if math.Float32bits(v) != math.Float32bits(w) {
					t.Fatalf("%s: rows %d to %d, groups %d to %d: row %d output %d is %v, want %v", tier, lo, lo+cnt, g0, g1, r, o, v, w)
				}
			}
		}
	}
}
