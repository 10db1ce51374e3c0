package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ridge/weights/tensor"
)

// Values that are part of keys give what the same values beside the keys give:
// the same bits, but for bytes, whose scales are other ones.
func TestAttendValuesInKeys(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(4, 7))
		var scratch AttnScratch
		for _, dims := range [][2]int{{576, 512}, {288, 256}, {96, 64}, {80, 64}, {40, 33}, {48, 48}} {
			for _, kv := range append(slices.Clone(kvTypes), tensor.BF16) {
				for _, shape := range [][2]int{{1, 1}, {1, 16}, {3, 4}, {17, 3}} {
					apart := &AttnSpec{HeadDim: dims[0], VHeadDim: dims[1], Scale: float32(1 / math.Sqrt(float64(dims[0]))), KV: kv}
					in := *apart
					in.ValuesInKeys = true
					seq := newKVSeq(r, &in, 1+r.IntN(300), 1+r.IntN(5))
					c := randomCall(r, &in, seq, shape[0], shape[1])
					name := fmt.Sprint(dims, kv, shape, decorate(r, c))
					Attend(c, &scratch)
					if kv == tensor.Q8_0 {
						checkNaive(t, name, c, seq)
						continue
					}
					apart.Softcap = in.Softcap
					other := *c
					other.Spec, other.Out = apart, make([]float32, len(c.Out))
					other.Tiles = newKVSeqOf(apart, seq.k, seq.v, 3).tiles
					Attend(&other, &scratch)
					for i, want := range other.Out {
						if math.Float32bits(c.Out[i]) != math.Float32bits(want) {
							t.Fatalf("%s: output %d: expected %g, as with values beside the keys, found %g", name, i, want, c.Out[i])
						}
					}
				}
			}
		}
	})
}

// StoreKVTile without values stores the keys that StoreKV does.
func TestStoreKeysAlone(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 1))
		for _, kv := range append(slices.Clone(kvTypes), tensor.BF16) {
			k := randomRow(r, TileTokens*70, 1)
			got, want := make([]byte, KVTileBytes(64, kv)), make([]byte, KVTileBytes(64, kv))
			StoreKVTile(got, nil, k, 70, 64, nil, 0, 0, kv)
			for i := range TileTokens {
				StoreKV(want, nil, i, k[i*70:][:64], nil, kv)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v: a tile differs from its tokens", kv)
			}
		}
	})
}

// Turning a tile is the definition, on every tier.
func TestTurn(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 3))
		for _, vd := range []int{2, 8, 20, 64, 72, 512} {
			row := padded(vd)
			key := randomRow(r, vd*TileTokens, 1)
			got, want := randomRow(r, TileTokens*row, 1), make([]float32, TileTokens*row)
			turnGeneric(got, row, key, turnTier(got, row, key, vd), vd)
			turnGeneric(want, row, key, 0, vd)
			if !slices.Equal(got, want) {
				t.Errorf("float32, %d elements: differs from the definition", vd)
			}
			pairs := make([]byte, 2*vd*TileTokens)
			for i := range pairs {
				pairs[i] = byte(r.Uint32())
			}
			gotPairs, wantPairs := make([]byte, len(pairs)), make([]byte, len(pairs))
			turnPairsGeneric(gotPairs, pairs, turnPairsTier(gotPairs, pairs, vd), vd)
			turnPairsGeneric(wantPairs, pairs, 0, vd)
			if !slices.Equal(gotPairs, wantPairs) {
				t.Errorf("bfloat16, %d elements: differs from the definition", vd)
			}
		}
	})
}
