package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"ridge/weights/tensor"
)

// A recurrent block is that of its definition, over several sequences, in one piece
// and in pieces with the same bits, on any number of workers.
func TestRGLRU(t *testing.T) {
	const hidden, heads, width, taps = 32, 3, 16, 4
	r := rand.New(rand.NewPCG(19, 1))
	x, y := newMatrix(t, r, tensor.F32, heads*width, hidden, true), newMatrix(t, r, tensor.F32, heads*width, hidden, true)
	in, stay := newMatrix(t, r, tensor.F32, heads*width, width, true), newMatrix(t, r, tensor.F32, heads*width, width, true)
	m := &RGLRU{
		X: x.Linear, Y: y.Linear, Conv: randomConv(r, heads*width, taps), Heads: heads, In: in.Linear, Stay: stay.Linear,
		Rate: randomRow(r, heads*width), Out: newMatrix(t, r, tensor.F32, hidden, heads*width, false).Linear,
	}
	m.Conv.Plain = true
	for i, v := range m.Rate {
		m.Rate[i] = -v*v - 0.01
	}
	rows := randomActs(r, 80, hidden)
	mixes(t, m, rows, []int{9, 1, 70}, func(first, n int) (out [][]float64) {
		var scanned [][]float64
		for i := range n {
			scanned = append(scanned, x.times(values(rows, first+i)))
		}
		state := make([]float64, heads*width)
		for i, v := range m.Conv.naive(scanned) {
			row, gate := make([]float64, len(state)), y.times(values(rows, first+i))
			for h := range heads {
				part := v[h*width : (h+1)*width]
				write, kept := in.times(part), stay.times(part) // of all heads: those of this one count
				for c := h * width; c < (h+1)*width; c++ {
					a := math.Exp(float64(m.Rate[c]) / (1 + math.Exp(-kept[c])))
					w := v[c] / (1 + math.Exp(-write[c]))
					if i > 0 {
						w *= math.Sqrt(1 - a*a)
					}
					state[c] = a*state[c] + w
					g := gate[c]
					row[c] = state[c] * g / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(g+0.044715*g*g*g)))
				}
			}
			out = append(out, row)
		}
		return out
	})
}
