package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Arrivals is a process of arrivals that do not wait for answers: the times
// between them have a gamma distribution. With a burstiness of 1 they are
// those of a Poisson process; below it requests come in bursts, above it more
// evenly; the coefficient of variation is 1/√burstiness, as in vLLM's
// benchmark.
type Arrivals struct {
	Rate       float64 // sessions per second, above 0
	Burstiness float64 // 0 means 1
	Seed       uint64
}

func (a Arrivals) check() error {
	if !(a.Rate > 0) || math.IsInf(a.Rate, 0) {
		return fmt.Errorf("load: rate: expected sessions per second above 0, found %v", a.Rate)
	}
	if a.Burstiness < 0 || a.Burstiness > 1e6 || math.IsNaN(a.Burstiness) || a.Burstiness > 0 && a.Burstiness < 1e-3 {
		return fmt.Errorf("load: burstiness: expected 0.001 to 1e6, found %v", a.Burstiness)
	}
	return nil
}

// Times returns a function that returns the times of arrival, one by one. The
// first comes after a gap, too.
func (a Arrivals) Times() func() time.Duration {
	rng := rand.New(rand.NewPCG(a.Seed, 0xa11))
	shape := a.Burstiness
	if shape == 0 {
		shape = 1
	}
	at := 0.0
	return func() time.Duration {
		at += gamma(rng, shape) / (shape * a.Rate)
		return time.Duration(at * float64(time.Second))
	}
}

// gamma draws from the gamma distribution of the given shape and scale 1:
// Marsaglia and Tsang 2000, A simple method for generating gamma variables.
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape == 1 {
		return rng.ExpFloat64()
	}
	if shape < 1 { // their section 6: a power of a uniform number lowers the shape by one
		u := 1 - rng.Float64() // above 0
		return gamma(rng, shape+1) * math.Pow(u, 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		if math.Log(1-rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}
