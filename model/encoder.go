package model

import (
	"cmp"
	"fmt"
	"strings"

	"ridge/nn"
	"ridge/weights/tensor"
)

// encoderConfig is what a configuration says of a model that makes embeddings or
// scores of whole texts.
type encoderConfig struct {
	Both  bool  // attention is in both directions
	Reach []int // per layer: how far before and behind itself a row sees, 0 for all; nil for all
	// Buckets is how many distances to either side the biases of scores tell apart, 0
	// for no biases.
	Buckets    int
	Types      int  // of tokens, 0 for none
	FirstPlain bool // the first layer has no norm before its mixer
	// ClassAct is between the matrices of a classifier, ClassPool what it reads.
	ClassAct  classAct
	ClassPool Pooling
}

// classAct is the function between a classifier's matrices.
type classAct int

// The functions.
const (
	classTanh classAct = iota
	classReLU
	classGELU
)

func (c *encoderConfig) describe(d *nameList) {
	d.add("encoder.both", c.Both)
	d.add("encoder.reach", c.Reach)
	d.add("encoder.buckets", c.Buckets)
	d.add("encoder.types", c.Types)
	d.add("encoder.first_plain", c.FirstPlain)
	d.add("encoder.class_act", int(c.ClassAct))
	d.add("encoder.class_pool", string(c.ClassPool))
}

func (c *encoderConfig) validate(layers int) error {
	if c.Reach != nil && len(c.Reach) != layers {
		return fmt.Errorf("reach of attention: expected one of each of %d layers, found %d", layers, len(c.Reach))
	}
	for i, n := range c.Reach {
		if n < 0 {
			return fmt.Errorf("layer %d: reach of attention: expected 0 or more positions, found %d", i, n)
		}
	}
	if c.Types < 0 || c.Types > 1<<16 {
		return fmt.Errorf("types of tokens: expected 0 to %d, found %d", 1<<16, c.Types)
	}
	if c.Buckets < 0 || c.Buckets > 1<<16 || c.Buckets%4 != 0 {
		return fmt.Errorf("buckets of distances: expected a multiple of 4 up to %d, found %d", 1<<16, c.Buckets)
	}
	return nil
}

// classNames are the weights of a classifier.
var classNames = []string{"cls.weight", "cls.bias", "cls.norm.weight", "cls.output.weight", "cls.output.bias"}

// classifies reports whether a config.json is that of a model with a classifier.
func (d *description) classifies() bool {
	list, _ := d.get("architectures")
	names, _ := list.([]any)
	return d.hf && len(names) == 1 && strings.HasSuffix(fmt.Sprint(names[0]), "ForSequenceClassification")
}

// classes says whether there is a classifier. A config.json says it by the name of
// the model's class.
func (d *description) classes(a *architecture, c *Config) {
	if !d.hf {
		d.with(true, classNames...)
		return
	}
	if d.classifies() {
		d.must("cls.output.weight")
		d.must(a.scores...)
	}
}

// classifier builds what makes scores of states, if the file has it.
func (b *builder) classifier(net *Net) {
	c := b.c
	out, ok := b.optional(classWeight, 0, 0)
	if !ok {
		return
	}
	if out.Cols != c.Hidden {
		b.fail("tensor %q: expected rows of %d, found %d x %d", b.spelling("cls.output.weight"), c.Hidden, out.Rows, out.Cols)
		return
	}
	k := &classifier{act: c.Encoder.ClassAct, Pool: cmp.Or(c.Encoder.ClassPool, PoolingLast), Labels: out.Rows}
	if m, ok := b.optional("cls.weight", c.Hidden, c.Hidden); ok {
		k.in = nn.Linear{W: b.pack("cls", m), Bias: b.bias("cls.bias", c.Hidden)}
	}
	k.norm = b.optionalNorm("cls.norm", c.Hidden)
	k.out = nn.Linear{W: b.pack("cls.output", out), Bias: b.bias("cls.output.bias", out.Rows)}
	net.Classes, b.scores = k, true
}

