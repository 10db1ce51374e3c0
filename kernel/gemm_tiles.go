//go:build amd64 || arm64

package kernel

import "ridge/weights/tensor"

// The loops over kernels that read packed weights themselves.

// mulFunc multiplies groups of packed weights, one after the other in memory,
// with a number of rows fixed in the function. It prefetches what lies ahead
// bytes behind the weights it reads; 0 is for none.
type mulFunc func(dst *float32, ldd int, w *byte, x *byte, ldx int, supers int, groups int, ahead int)

// plainFunc is mulFunc for weights in plain numbers. With add it adds to dst.
type plainFunc func(dst *float32, ldd int, w *byte, x *float32, ldx int, cols int, groups int, groupBytes int, ahead int, add bool)

// numTypes is the size of tables that are indexed by element type.
const numTypes = tensor.MXFP4 + 1

const (
	// callBytes bounds the weights that one call of assembly reads, which the
	// Go scheduler cannot interrupt: some 25 µs.
	callBytes = 256 << 10
	// actBytes bounds the activations that are multiplied with one stretch of
	// weights after the other: they stay in the second-level cache.
	actBytes = 768 << 10
)

// mulDirect reads the packed weights once for every tile of rows.
func mulDirect(p *Packed, kernels []mulFunc, tiles []int, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	supers := p.layout.Supers(p.Cols)
	step := max(1, callBytes/p.GroupBytes)
	block := max(len(tiles)-1, actBytes/x.LDQ)
	for ; r0 < r1; r0 += block {
		end := min(r0+block, r1)
		for g := g0; g < g1; g += step {
			n := min(step, g1-g)
			w := &p.Data[g*p.GroupBytes]
			for r := r0; r < end; {
				mr := tiles[min(end-r, len(tiles)-1)]
				kernels[mr](&dst[r*ldd+g*Lanes], ldd, w, &x.Q[r*x.LDQ], x.LDQ, supers, n, aheadBytes(mr))
				r += mr
			}
		}
	}
}

// mulPlain is mulDirect for weights in plain numbers.
func mulPlain(p *Packed, kernels []plainFunc, tiles []int, dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	step := max(1, callBytes/p.GroupBytes)
	block := max(len(tiles)-1, actBytes/(4*p.Cols))
	for ; r0 < r1; r0 += block {
		end := min(r0+block, r1)
		for g := g0; g < g1; g += step {
			n := min(step, g1-g)
			w := &p.Data[g*p.GroupBytes]
			for r := r0; r < end; {
				mr := tiles[min(end-r, len(tiles)-1)]
				ahead := aheadBytes(mr)
				if p.ahead != 0 && r+mr == r1 {
					ahead = p.ahead
				}
				kernels[mr](&dst[r*ldd+g*Lanes], ldd, w, &x.F32[r*x.LDF], x.LDF, p.Cols, n, p.GroupBytes, ahead, p.adds)
				r += mr
			}
		}
	}
}
