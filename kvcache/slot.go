package kvcache

import (
	"encoding/binary"

	"ridge/weights/tensor"
)

// CopySlot copies a token's key and value from a slot of a tile of one layer to a slot of
// another, see [Pool.Tile].
func (p *Pool) CopySlot(layer int, toK, toV []byte, to int, fromK, fromV []byte, from int) {
	l := &p.cfg.Layers[layer]
	head, size := tileElem(p.cfg.DType)
	if head > 0 {
		copy(toK[scaleBytes*to:][:scaleBytes], fromK[scaleBytes*from:])
		if l.VDim > 0 {
			copy(toV[scaleBytes*to:][:scaleBytes], fromV[scaleBytes*from:])
			toV, fromV = toV[head:], fromV[head:]
		}
		toK, fromK = toK[head:], fromK[head:]
	}
	if p.cfg.DType == tensor.BF16 {
		copyColumn(toK[4*to:], fromK[4*from:], l.KDim/2, 4)
		copyPairs(toV, to, fromV, from, l.VDim)
		return
	}
	copyColumn(toK[size*to:], fromK[size*from:], l.KDim, size)
	if l.VDim > 0 {
		copy(toV[to*l.VDim*size:][:l.VDim*size], fromV[from*l.VDim*size:])
	}
}

// copyColumn copies n elements of the given size, one in each row of a tile.
func copyColumn(to, from []byte, n, size int) {
	step := TileTokens * size
	for i := range n {
		t, f := to[i*step:], from[i*step:]
		switch size {
		case 1:
			t[0] = f[0]
		case 2:
			binary.LittleEndian.PutUint16(t, binary.LittleEndian.Uint16(f))
		default:
			binary.LittleEndian.PutUint32(t, binary.LittleEndian.Uint32(f))
		}
	}
}

// copyPairs copies a value of BF16, whose elements are beside those of another token.
func copyPairs(toV []byte, to int, fromV []byte, from, dim int) {
	if dim == 0 {
		return
	}
	toV, fromV = toV[to/2*4*dim+to%2*2:], fromV[from/2*4*dim+from%2*2:]
	for i := range dim {
		binary.LittleEndian.PutUint16(toV[4*i:], binary.LittleEndian.Uint16(fromV[4*i:]))
	}
}

// Move makes the keys and values of token from those of token to of s, in all layers: a
// guess is at the place of another one from then on. Both must have been written by s.
func (p *Pool) Move(s *Seq, to, from int) {
	for i := range p.layers {
		if p.layers[i].group < 0 {
			continue
		}
		for h := range p.cfg.Layers[i].Heads {
			toK, toV := p.Tile(i, h, s, to/TileTokens)
			fromK, fromV := p.Tile(i, h, s, from/TileTokens)
			p.CopySlot(i, toK, toV, to%TileTokens, fromK, fromV, from%TileTokens)
		}
	}
}
