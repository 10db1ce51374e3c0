package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Keys and values as bfloat16.

// storePairs is StoreKV for bfloat16.
func storePairs(kTile, vTile []byte, slot int, k, v []float32) {
	if n := len(v); n > 0 {
		row := vTile[slot/2*4*n:][:4*n]
		for i, x := range v {
			binary.LittleEndian.PutUint16(row[4*i+slot%2*2:], brain(clampF16(x)))
		}
	}
	for i := 0; i+1 < len(k); i += 2 {
		pair := uint32(brain(clampF16(k[i]))) | uint32(brain(clampF16(k[i+1])))<<16
		binary.LittleEndian.PutUint32(kTile[2*i*TileTokens+4*slot:], pair)
	}
}

// brain returns x as bfloat16, rounded to nearest even; a NaN stays one.
func brain(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// splitBrain converts len(even) pairs: their first values go to even, their
// second ones to odd.
func splitBrain(even, odd []float32, src *byte) {
	n := len(even)
	from := unsafe.Slice((*[2]uint16)(unsafe.Pointer(src)), n)
	for i := splitBrainTier(even, odd, src); i < n; i++ {
		even[i] = math.Float32frombits(uint32(from[i][0]) << 16)
		odd[i] = math.Float32frombits(uint32(from[i][1]) << 16)
	}
}

// decodeKeyPairs converts the hd values of the 16 keys of a tile.
func decodeKeyPairs(to []float32, tile *byte, hd int) {
	for d := 0; d < hd; d += 2 {
		row := to[d*TileTokens:][:2*TileTokens]
		splitBrain(row[:TileTokens], row[TileTokens:], (*byte)(unsafe.Add(unsafe.Pointer(tile), 2*d*TileTokens)))
	}
}

// decodeValuePairs converts the vd values of the 16 tokens of a tile to rows of
// vp floats.
func decodeValuePairs(to []float32, tile *byte, vd, vp int) {
	for slot := 0; slot < TileTokens; slot += 2 {
		splitBrain(to[slot*vp:][:vd], to[(slot+1)*vp:][:vd], (*byte)(unsafe.Add(unsafe.Pointer(tile), 2*slot*vd)))
		clear(to[slot*vp+vd : (slot+1)*vp])
		clear(to[(slot+1)*vp+vd : (slot+2)*vp])
	}
}
