package kernel

import "unsafe"

// Values that are part of keys (latent attention: see AttnSpec.ValuesInKeys) are
// turned around block by block: a tile keeps a key's elements apart from each
// other, and a value's side by side.

// turnKeys makes the values of the block at hand of its keys, which are float32.
func (g *attnGroupState) turnKeys() {
	vd := g.call.Spec.VHeadDim
	vp := padded(vd)
	for t := range g.v {
		to := g.scratch.v[t*TileTokens*vp : (t+1)*TileTokens*vp]
		keys := unsafe.Slice((*float32)(unsafe.Pointer(g.k[t])), vd*TileTokens)
		n := turnTier(to, vp, keys, vd)
		turnGeneric(to, vp, keys, n, vd)
		g.v[t] = (*byte)(unsafe.Pointer(&to[0]))
	}
	g.vt = elemF32
}

// turnGeneric sets value[j·row + d] = key[d·TileTokens + j] for the elements
// d0 to d1-1, and clears the rest of the rows.
func turnGeneric(value []float32, row int, key []float32, d0, d1 int) {
	for d := d0; d < d1; d++ {
		for j, x := range key[d*TileTokens:][:TileTokens] {
			value[j*row+d] = x
		}
	}
	for j := range TileTokens {
		clear(value[j*row+d1 : (j+1)*row])
	}
}

// turnPairs makes the values of the block at hand of its keys, both as pairs of
// bfloat16: of elements in keys, of tokens in values.
func (g *attnGroupState) turnPairs() {
	vd := g.call.Spec.VHeadDim
	for t := range g.v {
		to := unsafe.Slice((*byte)(unsafe.Pointer(&g.scratch.v[t*TileTokens*vd/2])), 2*TileTokens*vd)
		keys := unsafe.Slice(g.k[t], 2*TileTokens*vd)
		turnPairsGeneric(to, keys, turnPairsTier(to, keys, vd), vd)
		g.v[t] = &to[0]
	}
}

// turnPairsGeneric turns the elements of a tile of vd from d0 on, even numbers.
func turnPairsGeneric(value, key []byte, d0, vd int) {
	for d := d0; d < vd; d += 2 {
		row := key[d*2*TileTokens:][:4*TileTokens]
		for p := range TileTokens / 2 {
			from := (*[4]uint16)(unsafe.Pointer(&row[8*p]))
			to := (*[4]uint16)(unsafe.Pointer(&value[(p*vd+d)*4]))
			to[0], to[1], to[2], to[3] = from[0], from[2], from[1], from[3]
		}
	}
}
