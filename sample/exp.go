package sample

import "math"

// exp tables: 2^(i/64).
var pow2 = func() (t [64]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 64)
	}
	return t
}()

// exp is e^x for x <= 0, to a relative error of about 1e-13, and 0 below
// -700. A vocabulary has a quarter of a million logits: this is three times
// as fast as math.Exp. Products are rounded before they are added, so that
// every platform computes the same.
func exp(x float64) float64 {
	if !(x > -700) {
		return 0
	}
	n := int64(float64(x*(64/math.Ln2)) - 0.5)
	r := x - float64(float64(n)*(math.Ln2/64))
	p := 1 + float64(r*(1+float64(r*(0.5+float64(r*(1.0/6+float64(r*(1.0/24))))))))
	return math.Float64frombits(math.Float64bits(pow2[n&63]*p) + uint64(n>>6)<<52)
}
