package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/kernel"
	"ridge/weights/tensor"
)

// Factors of queries and keys cancel out, and elements that are rotated together
// share theirs.
func TestBalanceKeepsProducts(t *testing.T) {
	const heads, kvHeads, dim = 4, 2, 16
	for name, style := range map[string]RopeStyle{"halves": RopeNeox, "neighbours": RopeNorm} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			a := &Attention{Heads: heads, KVHeads: kvHeads, HeadDim: dim, Rope: &Rope{Style: style, Inv: make([]float32, 6)}} // 12 of 16 are rotated
			if a.Balance(); a.Balanced() {
				t.Error("balanced without a reason")
			}
			a.K.Bias = make([]float32, kvHeads*dim)
			for i := range a.K.Bias {
				a.K.Bias[i] = float32(rng.NormFloat64())
			}
			a.K.Bias[3], a.K.Bias[dim+14] = 150, -90
			if a.Balance(); !a.Balanced() {
				t.Fatal("not balanced")
			}
			b := &a.balance
			for h := range heads {
				for d := range dim {
					q, k := b.q[h*dim+d], b.k[h/2*dim+d]
					if math.Abs(float64(q)*float64(k)-1) > 1e-6 {
						t.Errorf("head %d, element %d: factors %v and %v", h, d, q, k)
					}
				}
				at := h / 2 * dim
				for i := range 6 {
					p, q := i, i+6
					if style == RopeNorm {
						p, q = 2*i, 2*i+1
					}
					if b.k[at+p] != b.k[at+q] {
						t.Errorf("elements %d and %d are rotated together and have the factors %v and %v", p, q, b.k[at+p], b.k[at+q])
					}
				}
			}
			if b.k[3] > 1./16 || b.k[dim+14] > 1./16 || b.k[12] < 0.5 {
				t.Errorf("factors of keys: %v", b.k)
			}
		})
	}
}

// Weights of keys' norm tell which elements are large.
func TestBalanceByNorm(t *testing.T) {
	a := &Attention{Heads: 2, KVHeads: 1, HeadDim: 4, KNorm: Norm{W: []float32{1, -16, 1, 0}}}
	a.Balance()
	want := []float32{1, 1. / 8, 1, 512} // to the power of 3/4
	for i, k := range a.balance.k {
		if math.Abs(float64(k/want[i])-1) > 1e-6 {
			t.Errorf("factors %v, want %v", a.balance.k, want)
			break
		}
	}
	a.KNorm.W[1] = float32(math.NaN())
	if a.Balance(); a.Balanced() {
		t.Error("balanced by a NaN")
	}
	a.KNorm.W = []float32{3, 3, 3, 3}
	if a.Balance(); a.Balanced() {
		t.Error("balanced where all are alike")
	}
}

// Keys as bytes with a few elements that are much larger than the others lose
// less when they are balanced: products with queries are off by less than a quarter.
func TestBalanceLosesLess(t *testing.T) {
	const dim, tokens = 64, 16
	rng := rand.New(rand.NewPCG(3, 4))
	a := &Attention{Heads: 1, KVHeads: 1, HeadDim: dim, Rope: &Rope{Style: RopeNeox, Inv: make([]float32, dim/2)}}
	a.K.Bias = make([]float32, dim)
	a.K.Bias[5], a.K.Bias[40] = 120, -60
	a.Balance()
	off := func(balanced bool) (sum float64) {
		tile := make([]byte, kernel.KVTileBytes(dim, tensor.Q8_0))
		for range tokens {
			q, k := make([]float32, dim), make([]float32, dim)
			exact := 0.0
			for i := range k {
				q[i], k[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())+a.K.Bias[i]
				exact += float64(q[i]) * float64(k[i])
			}
			if balanced {
				kernel.Mul(q, a.balance.q)
				kernel.Mul(k, a.balance.k)
			}
			kernel.StoreKV(tile, nil, 0, k, nil, tensor.Q8_0)
			got, elems := 0.0, tile[4*kernel.TileTokens:]
			for i := range q {
				got += float64(q[i]) * float64(int8(elems[i*kernel.TileTokens]))
			}
			largest := float32(0)
			for _, x := range k {
				largest = max(largest, x, -x)
			}
			d := got*float64(largest)/127 - exact
			sum += d * d
		}
		return math.Sqrt(sum / tokens)
	}
	plain, balanced := off(false), off(true)
	t.Logf("products are off by %.3f, balanced %.3f", plain, balanced)
	if balanced > plain/4 {
		t.Errorf("off by %v, %v without", balanced, plain)
	}
}
