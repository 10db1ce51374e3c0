package model

import (
	"fmt"
	"math"

	"ridge/nn"
)

// Config is what the files say of a model that is not a weight. An architecture
// reads it, and builds a network of layers from it.
type Config struct {
	Arch    string // name of the architecture, as GGUF spells it
	Vocab   int    // rows of the embedding
	Hidden  int    // width of the residual stream
	Layers  int
	Heads   int // query heads
	KVHeads []int
	HeadDim int   // the largest one
	Dims    []int // of the heads of each layer; nil: all are of HeadDim
	FFN     int   // width of the MLP, the largest one
	FFNs    []int // of the MLP of each layer; nil: all are of FFN
	Context int   // positions that the model was made for
	// Ahead is the number of layers behind those in a file that predict further
	// tokens, of which nothing is computed.
	Ahead int

	Norm    nn.NormKind
	NormEps float32
	// PlainNorms are norms without weights.
	PlainNorms  bool
	NoFinalNorm bool // no norm behind the last layer
	Embedding   int  // width of the embedding if it is not Hidden, 0 if it is

	// Wiring of a block.
	Parallel  bool   // attention and MLP both read the block's input
	SumNorms  bool   // norms of the sums behind attention and MLP, and none before these
	PostNorms bool   // norms before the residual additions as well
	NormResid bool   // the residual stream continues from the normalized rows
	NoFFN     bool   // layers are mixers alone, or FFNs alone
	FFNAlone  []bool // layers that are an FFN alone; nil: none

	Act     nn.Activation
	Cutoffs []float32   // of the gates of each layer, -Inf for none: see nn.MLP; nil for none
	XIELU   [][]float32 // of a GGUF file: the numbers of Act XIELU, each for each layer
	Gated   bool        // MLP is down(act(gate) * up) and not down(act(up))
	Experts ExpertConfig
	Encoder encoderConfig
	Conv    convConfig
	State   stateConfig
	Joint   jointConfig // of layers with a state beside attention
	Latent  LatentConfig

	RopeStyle  nn.RopeStyle
	RopeDim    int
	Rope       []RopeConfig // sets of frequencies
	LayerRope  []int        // set used by each layer, -1 for none
	KeysFrom   []int        // layer whose keys and values each layer reads; nil: its own
	AlibiBias  float32      // maximum ALiBi bias, 0 for none
	AlibiScale float32      // multiplier of the slopes, 0 for 1
	Window     []int        // per layer: keys that a query sees at most, 0 for all
	Chunk      []int        // per layer: positions in a chunk, whose keys alone a query sees, 0 for all; nil for none

	NormRotated bool // norms of queries and keys come after the rotation
	UnitQK      bool // queries and keys are normalized without weights where they are rotated

	AttnScale    float32   // scale of query·key
	Temper       nn.Temper // of queries by their position
	ScaleByLayer bool      // scores of layer i are divided by i+1 as well
	AttnSoftcap  float32   // 0 for none
	FinalSoftcap float32   // 0 for none
	ClipQKV      float32   // 0 for none
	PlainVNorm   bool      // values are normalized, without weights
	EmbScale     float32   // embedding multiplier
	ResidScale   float32   // multiplier of what a block adds
	LogitScale   float32

	PerLayer int // width of the inputs that layers have of each token, 0 for none
	Streams  int // of AltUp; 0 for none
	Active   int // stream that layers compute on
	Laurel   int // rank of LAuReL; 0: as the file has it

	Tied       bool // output matrix is the embedding
	UnitOutput bool // the rows of a checkpoint's output matrix are divided by their lengths

	Quantized string // tells how a checkpoint's weights are quantized, "" if they are not
}

// dim returns the dimension of the heads of a layer.
func (c *Config) dim(layer int) int {
	if c.Dims != nil {
		return c.Dims[layer]
	}
	return c.HeadDim
}

// ffn returns the width of the MLP of a layer.
func (c *Config) ffn(layer int) int {
	if c.FFNs != nil {
		return c.FFNs[layer]
	}
	return c.FFN
}

