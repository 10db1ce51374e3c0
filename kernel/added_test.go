package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

// Products of a matrix of NewAdded are added to what there is, for ranks that do not
// fill blocks too, and what MulThen reads ahead changes nothing.
func TestAdded(t *testing.T) {
	tiers(t, func(t *testing.T) {
		for _, typ := range []tensor.DType{tensor.BF16, tensor.F16, tensor.F32} {
			for _, k := range []int{1, 2, 7, 16, 33} {
				rng := rand.New(rand.NewPCG(uint64(typ), uint64(k)))
				const rows, n = 37, 5
				m := tensor.Mat{Type: typ, Rows: rows, Cols: k, Data: make([]byte, rows*typ.RowBytes(k))}
				if err := typ.Encode(m.Data, randomRow(rng, rows*k, 1)); err != nil {
					t.Fatal(err)
				}
				p, err := NewAdded(m, aligned)
				if err != nil {
					t.Fatal(err)
				}
				p.Pack(m, 0, p.Groups)
				if p.SetBrain(1) {
					t.Fatalf("%s: multiplies whole blocks, which it does not have", typ)
				}
				x := randomActs(rng, n, k)
				ldd := p.Groups * Lanes
				base := randomRow(rng, n*ldd, 1)
				got, then := append([]float32{}, base...), append([]float32{}, base...)
				p.Mul(got, ldd, x, 1, n, 0, p.Groups)
				p.MulThen(packTest(t, m), then, ldd, x, 1, n, 0, p.Groups)
				w := make([]float32, k)
				for i, v := range got {
					r, o := i/ldd, i%ldd
					want, size := float64(base[i]), math.Abs(float64(base[i]))
					if r > 0 && o < rows {
						typ.Decode(w, m.Row(o))
						for c, y := range w {
							p := float64(y) * float64(x.F32[r*x.LDF+c])
							want, size = want+p, size+math.Abs(p)
						}
					}
					if e := math.Abs(float64(v) - want); !(e <= size*1e-6) || then[i] != v {
						t.Fatalf("%s: row %d, output %d: got %v and %v, want %v", fmt.Sprint(typ, " of ", k), r, o, v, then[i], want)
					}
				}
			}
		}
	})
	m := tensor.Mat{Type: tensor.Q8_0, Rows: 16, Cols: 32, Data: make([]byte, 16*34)}
	if p, err := NewAdded(m, aligned); err == nil {
		t.Errorf("products of Q8_0 are added: %+v", p)
	}
}
