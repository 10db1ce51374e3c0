package model

import (
	"fmt"
	"math"
	"slices"

	"ridge/kernel"
	"ridge/nn"
	"ridge/weights/tensor"
)

// stateConfig says which layers keep a state of fixed size in place of keys and
// values, or beside them, and what it looks like.
type stateConfig struct {
	Layers []bool // nil: none
	Inner  int    // width of what is scanned
	States int    // of a column, or of a group of heads
	Taps   int    // rows that a convolution in front sums, itself included
	Rank   int    // of time steps
	Heads  int    // of the scan, which shares rates of decay
	Groups int    // of heads that share what is written and read

	Tiled        bool    // heads of values of one of keys do not lie side by side
	Beside       bool    // layers with a state have attention beside it
	NormGroups   bool    // rows are normalized by the groups of heads
	NormFirst    bool    // rows are normalized before the gate
	NormRanks    bool    // time steps and what is written and read are normalized
	NormEps      float32 // of these norms
	DtMin, DtMax float32 // limits of time steps, DtMax 0 for none
	HalfEvery    int     // rows are halved behind every so many layers, as the matrices of later ones are; 0 for none
	// Mult are multipliers of gate, x, B, C and time steps; nil for none.
	Mult []float32
}

// validate checks that the numbers fit together.
func (x *stateConfig) validate(layers int) error {
	if x.Layers == nil {
		return nil
	}
	if len(x.Layers) != layers {
		return fmt.Errorf("layers that have a state or not: expected %d, found %d", layers, len(x.Layers))
	}
	for _, f := range []struct {
		field       string
		v, min, max int
	}{
		{"inner size of a state", x.Inner, 1, 1 << 20}, {"states", x.States, 1, nn.MaxStates}, {"rows of a convolution", x.Taps, 1, 64},
		{"rank of time steps", x.Rank, 0, 1 << 20}, {"heads of a state", x.Heads, 0, 1 << 14}, {"groups of heads of a state", x.Groups, 0, max(x.Heads, 0)},
		{"layers until rows are halved", x.HalfEvery, 0, 1 << 20},
	} {
		if f.v < f.min || f.v > f.max {
			return fmt.Errorf("%s: expected %d to %d, found %d", f.field, f.min, f.max, f.v)
		}
	}
	const w = kernel.StateColumns
	switch {
	case x.Heads == 0 && x.Inner%w != 0:
		return fmt.Errorf("inner size of a state: expected a multiple of %d, found %d", w, x.Inner)
	case x.Heads > 0 && (x.Inner%x.Heads != 0 || x.Inner/x.Heads%w != 0 || x.Inner/x.Heads > nn.MaxStates):
		return fmt.Errorf("inner size of a state: expected %d heads of a multiple of %d up to %d, found %d", x.Heads, w, nn.MaxStates, x.Inner)
	case x.Heads > 0 && (x.Groups == 0 || x.Heads%x.Groups != 0 || x.States%4 != 0):
		return fmt.Errorf("heads of a state: expected groups that divide %d and states in fours, found %d groups and %d states", x.Heads, x.Groups, x.States)
	}
	if x.Mult != nil && len(x.Mult) != 5 {
		return fmt.Errorf("multipliers of a state: expected 5, found %d", len(x.Mult))
	}
	for _, v := range []float32{x.DtMin, x.DtMax, x.NormEps} {
		if math.IsNaN(float64(v)) || v < 0 {
			return fmt.Errorf("limits of time steps: expected positive numbers, found %v", v)
		}
	}
	return nil
}