// Validate checks that the numbers of c fit together. Errors name the field,
// what was expected and what was found.
func (c *Config) Validate() error {
	type check struct {
		field string
		v     int
		max   int
	}
	for _, f := range []check{
		{"vocabulary size", c.Vocab, 1 << 24}, {"hidden size", c.Hidden, 1 << 20}, {"layer count", c.Layers, 1 << 12},
		{"head count", c.Heads, 1 << 14}, {"head dimension", c.HeadDim, 1 << 14}, {"feed-forward size", c.FFN, 1 << 22},
		{"context length", c.Context, 1 << 30},
	} {
		if f.v <= 0 || f.v > f.max {
			return fmt.Errorf("%s: expected 1 to %d, found %d", f.field, f.max, f.v)
		}
	}
	if len(c.KVHeads) != c.Layers {
		return fmt.Errorf("key-value head counts: expected %d, found %d", c.Layers, len(c.KVHeads))
	}
	for i, n := range c.KVHeads {
		if n <= 0 || c.Heads%n != 0 {
			return fmt.Errorf("layer %d: key-value head count: expected a divisor of %d heads, found %d", i, c.Heads, n)
		}
	}
	if len(c.Window) != c.Layers || len(c.LayerRope) != c.Layers || c.Chunk != nil && len(c.Chunk) != c.Layers {
		return fmt.Errorf("per-layer settings: expected %d, found %d windows, %d chunks and %d rotary sets", c.Layers, len(c.Window), len(c.Chunk), len(c.LayerRope))
	}
	for i, n := range c.Chunk {
		if n < 0 {
			return fmt.Errorf("layer %d: chunk: expected a positive number of positions, found %d", i, n)
		}
	}
	if c.RopeStyle != nn.RopeNone && (c.RopeDim <= 0 || c.RopeDim > c.HeadDim || c.RopeDim%2 != 0) {
		return fmt.Errorf("rotary dimension: expected an even number up to %d, found %d", c.HeadDim, c.RopeDim)
	}
	for i, r := range c.LayerRope {
		if r < -1 || r >= len(c.Rope) {
			return fmt.Errorf("layer %d: rotary set: expected less than %d, found %d", i, len(c.Rope), r)
		}
	}
	for i, r := range c.Rope {
		if !(r.Base > 0) || math.IsInf(r.Base, 0) {
			return fmt.Errorf("rotary base %d: expected a positive number, found %v", i, r.Base)
		}
	}
	for _, f := range []struct {
		field string
		v     float32
	}{{"embedding", c.EmbScale}, {"residual", c.ResidScale}, {"score", c.AttnScale}, {"logit", c.LogitScale}} {
		if math.IsInf(float64(f.v), 0) || math.IsNaN(float64(f.v)) {
			return fmt.Errorf("%s scale: expected a finite number, found %v", f.field, f.v)
		}
	}
	if err := c.validateLayers(); err != nil {
		return err
	}
	if err := c.Experts.validate(c.Layers); err != nil {
		return err
	}
	if err := c.Conv.validate(c.Layers); err != nil {
		return err
	}
	if err := c.State.validate(c.Layers); err != nil {
		return err
	}
	if err := c.Latent.validate(); err != nil {
		return err
	}
	if err := c.Encoder.validate(c.Layers); err != nil {
		return err
	}
	if !(c.NormEps >= 0 && c.NormEps < 1) {
		return fmt.Errorf("norm epsilon: expected 0 to 1, found %v", c.NormEps)
	}
	return nil
}

// defaults fills what most architectures share, from the numbers already set.
func (c *Config) defaults() {
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	if c.RopeDim == 0 {
		c.RopeDim = c.HeadDim
	}
	if c.AttnScale == 0 {
		c.AttnScale = float32(1 / math.Sqrt(float64(c.HeadDim)))
	}
	for _, f := range []*float32{&c.EmbScale, &c.ResidScale, &c.LogitScale} {
		if *f == 0 {
			*f = 1
		}
	}
	if c.Layers > 0 && c.Layers <= 1<<12 {
		if c.Window == nil {
			c.Window = make([]int, c.Layers)
		}
		if c.LayerRope == nil {
			c.LayerRope = make([]int, c.Layers)
			if c.RopeStyle == nn.RopeNone {
				for i := range c.LayerRope {
					c.LayerRope[i] = -1
				}
			}
		}
	}
}

// everyLayer returns n copies of v.
func everyLayer(n, v int) []int {
	if n < 0 || n > 1<<12 {
		return nil
	}
	s := make([]int, n)
	for i := range s {
		s[i] = v
	}
	return s
}
