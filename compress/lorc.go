package compress

import (
	"encoding/binary"
	"fmt"
	"math"
)

// lorc adds to a matrix that a reference method rounded the best approximation of its
// error by two thin matrices, kept as float16 (Yao et al., ZeroQuant-V2, 2023). Counted:
// what the method takes, and two bytes for each of their values.
type lorc struct {
	Base Pass
	Rank int
}

func (p lorc) Name() string { return p.Base.Name() + "+lorc" }

func (p lorc) Settings() string { return fmt.Sprintf("%s rank=%d", p.Base.Settings(), p.Rank) }

// Transform implements Pass.
func (p lorc) Transform(l *Layer) error { return p.Base.Transform(l) }

// Round implements Pass.
func (p lorc) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	note, err := p.Base.Round(m, in, threads)
	if err != nil {
		return note, err
	}
	e := make([]float64, len(m.W)) // what is missing
	for i, v := range m.W {
		e[i] = float64(v) - m.float(i)
	}
	for _, part := range components(e, m.Rows, m.Cols, p.Rank, threads) {
		for r, a := range part.left {
			for c, b := range part.right {
				e[r*m.Cols+c] -= half(a) * half(b)
			}
		}
	}
	// e is now what is missing still.
	for i, v := range m.W {
		m.setFloat(i/m.Cols, i%m.Cols, float64(v)-e[i])
	}
	m.bytes += 2 * p.Rank * (m.Rows + m.Cols)
	return note, nil
}

// float reads value i of a matrix that stays in float32.
func (m *Matrix) float(i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(m.Out[4*i:])))
}

// component is a product of a column and a row, each with the root of their singular value.
type component struct{ left, right []float64 }

// components returns the first singular components of a matrix.
func components(x []float64, rows, cols, most, threads int) (out []component) {
	n, at := rows, func(i, k int) float64 { return x[i*cols+k] }
	if cols < rows {
		n, at = cols, func(i, k int) float64 { return x[k*cols+i] }
	}
	long := rows + cols - n
	gram := make([]float64, n*n)
	parallel(n, threads, func(i int) {
		for j := range n {
			for k := range long {
				gram[i*n+j] += at(i, k) * at(j, k)
			}
		}
	})
	values, vectors := eigen(gram, n)
	for _, k := range largest(values, most) {
		root := math.Sqrt(math.Sqrt(max(values[k], 0))) // of the singular value
		if root == 0 {
			break
		}
		short, other := make([]float64, n), make([]float64, long)
		for i := range short {
			v := vectors[i*n+k]
			short[i] = v * root
			for j := range other {
				other[j] += v * at(i, j) / root
			}
		}
		if n == rows {
			out = append(out, component{short, other})
		} else {
			out = append(out, component{other, short})
		}
	}
	return out
}

// largest returns where the n largest values are, in falling order.
func largest(x []float64, n int) (at []int) {
	taken := make([]bool, len(x))
	for range min(n, len(x)) {
		best := -1
		for i, v := range x {
			if !taken[i] && (best < 0 || v > x[best]) {
				best = i
			}
		}
		taken[best] = true
		at = append(at, best)
	}
	return at
}

// eigen returns the eigenvalues of a symmetric matrix, which it destroys, and its
// eigenvectors as columns, by Jacobi's rotations.
func eigen(a []float64, n int) (values, vectors []float64) {
	v := make([]float64, n*n) // eigenvectors as rows, while they are turned
	for i := range n {
		v[i*n+i] = 1
	}
	for range 30 {
		off, all := 0.0, 0.0
		for i := range n {
			for j := range n {
				all += a[i*n+j] * a[i*n+j]
				if i != j {
					off += a[i*n+j] * a[i*n+j]
				}
			}
		}
		if off <= 1e-24*all {
			break
		}
		for p := range n {
			for q := p + 1; q < n; q++ {
				turn(a, v, n, p, q)
			}
		}
	}
	values, vectors = make([]float64, n), make([]float64, n*n)
	for i := range n {
		values[i] = a[i*n+i]
		for j := range n {
			vectors[j*n+i] = v[i*n+j]
		}
	}
	return values, vectors
}

// turn makes a[p][q] zero by a rotation of p and q.
func turn(a, v []float64, n, p, q int) {
	x := a[p*n+q]
	if x == 0 {
		return
	}
	theta := (a[q*n+q] - a[p*n+p]) / (2 * x)
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
	c := 1 / math.Hypot(t, 1)
	s := t * c
	rp, rq, vp, vq := a[p*n:][:n], a[q*n:][:n], v[p*n:][:n], v[q*n:][:n]
	for k := range n {
		rp[k], rq[k] = c*rp[k]-s*rq[k], s*rp[k]+c*rq[k]
		vp[k], vq[k] = c*vp[k]-s*vq[k], s*vp[k]+c*vq[k]
	}
	for k := range n {
		i, j := k*n+p, k*n+q
		a[i], a[j] = c*a[i]-s*a[j], s*a[i]+c*a[j]
	}
}
