package compress

// obq rounds the weights of each row in an order of its own: next is always the one
// whose rounding changes the outputs least, and the others that are left pay for its
// error (Frantar and Alistarh, Optimal Brain Compression, 2022; its rule for weights
// beyond the ends of the grid is left out). Steps are fitted before. It takes the third power
// of the columns for each row: a reference for small layers, of which GPTQ is the form
// with one order for all rows.
type obq struct {
	Grid affine
	Damp float64
	// Ordered takes the columns in their order: what GPTQ computes, another way.
	Ordered bool
}

func (obq) Name() string { return "obq" }

func (p obq) Settings() string { return settings(p.Grid, "damp=%g ordered=%v", p.Damp, p.Ordered) }

// Transform implements Pass: nothing changes.
func (obq) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p obq) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	u, _, err := in.inverseFactor(inOrderOf(m.Cols), p.Damp, threads)
	if err != nil {
		return "", err
	}
	n := m.Cols
	inverse := make([]float64, n*n) // UᵀU
	for k := range n {
		row := u.row(k)
		for i, v := range row {
			for j, w := range row {
				inverse[(k+i)*n+k+j] += v * w
			}
		}
	}
	m.bytes = p.Grid.bytes(m.Rows, n)
	parallel(m.Rows, threads, func(r int) {
		w := make([]float64, n)
		for c, v := range m.row(r) {
			w[c] = float64(v)
		}
		p.row(w, inverse)
		for c, v := range w {
			m.setFloat(r, c, v)
		}
	})
	return "", nil
}

// row rounds w and returns the order in which it did.
func (p obq) row(w, inverse []float64) (order []int) {
	n := len(w)
	low, step := p.Grid.early(w)
	// What is left stays packed: column left[i] is row i of h.
	h, left := append([]float64(nil), inverse...), inOrderOf(n)
	for k := n; k > 0; k-- {
		next, least := 0, 0.0
		for i, c := range left {
			e := w[c] - p.Grid.nearest(w[c], low[c], step[c])
			if cost := e * e / h[i*k+i]; i == 0 || cost < least && !p.Ordered {
				next, least = i, cost
			}
		}
		c := left[next]
		q := p.Grid.nearest(w[c], low[c], step[c])
		pivot := h[next*k : (next+1)*k]
		e := (w[c] - q) / pivot[next]
		for i, other := range left {
			w[other] -= e * pivot[i]
		}
		w[c] = q
		order, left = append(order, c), append(left[:next], left[next+1:]...)
		h = without(h, k, next)
	}
	return order
}

// without takes variable p out of the inverse of k of them, by elimination.
func without(h []float64, k, p int) []float64 {
	out := make([]float64, 0, (k-1)*(k-1))
	for i := range k {
		if i == p {
			continue
		}
		f := h[i*k+p] / h[p*k+p]
		for j := range k {
			if j != p {
				out = append(out, h[i*k+j]-f*h[p*k+j])
			}
		}
	}
	return out
}

// early returns the lows and steps of all columns of a row, fitted to what it is.
func (a affine) early(w []float64) (low, step []float64) {
	low, step = make([]float64, len(w)), make([]float64, len(w))
	for at := 0; at < len(w); at += a.Group {
		end := min(at+a.Group, len(w))
		l, s := a.fit(w[at:end], nil)
		for c := at; c < end; c++ {
			low[c], step[c] = l, s
		}
	}
	return low, step
}