func (x *stateConfig) describe(d *nameList) {
	for i, has := range x.Layers {
		d.add(fmt.Sprintf("state.layer_%d", i), has)
	}
	d.add("state.inner", x.Inner)
	d.add("state.states", x.States)
	d.add("state.taps", x.Taps)
	d.add("state.rank", x.Rank)
	d.add("state.heads", x.Heads)
	d.add("state.groups", x.Groups)
	d.add("state.norm_groups", x.NormGroups)
	d.add("state.norm_ranks", x.NormRanks)
	d.add("state.norm_eps", x.NormEps)
	d.add("state.dt_min", x.DtMin)
	d.add("state.dt_max", x.DtMax)
	d.add("state.tiled", x.Tiled)
	d.add("state.beside", x.Beside)
	d.add("state.norm_first", x.NormFirst)
	d.add("state.mult", x.Mult)
	d.add("state.half_every", x.HalfEvery)
}

// stateLayers says which layers have a state: those without key-value heads of a
// GGUF file, those for which attends is false of a config.json.
func (d *description) stateLayers(c *Config, attends func(layer int) bool) {
	c.State.Layers = make([]bool, len(c.KVHeads))
	for i, n := range c.KVHeads {
		if c.State.Layers[i] = n == 0 || d.hf && !attends(i); c.State.Layers[i] {
			c.KVHeads[i] = max(c.Heads, 1)
		}
	}
}

// every reads which layers of a config.json have something: one in so many.
func (d *description) every(periodKey, offsetKey string, period, offset int) func(layer int) bool {
	period, offset = d.int("", periodKey, period), d.int("", offsetKey, offset)
	if period < 1 || offset < 0 || offset >= period {
		d.fail(offsetKey, fmt.Sprintf("0 to %d, as %s says", period-1, periodKey), offset)
		return func(int) bool { return false }
	}
	return func(layer int) bool { return layer%period == offset }
}

// negativeExp replaces logarithms of rates by the rates, as GGUF has them.
func negativeExp(m tensor.Mat) (tensor.Mat, error) {
	return mapped(m, func(x float32) float32 { return float32(-math.Exp(float64(x))) })
}

// mapped returns a float32 copy of m with f of each value.
func mapped(m tensor.Mat, f func(x float32) float32) (tensor.Mat, error) {
	x := make([]float32, m.Rows*m.Cols)
	for i := range m.Rows {
		m.DecodeRow(x[i*m.Cols:][:m.Cols], i)
	}
	for i, v := range x {
		x[i] = f(v)
	}
	out := tensor.Mat{Type: tensor.F32, Rows: m.Rows, Cols: m.Cols, Data: make([]byte, 4*len(x))}
	return out, tensor.F32.Encode(out.Data, x)
}

// stateFixes is hfNames.fix of families with such logarithms.
func stateFixes(_ *Config, _ int, part string, _ bool) func(tensor.Mat) (tensor.Mat, error) {
	if part == "ssm_a" {
		return negativeExp
	}
	return nil
}

// numbers returns the values of a tensor of n, in whatever shape, that must be there.
func (b *builder) numbers(name string, n int) []float32 {
	m, ok := b.find(name, 0, 0)
	if !ok {
		b.missing(1, n, name)
		return nil
	}
	if m.Rows*m.Cols != n {
		b.fail("tensor %q: expected %d elements, found %d x %d", b.spelling(name), n, m.Rows, m.Cols)
		return nil
	}
	x := make([]float32, n)
	for i := range m.Rows {
		m.DecodeRow(x[i*m.Cols:][:m.Cols], i)
	}
	b.src.release(m.Data)
	return x
}

// conv reads the convolution in front of a recurrent layer.
func (b *builder) conv(name string, columns int) nn.Conv {
	taps := b.c.State.Taps
	c := nn.Conv{Taps: make([][]float32, taps), Bias: b.bias(name+".bias", columns)}
	x := b.numbers(name+".weight", columns*taps)
	for k := range c.Taps {
		c.Taps[k] = make([]float32, columns)
		for i := 0; i < columns && x != nil; i++ {
			c.Taps[k][i] = x[i*taps+k]
		}
	}
	return c
}

