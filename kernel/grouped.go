package kernel

import (
	"fmt"
	"sync"
)

// MulGrouped multiplies rows of x with the matrices that they are routed to,
// as a mixture of experts does: experts[e] with the rows of x whose numbers
// are in rows[e], in any order, a row under any number of experts. The results
// lie one after the other: those of rows[0] are rows 0 to len(rows[0])-1 of
// dst, those of rows[1] follow, and so on. All experts have the shape and type
// of the first, and x is what that one reads. Otherwise it is like
// [Packed.Mul]: it computes the groups [g0, g1), no weights are copied, and a
// result is the same, bit for bit, as that of Mul for its row alone.
func MulGrouped(dst []float32, ldd int, x *Acts, experts []*Packed, rows [][]int32, g0, g1 int) {
	buf := gatherPool.Get().(*gatherBuf)
	defer gatherPool.Put(buf)
	first := 0
	for e, list := range rows {
		if len(list) == 0 {
			continue
		}
		p := experts[e]
		if p.Type != experts[0].Type || p.Rows != experts[0].Rows || p.Cols != experts[0].Cols {
			panic(fmt.Sprintf("kernel: multiply grouped: expert %d: expected %s %d x %d as the first, found %s %d x %d", e,
				experts[0].Type, experts[0].Rows, experts[0].Cols, p.Type, p.Rows, p.Cols))
		}
		acts := buf.gather(x, list, p.UsesQuant())
		p.Mul(dst[first*ldd:], ldd, &acts, 0, len(list), g0, g1)
		first += len(list)
	}
}

// gatherBuf has copies of rows of activations.
type gatherBuf struct {
	q []byte
	f []float32
}

var gatherPool = sync.Pool{New: func() any { return new(gatherBuf) }}

// gather returns the listed rows of x as rows that lie evenly: in place if
// they do, else as copies.
func (b *gatherBuf) gather(x *Acts, list []int32, quant bool) Acts {
	step, even := 0, true
	if len(list) > 1 {
		step = int(list[1] - list[0])
	}
	for i, r := range list {
		if r < 0 || int(r) >= x.N {
			panic(fmt.Sprintf("kernel: multiply grouped: row: expected one of %d, found %d", x.N, r))
		}
		even = even && int(r) == int(list[0])+i*step
	}
	out := Acts{N: len(list), K: x.K, Planes: x.Planes}
	// Planes of rows lie evenly only where the rows are neighbours.
	even = even && (step == 1 || step > 0 && !(quant && x.Planes > 1))
	if even || len(list) == 1 {
		at := int(list[0])
		if quant {
			out.Q, out.LDQ = x.Q[at*x.LDQ:], max(step, 1)*x.LDQ
		} else {
			out.F32, out.LDF = x.F32[at*x.LDF:], max(step, 1)*x.LDF
		}
		return out
	}
	if quant {
		out.LDQ = x.LDQ
		out.Q = gatherRows(&b.q, x.Q, x.LDQ, out.LDQ, list)
	} else {
		out.LDF = x.K
		out.F32 = gatherRows(&b.f, x.F32, x.LDF, out.LDF, list)
	}
	return out
}

// gatherRows copies rows of n elements, ld apart in src, to buf.
func gatherRows[T byte | float32](buf *[]T, src []T, ld, n int, list []int32) []T {
	if cap(*buf) < n*len(list) {
		*buf = make([]T, n*len(list))
	}
	out := (*buf)[:n*len(list)]
	for i, r := range list {
		copy(out[i*n:(i+1)*n], src[int(r)*ld:])
	}
	return out
}
