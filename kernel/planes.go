package kernel

import "sync"

// mulPlanes multiplies each plane of a row as a row of its own, all of them in
// one go over the weights, and adds the results up.
func (p *Packed) mulPlanes(dst []float32, ldd int, x *Acts, r0, r1, g0, g1 int) {
	work := planePool.Get().(*planeWork)
	defer planePool.Put(work)
	n, w, sums := x.Planes, &work.w, work.sums[:]
	for blocks := (n*(r1-r0) + planeRows - 1) / planeRows; blocks > 0; blocks-- {
		rows := (r1 - r0 + blocks - 1) / blocks
		flat := Acts{N: n * rows, K: x.K, Q: x.Q[r0*x.LDQ:], LDQ: x.LDQ / n}
		step := max(2, planeFloats/(flat.N*Lanes)&^1) // groups; products of many rows take two at a time
		for g := g0; g < g1; g += step {
			*w = *p
			w.Data, w.Groups, w.Rows = p.Data[g*p.GroupBytes:], p.Groups-g, p.Rows-g*Lanes
			groups := min(step, g1-g)
			ld := groups * Lanes
			w.mul(sums, ld, &flat, 0, flat.N, 0, groups)
			for r := range rows {
				sum, parts := dst[(r0+r)*ldd+g*Lanes:][:ld], sums[n*r*ld:][:n*ld]
				for copy(sum, parts); len(parts) > ld; parts = parts[ld:] {
					Add(sum, parts[ld:2*ld])
				}
			}
		}
		r0 += rows
	}
}

const (
	// planeRows bounds the planes that are multiplied together: as many as
	// products of many rows work on at a time.
	planeRows = 128
	// planeFloats is the size of the results of planes before they are added
	// up, which leaves room for weights and activations in the second-level
	// cache.
	planeFloats = 32 << 10
)

// planeWork is what mulPlanes works with.
type planeWork struct {
	w    Packed // some groups of the matrix
	sums [planeFloats]float32
}

var planePool = sync.Pool{New: func() any { return new(planeWork) }}
