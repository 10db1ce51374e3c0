package kernel

import (
	"math"
	"unsafe"
)

// The definitions of the steps of attention on one block.

// scoresGeneric sets s[i·attnBlock + t·TileTokens + j] = q[i] · key j of tile t,
// for n queries of hd values and the tiles lo to hi. Keys are float32.
func scoresGeneric(s, q []float32, n, hd int, k *[4]*byte, lo, hi int) {
	for t := lo; t <= hi; t++ {
		keys := unsafe.Slice((*float32)(unsafe.Pointer(k[t])), hd*TileTokens)
		for i := range n {
			row := s[i*attnBlock+t*TileTokens:][:TileTokens]
			clear(row)
			for d, x := range q[i*hd : (i+1)*hd] {
				for j, y := range keys[d*TileTokens:][:TileTokens] {
					row[j] += x * y
				}
			}
		}
	}
}

// scaleTilesGeneric multiplies s[i·attnBlock + t·TileTokens + j], for n queries and
// all tiles, with the float32 j that tile t begins with.
func scaleTilesGeneric(s []float32, n int, tiles []*byte) {
	for t, tile := range tiles {
		scales := unsafe.Slice((*float32)(unsafe.Pointer(tile)), TileTokens)
		for i := range n {
			row := s[i*attnBlock+t*TileTokens:][:TileTokens]
			for j, x := range scales {
				row[j] *= x
			}
		}
	}
}

// alibiGeneric sets the scores s to s·scale + slope·distance.
func alibiGeneric(st attnStates, s []float32, scale float32) {
	for i := range st.n {
		h := st.head(i)
		for j, x := range s[i*attnBlock : (i+1)*attnBlock] {
			s[i*attnBlock+j] = x*scale + h.slope*(h.ramp+float32(j))
		}
	}
}

// softmaxGeneric turns scores into weights: it updates the running maximum of
// s·scale, replaces s by 2^(s·scale - maximum), by zero for masked keys and
// below 2^-125, sets alpha to the factor for what was summed before, and updates
// the running sum.
func softmaxGeneric(st attnStates, s []float32, scale float32) {
	for i := range st.n {
		h, row := st.head(i), s[i*attnBlock:][:attnBlock]
		mask := uint64(h.mask[0]) | uint64(h.mask[1])<<32
		top := h.max
		for j, x := range row {
			if mask>>j&1 != 0 && x*scale > top {
				top = x * scale
			}
		}
		var sum float32
		for j, x := range row {
			row[j] = 0
			if mask>>j&1 != 0 {
				row[j] = weight(float64(x)*float64(scale) - float64(top))
			}
			sum += row[j]
		}
		h.alpha = weight(float64(h.max) - float64(top))
		h.max, h.sum = top, h.sum*h.alpha+sum
	}
}

// weight returns 2^x, or zero where that would be tiny.
func weight(x float64) float32 {
	if x < -125 {
		return 0
	}
	return float32(math.Exp2(x))
}

// accumulateGeneric sets acc = acc·alpha + Σ weight·value over the keys lo to
// hi-1 of the block; the rows of the values have the padded length.
func accumulateGeneric(st attnStates, s []float32, v *[4]*byte, lo, hi int) {
	vp := st.stride - attnHeadFloats
	for i := range st.n {
		acc := st.acc(i)
		alpha := st.head(i).alpha
		for d := range acc {
			acc[d] *= alpha
		}
		for j := lo; j < hi; j++ {
			row := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(v[j/TileTokens]), j%TileTokens*vp*4)), vp)
			w := s[i*attnBlock+j]
			for d, x := range row {
				acc[d] += w * x
			}
		}
	}
}
