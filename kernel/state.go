package kernel

import (
	"math"
	"unsafe"
)

// StateColumns is how many columns of a recurrent state lie together: a block of
// a state is rows of so many values, one for each key.
const StateColumns = 16

// stateKeys is the number that the keys of a block are a multiple of.
const stateKeys = 4

// The operations of this file move blocks of recurrent states by one row. Sums
// over keys are formed in an order that depends on their number alone. All
// columns of a block are computed, those too that a layer does not have.

// StateRead sets out to the sum of q[k] times row k of the block s. The number of
// keys, len(q), must be a multiple of 4.
func StateRead(out, s, q []float32) {
	checkState(out, s, len(q))
	if !stateReadTier(&out[0], &s[0], &q[0], len(q)) {
		var acc [stateKeys][StateColumns]float32
		for k := range q {
			addScaledGeneric(acc[k%stateKeys][:], s[k*StateColumns:][:StateColumns], q[k])
		}
		sumState(out, &acc)
	}
}

// StateMove sets row k of the block s to w[k] times itself plus k[k]·v, and out to
// what StateRead does afterwards: it is a step of linear attention with decay, of
// a state-space model with k for B and q for C, or of retention.
func StateMove(out, s, w, k, q, v []float32) {
	n := len(q)
	checkState(out, s, n)
	w, k, v = w[:n], k[:n], v[:StateColumns]
	if stateMoveTier(&out[0], &s[0], &w[0], &k[0], &q[0], n, &v[0]) {
		return
	}
	var acc [stateKeys][StateColumns]float32
	for i := range n {
		row := s[i*StateColumns:][:StateColumns]
		scaleGeneric(row, w[i])
		addScaledGeneric(row, v, k[i])
		addScaledGeneric(acc[i%stateKeys][:], row, q[i])
	}
	sumState(out, &acc)
}

// Selective is a row of a selective scan (Gu and Dao, Mamba, 2023): it sets row n
// of the block s to exp(dt·a[n]) times itself plus b[n]·dt·x, and out to the sum of
// c[n] times row n. a is a block like s; dt and x have a value for each column.
func Selective(out, s, a, dt, x, b, c []float32) {
	n := len(b)
	if n == 0 || len(c) != n {
		panic("kernel: Selective: different numbers of states")
	}
	out, s, a, dt, x = out[:StateColumns], s[:n*StateColumns], a[:n*StateColumns], dt[:StateColumns], x[:StateColumns]
	if selectiveTier(&out[0], &s[0], &a[0], n, &dt[0], &x[0], &b[0], &c[0]) {
		return
	}
	clear(out)
	for i := range n {
		row, decay := s[i*StateColumns:][:StateColumns], a[i*StateColumns:]
		for j, h := range row {
			h = h*float32(math.Exp(float64(dt[j]*decay[j]))) + dt[j]*x[j]*b[i]
			row[j] = h
			out[j] += h * c[i]
		}
	}
}

func checkState(out, s []float32, keys int) {
	if keys == 0 || keys%stateKeys != 0 || len(s) < keys*StateColumns || len(out) < StateColumns {
		panic("kernel: state: expected keys in fours and a row for each")
	}
}

// sumState adds the sums of keys up.
func sumState(out []float32, acc *[stateKeys][StateColumns]float32) {
	for j := range StateColumns {
		out[j] = acc[0][j] + acc[1][j] + (acc[2][j] + acc[3][j])
	}
}

// Softplus sets dst = log(1 + exp(x)).
func Softplus(dst, x []float32) {
	n := min(len(dst), len(x))
	if softplusTier(unsafe.SliceData(dst), unsafe.SliceData(x), n) {
		return
	}
	for i, v := range x[:n] {
		dst[i] = max(v, 0) + float32(math.Log1p(math.Exp(-math.Abs(float64(v)))))
	}
}

// AddProduct sets dst += x·y.
func AddProduct(dst, x, y []float32) {
	n := min(len(dst), len(x), len(y))
	if addProductTier(unsafe.SliceData(dst), unsafe.SliceData(x), unsafe.SliceData(y), n) {
		return
	}
	for i, v := range x[:n] {
		dst[i] += float32(v * y[i])
	}
}
