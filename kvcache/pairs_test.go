package kvcache

import (
	"testing"

	"ridge/weights/tensor"
)

// A cleared tile of BF16 has the tokens before the slot, and zeros from it on.
func TestClearPairs(t *testing.T) {
	l := LayerShape{Heads: 1, KDim: 6, VDim: 3}
	for slot := range TileTokens + 1 {
		k, v := make([]byte, TileBytes(l.KDim, tensor.BF16)), make([]byte, TileBytes(l.VDim, tensor.BF16))
		for _, b := range [][]byte{k, v} {
			for i := range b {
				b[i] = 0xff
			}
		}
		clearTile(k, v, slot, l, tensor.BF16)
		check := func(what string, token, i int, b []byte) {
			for _, x := range b[2*i : 2*i+2] {
				if kept := x == 0xff; kept != (token < slot) || !kept && x != 0 {
					t.Fatalf("cleared from slot %d on: %s of token %d: byte %x", slot, what, token, x)
				}
			}
		}
		for token := range TileTokens {
			for d := range l.KDim {
				check("key", token, (d/2*TileTokens+token)*2+d%2, k)
			}
			for d := range l.VDim {
				check("value", token, (token/2*l.VDim+d)*2+token%2, v)
			}
		}
	}
	if _, err := New(Config{Layers: []LayerShape{{Heads: 1, KDim: 5, VDim: 4}}, DType: tensor.BF16, MaxBytes: 1 << 16}); err == nil {
		t.Error("keys of 5 elements in pairs: no error")
	}
}
