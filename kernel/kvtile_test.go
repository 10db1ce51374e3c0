package kernel

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ridge/internal/cpu"
	"ridge/weights/tensor"
)

// budgetKVQ8 bounds what Q8_0 tiles may change of the result of attention with
// normal keys, values and queries, relative to the size of the values: half a
// step of the scale, 1/254 of the largest of some 100 normal values, is about
// 0.01; the errors of scores, and of values that are averaged, mostly cancel.
const budgetKVQ8 = 0.02

// kvSpecial are numbers at the ends of what tiles can store, and what F16 tiles
// make of them.
var (
	kvSpecial = []float32{1e6, -1e6, float32(math.Inf(1)), float32(math.Inf(-1)), 65519, 65504, 65503, float32(math.NaN()), 1e-8, 6.1e-5, -0.1, 1}
	kvStored  = []float32{65504, -65504, 65504, -65504, 65504, 65504, 65503, float32(math.NaN()), 1e-8, 6.1e-5, -0.1, 1}
)

// TestStoreKV stores a token in guarded memory and reads it back.
func TestStoreKV(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		for _, kv := range kvTypes {
			for n := 1; n < 300; n += 1 + n/40 {
				slot := n % TileTokens
				k, v := make([]float32, n), make([]float32, n)
				for i := range k {
					k[i], v[i] = kvSpecial[i%12], kvSpecial[(i+n)%12]
				}
				size := KVTileBytes(n, kv)
				kt, vt := make([]byte, size+1), make([]byte, size+1)
				kt[size], vt[size] = 0xa5, 0xa5
				StoreKV(kt, vt, slot, k, v, kv)
				gk, gv := make([]float32, n), make([]float32, n)
				loadKV(gk, gv, kt, vt, slot, kv)
				checkStored(t, kv, k, gk)
				checkStored(t, kv, v, gv)
				if kt[size] != 0xa5 || vt[size] != 0xa5 {
					t.Fatalf("%s length %d: wrote outside", kv, n)
				}
				for other := range TileTokens {
					loadKV(gk, gv, kt, vt, other, kv)
					for i := range gk {
						if other != slot && (gk[i] != 0 || gv[i] != 0) {
							t.Fatalf("%s length %d: wrote to slot %d", kv, n, other)
						}
					}
				}
			}
		}
	})
}

// checkStored compares what was read back with what was stored.
func checkStored(t *testing.T, kv tensor.DType, x, got []float32) {
	t.Helper()
	nan, top := false, float32(0)
	for _, v := range x {
		nan = nan || v != v
		top = max(top, min(float32(math.Abs(float64(v))), maxF16))
	}
	for i, v := range x {
		want, budget := kvStored[0], 0.0
		for j, s := range kvSpecial {
			if math.Float32bits(s) == math.Float32bits(v) {
				want = kvStored[j]
			}
		}
		switch kv {
		case tensor.F32:
			want = v
		case tensor.F16:
			want = tensor.F16ToF32(tensor.F32ToF16(want))
		case tensor.Q8_0:
			if nan {
				want = float32(math.NaN())
			}
			budget = float64(top)/254 + 1e-5*float64(top)
		}
		if math.IsNaN(float64(want)) != math.IsNaN(float64(got[i])) || math.Abs(float64(want)-float64(got[i])) > budget {
			t.Fatalf("%s length %d: element %d: got %g want %g", kv, len(x), i, got[i], want)
		}
	}
}

// TestStoreKVTile: a tile stored at once has the bytes of one stored token by
// token in plain Go.
func TestStoreKVTile(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 3))
		for _, kv := range kvTypes {
			for _, dims := range [][2]int{{64, 64}, {128, 128}, {192, 128}, {576, 512}, {8, 24}, {20, 20}, {7, 33}} {
				kd, vd := dims[0], dims[1]
				ldk, ldv := kd+r.IntN(9), vd+r.IntN(9)
				k, v := randomRow(r, TileTokens*ldk, 3), randomRow(r, TileTokens*ldv, 3)
				for range 20 {
					k[r.IntN(len(k))], v[r.IntN(len(v))] = kvSpecial[r.IntN(7)], kvSpecial[r.IntN(7)]
				}
				kb, vb := KVTileBytes(kd, kv), KVTileBytes(vd, kv)
				kt, vt := make([]byte, kb), make([]byte, vb)
				StoreKVTile(kt, vt, k, ldk, kd, v, ldv, vd, kv)
				wk, wv := make([]byte, kb), make([]byte, vb)
				restore := cpu.Set(cpu.Generic)
				for i := range TileTokens {
					StoreKV(wk, wv, i, k[i*ldk:][:kd], v[i*ldv:][:vd], kv)
				}
				restore()
				if !bytes.Equal(kt, wk) || !bytes.Equal(vt, wv) {
					t.Fatalf("%s %v: other bytes than token by token", kv, dims)
				}
			}
		}
	})
}

// TestAttendQuantError compares attention over Q8_0 tiles with the same keys
// and values unrounded.
func TestAttendQuantError(t *testing.T) {
	forTiers(t, func(t *testing.T) {
		var scratch AttnScratch
		for _, hd := range []int{64, 128, 256} {
			var out [2][]float32
			for i, kv := range []tensor.DType{tensor.F32, tensor.Q8_0} {
				r := rand.New(rand.NewPCG(5, uint64(hd)))
				s := &AttnSpec{HeadDim: hd, VHeadDim: hd, Scale: float32(1 / math.Sqrt(float64(hd))), KV: kv}
				c := randomCall(r, s, newKVSeq(r, s, 500, 4), 10, 4)
				Attend(c, &scratch)
				out[i] = c.Out
			}
			worst := 0.0
			for i, x := range out[0] {
				worst = max(worst, math.Abs(float64(x-out[1][i])))
			}
			if worst > budgetKVQ8 {
				t.Errorf("head of %d: error %.4f", hd, worst)
			}
		}
	})
}

// loadKV reads the token in the given slot of a tile back into k and v, either
// of which may be nil.
func loadKV(k, v []float32, kTile, vTile []byte, slot int, kv tensor.DType) {
	e := kvElem(kv)
	if e == elemBF16 {
		loadPairs(k, v, kTile, vTile, slot)
		return
	}
	if len(v) > 0 {
		e.decode(v, &vTile[e.head() : e.head()+(slot+1)*len(v)*e.bytes()][slot*len(v)*e.bytes()])
	}
	for d := range k {
		e.decode(k[d:d+1], &kTile[e.head()+(d*TileTokens+slot)*e.bytes():][:e.bytes()][0])
	}
	if e == elemI8 {
		Scale(k, actFloat(kTile, 4*slot))
		if len(v) > 0 {
			Scale(v, actFloat(vTile, 4*slot))
		}
	}
}

// loadPairs is loadKV for bfloat16.
func loadPairs(k, v []float32, kTile, vTile []byte, slot int) {
	at := func(tile []byte, i int) float32 {
		return math.Float32frombits(uint32(tile[2*i])<<16 | uint32(tile[2*i+1])<<24)
	}
	for d := range k {
		k[d] = at(kTile, d/2*2*TileTokens+2*slot+d%2)
	}
	for d := range v {
		v[d] = at(vTile, slot/2*2*len(v)+2*d+slot%2)
	}
}
