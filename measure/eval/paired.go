package eval

import "math"

// Paired says how two models differ on the same tokens: the second minus the first,
// so that what is negative is for the second.
type Paired struct {
	// KL is of the divergences from the base model, NLL of the negative
	// log-likelihoods of the tokens that came; both in nats a token. The ratio of the
	// perplexities is exp(NLL.Mean).
	KL  Difference `json:"kl"`
	NLL Difference `json:"nll"`

	Tokens  int `json:"tokens"`
	Windows int `json:"windows"`
}

// Difference is the mean of differences and where it lies with 95% confidence.
type Difference struct {
	Mean   float64 `json:"mean"`
	StdErr float64 `json:"std_err"` // windows are the observations
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// Verdict says in a word which way the difference goes: "lower", "higher", or "no
// difference" if the interval reaches 0.
func (d Difference) Verdict() string {
	switch {
	case d.High < 0:
		return "lower"
	case d.Low > 0:
		return "higher"
	}
	return "no difference"
}

// pair compares the tokens of a model with those of the first one.
func pair(c, first *comparison, wins []window) Paired {
	return Paired{
		KL: differences(c.kl, first.kl, wins), NLL: differences(c.nll, first.nll, wins),
		Tokens: len(c.kl), Windows: len(wins),
	}
}

// differences returns the mean of x-y. Tokens of a window depend on each other, so
// its standard error is that of a ratio of sums over windows (Cochran, Sampling
// Techniques, 1977, section 9A), and the interval is Student's with a degree of
// freedom less than there are windows. There must be two
// windows at least.
func differences(x, y []float64, wins []window) Difference {
	sum := 0.0
	for i := range x {
		sum += x[i] - y[i]
	}
	n, g := float64(len(x)), float64(len(wins))
	d := Difference{Mean: sum / n}
	at, squares := 0, 0.0
	for _, w := range wins {
		part := 0.0
		for range w.rows() {
			part += x[at] - y[at] - d.Mean
			at++
		}
		squares += part * part
	}
	d.StdErr = math.Sqrt(squares*g/(g-1)) / n
	half := student95(len(wins)-1) * d.StdErr
	d.Low, d.High = d.Mean-half, d.Mean+half
	return d
}

// student95 returns the 97.5% quantile of Student's distribution with v degrees of
// freedom, to 0.1% from three on (Abramowitz and Stegun 26.7.5).
func student95(v int) float64 {
	switch v {
	case 1:
		return 12.706205
	case 2:
		return 4.302653
	}
	const z = 1.959964
	n, z3, z5, z7 := float64(v), z*z*z, z*z*z*z*z, z*z*z*z*z*z*z
	return z + (z3+z)/(4*n) + (5*z5+16*z3+3*z)/(96*n*n) + (3*z7+19*z5+17*z3-15*z)/(384*n*n*n) +
		(79*z7*z*z+776*z7+1482*z5-1920*z3-945*z)/(92160*n*n*n*n)
}