// selective builds the selective state-space mixer of a layer.
func (b *builder) selective(at func(string) string) *nn.Selective {
	x, hidden := &b.c.State, b.c.Hidden
	m := &nn.Selective{
		In:   b.linear(at("ssm_in"), 2*x.Inner, hidden),
		Conv: b.conv(at("ssm_conv1d"), x.Inner),
		X:    b.linear(at("ssm_x"), x.Rank+2*x.States, x.Inner),
		Dt:   b.linear(at("ssm_dt"), x.Inner, x.Rank),
		D:    b.numbers(at("ssm_d"), x.Inner),
		Out:  b.linear(at("ssm_out"), hidden, x.Inner),
	}
	if x.NormRanks {
		m.DtNorm, m.BNorm, m.CNorm = b.rankNorm(at("ssm_dt_norm"), x.Rank), b.rankNorm(at("ssm_b_norm"), x.States), b.rankNorm(at("ssm_c_norm"), x.States)
	}
	const w = kernel.StateColumns
	rates := b.numbers(at("ssm_a"), x.Inner*x.States)
	m.A = make([]float32, x.Inner*x.States)
	for i, v := range rates {
		column, n := i/x.States, i%x.States
		m.A[(column/w*x.States+n)*w+column%w] = v
	}
	return m
}

// ssd builds the state-space mixer of a layer whose heads share rates of decay.
// norm says whether its rows are normalized.
func (b *builder) ssd(at func(string) string, norm bool) *nn.SSD {
	x, hidden := &b.c.State, b.c.Hidden
	columns := x.Inner + 2*x.Groups*x.States
	m := &nn.SSD{
		Heads: x.Heads, HeadDim: x.Inner / x.Heads, Groups: x.Groups, States: x.States,
		In:     b.linear(at("ssm_in"), x.Inner+columns+x.Heads, hidden),
		Conv:   b.conv(at("ssm_conv1d"), columns),
		DtBias: b.numbers(at("ssm_dt.bias"), x.Heads),
		A:      b.numbers(at("ssm_a"), x.Heads),
		D:      b.numbers(at("ssm_d"), x.Heads),
		DtMin:  x.DtMin, DtMax: x.DtMax, NormFirst: x.NormFirst,
		Out: b.linear(at("ssm_out"), hidden, x.Inner),
	}
	for i, v := range x.Mult {
		width := [5]int{x.Inner, x.Inner, x.Groups * x.States, x.Groups * x.States, x.Heads}[i]
		m.Mult = append(m.Mult, slices.Repeat([]float32{v}, width)...)
	}
	if norm {
		m.Norm = nn.Norm{Kind: nn.NormRMS, Eps: b.c.NormEps, W: b.numbers(at("ssm_norm.weight"), x.Inner)}
		if x.Groups > 1 && x.NormGroups {
			m.Norm.Group = x.Inner / x.Groups
		}
	}
	return m
}

// timeSteps reads the limits of time steps that a config.json has.
func (d *description) timeSteps(x *stateConfig, key string) {
	_, v, ok := d.find("", key, "two numbers")
	list, _ := v.([]any)
	if !ok {
		return
	}
	if len(list) == 2 {
		lo, low := asFloat(list[0])
		hi, high := asFloat(list[1])
		if s, text := list[1].(string); text && (s == "inf" || s == "Infinity") {
			hi, high = math.Inf(1), true
		}
		if low && high {
			if x.DtMin = float32(lo); !math.IsInf(hi, 1) || lo > 0 {
				x.DtMax = float32(hi)
			}
			return
		}
	}
	d.fail(key, "two numbers", describe(v))
}

// rankNorm returns a norm of n elements inside of a mixer, with weights if the
// model has them.
func (b *builder) rankNorm(name string, n int) nn.Norm {
	norm := nn.Norm{Kind: nn.NormRMS, Eps: b.c.State.NormEps}
	if b.present[splitPart(name)+".weight"] != must {
		norm.W = ones(n)
		return norm
	}
	norm.W = b.bias(name+".weight", n)
	return norm
}

// splitPart returns the part of a name without its layer.
func splitPart(name string) string {
	_, part, suffix := splitName(name)
	return part + suffix
}
