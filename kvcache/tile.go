package kvcache

import "ridge/weights/tensor"

// scaleBytes is the size of the scale of one token, where tiles have scales.
const scaleBytes = 4

// TileBytes returns the size of the keys, or of the values, of a tile with dim
// elements per token, and 0 for none and for types that a pool cannot have. F16, F32 and
// BF16 are 16·dim elements; Q8_0 is a float32 scale for each of the 16 tokens, then
// 16·dim bytes.
func TileBytes(dim int, t tensor.DType) int {
	head, size := tileElem(t)
	if dim == 0 {
		return 0
	}
	return head + TileTokens*dim*size
}

// clearPairs zeroes the slots of a tile of BF16 from slot on: keys are in pairs of
// elements, values in pairs of tokens.
func clearPairs(k, v []byte, slot int, l LayerShape) {
	for d := 0; d < l.KDim; d += 2 {
		clear(k[(d*TileTokens+2*slot)*2 : (d+2)*TileTokens*2])
	}
	if slot%2 == 1 {
		row := v[(slot-1)*l.VDim*2:][:4*l.VDim]
		for i := 2; i < len(row); i += 4 {
			row[i], row[i+1] = 0, 0
		}
		slot++
	}
	clear(v[min(slot, TileTokens)*l.VDim*2:])
}

// tileElem returns how many bytes of scales a tile begins with, and the size of
// an element, 0 for types that a pool cannot have.
func tileElem(t tensor.DType) (head, size int) {
	switch t {
	case tensor.F16, tensor.BF16:
		return 0, 2
	case tensor.F32:
		return 0, 4
	case tensor.Q8_0:
		return scaleBytes * TileTokens, 1
	}
	return 0, 0
}
