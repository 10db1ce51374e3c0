package compress

import (
	"fmt"
	"math"
)

// quantEase begins with GPTQ's codes and moves one code of a row after the other to
// where the error of the outputs is least while all others stay, in some sweeps over
// the columns or until nothing moves (Behdin et al., QuantEase, 2023). Each move lowers the
// error. Lows and steps stay those that GPTQ fitted.
type quantEase struct {
	Sweeps int
	Damp   float64 // as of GPTQ
}

func (quantEase) Name() string { return "quantease" }

func (p quantEase) Settings() string { return fmt.Sprintf("sweeps=%d damp=%g", p.Sweeps, p.Damp) }

// Transform implements Pass: nothing changes.
func (quantEase) Transform(*Layer) error { return nil }

// Round implements Pass.
func (p quantEase) Round(m *Matrix, in *Inputs, threads int) (string, error) {
	note, err := GPTQ{Damp: p.Damp}.Round(m, in, threads)
	g := gridOf(m.Type)
	if err != nil || g == nil {
		return note, err
	}
	h := in.square(p.Damp)
	parallel(m.Rows, threads, func(r int) {
		c := newCoded(m, r, g, h)
		for range p.Sweeps {
			if !c.sweep() {
				break
			}
		}
		c.write(m, r)
	})
	return note, nil
}

// square returns XᵀX as a whole, [Cols][Cols], with damping times the mean of its
// diagonal added to it.
func (in *Inputs) square(damp float64) []float64 {
	n, mean := in.Cols, 0.0
	h := make([]float64, n*n)
	for i := range n {
		for j, v := range in.products.row(i) {
			h[i*n+i+j], h[(i+j)*n+i] = v, v
		}
		mean += h[i*n+i] / float64(n)
	}
	for i := range n {
		h[i*n+i] += damp * mean
	}
	return h
}

// coded is a row whose codes are searched, with its lows and steps as they are.
type coded struct {
	g         *grid
	low, step []float32
	w         []float64 // the weights
	code      []int
	d         []float64 // errors of their values
	h         []float64 // XᵀX
	slope     []float64 // d XᵀX: half of what the error of the outputs grows with a value
}

// newCoded reads row r of what m.Out holds.
func newCoded(m *Matrix, r int, g *grid, h []float64) *coded {
	n := m.Cols
	c := &coded{g: g, low: make([]float32, n), step: make([]float32, n), w: make([]float64, n), code: make([]int, n), d: make([]float64, n), h: h, slope: make([]float64, n)}
	x, block := make([]float32, g.n), make([]byte, g.bytes)
	for at := 0; at < n; at += g.n {
		copy(block, m.block(r, at, g))
		m.Type.Decode(x, block)
		g.params(block, c.low[at:at+g.n], c.step[at:at+g.n])
		for i, v := range x {
			c.w[at+i] = float64(m.row(r)[at+i])
			c.code[at+i] = g.nearest(i, float64(v), c.low[at+i], c.step[at+i])
		}
	}
	for t := range n {
		c.d[t] = c.value(t, c.code[t]) - c.w[t]
		c.spread(t, c.d[t])
	}
	return c
}

func (c *coded) value(t, code int) float64 {
	return float64(c.low[t]) + float64(code)*float64(c.step[t])
}

// spread adds to the slopes what an error of column t that grew by so much does.
func (c *coded) spread(t int, by float64) {
	for j, v := range c.h[t*len(c.w):][:len(c.w)] {
		c.slope[j] += by * v
	}
}

// set changes the code of column t.
func (c *coded) set(t, code int) {
	d := c.value(t, code) - c.w[t]
	c.spread(t, d-c.d[t])
	c.d[t], c.code[t] = d, code
}

// sweep moves each code to the nearest of where the error is least; false if none moved.
func (c *coded) sweep() (moved bool) {
	n := len(c.w)
	for t := range n {
		curve := c.h[t*n+t]
		if curve == 0 {
			continue
		}
		best := c.w[t] + c.d[t] - c.slope[t]/curve
		code := c.g.nearest(t%c.g.n, best, c.low[t], c.step[t])
		// Of codes as good as each other the one that is there stays: sweeps end.
		if code != c.code[t] && math.Abs(c.value(t, code)-best) < math.Abs(c.value(t, c.code[t])-best)*(1-1e-9) {
			c.set(t, code)
			moved = true
		}
	}
	return moved
}

// loss returns the error of the outputs.
func (c *coded) loss() float64 {
	sum := 0.0
	for t, d := range c.d {
		sum += d * c.slope[t]
	}
	return sum
}

// write puts the codes into row r of m.Out.
func (c *coded) write(m *Matrix, r int) {
	for t, code := range c.code {
		i := t % c.g.n
		c.g.put(m.block(r, t-i, c.g), i, code)
	}
}