// bothWays gives attention its neighbours behind, where the model has that.
func (b *builder) bothWays(a *nn.Attention, layer int) {
	c := &b.c.Encoder
	if !c.Both {
		return
	}
	a.Both, a.Window, a.Chunk, a.Slopes, a.Bias = true, 0, 0, nil, b.distance
	if c.Reach != nil {
		a.Reach = c.Reach[layer]
	}
	// Keys and values are needed while their layer runs: all lie in one place.
	if n := len(b.attentions); n > 0 && n == layer && b.attentions[0].KVHeads == a.KVHeads && b.attentions[0].HeadDim == a.HeadDim {
		a.Lodges = true
	}
}

// distances prepares what encoders add to scores by the distance of their tokens.
func (b *builder) distances() {
	c, e := b.c, &b.c.Encoder
	if !e.Both {
		return
	}
	length := c.Context
	if b.shapes {
		length = 1
	}
	switch {
	case b.slopes != nil:
		b.distance = nn.BothWaysAlibi(b.slopes, length)
	case e.Buckets > 0:
		m, ok := b.find("attn_rel_b.weight", e.Buckets, c.Heads)
		if !ok {
			b.missing(e.Buckets, c.Heads, "attn_rel_b.weight")
			return
		}
		const farthest = 128
		rows := make([]float32, e.Buckets*c.Heads)
		for i := range e.Buckets {
			m.DecodeRow(rows[i*c.Heads:][:c.Heads], i)
		}
		b.distance = nn.NewDistance(c.Heads, length, func(head, distance int) float32 {
			return rows[nn.Bucket(distance, e.Buckets, farthest)*c.Heads+head]
		})
	}
}

// checkBoth refuses a network in both directions with layers that only look back.
func (b *builder) checkBoth(net *Net) {
	if !b.c.Encoder.Both {
		return
	}
	for i := range net.Layers {
		if a, ok := net.Layers[i].Mix.(*nn.Attention); !ok || !a.Both || a.KeysOf != nil {
			b.fail("layer %d: expected attention that can look in both directions, found %T", i, net.Layers[i].Mix)
			return
		}
	}
}

// lastRows leaves out rows before the last n of a matrix, if it has more.
func lastRows(n int) func(tensor.Mat) (tensor.Mat, error) {
	return func(m tensor.Mat) (tensor.Mat, error) {
		if skip := m.Rows - n; n > 0 && skip > 0 {
			m.Data = m.Data[skip*m.Type.RowBytes(m.Cols):]
			m.Rows = n
		}
		return m, nil
	}
}

// fixed fails unless a value that no class may know is what it must be, or absent.
func (d *description) fixed(key string, want any) {
	if !d.hf {
		return
	}
	d.read[d.in+key] = true
	if v, ok := d.get(key); ok && v != want {
		d.fail(key, fmt.Sprint(want), v)
	}
}

// modernReach reads which layers look only so far, and how they rotate.
func (d *description) modernReach(c *Config) {
	size := d.int("attention.sliding_window", "local_attention", 128)
	every := d.int("attention.sliding_window_pattern", "global_attn_every_n_layers", 3)
	local := RopeConfig{Base: d.float("rope.freq_base_swa", "local_rope_theta", 10000)}
	if d.hf {
		c.Rope[0].Base = d.float("", "global_rope_theta", 160000)
		local = d.ropePerType(c, local)
	}
	c.Rope = append(c.Rope, local)
	types := d.strings("layer_types", c.Layers)
	c.Encoder.Reach, c.LayerRope = everyLayer(c.Layers, 0), everyLayer(c.Layers, 0)
	for i := range c.Encoder.Reach {
		near := every > 0 && i%every != 0
		if types != nil {
			near = types[i] == "sliding_attention"
		}
		if near {
			c.Encoder.Reach[i], c.LayerRope[i] = size/2, 1
		}
	}
}
