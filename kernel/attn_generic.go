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

// softmaxGeneric turns scores into weights: with t = s·scale + slope·distance,
// and -Inf for masked keys, it updates the running maximum, replaces s by
// 2^(t-max), sets alpha to the factor for what was summed before, and updates
// the running sum.
func softmaxGeneric(st attnStates, s []float32, scale float32) {
	for i := range st.n {
		h, row := st.head(i), s[i*attnBlock:][:attnBlock]
		mask := uint64(h.mask[0]) | uint64(h.mask[1])<<32
		top := h.max
		for j := range row {
			if mask>>j&1 == 0 {
				row[j] = float32(math.Inf(-1))
				continue
			}
			row[j] = row[j]*scale + h.slope*(h.ramp+float32(j))
			if row[j] > top {
				top = row[j]
			}
		}
		var sum float32
		for j := range row {
			row[j] = exp2(row[j] - top)
			sum += row[j]
		}
		h.alpha = exp2(h.max - top)
		h.max, h.sum = top, h.sum*h.alpha+sum
	}
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
