package compress

import "math"

// nf4 gives each weight one of sixteen values that are the quantiles of a normal
// distribution, times the largest magnitude of its group of 64 (Dettmers et al., QLoRA,
// 2023). With Double the magnitudes themselves are rounded to bytes: less their mean, with a step
// for 256 of them (the paper has floats of 8 bits; here they are integers). Counted: codes,
// and a float32, or a byte, for a group; with Double a float32 for 256 of them and one for the mean.
type nf4 struct{ Double bool }

// Name says whether magnitudes are rounded.
func (p nf4) Name() string {
	if p.Double {
		return "nf4-double"
	}
	return "nf4"
}

// Settings has nothing to say.
func (nf4) Settings() string { return "" }

// Transform implements Pass: nothing changes.
func (nf4) Transform(*Layer) error { return nil }

const (
	nf4Group  = 64
	nf4Scales = 256 // magnitudes that share a step
)

// nf4Values are the quantiles of both halves of a normal distribution, so that zero is
// one of them, over the largest.
var nf4Values = func() (v []float64) {
	const end = 0.9677083 // as the paper's program has it
	quantile := func(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }
	for i := range 7 { // negative ones: eight points from the end to a half, without the half
		v = append(v, -quantile(end-float64(i)*(end-0.5)/7))
	}
	v = append(v, 0)
	for i := range 8 { // positive ones: nine points, without the half
		v = append(v, quantile(0.5+float64(i+1)*(end-0.5)/8))
	}
	for i := range v {
		v[i] /= quantile(end)
	}
	return v
}()

// Round implements Pass.
func (p nf4) Round(m *Matrix, _ *Inputs, threads int) (string, error) {
	if err := m.reference(); err != nil {
		return "", err
	}
	groups := (m.Cols + nf4Group - 1) / nf4Group
	scales := make([]float64, m.Rows*groups)
	for i, v := range m.W {
		at := i/m.Cols*groups + i%m.Cols/nf4Group
		scales[at] = max(scales[at], math.Abs(float64(v)))
	}
	m.bytes = (len(m.W)+1)/2 + 4*len(scales)
	if p.Double {
		m.bytes = (len(m.W)+1)/2 + len(scales) + 4*((len(scales)+nf4Scales-1)/nf4Scales) + 4
		bytesOf(scales)
	}
	parallel(m.Rows, threads, func(r int) {
		for c, v := range m.row(r) {
			scale, best := scales[r*groups+c/nf4Group], 0
			for k, x := range nf4Values {
				if math.Abs(x*scale-float64(v)) < math.Abs(nf4Values[best]*scale-float64(v)) {
					best = k
				}
			}
			m.setFloat(r, c, nf4Values[best]*scale)
		}
	})
	return "", nil
}

// bytesOf rounds magnitudes as NF4's second quantization does.
func bytesOf(x []float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	mean = float64(float32(mean))
	for at := 0; at < len(x); at += nf4Scales {
		part := x[at:min(at+nf4Scales, len(x))]
		most := 0.0
		for _, v := range part {
			most = max(most, math.Abs(v-mean))
		}
		step := float64(float32(most / 127))
		for i, v := range part {
			if step > 0 {
				part[i] = mean + step*math.RoundToEven((v-mean)/step)
			}
		}
	}
}
