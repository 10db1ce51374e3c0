package quantized

import (
	"math"

	"ridge/weights/tensor"
)

// floats is a matrix whose values are computed one by one and rounded to a type.
type floats struct {
	typ        tensor.DType
	nrow, ncol int
	why        string // it is no block format
	prepare    func() error
	row        func(dst []float32, row int)
}

func (m *floats) plan() error {
	if m.prepare == nil {
		return nil
	}
	return m.prepare()
}

func (m *floats) mat() tensor.Mat { return tensor.Mat{Type: m.typ, Rows: m.nrow, Cols: m.ncol} }
func (m *floats) wide() string    { return m.why }

func (m *floats) rows(dst []byte, lo, hi int) {
	row, size := make([]float32, m.ncol), m.typ.RowBytes(m.ncol)
	for r := lo; r < hi; r++ {
		m.row(row, r)
		_ = m.typ.Encode(dst[:size], row) // plain numbers take any value
		dst = dst[size:]
	}
}

// Tables of the values of 8-bit floats, by code.
var (
	valuesE4M3 = floatTable(4, 7, true)
	valuesE5M2 = floatTable(5, 15, false)
)

// floatTable returns the values of the 256 codes of floats with a sign, so many
// bits of exponent, and the rest of mantissa. Such a format either has infinities
// and NaNs as IEEE 754 does, or only the last code of either sign is NaN.
func floatTable(exponent, bias int, finite bool) (t [256]float32) {
	mantissa := 7 - exponent
	for i := range t {
		e, m := i>>mantissa&(1<<exponent-1), i&(1<<mantissa-1)
		var v float64
		switch {
		case finite && i&127 == 127, !finite && e == 1<<exponent-1 && m != 0:
			v = math.NaN()
		case !finite && e == 1<<exponent-1:
			v = math.Inf(1)
		case e == 0:
			v = math.Ldexp(float64(m), 1-bias-mantissa)
		default:
			v = math.Ldexp(float64(m+1<<mantissa), e-bias-mantissa)
		}
		if i > 127 {
			v = -v
		}
		t[i] = float32(v)
	}
	return t
}

// valuesE2M1 are the values of the 4-bit floats of MXFP4 and NVFP4.
var valuesE2M1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// powerOfTwo returns what an exponent of 8 bits (E8M0) stands for.
func powerOfTwo(e byte) float32 {
	if e == 255 {
		return float32(math.NaN())
	}
	return float32(math.Ldexp(1, int(e)-127))
}

// table8 returns the values of the codes of a tensor of 8-bit floats.
func (x part) table8() *[256]float32 {
	if x.Type == "F8_E5M2" {
		return &valuesE5M2
	}
	return &valuesE4M3
}

// numbers returns all values of a tensor of floats of any size. Bytes are
// exponents.
func (x part) numbers() []float32 {
	if _, ok := x.DType(); ok {
		return x.floats()
	}
	out := make([]float32, x.count())
	for i := range out {
		switch x.Type {
		case "F8_E4M3", "F8_E5M2":
			out[i] = x.table8()[x.data[i]]
		default:
			out[i] = powerOfTwo(x.data[i])
		}
	}
	return out
}
