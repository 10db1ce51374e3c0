package model

import (
	"cmp"
	"math"

	"ridge/nn"
)

// RopeScaling says how rotary frequencies are stretched beyond the context
// that a model was trained on.
type RopeScaling struct {
	Kind     string  // "", "linear", "llama3", "yarn", "longrope", "dynamic" or "proportional"
	Factor   float64 // how many times longer the context gets
	Original int     // context that the model was trained on

	LowFreq, HighFreq  float64 // llama3
	BetaFast, BetaSlow float64 // yarn
	AttnFactor         float64 // yarn, longrope: given scale of cos and sin; 0 means computed
	MScale, MScaleAll  float64 // yarn: DeepSeek's pair; 0 means absent
	Part               float64 // proportional: of the frequencies that rotate
	NoTruncate         bool    // yarn: borders of the ramp are not rounded
	Short, Long        []float32
}

// RopeConfig is one set of rotary frequencies.
type RopeConfig struct {
	Base    float64
	Dim     int // elements of a head that are rotated; 0: Config.RopeDim
	Scaling RopeScaling
}

// rope reads the main set of rotary frequencies.
func (d *description) rope(c *Config) RopeConfig {
	if d.hf {
		return d.ropeOf(cmp.Or(d.object("rope_scaling"), d.object("rope_parameters")), c)
	}
	// A number that is 0 stands for none: llama.cpp writes all there are.
	r := RopeConfig{Base: cmp.Or(d.float("rope.freq_base|rope.global.freq_base", "", 0), 10000)}
	s := &r.Scaling
	s.Kind = d.str("rope.scaling.type", "", "linear")
	s.Factor = cmp.Or(d.float("rope.scaling.factor|rope.scale_linear", "", 0), 1)
	if s.Kind == "none" || s.Kind == "linear" && s.Factor == 1 {
		s.Kind = ""
	}
	s.Original = cmp.Or(d.int("rope.scaling.original_context_length", "", 0), c.Context)
	s.BetaFast = cmp.Or(d.float("rope.scaling.yarn_beta_fast", "", 0), 32)
	s.BetaSlow = cmp.Or(d.float("rope.scaling.yarn_beta_slow", "", 0), 1)
	s.AttnFactor = d.attnFactor(s)
	switch s.Kind {
	case "", "linear", "yarn", "longrope":
	default:
		d.fail("rope.scaling.type", "none, linear, yarn or longrope", s.Kind)
	}
	return r
}

// attnFactor reads the scale of cos and sin from a GGUF file, 0 for the one that
// follows from the factor. Converters write that of a config.json as
// yarn_attn_factor, and llama.cpp 1 where there is none. The other key has a
// multiplier of YaRN's scale, and with LongRoPE the scale itself.
func (d *description) attnFactor(s *RopeScaling) float64 {
	given := d.float("rope.scaling.yarn_attn_factor", "", 0)
	times := d.float("rope.scaling.attn_factor", "", 0)
	switch {
	case given != 0 && given != 1:
		return given
	case s.Kind != "yarn":
		return cmp.Or(times, given)
	case times != 0 && times != 1:
		return times * float64(yarnScale(s))
	}
	return 0
}

// ropeOf reads a set of rotary frequencies of a config.json: newer ones have an
// object p of parameters, older ones, without it, rope_theta and rope_scaling.
func (d *description) ropeOf(p *description, c *Config) RopeConfig {
	r := RopeConfig{Base: d.float("", "rotary_emb_base|rope_theta", 10000)}
	const original = "original_max_position_embeddings"
	trained := d.int("", original, c.Context)
	if p == nil {
		p = d.object("rope_scaling")
	}
	if p == nil {
		return r
	}
	r.Base = p.float("", "rope_theta", r.Base)
	s := &r.Scaling
	switch s.Kind = p.str("", "rope_type|type", ""); s.Kind {
	case "default":
		s.Kind = ""
	case "su":
		s.Kind = longRope
	case "", "linear", "llama3", "yarn", "longrope", "dynamic", "proportional":
	default:
		p.fail("rope_type", "default, linear, dynamic, llama3, yarn, longrope or proportional", s.Kind)
	}
	s.Factor = p.float("", "factor", 1)
	s.Original = p.int("", original, trained)
	s.LowFreq, s.HighFreq = p.float("", "low_freq_factor", 1), p.float("", "high_freq_factor", 4)
	s.BetaFast, s.BetaSlow = p.float("", "beta_fast", 32), p.float("", "beta_slow", 1)
	s.AttnFactor = p.float("", "attention_factor", 0)
	s.MScale, s.MScaleAll = p.float("", "mscale", 0), p.float("", "mscale_all_dim", 0)
	s.NoTruncate = !p.bool("", "truncate", true)
	s.Short, s.Long = p.floats("short_factor"), p.floats("long_factor")
	if s.Kind == "proportional" {
		s.Part = p.float("", "partial_rotary_factor", 1)
	}
	if s.Kind == dynamic {
		s.Original = c.Context // whatever else is given, as in transformers
	}
	if s.Kind == longRope && s.Original > 0 && !p.has("", "factor") {
		s.Factor = float64(c.Context) / float64(s.Original)
	}
	return r
}

