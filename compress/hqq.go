package compress

import (
	"encoding/binary"
	"errors"
	"math"

	"ridge/weights/tensor"
)

// HQQ moves the zero of each block so that many small errors and few large ones remain:
// codes and zero are fitted in turns, with the errors shrunk as a norm below 1 asks
// (Badri and Shaji, Half-Quadratic Quantization, 2023). It reads no text. Steps are those
// of plain rounding. It works on Q4_1 and Q5_1, whose blocks have a lowest value.
type HQQ struct{}

func (HQQ) Name() string { return "hqq" }

func (HQQ) Settings() string { return "norm=0.7 turns=20" }

// Transform implements Pass: nothing changes.
func (HQQ) Transform(*Layer) error { return nil }

const (
	hqqNorm  = 0.7
	hqqTurns = 20
	hqqBeta  = 10 // of the first turn
	hqqKappa = 1.01
)

// Round implements Pass.
func (HQQ) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	if m.Type != tensor.Q4_1 && m.Type != tensor.Q5_1 {
		return "plain: " + m.Type.String() + " has no lowest value of its own for each block", m.plain(threads)
	}
	g := gridOf(m.Type)
	errs := make([]error, m.Rows)
	parallel(m.Rows, threads, func(r int) {
		for at := 0; at < m.Cols; at += g.n {
			x, block := m.row(r)[at:at+g.n], m.block(r, at, g)
			if errs[r] = m.Type.Encode(block, x); errs[r] != nil { // refuses what is not finite
				return
			}
			d, least := hqqFit(x, g.highest(0))
			binary.LittleEndian.PutUint16(block, tensor.F32ToF16(float32(d)))
			binary.LittleEndian.PutUint16(block[2:], tensor.F32ToF16(float32(least)))
			for i, v := range x {
				g.put(block, i, g.nearest(i, float64(v), float32(half(least)), float32(half(d))))
			}
		}
	})
	return "", errors.Join(errs...)
}

// hqqFit returns the step and the lowest value of a block with codes up to highest.
func hqqFit(x []float32, highest int) (d, least float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range x {
		lo, hi = min(lo, float64(v)), max(hi, float64(v))
	}
	if d = (hi - lo) / float64(highest); d == 0 {
		return 0, lo
	}
	zero, best, lowest, beta := -lo/d, -lo/d, math.Inf(1), float64(hqqBeta)
	for range hqqTurns {
		loss, next := 0.0, 0.0
		for _, v := range x {
			w := float64(v)
			q := min(max(math.Floor(w/d+zero+0.5), 0), float64(highest))
			e := w - (q-zero)*d
			loss += math.Abs(e)
			if e != 0 {
				e = math.Copysign(max(math.Abs(e)-math.Pow(math.Abs(e), hqqNorm-1)/beta, 0), e)
			}
			next += q - (w-e)/d
		}
		if loss >= lowest {
			break
		}
		lowest, best = loss, zero
		zero, beta = next/float64(len(x)), beta*hqqKappa
	}
	return d, -best * d
}
