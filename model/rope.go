package model

import "math"

// frequencies returns the inverse frequencies of a rotary set for dim rotated
// elements, and the factor of cos and sin. ctx is the number of positions that
// will be used: longrope picks its factors by it. factors, when not nil, divide
// the frequencies (the tensor rope_freqs of GGUF files).
//
// Formulas: RoPE (Su et al. 2021), position interpolation (Chen et al. 2023),
// YaRN (Peng et al. 2023), LongRoPE (Ding et al. 2024) and Llama 3.1's scaling,
// as Hugging Face transformers computes them.
func (r *RopeConfig) frequencies(dim, ctx int, factors []float32) (inv []float32, scale float32) {
	s := &r.Scaling
	inv = make([]float32, dim/2)
	scale = 1
	base := r.Base
	if s.Kind == "dynamic" && ctx > s.Original && s.Original > 0 {
		grown := s.Factor*float64(ctx)/float64(s.Original) - (s.Factor - 1)
		base *= math.Pow(grown, float64(dim)/float64(dim-2))
	}
	for i := range inv {
		inv[i] = float32(1 / math.Pow(base, float64(2*i)/float64(dim)))
	}
	switch s.Kind {
	case "linear":
		for i := range inv {
			inv[i] /= float32(s.Factor)
		}
	case "llama3":
		for i := range inv {
			inv[i] = llama3Frequency(inv[i], s)
		}
	case "yarn":
		yarn(inv, dim, base, s)
		scale = yarnScale(s)
	case "longrope":
		factors = s.Short
		if ctx > s.Original && s.Original > 0 {
			factors = s.Long
		}
		scale = float32(s.AttnFactor)
		if s.AttnFactor == 0 {
			scale = 1
			if s.Factor > 1 && s.Original > 1 {
				scale = float32(math.Sqrt(1 + math.Log(s.Factor)/math.Log(float64(s.Original))))
			}
		}
	}
	for i := range min(len(inv), len(factors)) {
		inv[i] /= factors[i]
	}
	return inv, scale
}

func llama3Frequency(f float32, s *RopeScaling) float32 {
	wavelen := 2 * math.Pi / float64(f)
	low, high := float64(s.Original)/s.LowFreq, float64(s.Original)/s.HighFreq
	switch {
	case wavelen < high:
		return f
	case wavelen > low:
		return float32(float64(f) / s.Factor)
	}
	smooth := (float64(s.Original)/wavelen - s.LowFreq) / (s.HighFreq - s.LowFreq)
	return float32((1-smooth)*float64(f)/s.Factor + smooth*float64(f))
}

// yarn blends interpolated frequencies (slow dimensions) and the original ones
// (fast dimensions) along a ramp.
func yarn(inv []float32, dim int, base float64, s *RopeScaling) {
	border := func(rotations float64) float64 {
		return float64(dim) * math.Log(float64(s.Original)/(rotations*2*math.Pi)) / (2 * math.Log(base))
	}
	low, high := border(s.BetaFast), border(s.BetaSlow)
	if !s.NoTruncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(dim-1))
	if low == high {
		high += 0.001
	}
	for i := range inv {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		f := float64(inv[i])
		inv[i] = float32(f/s.Factor*ramp + f*(1-ramp))
	}
}

func yarnScale(s *RopeScaling) float32 {
	if s.AttnFactor != 0 {
		return float32(s.AttnFactor)
	}
	m := func(k float64) float64 {
		if s.Factor <= 1 {
			return 1
		}
		return 0.1*k*math.Log(s.Factor) + 1
	}
	if s.MScale != 0 && s.MScaleAll != 0 {
		return float32(m(s.MScale) / m(s.MScaleAll))
	}
	return float32(m(1))
}