// ropePerType reads a rotary set for each type of layer from a config.json that has
// them: the main one of those that see all, which becomes the first of c, and that
// of those with a window, which is local if there is none.
func (d *description) ropePerType(c *Config, local RopeConfig) RopeConfig {
	p := d.object("rope_parameters")
	if p == nil {
		return local
	}
	if d.object("rope_scaling") != nil {
		d.fail("rope_scaling", "nothing beside rope_parameters", "both")
	}
	if full := p.object("full_attention"); full != nil {
		c.Rope[0] = d.ropeOf(full, c)
	}
	if sliding := p.object("sliding_attention"); sliding != nil {
		local = d.ropeOf(sliding, c)
	}
	return local
}

// rotation returns the rotation of dim elements of each head by a rotary set.
// factors, when not nil, divide the frequencies (the tensor rope_freqs of GGUF
// files).
//
// LongRoPE and dynamic NTK scaling follow the length of the sequence, as in
// transformers: up to the original context its frequencies are the short ones, or
// those of the base; beyond it the long ones, or those of a base that grows with
// the length.
func (r *RopeConfig) rotation(style nn.RopeStyle, dim int, factors []float32) *nn.Rope {
	s := &r.Scaling
	rope := &nn.Rope{Style: style}
	if s.Kind == longRope {
		factors = s.Short
	}
	rope.Inv, rope.Scale = r.frequencies(r.Base, dim, factors)
	if s.Original <= 0 {
		return rope
	}
	switch s.Kind {
	case longRope:
		long, _ := r.frequencies(r.Base, dim, s.Long)
		rope.Limit, rope.Grow = s.Original, func(inv []float32, _ int) { copy(inv, long) }
	case dynamic:
		rope.Limit, rope.Grow = s.Original, func(inv []float32, length int) {
			grown := s.Factor*float64(length)/float64(s.Original) - (s.Factor - 1)
			fill(inv, r.Base*math.Pow(grown, float64(dim)/float64(dim-2)), dim)
			divide(inv, factors)
		}
	}
	return rope
}

// The kinds of scaling that follow the length of the sequence.
const (
	longRope = "longrope"
	dynamic  = "dynamic"
)

// RopeLength returns the length for which a sequence is rotated that has so many
// tokens, prompt of them to begin with: see [Run.Length]. It is 0 as long as the
// model does not look at it. Keys of sequences that are rotated for different
// lengths are different; a sequence for which it changes as it grows must be
// computed again from its first token.
func (m *Model) RopeLength(prompt, tokens int) int {
	length := 0
	for i, r := range m.ropes {
		switch {
		case r.Grow == nil:
		case m.cfg.Rope[i].Scaling.Kind == dynamic && prompt > r.Limit:
			// The base grows with each token of the answer, and keys keep theirs.
			length = max(length, prompt)
		case m.cfg.Rope[i].Scaling.Kind == longRope && tokens > r.Limit:
			length = max(length, r.Limit+1)
		}
	}
	return length
}

// frequencies returns the inverse frequencies of a base for dim rotated elements,
// and the factor of cos and sin.
//
// Formulas: RoPE (Su et al. 2021), position interpolation (Chen et al. 2023),
// YaRN (Peng et al. 2023), LongRoPE (Ding et al. 2024) and Llama 3.1's scaling,
// as Hugging Face transformers computes them.
func (r *RopeConfig) frequencies(base float64, dim int, factors []float32) (inv []float32, scale float32) {
	s := &r.Scaling
	inv = make([]float32, dim/2)
	scale = 1
	fill(inv, base, dim)
	switch s.Kind {
	case "linear", "proportional":
		for i := range inv {
			inv[i] /= float32(s.Factor)
		}
		if s.Kind == "proportional" {
			clear(inv[min(int(s.Part*float64(dim)/2), len(inv)):])
		}
	case "llama3":
		for i := range inv {
			inv[i] = llama3Frequency(inv[i], s)
		}
	case "yarn":
		yarn(inv, dim, base, s)
		scale = yarnScale(s)
	case longRope:
		scale = float32(s.AttnFactor)
		if s.AttnFactor == 0 {
			scale = 1
			if s.Factor > 1 && s.Original > 1 {
				scale = float32(math.Sqrt(1 + math.Log(s.Factor)/math.Log(float64(s.Original))))
			}
		}
	}
	divide(inv, factors)
	return inv, scale
}

// fill fills inv with the inverse frequencies of a base.
func fill(inv []float32, base float64, dim int) {
	for i := range inv {
		inv[i] = float32(1 / math.Pow(base, float64(2*i)/float64(dim)))
	}
}

// divide divides frequencies by factors, as many as there are.
func divide(inv, factors []float32) {
	for i := range min(len(inv), len(factors)) {
		inv[i] /= factors[i]
	}
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
