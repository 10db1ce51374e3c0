package model

import (
	"testing"

	"ridge/kernel"
	"ridge/kvcache"
	"ridge/weights/tensor"
)

// The pool places tiles as large as the kernels read them.
func TestTileBytes(t *testing.T) {
	for _, typ := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0, tensor.BF16} {
		for _, dim := range []int{1, 8, 64, 80, 128, 256} {
			if got, want := kvcache.TileBytes(dim, typ), kernel.KVTileBytes(dim, typ); got != want {
				t.Errorf("%v, %d elements: the pool has %d bytes, the kernels need %d", typ, dim, got, want)
			}
		}
	}
	if kvcache.TileTokens != kernel.TileTokens {
		t.Errorf("tiles of %d and of %d tokens", kvcache.TileTokens, kernel.TileTokens)
	}
}
