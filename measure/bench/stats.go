package bench

import (
	"math"
	"slices"
)

// Spread is what repeated measurements of one quantity say.
type Spread struct {
	Median float64 `json:"median"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"` // of the sample, 0 for a single measurement
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf summarizes x, which is not changed. Without measurements all
// numbers are 0.
func SpreadOf(x []float64) Spread {
	if len(x) == 0 {
		return Spread{}
	}
	s := Spread{Median: quantile(x, 0.5), Min: slices.Min(x), Max: slices.Max(x)}
	for _, v := range x {
		s.Mean += v / float64(len(x))
	}
	if len(x) > 1 {
		for _, v := range x {
			s.StdDev += (v - s.Mean) * (v - s.Mean)
		}
		s.StdDev = math.Sqrt(s.StdDev / float64(len(x)-1))
	}
	return s
}

// quantile returns the value below which the part q of x lies, by linear
// interpolation between neighbours; 0 for an empty x.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Clone(x)
	slices.Sort(s)
	at := q * float64(len(s)-1)
	i := min(int(at), len(s)-1)
	if i == len(s)-1 {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// perSecond turns durations of n things into things per second.
func perSecond(n int, seconds []float64) []float64 {
	out := make([]float64, len(seconds))
	for i, s := range seconds {
		if s > 0 {
			out[i] = float64(n) / s
		}
	}
	return out
}
